"""Image references. Against both originals on thousands of texts: test_references_like_go."""

from __future__ import annotations

import time

import pytest

from podium.text.references import Grammar, Reference, is_canonical

DIGEST = "sha256:" + "0123456789abcdef" * 4


@pytest.mark.parametrize(
    ("text", "full"),
    [
        ("ubuntu", "docker.io/library/ubuntu"),
        ("ubuntu:22.04", "docker.io/library/ubuntu:22.04"),
        ("me/app", "docker.io/me/app"),
        ("docker.io/ubuntu", "docker.io/library/ubuntu"),
        ("index.docker.io/me/app", "docker.io/me/app"),
        ("docker.io/library/a/b", "docker.io/library/a/b"),
        ("quay.io/me/app:v1", "quay.io/me/app:v1"),
        ("localhost/app", "localhost/app"),
        ("host:5000/app", "host:5000/app"),
        ("[::1]:5000/app", "[::1]:5000/app"),
        ("my_host.io/app", "my_host.io/app"),  # an underscore makes it no host, but a path
        (f"app:v1@{DIGEST}", f"docker.io/library/app:v1@{DIGEST}"),
    ],
)
def test_short_names_are_completed(text: str, full: str) -> None:
    found = Reference.parse(text)
    assert str(found) == full
    assert Reference.parse(full) == found


@pytest.mark.parametrize(
    "text",
    ["", "UPPER", "a b", "a//b", "a:b:c", "a@sha256:123", "a" * 256, "0" * 64, "-a", "a/", ":tag", "a\n",
     "é/a", "http://a/b", "a@" + DIGEST.upper(), f"a@md5:{'0' * 32}"],
)  # fmt: skip
def test_what_is_no_reference_is_refused(text: str) -> None:
    for grammar in Grammar:
        with pytest.raises(ValueError):
            Reference.parse(text, grammar)


@pytest.mark.parametrize("text", ["[::1]/app", "Host/app", "quay.io/" + "a" * 250])
def test_the_two_grammars_differ(text: str) -> None:
    assert Reference.parse(text).path
    with pytest.raises(ValueError):
        Reference.parse(text, Grammar.CONTAINERS)


@pytest.mark.parametrize(
    ("text", "pulled"),
    [
        ("a", "docker.io/library/a:latest"),
        ("q.io/a:1", "q.io/a:1"),
        (f"q.io/a:1@{DIGEST}", f"q.io/a@{DIGEST}"),
    ],
)
def test_a_digest_is_pulled_without_its_tag(text: str, pulled: str) -> None:
    assert str(Reference.parse(text).pinned()) == pulled


def test_only_full_names_are_canonical() -> None:
    assert is_canonical("docker.io/library/ubuntu:22.04")
    assert is_canonical(f"quay.io/me/app@{DIGEST}")
    assert not is_canonical("ubuntu")
    assert not is_canonical("docker.io/ubuntu")
    assert not is_canonical("not a reference")


def test_hostile_text_takes_no_time() -> None:
    start = time.perf_counter()
    for text in (
        "a-" * 100_000,
        "a" * 200_000 + "!",
        "a." * 100_000,
        "a/" * 100_000,
        "_" * 200_000,
        "a--" * 70_000 + "-",
    ):
        with pytest.raises(ValueError):
            Reference.parse(text)
    assert time.perf_counter() - start < 2
