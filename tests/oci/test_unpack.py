"""What is read from an image is what its layers leave when they lie on each other, and nothing unchecked."""

from __future__ import annotations

import asyncio
import io
import subprocess
import sys
import tarfile
from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.json import encode

from harness import archives
from harness.archives import DIRECTORY, END, HARD_LINK, SYMLINK, entry
from harness.stores import Memory
from podium.oci import build, images, unpack
from podium.oci.errors import Corrupt, OCIError, Unacceptable
from podium.oci.images import Image
from podium.oci.layout import Layout
from podium.oci.model import Descriptor, descriptor_of
from podium.oci.unpack import Limits

EVERYTHING = ("",)
COMPRESSIONS = st.sampled_from(["gzip", "zstd", "none"])
# Few names, so that layers meet; some that need PAX, some that sort oddly.
PARTS = st.sampled_from(["a", "b", "c-", "a.b", "ü", "n" * 120, "A"])
PATHS = st.lists(PARTS, min_size=1, max_size=3).map("/".join)
ANY_PART = st.text(
    st.characters(exclude_categories=("Cc", "Cs"), exclude_characters="/\\"), min_size=1, max_size=60
).filter(lambda part: part not in (".", "..") and not part.startswith(".wh."))
ANY_PATHS = st.lists(ANY_PART, min_size=1, max_size=6).map("/".join)


async def pulled(layers: Iterable[build.Layer], chunk: int = 1 << 16) -> Image:
    store = Memory(chunk=chunk)
    await build.write(store, build.image(list(layers)), "x")
    return await images.pull(store, "x")


async def read(layers: Iterable[bytes], prefixes: Iterable[str] = unpack.BUNDLE_PREFIXES) -> dict[str, bytes]:
    store = Memory()
    await build.write(store, archives.image(list(layers)), "x")
    return await unpack.files(await images.pull(store, "x"), prefixes)


def without_conflicts(files: dict[str, bytes]) -> dict[str, bytes]:
    """The files that are not also a directory of others."""
    return {
        path: data for path, data in files.items() if not any(other.startswith(path + "/") for other in files)
    }


@given(st.dictionaries(ANY_PATHS, st.binary(max_size=2000), max_size=8).map(without_conflicts), COMPRESSIONS)
def test_what_was_built_is_read(files: dict[str, bytes], compression: build.Compression) -> None:
    async def there_and_back() -> dict[str, bytes]:
        image = await pulled([build.layer(files, compression=compression)], chunk=100)
        return await unpack.files(image, EVERYTHING)

    assert asyncio.run(there_and_back()) == dict(sorted(files.items()))


@dataclass(frozen=True)
class Change:
    """What one layer does."""

    files: dict[str, bytes]
    removed: frozenset[str]
    emptied: frozenset[str]
    compression: build.Compression

    def layer(self) -> build.Layer:
        return build.layer(
            self.files, removed=self.removed, emptied=self.emptied, compression=self.compression
        )

    def apply(self, state: dict[str, bytes]) -> dict[str, bytes]:
        """The plain meaning: whiteouts for what is below, then files, each in the place of what was there."""
        state = {path: data for path, data in state.items() if not self._hides(path)}
        for new in self.files:
            state = {path: data for path, data in state.items() if not _excludes(new, path)}
        return {**state, **self.files}

    def _hides(self, path: str) -> bool:
        gone = any(path == name or path.startswith(name + "/") for name in self.removed)
        # An emptied directory is one from then on: a file of this name is gone, too.
        return gone or any(path == name or path.startswith(name + "/") for name in self.emptied) or any(
            name.startswith(path + "/") for name in (*self.removed, *self.emptied)
        )  # fmt: skip


def _excludes(new: str, old: str) -> bool:
    return old.startswith(new + "/") or new.startswith(old + "/")


CHANGES = st.builds(
    Change,
    st.dictionaries(PATHS, st.binary(max_size=9), max_size=5).map(without_conflicts),
    st.frozensets(PATHS, max_size=2),
    st.frozensets(PATHS, max_size=1),
    COMPRESSIONS,
).filter(
    # What is a file in a layer cannot be a directory in it that holds a whiteout.
    lambda change: (
        not any(
            marked == path or marked.startswith(path + "/")
            for path in change.files
            for marked in (*change.removed, *change.emptied)
        )
    )
)


