"""What registries are asked about images."""

from __future__ import annotations

from pathlib import Path

from podium.oci import build
from podium.oci.images import parse_platform
from podium.oci.layout import Layout
from podium.oci.open import Images
from podium.operations.lookups import platforms_of


async def test_platforms_come_from_an_index_or_a_single_image_and_nothing_from_what_is_absent(
    tmp_path: Path,
) -> None:
    layer = build.layer({"x": b""})
    amd, arm = (build.image([layer], platform=parse_platform(f"linux/{arch}")) for arch in ("amd64", "arm64"))
    await build.write(Layout(tmp_path), build.index([amd, arm]), "both")
    await build.write(Layout(tmp_path), arm, "one")
    names = [f"oci:{tmp_path}:{tag}" for tag in ("both", "one", "absent")]
    async with Images() as images:
        assert await platforms_of(names, images) == {
            names[0]: [("linux", "amd64"), ("linux", "arm64")],
            names[1]: [("linux", "arm64")],
        }
