"""A new package."""

from __future__ import annotations

import pytest

from podium.catalog import package
from podium.catalog.blobs import CatalogError


def test_a_package_has_what_it_was_given() -> None:
    assert package.new("demo", "stable", b"\x89PNG\r\n", "About\n").value == {
        "schema": "olm.package",
        "name": "demo",
        "defaultChannel": "stable",
        "icon": {"base64data": "iVBORw0K", "mediatype": "image/png"},
        "description": "About\n",
    }
    assert package.new("demo").value == {"schema": "olm.package", "name": "demo", "defaultChannel": ""}


@pytest.mark.parametrize("data", [b"", b"text", b"<html/>", b"RIFF1234WAVE", b"%PDF-1"])
def test_what_is_no_picture_is_refused(data: bytes) -> None:
    with pytest.raises(CatalogError, match="no picture"):
        package.new("demo", icon=data)