@given(st.lists(CHANGES, max_size=5))
def test_layers_lie_on_each_other_as_in_a_simple_model(changes: list[Change]) -> None:
    expected: dict[str, bytes] = {}
    for change in changes:
        expected = change.apply(expected)

    async def merged() -> dict[str, bytes]:
        return await unpack.files(await pulled(change.layer() for change in changes), EVERYTHING)

    assert asyncio.run(merged()) == dict(sorted(expected.items()))


@pytest.mark.parametrize("form", [tarfile.USTAR_FORMAT, tarfile.GNU_FORMAT, tarfile.PAX_FORMAT])
@pytest.mark.parametrize("packing", ["w", "w:gz"])
async def test_archives_of_another_writer_are_read(form: int, packing: str) -> None:
    files = {f"manifests/{'d' * 90}/{'f' * 60}.yaml": b"long", "metadata/a": b"", "manifests/b": b"x" * 5000}
    target = io.BytesIO()
    with tarfile.open(fileobj=target, mode=packing, format=form) as archive:  # type: ignore[call-overload]
        for path, data in files.items():
            info = tarfile.TarInfo("./" + path)
            info.size, info.mtime, info.uname = len(data), 1_700_000_000, "someone"
            archive.addfile(info, io.BytesIO(data))
    assert await read([target.getvalue()]) == dict(sorted(files.items()))


async def test_a_catalog_on_a_base_full_of_links_is_read() -> None:
    base = (
        entry(b"bin", kind=SYMLINK, link=b"usr/bin")
        + entry(b"usr/bin/[", b"program")
        + entry(b"usr/bin/test", kind=HARD_LINK, link=b"usr/bin/[")
        + entry(b"dev/null", kind=b"3")
        + entry(b"run/initctl", kind=b"6")
        + entry(b"usr/share/locale/\xe9", b"Latin-1")
        + END
    )
    content = entry(b"/", kind=DIRECTORY) + entry(b"configs/", kind=DIRECTORY)
    content += entry(b"configs/pkg/catalog.json", b"{}") + END
    assert await read([base, content], ["/configs"]) == {"configs/pkg/catalog.json": b"{}"}


@pytest.mark.parametrize("prefix", ["configs", "configs/", "/configs", "./configs//", "/configs/."])
async def test_a_prefix_may_be_spelled_in_any_way(prefix: str) -> None:
    assert await read([entry(b"configs/a", b"1") + entry(b"configs2/b") + END], [prefix]) == {
        "configs/a": b"1"
    }


async def test_a_prefix_may_lie_deep() -> None:
    archive = entry(b"var/lib/x", b"1") + entry(b"var/lib", kind=SYMLINK) + END
    assert await read([archive], ["var/libs"]) == {}
    with pytest.raises(Unacceptable, match="is a symbolic link"):
        await read([archive], ["var/lib/configs"])


async def test_every_changed_byte_of_an_image_is_refused() -> None:
    store = Memory()
    built = build.image([build.layer({"manifests/a.yaml": b"a: 1\n"})], labels={"a": "b"})
    await build.write(store, built, "x")
    for descriptor in (built.descriptor, built.config_descriptor, built.layers[0].descriptor):
        good = store.content[descriptor.digest]
        for position in range(len(good)):
            changed = bytearray(good)
            changed[position] ^= 1 << position % 8
            store.content[descriptor.digest] = bytes(changed)
            with pytest.raises(Corrupt):
                await unpack.files(await images.pull(store, "x"))
        for other in (good[:-1], good + b"\0", b""):
            store.content[descriptor.digest] = other
            with pytest.raises(Corrupt):
                await unpack.files(await images.pull(store, "x"))
        store.content[descriptor.digest] = good
    assert await unpack.files(await images.pull(store, "x")) == {"manifests/a.yaml": b"a: 1\n"}


async def test_nothing_is_handed_out_before_all_layers_are_checked() -> None:
    image = await pulled([build.layer({"manifests/a": b"1"}), build.layer({"manifests/b": b"2"})])
    assert isinstance(image.store, Memory)
    last = image.manifest.layers[-1].digest
    image.store.content[last] = image.store.content[last][:-1] + b"!"
    with pytest.raises(Corrupt):
        await anext(unpack.stream(image))


async def test_a_layer_that_is_not_what_the_config_says_is_refused() -> None:
    made = build.layer({"manifests/a": b"1"})
    other = build.layer({"manifests/a": b"2"})
    with pytest.raises(Corrupt, match=f"does not hold {other.diff_id}"):
        await unpack.files(await pulled([replace(made, diff_id=other.diff_id)]))


