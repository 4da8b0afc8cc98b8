"""Names that conversion makes up: short enough, and the same as operator-controller's to the byte.

A role's name ends in a hash of the permission it holds, so that a changed permission is a new role. The
hash is taken over the JSON that Go writes for the permission, in the order of its struct's fields; whoever
changes that order renames the roles of every operator that is installed.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from typing import Any

# From a readable beginning and the value that the name stands for.
UniqueName = Callable[[str, Any], str]

_LONGEST = 63
_DIGITS = "0123456789abcdefghijklmnopqrstuvwxyz"
# What Go's JSON never holds in plain, for the sake of web pages.
HTML_ESCAPES = {ord(character): f"\\u{ord(character):04x}" for character in "<>&\u2028\u2029"}


def unique_name(base: str, value: Any) -> str:
    """The base, shortened if need be, and a hash of the value."""
    return name_with_suffix(base, value_hash(value))


def name_with_suffix(base: str, suffix: str) -> str:
    """`base-suffix`, with the base cut so that it fits."""
    raw = base.encode()
    if len(raw) + len(suffix) > _LONGEST:
        # Without counting the dash above, a name of exactly 63 characters and a dash is let through: names
        # that exist in clusters were made this way.
        base = raw[: _LONGEST - len(suffix) - 1].decode(errors="replace")
    return f"{base}-{suffix}"


def value_hash(value: Any) -> str:
    """SHA-224 of the value's JSON in base 36; the keys of objects are taken in the order they have."""
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":")).translate(HTML_ESCAPES) + "\n"
    return _base36(int.from_bytes(hashlib.sha224(text.encode()).digest(), "big"))


def service_name(deployment: str) -> str:
    """The Service in front of a deployment's webhooks."""
    return name_with_suffix(deployment.replace(".", "-"), "service")


def certificate_name(deployment: str) -> str:
    """The certificate of that Service, and the Secret that holds it."""
    return name_with_suffix(service_name(deployment), "cert")


def _base36(number: int) -> str:
    digits = ""
    while number:
        number, digit = divmod(number, 36)
        digits = _DIGITS[digit] + digits
    return digits or "0"
