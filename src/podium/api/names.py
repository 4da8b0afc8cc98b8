"""What names, keys and values may look like, and the sentence Kubernetes answers when one does not.

Every rule returns the sentences that apply (none: the value is fine). The sentences quote the regular
expression that was used, so the expressions below are part of the API as much as the words. Lengths are
counted in bytes, as Go counts them; whether a sentence says bytes or characters is upstream's whim.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

# A rule for object names: the name, and whether it is only the beginning of one (generateName).
NameRule = Callable[[str, bool], Sequence[str]]

_LABEL_FMT = "[a-z0-9]([-a-z0-9]*[a-z0-9])?"
_LABEL_MSG = (
    "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start "
    "and end with an alphanumeric character"
)
_SUBDOMAIN_FMT = rf"{_LABEL_FMT}(\.{_LABEL_FMT})*"
_SUBDOMAIN_MSG = (
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must "
    "start and end with an alphanumeric character"
)
_LOOSE_LABEL_FMT = "_?[a-z0-9]([-_a-z0-9]*[a-z0-9])?"
_LOOSE_SUBDOMAIN_FMT = rf"{_LOOSE_LABEL_FMT}(\.{_LOOSE_LABEL_FMT})*"
_LOOSE_SUBDOMAIN_MSG = (
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '_', '-' or '.', and "
    "must start and end with an alphanumeric character"
)
_LABEL_1035_FMT = "[a-z]([-a-z0-9]*[a-z0-9])?"
_LABEL_1035_MSG = (
    "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an alphabetic "
    "character, and end with an alphanumeric character"
)
_WILDCARD_FMT = rf"\*\.{_SUBDOMAIN_FMT}"
_WILDCARD_MSG = (
    "a wildcard DNS-1123 subdomain must start with '*.', followed by a valid DNS subdomain, which must "
    "consist of lower case alphanumeric characters, '-' or '.' and end with an alphanumeric character"
)
_KEY_FMT = "([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]"
_KEY_MSG = (
    "must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric "
    "character"
)
_VALUE_FMT = f"({_KEY_FMT})?"
_VALUE_MSG = (
    "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must "
    "start and end with an alphanumeric character"
)
_CONFIG_KEY_FMT = "[-._a-zA-Z0-9]+"
_CONFIG_KEY_MSG = "a valid config key must consist of alphanumeric characters, '-', '_' or '.'"
_PERCENT_FMT = "[0-9]+%"
_PERCENT_MSG = "a valid percent string must be a numeric string followed by an ending '%'"
_HEADER_FMT = "[-A-Za-z0-9]+"
_HEADER_MSG = "a valid HTTP header must consist of alphanumeric characters or '-'"
_ENV_MSG = "a valid environment variable name must consist only of printable ASCII characters other than '='"
HTTP_PATH_FMT = r"[A-Za-z0-9/\-._~%!$&'()*+,;=:]+"

_LABEL = re.compile(_LABEL_FMT)
_SUBDOMAIN = re.compile(_SUBDOMAIN_FMT)
_LABEL_1035 = re.compile(_LABEL_1035_FMT)
_KEY = re.compile(_KEY_FMT)
_CONFIG_KEY = re.compile(_CONFIG_KEY_FMT)
_PERCENT = re.compile(_PERCENT_FMT)

_OK: tuple[str, ...] = ()


def too_long(limit: int, unit: str = "characters") -> str:
    return f"must be no more than {limit} {unit}"


def between(low: int, high: int) -> str:
    return f"must be between {low} and {high}, inclusive"


def pattern(message: str, expression: str, *examples: str) -> str:
    """The sentence about a value that does not match a regular expression."""
    if not examples:
        return f"{message} (regex used for validation is '{expression}')"
    shown = " or ".join(f"'{e}', " for e in examples)
    return f"{message} (e.g. {shown}regex used for validation is '{expression}')"


def dns_label(value: str, prefix: bool = False) -> Sequence[str]:
    """A label of RFC 1123, such as the name of a namespace."""
    value = _mask(value) if prefix else value
    found = _length(value, 63)
    if _LABEL.fullmatch(value):
        return found
    if _SUBDOMAIN.fullmatch(value):
        return [*found, "must not contain dots"]
    return [*found, pattern(_LABEL_MSG, _LABEL_FMT, "my-name", "123-abc")]


def dns_subdomain(value: str, prefix: bool = False) -> Sequence[str]:
    """Labels of RFC 1123 with dots between them: what most objects' names are."""
    value = _mask(value) if prefix else value
    found = _length(value, 253)
    if _SUBDOMAIN.fullmatch(value):
        return found
    return [*found, pattern(_SUBDOMAIN_MSG, _SUBDOMAIN_FMT, "example.com")]


def dns_1035_label(value: str, prefix: bool = False) -> Sequence[str]:
    """A label of RFC 1035, which begins with a letter."""
    value = _mask(value) if prefix else value
    found = _length(value, 63)
    if _LABEL_1035.fullmatch(value):
        return found
    return [*found, pattern(_LABEL_1035_MSG, _LABEL_1035_FMT, "my-name", "abc-123")]


