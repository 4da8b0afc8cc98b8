"""What can go wrong with images, sorted by what a caller can do about it.

OCIError
 ├ BadReference         the name of an image is malformed: fix it
 ├ ImageNotFound        no such repository, tag, manifest or blob: check the name, or push it first
 ├ AccessDenied         credentials missing, wrong or not enough: log in with podman or docker login
 ├ Blocked              registries.conf forbids this registry
 ├ Corrupt              bytes do not match the digest or size that named them: never use them
 ├ Unacceptable         a refused image or archive: too large, too deep, links, escapes, unknown type
 ├ RateLimited          the registry asks to wait; retries are used up
 ├ Unreachable          nothing answered, or TLS failed: check network, proxy, CA, or allow plain HTTP
 ├ RegistryError        any other answer of a registry, with its own words
 └ BadSetup             auth file, registries.conf or certificates on this machine cannot be used
"""

from __future__ import annotations


class OCIError(Exception):
    """Anything that went wrong with an image, a registry or a layout."""


class BadReference(OCIError, ValueError):
    """The name of an image is malformed."""


class ImageNotFound(OCIError):
    """No such repository, tag, manifest or blob."""


class AccessDenied(OCIError):
    """The registry wants other credentials."""


class Blocked(OCIError):
    """registries.conf forbids this registry."""


class Corrupt(OCIError):
    """Bytes that do not match the digest or size that named them."""


class Unacceptable(OCIError):
    """An image or archive that breaks a limit or holds what is never unpacked."""


class RateLimited(OCIError):
    """The registry asks to wait longer than we are willing to."""


class Unreachable(OCIError):
    """No answer from the registry."""


class RegistryError(OCIError):
    """The registry answered with an error of its own."""

    def __init__(self, message: str, status: int = 0) -> None:
        super().__init__(message)
        self.status = status


class BadSetup(OCIError):
    """Files on this machine that say how to reach registries cannot be used."""
