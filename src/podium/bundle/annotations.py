"""A bundle's annotations: which metadata file holds them, and how its values become strings.

The originals know the file by its content, not by its name, and read it into string fields: numbers and
booleans turn into text, other values make the whole file unreadable for them.
"""

from __future__ import annotations

import math
import struct
from typing import Any

from podium.bundle.model import CHANNELS_KEY, DEFAULT_CHANNEL_KEY, PACKAGE_KEY

_FIRST_POWER_WITH_EXPONENT = 6  # 1e+06, as Go's %g has it
_NAMED = (PACKAGE_KEY, CHANNELS_KEY, DEFAULT_CHANNEL_KEY)


def from_document(value: Any) -> dict[str, str] | None:
    """The annotations of a metadata document that are text; None if it is no annotations file."""
    found = folded(value, "annotations")
    if not isinstance(found, dict):
        return None
    texts = {key: as_text(each) for key, each in found.items()}
    return {key: each for key, each in texts.items() if each is not None}


def not_text(value: Any) -> list[str]:
    """The keys of a document's annotations whose values cannot be text."""
    found = folded(value, "annotations")
    return [key for key, each in found.items() if as_text(each) is None] if isinstance(found, dict) else []


def named_only(value: Any) -> dict[str, str] | None:
    """The three annotations that opm reads when it renders; None if the document has none of them.

    opm ignores what else is there, so that a file which `from_document` refuses may still serve it.
    """
    found = folded(value, "annotations")
    if not isinstance(found, dict):
        return None
    result: dict[str, str] = {}
    for key in _NAMED:
        each = as_text(folded(found, key))
        if each is None:
            return None
        if each:
            result[key] = each
    return result or None


def folded(value: Any, key: str) -> Any:
    """A field as Go's JSON decoder finds it: whatever the case, the last in sorted order winning."""
    if not isinstance(value, dict):
        return None
    wanted = key.casefold()
    names = sorted(name for name in value if name.casefold() == wanted)
    return value[names[-1]] if names else None


def as_text(value: Any) -> str | None:
    """A scalar as text, null as none of it; None for what cannot be text."""
    if isinstance(value, str):
        return value
    if value is None:
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int):
        return str(value)
    if isinstance(value, float):
        return short_float(value)
    return None


def short_float(value: float) -> str:
    """A float with the fewest digits that single precision needs, which is how the originals print it."""
    single = _single(value)
    if math.isinf(single):
        return "+Inf" if single > 0 else "-Inf"
    digits = next(d for d in range(1, 10) if _single(float(f"{single:.{d - 1}e}")) == single)
    return _general(single, digits)


def _single(value: float) -> float:
    try:
        return float(struct.unpack("f", struct.pack("f", value))[0])
    except OverflowError:
        return math.copysign(math.inf, value)


def _general(value: float, digits: int) -> str:
    mantissa, exponent = f"{value:.{digits - 1}e}".split("e")
    power = int(exponent)
    if -4 <= power < _FIRST_POWER_WITH_EXPONENT:
        return f"{value:.{max(digits - 1 - power, 0)}f}"
    return f"{mantissa}e{power:+03d}"