def loose_subdomain(value: str) -> Sequence[str]:
    """A DNS subdomain that may have underscores, as search paths have."""
    found = _length(value, 253)
    if re.fullmatch(_LOOSE_SUBDOMAIN_FMT, value):
        return found
    return [*found, pattern(_LOOSE_SUBDOMAIN_MSG, _LOOSE_SUBDOMAIN_FMT, "example.com")]


def wildcard_subdomain(value: str) -> Sequence[str]:
    found = _length(value, 253)
    if re.fullmatch(_WILDCARD_FMT, value):
        return found
    return [*found, pattern(_WILDCARD_MSG, _WILDCARD_FMT, "*.example.com")]


def path_segment(value: str, prefix: bool = False) -> Sequence[str]:
    """A name that can be part of a URL path; all that is asked of RBAC names."""
    if not prefix and value in (".", ".."):
        return (f"may not be '{value}'",)
    return [f"may not contain '{bad}'" for bad in "/%" if bad in value]


def anything(value: str, prefix: bool = False) -> Sequence[str]:
    return _OK


def qualified_name(value: str) -> Sequence[str]:
    """A label key: an optional DNS subdomain and a slash, then a name."""
    before, slash, name = value.rpartition("/")
    if not slash:
        if len(name) <= 63 and _KEY.fullmatch(name):
            return _OK
        return _key_name_problems(name)
    if "/" in before:
        example = pattern(_KEY_MSG, _KEY_FMT, "MyName", "my.name", "123-abc")
        suffix = "with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')"
        return (f"a valid label key {example} {suffix}",)
    return [*_key_prefix_problems(before), *_key_name_problems(name)]


def _key_prefix_problems(prefix: str) -> list[str]:
    if not prefix:
        return ["prefix part must be non-empty"]
    found = [f"prefix part {problem}" for problem in _length(prefix, 253, "bytes")]
    if not _SUBDOMAIN.fullmatch(prefix):
        found.append(f"prefix part {pattern(_SUBDOMAIN_MSG, _SUBDOMAIN_FMT, 'example.com')}")
    return found


def _key_name_problems(name: str) -> list[str]:
    found = [f"name part {problem}" for problem in _length(name, 63, "bytes")]
    if not name:
        found.append("name part must be non-empty")
    if not _KEY.fullmatch(name):
        found.append(f"name part {pattern(_KEY_MSG, _KEY_FMT, 'MyName', 'my.name', '123-abc')}")
    return found


def label_value(value: str) -> Sequence[str]:
    """The value of a label; it may be empty."""
    if not value:
        return _OK
    found = [*_length(value, 63, "bytes")]
    if not _KEY.fullmatch(value):
        found.append(pattern(_VALUE_MSG, _VALUE_FMT, "MyValue", "my_value", "12345"))
    return found


def config_key(value: str) -> Sequence[str]:
    """A key of a ConfigMap or a Secret, which becomes a file name."""
    found = [*_length(value, 253)]
    if not _CONFIG_KEY.fullmatch(value):
        found.append(pattern(_CONFIG_KEY_MSG, _CONFIG_KEY_FMT, "key.name", "KEY_NAME", "key-name"))
    if value in (".", ".."):
        found.append(f"must not be '{value}'")
    elif value.startswith(".."):
        found.append("must not start with '..'")
    return found


def env_name(value: str) -> Sequence[str]:
    if not value:
        return ("environment variable name must be non-empty",)
    if any(not " " <= c <= "~" or c == "=" for c in value):
        return (_ENV_MSG,)
    return _OK


def port_number(value: int) -> Sequence[str]:
    return _OK if 1 <= value <= 65535 else (between(1, 65535),)


def port_name(value: str) -> Sequence[str]:
    found = [*_length(value, 15)]
    if not re.fullmatch("[-a-z0-9]+", value):
        found.append("must contain only alpha-numeric characters (a-z, 0-9), and hyphens (-)")
    if not re.search("[a-z]", value):
        found.append("must contain at least one letter (a-z)")
    if "--" in value:
        found.append("must not contain consecutive hyphens")
    if value and "-" in (value[0], value[-1]):
        found.append("must not begin or end with a hyphen")
    return found


def percent(value: str) -> Sequence[str]:
    return _OK if _PERCENT.fullmatch(value) else (pattern(_PERCENT_MSG, _PERCENT_FMT, "1%", "93%"),)


def http_header(value: str) -> Sequence[str]:
    return _OK if re.fullmatch(_HEADER_FMT, value) else (pattern(_HEADER_MSG, _HEADER_FMT, "X-Header-Name"),)


def user_or_group_id(value: int) -> Sequence[str]:
    return _OK if 0 <= value <= 2**31 - 1 else (between(0, 2**31 - 1),)


def _length(value: str, limit: int, unit: str = "characters") -> Sequence[str]:
    # Only a text of some length is worth encoding, and names are short.
    if len(value) * 4 > limit and len(value.encode()) > limit:
        return (too_long(limit, unit),)
    return _OK


def _mask(name: str) -> str:
    # A prefix may end in a dash because more follows. Upstream replaces the last two characters by one.
    return name[:-2] + "a" if len(name) > 1 and name.endswith("-") else name
