"""The string formats that a CRD schema may ask for, each decided as Kubernetes decides it.

Unknown formats are ignored by the server, so `known` is part of the contract. Dashes in a format's name do
not count: `date-time` and `datetime` are one.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from contextlib import suppress
from functools import lru_cache
from typing import Any

from podium.api import names
from podium.schema import gourl
from podium.text import durations


def known(name: str) -> bool:
    """Whether the server checks this format."""
    return name.replace("-", "") in _FORMATS


def matches(name: str, text: str) -> bool:
    """Whether a text has the format; `name` must be known."""
    return _FORMATS[name.replace("-", "")](text)


class PatternError(ValueError):
    """A regular expression that Go does not compile; the message is Go's."""


@lru_cache(maxsize=4096)
def pattern(text: str) -> Any:
    """A compiled RE2 expression, read as Go reads it."""
    import re2

    options = re2.Options()
    options.log_errors = False
    try:
        return re2.compile(text, options)
    except re2.error as error:
        what = error.args[0] if error.args else ""
        words = what.decode() if isinstance(what, bytes) else str(what)
        raise PatternError(f"error parsing regexp: {_in_go_words(words)}") from None


_GO_WORDS = {
    "invalid perl operator": "invalid or unsupported Perl syntax",
    "missing ]": "missing closing ]",
    "missing )": "missing closing )",
    "bad repetition operator": "invalid nested repetition operator",
    "invalid repetition size": "invalid repeat count",
    "no argument for repetition operator": "missing argument to repetition operator",
    "trailing \\": "trailing backslash at end of expression",
}


def _in_go_words(text: str) -> str:
    """An error of the C++ engine as Go's engine, which reads the same language, would put it."""
    what, _, where = text.partition(": ")
    return f"{_GO_WORDS.get(what, what)}: `{where}`"


def is_date(text: str) -> bool:
    """A full-date of RFC 3339."""
    found = re.fullmatch(r"(\d{4})-(\d{2})-(\d{2})", text, re.ASCII)
    return found is not None and _is_day(int(found[1]), int(found[2]), int(found[3]))


def is_datetime(text: str) -> bool:
    """A date-time of RFC 3339, as loosely as the server reads it."""
    date, separator, rest = text.lower().partition("t")
    if not separator or not is_date(date):
        return False
    time = rest.partition("t")[0]
    found = re.fullmatch(r"(\d{2}):(\d{2}):(\d{2})(.[0-9]+)?(z|([+-]\d{2}:\d{2}))", time, re.ASCII)
    return found is not None and found[1] <= "23" and found[2] <= "59" and found[3] <= "59"


def duration_nanoseconds(text: str) -> int | None:
    """The length of a duration (`1h30m`, `22 ns`, `3 days`), or None if it is none."""
    with suppress(durations.DurationError):
        return durations.nanoseconds(text)
    total, found = 0, False
    for number, unit in re.findall(r"(\d+)\s*([A-Za-zµ]+)", text, re.ASCII):
        unit = unit.lower()
        for variants, nanoseconds in _LOOSE_UNITS:
            if unit in variants or unit.startswith(variants[-1]):
                total, found = total + int(number) * nanoseconds, True
    return total if found else None


_SECOND = 1_000_000_000
_DAY = 24 * 3600 * _SECOND
_LOOSE_UNITS: tuple[tuple[tuple[str, ...], int], ...] = (
    (("ns", "nano"), 1),
    (("us", "µs", "micro"), 1_000),
    (("ms", "milli"), 1_000_000),
    (("s", "sec"), _SECOND),
    (("m", "min"), 60 * _SECOND),
    (("h", "hr", "hour"), 3600 * _SECOND),
    (("d", "day"), _DAY),
    (("w", "wk", "week"), 7 * _DAY),
)


def _is_day(year: int, month: int, day: int) -> bool:
    if not 1 <= month <= 12:
        return False
    leap = year % 4 == 0 and (year % 100 != 0 or year % 400 == 0)
    days = (31, 29 if leap else 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31)[month - 1]
    return 1 <= day <= days


def _regex(expression: str) -> Callable[[str], bool]:
    return lambda text: pattern(expression).search(text) is not None


def _is_hostname(text: str) -> bool:
    # Symbols and letters of any script are allowed in labels, the top-level domain is of letters.
    any_character = r"[a-zA-Z0-9\p{S}\p{L}]"
    label = rf"{any_character}(([a-zA-Z0-9-\p{{S}}\p{{L}}]{{0,61}}{any_character})?)"
    host = rf"^({any_character}((-?{any_character}{{0,62}})?)|({label}(\.)){{1,}}([a-zA-Z\p{{L}}]){{2,63}})$"
    return (
        pattern(host).search(text) is not None
        and len(text.encode()) <= 255
        and all(len(part.encode()) <= 63 for part in text.split("."))
    )


def _without_leading_zeros(text: str) -> str:
    return re.sub(r"(?<![0-9a-fA-F:])0+(?=\d)|(?<=\.)0+(?=\d)|(?<=:)0+(?=\d+\.)", "", text)


def _ip(text: str) -> Any:
    import ipaddress

    if "%" in text:
        return None
    try:
        return ipaddress.ip_address(text)
    except ValueError:
        return None


def _is_ipv4(text: str) -> bool:
    return "." in text and _ip(_without_leading_zeros(text)) is not None


def _is_ipv6(text: str) -> bool:
    return ":" in text and _ip(text) is not None


