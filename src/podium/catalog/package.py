"""A new package: its blob from a name, a default channel, an icon and a description."""

from __future__ import annotations

import base64

from podium.catalog import blobs
from podium.catalog.blobs import PACKAGE, Blob, CatalogError, Icon, Package
from podium.text.pictures import media_type


def new(name: str, default_channel: str = "", icon: bytes | None = None, description: str = "") -> Blob:
    """The blob of a package, as `opm init` makes it; an SVG icon is accepted too."""
    package = Package(PACKAGE, name, default_channel, description=description)
    if icon is not None:
        kind = media_type(icon)
        if not kind:
            raise CatalogError("the icon is no picture that is known: use PNG, SVG, JPEG, GIF or WebP")
        package.icon = Icon(base64.b64encode(icon).decode(), kind)
    return blobs.of(package)
