"""registries.conf and auth files mean here what they mean to podman, skopeo and opm (go.podman.io/image)."""

from __future__ import annotations

import asyncio
import base64
import json
import random
from pathlib import Path
from typing import Any

import pytest

from harness.fakeregistry import settings
from harness.oracle import Oracle
from podium.oci.credentials import Keychain
from podium.oci.errors import BadReference, BadSetup, Blocked
from podium.oci.registriesconf import parse
from podium.text.references import Reference

pytestmark = pytest.mark.oracle

DIGEST = "sha256:" + "a" * 64
HOSTS = [
    "example.com",
    "a.example.com",
    "b.a.example.com",
    "example.com:5000",
    "a.example.com:5000",
    "other.org",
]
PATHS = ["", "/x", "/x/y", "/x/y/z", "/xy", "/library/app"]
PREFIXES = [*(host + path for host in HOSTS for path in PATHS), "*.example.com", "*.a.example.com", "*.com"]
ODD = [
    "",
    "http://example.com",
    "https://x",
    "*.example.com/x",
    "*.example.com:5000",
    "example.*.com",
    "x/",
    "a//",
    "Q",
]
REFERENCES = [
    *(host + path + suffix for host in HOSTS for path in PATHS[1:] for suffix in (":v1", f"@{DIGEST}")),
    "example.com/x/y:v1@" + DIGEST,
    "docker.io/library/app:v1",
]


def conf(chance: random.Random, odd: float) -> str:
    """A registries.conf with up to five tables, each part of them wrong with the odds given."""

    def place(known: list[str]) -> str:
        return json.dumps(chance.choice(ODD if chance.random() < odd else known))

    lines = []
    locations = chance.sample(PREFIXES[:-3], 5)
    for location in locations[chance.randint(0, 4) :]:
        lines += ["[[registry]]", f"prefix = {place(PREFIXES)}" if chance.random() < 0.7 else ""]
        lines += [f"location = {place([location])}"] if chance.random() >= odd else []
        lines += [f"{name} = true" for name in ("insecure", "blocked") if chance.random() < 0.2]
        by_digest = chance.random() < 0.2
        lines += ["mirror-by-digest-only = true"] if by_digest else []
        lines += ['pull-from-mirror = "all"'] if chance.random() < odd / 5 else []
        for _ in range(chance.choice([0, 0, 1, 3])):
            lines += ["[[registry.mirror]]", f"location = {place(PREFIXES[:-3])}"]
            lines += ["insecure = true"] if chance.random() < 0.3 else []
            if chance.random() < odd or (chance.random() < 0.3 and not by_digest):
                kinds = ["all", "digest-only", "tag-only", *(["never"] if odd else [])]
                lines.append(f"pull-from-mirror = {json.dumps(chance.choice(kinds))}")
    return "\n".join(lines) + "\n"


def ours(text: str, reference: str) -> Any:
    try:
        found = parse(text, "registries.conf").sources(Reference.parse(reference))
    except Blocked:
        return "blocked"
    except (BadSetup, BadReference) as error:
        return error
    return [f"{each.reference}{' insecure' if each.insecure else ''}" for each in found]


@pytest.mark.parametrize("odd", [0.0, 0.1])
def test_images_are_read_from_the_same_places(odd: float) -> None:
    chance = random.Random(f"registries {odd}")
    asked: list[dict[str, Any]] = [
        {"conf": text, "references": [reference]}
        for text in (conf(chance, odd) for _ in range(250))
        for reference in chance.sample(REFERENCES, 5)
    ]
    verdicts = {"read": 0, "blocked": 0, "refused": 0}
    for question, answer in zip(asked, Oracle().ask_all("containers.sources", asked), strict=True):
        here = ours(question["conf"], question["references"][0])
        if answer.error:
            assert isinstance(here, Exception), (question, answer.error, here)
            verdicts["refused"] += 1
        else:
            assert here == answer.output[0], (question, answer, here)
            verdicts["blocked" if here == "blocked" else "read"] += 1
    assert min(verdicts["read"], verdicts["blocked"], verdicts["refused"]) >= 10, verdicts


@pytest.mark.parametrize(
    "text",
    [
        "[registries.search]\nregistries = ['x']",
        "[registries.block]\nregistries = []",
        "registry = 3",
        "[[",
        "[[registry]]",
    ],
)
def test_what_podman_refuses_is_refused(text: str) -> None:
    assert Oracle().ask("containers.sources", {"conf": text, "references": ["example.com/x:v1"]}).error
    assert isinstance(ours(text, "example.com/x:v1"), BadSetup)


KEYS = [
    *(host + path for host in HOSTS for path in PATHS[:4]),
    "docker.io",
    "docker.io/library",
    "index.docker.io",
]
OLD_KEYS = [
    "https://index.docker.io/v1/",
    "https://example.com",
    "http://example.com:5000/v2/",
    "https://other.org/v1",
]


def auths(chance: random.Random) -> str:
    entries: dict[str, dict[str, str]] = {}
    for number, key in enumerate(chance.sample([*KEYS, *OLD_KEYS], chance.randint(0, 8))):
        secret = base64.b64encode(f"user{number}:pass:{number}".encode()).decode()
        entries[key] = {"auth": secret}
        if chance.random() < 0.2:
            entries[key]["identitytoken"] = f"identity{number}"
    return json.dumps({"auths": entries})


def test_the_same_credentials_are_found(tmp_path: Path) -> None:
    chance = random.Random("credentials")
    repositories = [host + path for host in HOSTS for path in PATHS[1:]] + [
        "docker.io/library/app",
        "docker.io/me/app",
    ]
    asked = [{"auths": auths(chance), "repositories": repositories} for _ in range(200)]
    answers = Oracle().ask_all("containers.credentials", asked)

    async def find(content: str) -> list[list[str]]:
        file = tmp_path / "auth.json"
        file.write_text(content)
        keychain = Keychain(settings(tmp_path, auth_file=file))
        found = [await keychain.find(each) for each in repositories]
        return [
            [each.username, each.password, each.identity_token] if each else ["", "", ""] for each in found
        ]

    for question, answer in zip(asked, answers, strict=True):
        assert not answer.error
        here = asyncio.run(find(str(question["auths"])))
        # Of several old spellings of one host podman takes any, as Go's maps come.
        for repository, theirs, mine in zip(repositories, answer.output, here, strict=True):
            assert mine == theirs or _ambiguous(str(question["auths"]), repository), (
                question["auths"],
                repository,
            )


def _ambiguous(content: str, repository: str) -> bool:
    """Whether only old spellings fit, and more than one of them."""
    host = repository.partition("/")[0]
    names = {"docker.io", "index.docker.io"} if host == "docker.io" else {host}
    keys = list(json.loads(content)["auths"])
    exact = [key for key in keys if repository == key or repository.startswith(f"{key}/")]
    old = [key for key in keys if key.partition("://")[2].partition("/")[0] in names or key in names]
    return not exact and len(old) > 1