def _is_cidr(text: str) -> bool:
    address, slash, bits = text.partition("/")
    parsed = _ip(_without_leading_zeros(address))
    return (
        bool(slash)
        and parsed is not None
        and bits.isascii()
        and bits.isdigit()
        and int(bits) <= parsed.max_prefixlen
    )


def _is_mac(text: str) -> bool:
    for separator, digits, groups in ((":", 2, (6, 8, 20)), ("-", 2, (6, 8, 20)), (".", 4, (3, 4, 10))):
        parts = text.split(separator)
        if len(parts) in groups:
            return all(len(p) == digits and re.fullmatch("[0-9a-fA-F]+", p) for p in parts)
    return False


def _is_isbn10(text: str) -> bool:
    digits = re.sub(r"[\s-]+", "", text)
    if not re.fullmatch(r"[0-9]{9}X|[0-9]{10}", digits):
        return False
    last = 10 if digits[9] == "X" else int(digits[9])
    return (sum((i + 1) * int(d) for i, d in enumerate(digits[:9])) + 10 * last) % 11 == 0


def _is_isbn13(text: str) -> bool:
    digits = re.sub(r"[\s-]+", "", text)
    if not re.fullmatch(r"[0-9]{13}", digits):
        return False
    total = sum((1, 3)[i % 2] * int(d) for i, d in enumerate(digits[:12]))
    return int(digits[12]) == (10 - total % 10) % 10


_CARD = (
    r"4[0-9]{12}(?:[0-9]{3})?|5[1-5][0-9]{14}|6(?:011|5[0-9][0-9])[0-9]{12}|3[47][0-9]{13}"
    r"|3(?:0[0-5]|[68][0-9])[0-9]{11}|(?:2131|1800|35\d{3})\d{11}"
)


def _is_creditcard(text: str) -> bool:
    digits = re.sub("[^0-9]+", "", text)
    if not re.fullmatch(_CARD, digits):
        return False
    total = 0
    for index, digit in enumerate(reversed(digits)):
        number = int(digit) * (2 if index % 2 else 1)
        total += number % 10 + 1 if number >= 10 else number
    return total % 10 == 0


def _is_email(text: str) -> bool:
    # An addr-spec, bare or as `Name <addr-spec>`, of the parts of RFC 5322 that Go's net/mail reads.
    atom = r"[^\x00-\x20()<>\[\]:;@\\,\"\x7f.]+"
    local = rf'(?:{atom}(?:\.{atom})*|"(?:[^"\\\r\n]|\\.)+")'
    address = rf"{local}@(?:{atom}(?:\.{atom})*|\[[^\[\]\\]+\])"
    name = r'(?:"(?:[^"\\\r\n]|\\.)*"|[^<>@\[\]:;\\,"()]*)'
    return re.fullmatch(rf"\s*(?:{address}|{name}\s*<{address}>)\s*", text) is not None


_HEX = "[0-9a-f]"
_FORMATS: dict[str, Callable[[str], bool]] = {
    "bsonobjectid": _regex("(?i)^[0-9a-f]{24}$"),
    "uri": gourl.is_request_uri,
    "email": _is_email,
    "hostname": _is_hostname,
    "ipv4": _is_ipv4,
    "ipv6": _is_ipv6,
    "cidr": _is_cidr,
    "mac": _is_mac,
    "uuid": _regex(f"(?i)^{_HEX}{{8}}-?{_HEX}{{4}}-?{_HEX}{{4}}-?{_HEX}{{4}}-?{_HEX}{{12}}$"),
    "uuid3": _regex(f"(?i)^{_HEX}{{8}}-?{_HEX}{{4}}-?3{_HEX}{{3}}-?{_HEX}{{4}}-?{_HEX}{{12}}$"),
    "uuid4": _regex(f"(?i)^{_HEX}{{8}}-?{_HEX}{{4}}-?4{_HEX}{{3}}-?[89ab]{_HEX}{{3}}-?{_HEX}{{12}}$"),
    "uuid5": _regex(f"(?i)^{_HEX}{{8}}-?{_HEX}{{4}}-?5{_HEX}{{3}}-?[89ab]{_HEX}{{3}}-?{_HEX}{{12}}$"),
    "isbn": lambda text: _is_isbn10(text) or _is_isbn13(text),
    "isbn10": _is_isbn10,
    "isbn13": _is_isbn13,
    "creditcard": _is_creditcard,
    "ssn": lambda text: (
        len(text) == 11 and re.fullmatch(r"\d{3}[- ]?\d{2}[- ]?\d{4}", text, re.ASCII) is not None
    ),
    "hexcolor": _regex("^#?([0-9a-fA-F]{3}|[0-9a-fA-F]{6})$"),
    "rgbcolor": _regex(
        r"^rgb\(\s*(0|[1-9]\d?|1\d\d?|2[0-4]\d|25[0-5])\s*"
        r",\s*(0|[1-9]\d?|1\d\d?|2[0-4]\d|25[0-5])\s*,\s*(0|[1-9]\d?|1\d\d?|2[0-4]\d|25[0-5])\s*\)$"
    ),
    "byte": _regex("^(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=|[A-Za-z0-9+/]{4})$"),
    "password": lambda text: True,
    "date": is_date,
    "datetime": is_datetime,
    "duration": lambda text: duration_nanoseconds(text) is not None,
    "k8sshortname": lambda text: not names.dns_label(text),
    "k8slongname": lambda text: not names.dns_subdomain(text),
}
