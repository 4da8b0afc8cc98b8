"""Versions, ranges and constraints against the Go libraries, on texts that cover each rule of the grammars.

The texts are drawn from fixed seeds: valid ones, then the same with a few characters changed, so that about
half are refused.
"""

from __future__ import annotations

import random
from collections.abc import Callable

import pytest

from harness.oracle import Answer, Oracle
from podium.text.constraints import Constraint, parse_version
from podium.text.ranges import Range
from podium.text.semver import Version, compare

pytestmark = pytest.mark.oracle

MANY = 6000
NUMBERS = ("0", "1", "2", "3", "10", "01", "00", "18446744073709551615", "18446744073709551616", "")
IDENTIFIERS = (
    "0",
    "1",
    "11",
    "01",
    "alpha",
    "beta",
    "x",
    "rc1",
    "0a",
    "-",
    "a-b",
    "18446744073709551616",
    "",
)
NOISE = " \t\n\v\xa0\u2003.,-+|<>=!~^*xXvV019aZ_é٣"
VERSIONS = (
    "0.0.0", "0.0.1", "0.0.2", "0.1.0", "0.1.1", "0.2.0", "0.2.3", "1.0.0", "1.0.1", "1.1.0", "1.2.0",
    "1.2.3", "1.2.4", "1.3.0", "2.0.0", "2.1.0", "2.2.2", "3.0.0", "10.0.0", "10.2.1",
    "0.0.0-0", "0.0.0-alpha", "0.1.0-rc.1", "1.0.0-alpha", "1.0.0-alpha.1", "1.2.0-alpha", "1.2.3-alpha",
    "1.2.3-beta", "1.2.3-beta.2", "1.2.3-beta.11", "1.2.3-next", "2.0.0-0", "2.0.0-alpha.beta", "3.0.0-x",
    "1.2.3+build", "1.2.3-beta+build.7", "2.0.0+x",
)  # fmt: skip


def _changed(text: str, chance: random.Random) -> str:
    """The text with one to three characters dropped, doubled, replaced or put in."""
    for _ in range(chance.randint(1, 3)):
        at = chance.randint(0, len(text))
        text = (
            text[:at]
            + chance.choice(("", chance.choice(NOISE), text[at : at + 1] * 2))
            + text[at + chance.randint(0, 1) :]
        )
    return text


def _version(chance: random.Random) -> str:
    text = ".".join(chance.choice(NUMBERS) for _ in range(chance.choice((1, 2, 3, 3, 3, 3, 4))))
    if chance.random() < 0.4:
        text += "-" + ".".join(chance.choice(IDENTIFIERS) for _ in range(chance.randint(1, 3)))
    if chance.random() < 0.3:
        text += "+" + ".".join(chance.choice(IDENTIFIERS) for _ in range(chance.randint(1, 2)))
    return chance.choice(("", "", "", "v", " ")) + text + chance.choice(("", "", "", "", " ", "\n"))


def _loose(chance: random.Random) -> str:
    """A version of which numbers may be missing or wild, mostly small enough to tell `VERSIONS` apart."""
    wild = ("x", "X", "*") if chance.random() < 0.3 else ("x",)
    parts = [
        chance.choice(("0", "1", "1", "2", "3", *wild)) for _ in range(chance.choice((1, 2, 2, 3, 3, 3)))
    ]
    text = ".".join(parts)
    if chance.random() < 0.25:
        text += "-" + chance.choice(("alpha", "beta.2", "0", "next", "x", "beta.x"))
    if chance.random() < 0.05:
        text += "+build"
    return text


def _range(chance: random.Random) -> str:
    signs = ("", "=", "==", "!", "!=", ">", ">=", "<", "<=", "~", "^", "v", "=>")
    words = []
    for _ in range(chance.choice((1, 1, 2, 2, 3))):
        version = chance.choice(VERSIONS) if chance.random() < 0.6 else _loose(chance)
        words.append(chance.choice(signs) + chance.choice(("", "", " ", "  ")) + version)
        if chance.random() < 0.2:
            words.append(chance.choice(("||", "||", "|| ||", "1")))
    return chance.choice((" ", " ", "  ")).join(words)


