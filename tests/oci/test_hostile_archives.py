"""Archives that mean harm are refused for the right reason, quickly, in little memory, and touch nothing."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from harness import archives, bombs, hostile
from harness.stores import Memory
from podium.oci import build, images, unpack
from podium.oci.errors import OCIError
from podium.oci.layout import Layout

SMALL = list(hostile.cases())


@pytest.fixture(autouse=True)
def _nothing_is_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Everything around the working directory is as before; temporary files have no names that could stay."""
    inside = tmp_path / "outer" / "inner"
    (inside / "manifests").mkdir(parents=True)
    (inside / "manifests" / "good.yaml").write_text("untouched")
    monkeypatch.chdir(inside)
    yield
    left = {path.relative_to(tmp_path).as_posix() for path in (tmp_path / "outer").rglob("*")}
    assert left == {"outer/inner", "outer/inner/manifests", "outer/inner/manifests/good.yaml"}
    assert (inside / "manifests" / "good.yaml").read_text() == "untouched"


def test_there_are_enough_of_them() -> None:
    assert len({case.name for case in SMALL}) == len(SMALL) > 200


@pytest.mark.parametrize("case", SMALL, ids=lambda case: case.name)
async def test_an_archive_is_refused_or_harmless(case: hostile.Case) -> None:
    store = Memory()
    await build.write(store, archives.image(case.layers), "hostile")
    image = await images.pull(store, "hostile")
    started = time.perf_counter()
    if case.files is None:
        with pytest.raises(OCIError, match=case.refused):
            await unpack.files(image)
    else:
        assert await unpack.files(image) == case.files
    assert time.perf_counter() - started < 2


@pytest.mark.parametrize("bomb", bombs.BOMBS, ids=lambda bomb: bomb.name)
async def test_a_bomb_is_refused_within_two_seconds_and_256_mebibytes(
    bomb: bombs.Bomb, tmp_path: Path
) -> None:
    image = archives.image(bomb.layers(), diff_ids=bomb.diff_ids or not bomb.refused)
    await build.write(Layout(tmp_path / "layout"), image, "hostile")
    measured = bombs.read_in_own_process(tmp_path / "layout")
    if bomb.refused:
        assert bomb.refused in measured.error
    else:
        assert (measured.error, measured.files) == ("", bomb.files)
    assert measured.seconds < 2, measured
    assert measured.peak < 256 << 20, measured
