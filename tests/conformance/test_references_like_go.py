"""Image references against both Go libraries: what they refuse, and how they complete and spell the rest."""

from __future__ import annotations

import random
from dataclasses import dataclass

import pytest

from harness.oracle import Answer, Oracle
from podium.text.references import Grammar, Reference, is_canonical

pytestmark = pytest.mark.oracle

MANY = 8000
HEX = "0123456789abcdef" * 8
HOSTS = (
    "", "", "", "docker.io", "index.docker.io", "registry-1.docker.io", "quay.io", "localhost",
    "localhost:5000", "example.com:443", "Example.com", "UPPER", "host", "a-b.c", "a_b.c", "-a.b", "a-.b",
    "a..b", "10.0.0.1:5000", "[::1]", "[::1]:5000", "[fe80::1%25eth0]", "host:", "host:port",
    "x.y" * 60, "é.com",
)  # fmt: skip
PARTS = (
    "library", "ubuntu", "app", "a.b", "a_b", "a__b", "a___b", "a--b", "a-", "-a", ".a", "A", "app1", "0", "",
    "a" * 100, "b" * 254, HEX[:64], "ünter",
)  # fmt: skip
TAGS = ("", "", "", "latest", "v1.0", "V1", "_x", ".x", "-x", "a" * 128, "a" * 129, "a+b", "")
DIGESTS = (
    "", "", "", f"sha256:{HEX[:64]}", f"sha256:{HEX[:64]}",
    f"sha256:{HEX[:64].upper()}", f"sha256:{HEX[:63]}",
    f"sha512:{HEX}", f"sha384:{HEX[:96]}", f"sha1:{HEX[:40]}", f"SHA256:{HEX[:64]}", f"md5:{HEX[:32]}",
    f"a+b.c:{HEX[:40]}", f"sha256:{HEX[:31]}", "sha256:",
)  # fmt: skip
NOISE = "/:@.-_ \n\tAé[]0"


def _text(chance: random.Random) -> str:
    sound = chance.random() < 0.6  # then most parts are, so that a good share is accepted
    host = chance.choice(HOSTS[:10] if sound else HOSTS)
    parts = [chance.choice(PARTS[:6] if sound else PARTS) for _ in range(chance.choice((1, 1, 2, 2, 3)))]
    text = "/".join([host, *parts] if host else parts)
    if tag := chance.choice(TAGS):
        text += f":{tag}"
    if digest := chance.choice(DIGESTS):
        text += f"@{digest}"
    if chance.random() < 0.2:
        at = chance.randint(0, len(text))
        text = text[:at] + chance.choice(NOISE) + text[at + chance.randint(0, 1) :]
    return text


def _texts() -> list[str]:
    chance = random.Random(7)
    edges = [
        "",
        "/",
        "//",
        ":",
        "@",
        HEX[:64],
        HEX[:63],
        f"sha256:{HEX[:64]}",
        "ubuntu",
        "docker.io",
        "localhost",
    ]
    edges += [
        f"{host}/{'a' * size}"
        for host in ("quay.io", "docker.io")
        for size in (237, 245, 246, 247, 248, 255, 256)
    ]
    return edges + [_text(chance) for _ in range(MANY)]


@dataclass(frozen=True)
class Told:
    """What we say about a reference, in the oracle's words."""

    domain: str
    path: str
    tag: str
    digest: str
    text: str
    pinned: str


def _told(text: str, grammar: Grammar) -> Told | None:
    try:
        found = Reference.parse(text, grammar)
    except ValueError:
        return None
    return Told(found.domain, found.path, found.tag, found.digest, str(found), str(found.pinned()))


def _theirs(answer: Answer) -> Told | None:
    return None if answer.error else Told(**{name: answer.output[name] for name in Told.__annotations__})


@pytest.mark.parametrize(
    ("question", "grammar"),
    [("references.distribution", Grammar.DISTRIBUTION), ("references.containers", Grammar.CONTAINERS)],
)
def test_references_are_read_completed_and_refused_as_in_go(question: str, grammar: Grammar) -> None:
    texts = _texts()
    theirs = Oracle().ask_all(question, texts)
    accepted = sum(not answer.error for answer in theirs)
    assert MANY // 8 < accepted < MANY - MANY // 8
    for text, answer in zip(texts, theirs, strict=True):
        assert _told(text, grammar) == _theirs(answer), repr(text)


def test_a_reference_is_canonical_if_opm_would_pull_it() -> None:
    texts = _texts()
    texts += [str(found) for text in texts if (found := _parsed(text))]
    theirs = Oracle().ask_all("references.canonical", texts)
    assert {answer.output for answer in theirs} == {True, False}
    for text, answer in zip(texts, theirs, strict=True):
        assert is_canonical(text) == answer.output, repr(text)


def _parsed(text: str) -> Reference | None:
    try:
        return Reference.parse(text)
    except ValueError:
        return None
