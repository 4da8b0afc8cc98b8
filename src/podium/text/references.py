"""Names of images: `[domain/]path[:tag][@digest]`, read as the Go container world reads them.

Two grammars are in use. Docker, containerd and most tools follow github.com/distribution/reference; opm,
skopeo and the cluster's own pullers follow the older copy in containers/image, which knows no IPv6 hosts,
takes an upper-case first part for a path rather than a host, and counts the host towards the longest name.
Both add `docker.io/` and `library/` where a short name leaves them out.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from enum import Enum

DOCKER_HUB = "docker.io"
_OLD_DOCKER_HUB = "index.docker.io"
_OFFICIAL = "library/"
_LONGEST_NAME = 255
_HEX_LENGTHS = {"sha256": 64, "sha384": 96, "sha512": 128}

_LABEL = r"[a-zA-Z0-9](?:[a-zA-Z0-9-]*[a-zA-Z0-9])?"
_HOST_NAME = rf"{_LABEL}(?:\.{_LABEL})*"
_PORT = r"(?::[0-9]+)?"
_COMPONENT = r"[a-z0-9]+(?:(?:\.|__?|-+)[a-z0-9]+)*"
_TAG = r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,127}"
_ALGORITHM = r"[A-Za-z][A-Za-z0-9]*(?:[-_+.][A-Za-z][A-Za-z0-9]*)*"
_REST = rf"((?:{_COMPONENT})(?:/(?:{_COMPONENT}))*)(?::({_TAG}))?(?:@({_ALGORITHM}:[0-9a-fA-F]{{32,}}))?"
_HEX = re.compile(r"[a-f0-9]+")


class Grammar(Enum):
    """Whose rules decide what a reference is."""

    # What looks like a host, such as `a_b.c`, but is none becomes part of the path: then the domain is empty.
    DISTRIBUTION = re.compile(rf"(?:((?:{_HOST_NAME}|\[[a-fA-F0-9:]+\]){_PORT})/)?{_REST}")
    CONTAINERS = re.compile(rf"(?:({_HOST_NAME}{_PORT})/)?{_REST}")


@dataclass(frozen=True, slots=True)
class Reference:
    """An image's name in full, with the tag and the digest that it was given; a domain may be missing."""

    domain: str
    path: str
    tag: str = ""
    digest: str = ""

    @classmethod
    def parse(cls, text: str, grammar: Grammar = Grammar.DISTRIBUTION) -> Reference:
        """The image that this text names, short names completed; ValueError if it names none."""
        if len(text) == 64 and _HEX.fullmatch(text):
            raise ValueError(f"invalid repository name ({text}), cannot specify 64-byte hexadecimal strings")
        domain, rest = _split_domain(text, grammar)
        remote = rest.partition(":")[0]
        if remote.lower() != remote:
            raise ValueError(f"invalid reference format: repository name ({remote}) must be lowercase")
        found = grammar.value.fullmatch(f"{domain}/{rest}")
        if found is None:
            if text and grammar.value.fullmatch(f"{domain}/{rest}".lower()):
                raise ValueError("repository name must be lowercase")
            raise ValueError("invalid reference format")
        reference = cls(found[1] or "", found[2], found[3] or "", found[4] or "")
        named = reference.path if grammar is Grammar.DISTRIBUTION else reference.name
        if len(named) > _LONGEST_NAME:
            raise ValueError(f"repository name must not be more than {_LONGEST_NAME} characters")
        if reference.digest:
            check_digest(reference.digest)
        return reference

    @property
    def name(self) -> str:
        """The repository: domain and path."""
        return f"{self.domain}/{self.path}" if self.domain else self.path

    def pinned(self) -> Reference:
        """What is pulled: by digest alone if there is one, else by tag, by default `latest`."""
        if self.digest:
            return replace(self, tag="")
        return self if self.tag else replace(self, tag="latest")

    def __str__(self) -> str:
        return self.name + (f":{self.tag}" if self.tag else "") + (f"@{self.digest}" if self.digest else "")


def is_canonical(text: str) -> bool:
    """Whether the text names an image in full, so that opm and operator-controller pull it."""
    try:
        return str(Reference.parse(text, Grammar.CONTAINERS)) == text
    except ValueError:
        return False


def lower_host(name: str) -> str:
    """The same name with its host in lower case, as DNS reads it: what is said of a host holds for both."""
    host, slash, path = name.partition("/")
    return host.lower() + slash + path


def check_digest(text: str) -> None:
    """ValueError unless the text is a digest of an algorithm that images use, in lower-case hexadecimals."""
    algorithm, _, encoded = text.partition(":")
    if algorithm not in _HEX_LENGTHS:
        raise ValueError("unsupported digest algorithm")
    if len(encoded) != _HEX_LENGTHS[algorithm]:
        raise ValueError("invalid checksum digest length")
    if not _HEX.fullmatch(encoded):
        raise ValueError("invalid checksum digest format")


def _split_domain(text: str, grammar: Grammar) -> tuple[str, str]:
    """The host and what follows it; Docker Hub where the first part does not look like a host."""
    first, slash, rest = text.partition("/")
    if not slash or not _looks_like_host(first, grammar):
        domain, rest = DOCKER_HUB, text
    else:
        domain = DOCKER_HUB if first == _OLD_DOCKER_HUB else first
    if domain == DOCKER_HUB and "/" not in rest:
        rest = _OFFICIAL + rest
    return domain, rest


def _looks_like_host(first: str, grammar: Grammar) -> bool:
    if first == "localhost" or "." in first or ":" in first:
        return True
    return grammar is Grammar.DISTRIBUTION and first.lower() != first