def _constraint(chance: random.Random) -> str:
    signs = ("", "=", "!=", ">", ">=", "=>", "<", "<=", "=<", "~", "~>", "^", "==")
    terms = []
    for _ in range(chance.choice((1, 1, 1, 2, 2, 3))):
        if chance.random() < 0.15:
            terms.append(f"{_loose(chance)} - {_loose(chance)}")
        else:
            terms.append(
                chance.choice(signs)
                + chance.choice(("", "", " ", "\t"))
                + chance.choice(("", "", "v"))
                + _loose(chance)
            )
    return (
        "".join(term + chance.choice((" ", ", ", ",", " , ", " || ", "||")) for term in terms[:-1])
        + terms[-1]
    )


def _texts(draw: Callable[[random.Random], str], seed: int) -> list[str]:
    chance = random.Random(seed)
    drawn = [draw(chance) for _ in range(MANY)]
    return drawn + [_changed(text, chance) for text in drawn]


def _reads(parse: Callable[[str], Version], text: str) -> Answer:
    try:
        return Answer(str(parse(text)), "")
    except ValueError as error:
        return Answer(None, str(error))


@pytest.mark.parametrize(
    ("question", "parse"),
    [
        ("semver.parse", Version.parse),
        ("semver.parse-tolerant", Version.parse_tolerant),
        ("semver.loose", parse_version),
    ],
)
def test_versions_are_read_as_go_reads_them(question: str, parse: Callable[[str], Version]) -> None:
    texts = _texts(_version, seed=1) + ["1.2.3-" + "a" * size for size in (249, 250, 251)]
    theirs = Oracle().ask_all(question, texts)
    accepted = sum(not answer.error for answer in theirs)
    assert MANY // 20 < accepted < len(texts) - MANY // 20
    for text, answer in zip(texts, theirs, strict=True):
        ours = _reads(parse, text)
        assert (ours.output, bool(ours.error)) == (
            None if answer.error else answer.output,
            bool(answer.error),
        ), repr(text)


def test_what_is_wrong_with_a_version_is_said_in_the_originals_words() -> None:
    texts = [
        text for text in _texts(_version, seed=2) if '"' not in text and text.isascii() and text.isprintable()
    ]
    for text, answer in zip(texts, Oracle().ask_all("semver.parse", texts), strict=True):
        assert _reads(Version.parse, text).error == answer.error, repr(text)


def test_any_two_versions_rank_as_in_go() -> None:
    chance = random.Random(3)
    readable = [text for text in _texts(_version, seed=3) if not _reads(Version.parse, text).error]
    pairs = [(chance.choice(readable), chance.choice(readable)) for _ in range(MANY)]
    pairs += [(left, right) for left in VERSIONS for right in VERSIONS]
    for (left, right), answer in zip(pairs, Oracle().ask_all("semver.compare", pairs), strict=True):
        assert compare(Version.parse(left), Version.parse(right)) == answer.output, (left, right)


def _matches(parse: Callable[[str], Range | Constraint], text: str) -> list[str] | None:
    try:
        wanted = parse(text)
    except ValueError:
        return None
    return ["yes" if wanted.matches(Version.parse(version)) else "no" for version in VERSIONS]


@pytest.mark.parametrize(
    ("question", "draw", "parse"),
    [("semver.range", _range, Range.parse), ("semver.constraint", _constraint, Constraint.parse)],
)
def test_ranges_and_constraints_let_the_same_versions_through(
    question: str, draw: Callable[[random.Random], str], parse: Callable[[str], Range | Constraint]
) -> None:
    texts = _texts(draw, seed=4)
    texts += ["||".join(["1.2"] * size) for size in (31, 32, 33, 101, 102, 103, 104)] + [
        "",
        " ",
        "||",
        "1",
        "1 - 2 - 3",
    ]
    theirs = Oracle().ask_all(question, [{"text": text, "versions": VERSIONS} for text in texts])
    accepted = sum(not answer.error for answer in theirs)
    assert MANY // 3 < accepted < len(texts) - MANY // 3
    for text, answer in zip(texts, theirs, strict=True):
        ours = _matches(parse, text)
        if answer.error or ours is None:
            assert (ours is None) == bool(answer.error), repr(text)
            continue
        # An empty alternative makes the original crash when it comes to it; here it lets nothing through.
        judged = [(mine, reply) for mine, reply in zip(ours, answer.output, strict=True) if reply != "panic"]
        assert all(mine == reply for mine, reply in judged), repr(text)