async def test_a_config_with_too_few_diff_ids_is_refused() -> None:
    store = Memory()
    built = build.image([build.layer({"manifests/a": b"1"})])
    await build.write(store, built, "x")
    manifest = built.manifest.replace(
        b'"layers":[', b'"layers":[' + encode(built.layers[0].descriptor) + b","
    )
    doubled = descriptor_of(manifest, built.descriptor.media_type)
    await store.put_manifest(doubled, manifest, "doubled")
    with pytest.raises(Unacceptable, match="1 diff_ids for 2 layers"):
        await images.pull(store, "doubled")


@pytest.mark.parametrize(
    ("limits", "why"),
    [
        (Limits(layers=1), "2 layers; at most 1"),
        (Limits(compressed=100), "at most 100 are read"),
        (Limits(total=1000), "more than 1000 bytes after"),
        (Limits(kept=5), "more than 5 bytes"),
        (Limits(file=2), "manifests/d/a has 3 bytes; at most 2"),
        (Limits(files=1), "more than 1 wanted files"),
        (Limits(directories=3), "more than 3 directories"),
        (Limits(entries=3), "more than 3 entries"),
        (Limits(depth=1), "more than 1 directories deep"),
        (Limits(name=12), "a name of 13 bytes"),
        (Limits(ratio=2, ratio_after=0), "compressed more than 2 times"),
    ],
)
async def test_each_limit_is_kept(limits: Limits, why: str) -> None:
    image = await pulled([build.layer({"manifests/d/a": b"abc"}), build.layer({"manifests/d/b": b"def"})])
    assert len(await unpack.files(image)) == 2
    with pytest.raises(Unacceptable, match=why):
        await unpack.files(image, limits=limits)


async def test_layers_that_are_no_file_systems_are_refused() -> None:
    made = build.layer({"manifests/a": b"1"})
    attestation = Descriptor(
        media_type="application/vnd.in-toto+json", digest=made.descriptor.digest, size=made.descriptor.size
    )
    with pytest.raises(Unacceptable, match=r"application/vnd\.in-toto\+json"):
        await unpack.files(await pulled([replace(made, descriptor=attestation)]))


@given(st.binary(max_size=3000))
def test_any_bytes_are_an_archive_or_refused(data: bytes) -> None:
    for start in (b"", archives.entry(b"manifests/a", b"1"), b"\x1f\x8b\x08\0", b"\x28\xb5\x2f\xfd"):
        try:
            asyncio.run(read([start + data]))
        except OCIError:
            continue


@given(st.integers(0, 1500), st.binary(min_size=1, max_size=40))
def test_an_archive_with_a_changed_part_is_read_or_refused(position: int, change: bytes) -> None:
    good = archives.pax([(b"path", b"manifests/a")]) + entry(b"a", b"1") + entry(b"manifests/b") + END
    try:
        found = asyncio.run(read([good[:position] + change + good[position + len(change) :]]))
    except OCIError:
        return
    assert all(path.startswith(("manifests/", "metadata/")) for path in found)


def test_members_gives_every_entry_of_an_archive() -> None:
    archive = entry(b"a", b"1") + entry(b"b", kind=SYMLINK, link=b"a") + entry(b"c/", kind=DIRECTORY) + END
    found = [(member.name, member.kind.value, data) for member, data in unpack.members(io.BytesIO(archive))]
    assert found == [(b"a", "file", b"1"), (b"b", "symbolic link", b""), (b"c/", "directory", b"")]


STREAMING = """
import asyncio, re, sys
from podium.oci import images, unpack
from podium.oci.layout import Layout

async def main():
    image = await images.pull(Layout(sys.argv[1]), "x")
    count = 0
    async for path, data in unpack.stream(image, ["configs"], unpack.CATALOG):
        count += len(data)
    peak = int(re.search(r"VmHWM:\\s+(\\d+) kB", open("/proc/self/status").read())[1])
    print(count >> 20, peak >> 10)

asyncio.run(main())
"""


async def test_a_large_catalog_is_streamed_in_little_memory(tmp_path: Path) -> None:
    layout = Layout(tmp_path / "layout")
    layers = []
    for number in range(4):
        files = {f"configs/{number}/{each}": bytes([each]) * (1 << 20) for each in range(50)}
        layers.append(build.layer(files, compression="none"))
    await build.write(layout, build.image(layers), "x")
    command = [sys.executable, "-c", STREAMING, str(layout.path)]
    done = await asyncio.to_thread(subprocess.run, command, capture_output=True, text=True, check=True)
    total, peak = map(int, done.stdout.split())
    assert total == 200
    assert peak < 100
