"""Errors about one field of an object, worded the way Kubernetes words them.

Clients match on these texts (`spec.replicas: Invalid value: -1: must be greater than or equal to 0`), so the
wording is part of the API. Validators return lists of `FieldError` and never raise.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import Enum
from typing import Any

import msgspec

from podium.schema import govalues
from podium.text.quoting import quote


class Cause(Enum):
    """The machine-readable reason of a field error, as it stands in `status.details.causes`."""

    REQUIRED = "FieldValueRequired"
    INVALID = "FieldValueInvalid"
    TYPE_INVALID = "FieldValueTypeInvalid"
    DUPLICATE = "FieldValueDuplicate"
    NOT_SUPPORTED = "FieldValueNotSupported"
    FORBIDDEN = "FieldValueForbidden"
    TOO_LONG = "FieldValueTooLong"
    TOO_MANY = "FieldValueTooMany"
    NOT_FOUND = "FieldValueNotFound"
    INTERNAL = "InternalError"


_WORDS = {
    Cause.REQUIRED: "Required value",
    Cause.INVALID: "Invalid value",
    Cause.TYPE_INVALID: "Invalid value",
    Cause.DUPLICATE: "Duplicate value",
    Cause.NOT_SUPPORTED: "Unsupported value",
    Cause.FORBIDDEN: "Forbidden",
    Cause.TOO_LONG: "Too long",
    Cause.TOO_MANY: "Too many",
    Cause.NOT_FOUND: "Not found",
    Cause.INTERNAL: "Internal error",
}
_WITHOUT_VALUE = {Cause.REQUIRED, Cause.FORBIDDEN, Cause.TOO_LONG, Cause.INTERNAL}


@dataclass(frozen=True, slots=True)
class FieldError:
    """One thing wrong with one field."""

    cause: Cause
    path: str  # spec.containers[0].name
    value: Any = None
    detail: str = ""
    shows_value: bool = True

    @property
    def body(self) -> str:
        """The message without the path, as `status.details.causes[].message` carries it."""
        text = _WORDS[self.cause]
        if self.shows_value and self.cause not in _WITHOUT_VALUE:
            text += f": {_show(self.value)}"
        return f"{text}: {self.detail}" if self.detail else text

    def __str__(self) -> str:
        return f"{self.path}: {self.body}"


def required(path: str, detail: str = "") -> FieldError:
    return FieldError(Cause.REQUIRED, path, detail=detail)


def invalid(path: str, value: Any, detail: str) -> FieldError:
    return FieldError(Cause.INVALID, path, value, detail)


def invalid_whole(path: str, detail: str) -> FieldError:
    """An invalid object or list as a whole, whose value is better not repeated to the user."""
    return FieldError(Cause.INVALID, path, detail=detail, shows_value=False)


def type_invalid(path: str, value: Any, detail: str) -> FieldError:
    return FieldError(Cause.TYPE_INVALID, path, value, detail)


def duplicate(path: str, value: Any) -> FieldError:
    return FieldError(Cause.DUPLICATE, path, value)


def forbidden(path: str, detail: str) -> FieldError:
    return FieldError(Cause.FORBIDDEN, path, detail=detail)


def not_supported(path: str, value: Any, supported: Iterable[str], *, in_order: bool = False) -> FieldError:
    """A value outside a closed set; the supported values are listed sorted (or as given), each in quotes."""
    quoted = ", ".join(_show(v) for v in (supported if in_order else sorted(supported)))
    return FieldError(Cause.NOT_SUPPORTED, path, value, f"supported values: {quoted}" if quoted else "")


def too_long(path: str, limit: int) -> FieldError:
    unit = "byte" if limit == 1 else "bytes"
    detail = f"may not be more than {limit} {unit}" if limit >= 0 else "value is too long"
    return FieldError(Cause.TOO_LONG, path, detail=detail)


def too_many(path: str, count: int, limit: int) -> FieldError:
    unit = "item" if limit == 1 else "items"
    return FieldError(Cause.TOO_MANY, path, count, f"must have at most {limit} {unit}")


def not_found(path: str, value: Any) -> FieldError:
    return FieldError(Cause.NOT_FOUND, path, value)


def _show(value: Any) -> str:
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        return govalues.print_float(value)
    if isinstance(value, str):
        return quote(value)
    # Go writes JSON that could stand in HTML.
    text = msgspec.json.encode(value).decode()
    return text.replace("<", r"\u003c").replace(">", r"\u003e").replace("&", r"\u0026")
