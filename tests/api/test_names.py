from __future__ import annotations

from collections.abc import Callable, Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from podium.api import names

LABEL = (
    "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start "
    "and end with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is "
    "'[a-z0-9]([-a-z0-9]*[a-z0-9])?')"
)
SUBDOMAIN = (
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must "
    "start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is "
    "'[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')"
)
OPTIONAL = "with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')"
KEY = (
    "must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric "
    "character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is "
    "'([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')"
)


@pytest.mark.parametrize(
    ("rule", "value", "said"),
    [
        (names.dns_label, "a-1", []),
        (names.dns_label, "a" * 63, []),
        (names.dns_label, "a" * 64, ["must be no more than 63 characters"]),
        (names.dns_label, "a.b", ["must not contain dots"]),
        (names.dns_label, "A", [LABEL]),
        (names.dns_label, "é" * 32, ["must be no more than 63 characters", LABEL]),
        (names.dns_subdomain, "a.b-c", []),
        (names.dns_subdomain, "a..b", [SUBDOMAIN]),
        (names.dns_subdomain, "a" * 254, ["must be no more than 253 characters"]),
        (names.qualified_name, "example.com/My_Name", []),
        (names.qualified_name, "", ["name part must be non-empty", f"name part {KEY}"]),
        (names.qualified_name, "/a", ["prefix part must be non-empty"]),
        (names.qualified_name, "A/a", [f"prefix part {SUBDOMAIN}"]),
        (names.qualified_name, "a" * 254 + "/a", ["prefix part must be no more than 253 bytes"]),
        (names.qualified_name, "a" * 64, ["name part must be no more than 63 bytes"]),
        (names.qualified_name, "a/b/c", [f"a valid label key {KEY} {OPTIONAL}"]),
        (names.label_value, "", []),
        (names.label_value, "v" * 64, ["must be no more than 63 bytes"]),
        (names.path_segment, "..", ["may not be '..'"]),
        (names.path_segment, "a/%", ["may not contain '/'", "may not contain '%'"]),
        (names.config_key, "..a", ["must not start with '..'"]),
        (
            names.port_name,
            "a--",
            ["must not contain consecutive hyphens", "must not begin or end with a hyphen"],
        ),
        (names.percent, "101%", []),
    ],
)
def test_each_rule_says_what_kubernetes_says(
    rule: Callable[[str], Sequence[str]], value: str, said: list[str]
) -> None:
    assert list(rule(value)) == said


@pytest.mark.parametrize("rule", [names.dns_label, names.dns_subdomain, names.dns_1035_label])
def test_the_beginning_of_a_name_may_end_in_a_dash(rule: names.NameRule) -> None:
    assert rule("web-", False)
    assert not rule("web-", True)


@given(st.from_regex(r"[a-z]([-a-z0-9]{0,61}[a-z0-9])?", fullmatch=True))
def test_what_is_a_label_of_the_stricter_rfc_is_any_kind_of_name(label: str) -> None:
    for rule in (names.dns_1035_label, names.dns_label, names.dns_subdomain, names.qualified_name):
        assert not rule(label)
