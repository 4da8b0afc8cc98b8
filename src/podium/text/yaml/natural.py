"""The key order of go-yaml: as text, but letters after all else and runs of digits by their number."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cmp_to_key

_LETTERS_LAST = bytes(code + 128 if chr(code).isalpha() and code < 128 else code for code in range(256))
_DIGITS = frozenset("0123456789")


def natural_order(keys: Iterable[str]) -> list[str]:
    """Keys in the order in which go-yaml writes them."""
    keys = list(keys)
    together = "".join(keys)
    if together.isascii():
        if together.isalpha():
            return sorted(keys)
        if _DIGITS.isdisjoint(together):
            return sorted(keys, key=lambda key: key.encode().translate(_LETTERS_LAST))
    return sorted(keys, key=cmp_to_key(_compare))


def _compare(a: str, b: str) -> int:
    for index, (x, y) in enumerate(zip(a, b, strict=False)):
        if x != y:
            return _compare_from(a, b, index)
    return len(a) - len(b)


def _compare_from(a: str, b: str, index: int) -> int:
    """The order of two keys that are the same before this index and differ at it."""
    x, y = a[index], b[index]
    if x.isalpha() or y.isalpha():
        return (x > y) - (x < y) if x.isalpha() and y.isalpha() else x.isalpha() - y.isalpha()
    start = 1 if "0" in (x, y) and _digits_before(a, index) else 0
    (m, m_end), (n, n_end) = _number(a, index, start), _number(b, index, start)
    return (m > n) - (m < n) or (m_end - n_end) or (x > y) - (x < y)


def _digits_before(text: str, index: int) -> bool:
    """Whether the run of digits that ends before this index has any but zeros."""
    while index > 0 and text[index - 1].isdecimal():
        index -= 1
        if text[index] != "0":
            return True
    return False


def _number(text: str, index: int, number: int) -> tuple[int, int]:
    while index < len(text) and text[index].isdecimal():
        number = _int64(number * 10 + ord(text[index]) - ord("0"))
        index += 1
    return number, index


def _int64(number: int) -> int:
    return (number + 2**63) % 2**64 - 2**63
