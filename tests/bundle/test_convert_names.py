"""Names that conversion makes up, against names that operator-controller has made."""

from __future__ import annotations

import hashlib

import pytest

from podium.bundle.convert.names import (
    certificate_name,
    name_with_suffix,
    service_name,
    unique_name,
    value_hash,
)


@pytest.mark.parametrize(
    ("base", "suffix", "expected"),
    [
        ("base", "suffix", "base-suffix"),
        ("b" * 56, "suffix", "b" * 56 + "-suffix"),
        (
            "b" * 57,
            "suffix",
            "b" * 57 + "-suffix",
        ),  # 64 characters: the original does not count the dash here
        ("b" * 58, "suffix", "b" * 56 + "-suffix"),
        ("b" * 56 + "ü", "suffix", "b" * 56 + "-suffix"),
    ],
)
def test_a_name_is_cut_to_make_room_for_its_suffix(base: str, suffix: str, expected: str) -> None:
    assert name_with_suffix(base, suffix) == expected


def test_a_role_is_named_for_the_json_of_its_permission() -> None:
    # Made by the original from the same permission.
    rule = {"verbs": ["get"], "apiGroups": [""], "resources": ["pods"]}
    permission = {"serviceAccountName": "manager", "rules": [rule]}
    assert (
        unique_name("op.v1.0.0-manager", permission)
        == "op.v1.0.0-manager-2b4g2d4kytk7ynf11e9swye6qpmjflt9x7anj9s81d87"
    )


@pytest.mark.parametrize("text", ["<", ">", "&", "\u2028", "\u2029"])
def test_the_hash_is_taken_over_json_that_is_safe_in_a_web_page(text: str) -> None:
    written = f'"\\u{ord(text):04x}"\n'.encode()
    assert int(value_hash(text), 36) == int.from_bytes(hashlib.sha224(written).digest(), "big")


def test_services_and_certificates_are_named_for_the_deployment_without_its_dots() -> None:
    assert service_name("a.b") == "a-b-service"
    assert certificate_name("a.b") == "a-b-service-cert"
