"""JSON decoded into structs as Go does it, and bundles that say what they are."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from podium.catalog.blobs import Bundle, CatalogError, Channel, ChannelEntry, Property
from podium.catalog.decoding import Misfit, document, fit
from podium.catalog.properties import CSVMetadata, packages_of, version_of


@pytest.mark.parametrize(
    ("value", "fields"),
    [
        ({"NAME": "n", "unknown": 1}, Channel(name="n")),
        ({"Name": "a", "name": "b"}, Channel(name="b")),  # the last in sorted order
        ({"Name": "a", "name": None}, Channel(name="a")),  # null changes no text
        ({"Entries": [None], "entries": None}, Channel()),  # but it empties a list
        ({"entries": [None, {"Skips": [None]}]}, Channel(entries=[ChannelEntry(), ChannelEntry(skips=[""])])),
        ({"properties": [{"value": None}]}, Channel(properties=[Property(value=msgspec.Raw(b"null"))])),
        (None, Channel()),
    ],
)
def test_fields_are_found_as_go_finds_them(value: Any, fields: Channel) -> None:
    assert fit(Channel, value, "") == fields


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ([], "it must be an object, not a list"),
        ({"annotations": {"a": 1}}, "annotations.a must be a string, not a number"),
        (
            {"installModes": [{"supported": "x"}]},
            r"installModes\[0\].supported must be a boolean, not a string",
        ),
        (
            {"apiServiceDefinitions": {"owned": [{"containerPort": 2**31}]}},
            "containerPort must be a whole number",
        ),
    ],
)
def test_what_does_not_fit_is_told_with_its_path(value: Any, message: str) -> None:
    with pytest.raises(Misfit, match=message):
        fit(CSVMetadata, value, "")


def test_what_is_always_written_is_written_even_if_it_is_empty() -> None:
    assert document(Channel("olm.channel")) == {
        "schema": "olm.channel",
        "name": "",
        "package": "",
        "entries": None,
    }


def test_a_bundle_says_its_version_in_any_case_of_letters() -> None:
    value = msgspec.Raw(b'{"PackageName":"p","VERSION":"1.0.0","more":1}')
    bundle = Bundle(name="p.v1.0.0", properties=[Property("olm.package", value)])
    assert [each.package_name for each in packages_of(bundle)] == ["p"]
    assert version_of(bundle) == "1.0.0"
    assert version_of(Bundle()) == ""


@pytest.mark.parametrize("value", [b"", b"[]", b'{"version":1}'])
def test_a_package_property_that_is_none_is_refused(value: bytes) -> None:
    bundle = Bundle(name="p.v1", properties=[Property("olm.package", msgspec.Raw(value))])
    with pytest.raises(CatalogError, match=r"bundle 'p\.v1': property 'olm\.package'"):
        version_of(bundle)
