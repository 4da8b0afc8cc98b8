"""The right manifest is found for a name and a platform, and what makes no sense is refused."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.stores import Memory
from podium.oci import build, images
from podium.oci.errors import BadReference, ImageNotFound, Unacceptable
from podium.oci.images import choose, parse_platform
from podium.oci.model import (
    DOCKER_LIST,
    DOCKER_MANIFEST,
    MAX_MANIFEST,
    OCI_CONFIG,
    OCI_INDEX,
    OCI_LAYER,
    OCI_MANIFEST,
    Descriptor,
    Digest,
    Platform,
    decode,
    descriptor_of,
    digest_of,
)


def entry(platform: str, **annotations: str) -> Descriptor:
    """An entry of an index for a platform like `linux/arm/v7`; an empty one names none."""
    system, _, rest = platform.partition("/")
    architecture, _, variant = rest.partition("/")
    named = Platform(os=system, architecture=architecture, variant=variant) if platform else None
    name = platform + str(annotations)
    return descriptor_of(name.encode(), OCI_MANIFEST, platform=named, annotations=annotations)


@pytest.fixture
def _amd64(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("platform.machine", lambda: "x86_64")


@pytest.mark.usefixtures("_amd64")
@pytest.mark.parametrize(
    ("available", "wanted", "chosen"),
    [
        # Nobody said which: this machine's.
        (["linux/arm64", "linux/amd64"], None, "linux/amd64"),
        (["linux/amd64/v2", "linux/amd64/v1"], None, "linux/amd64/v1"),
        (["windows/amd64", "linux/amd64"], None, "linux/amd64"),
        (["linux/s390x"], None, "linux/s390x"),
        (["linux/s390x", "unknown/unknown"], None, "linux/s390x"),
        ([""], None, ""),
        (["linux/s390x", "linux/arm64"], None, None),
        (["linux/amd64/v3", "linux/arm64"], None, None),
        ([], None, None),
        (["unknown/unknown"], None, None),
        # Somebody did: exactly that, or an older variant it can run.
        (["linux/amd64", "linux/arm64"], "linux/arm64", "linux/arm64"),
        (["linux/amd64", "linux/arm64"], "linux/aarch64", "linux/arm64"),
        (["linux/arm64/v8"], "linux/arm64", "linux/arm64/v8"),
        (["linux/arm64"], "linux/arm64/v8", "linux/arm64"),
        (["linux/arm64", "linux/arm64/v9"], "linux/arm64/v9", "linux/arm64/v9"),
        (["linux/arm64"], "linux/arm64/v9", "linux/arm64"),
        (["linux/arm/v5", "linux/arm/v6"], "linux/arm/v7", "linux/arm/v6"),
        (["linux/arm/v7", "linux/arm/v6"], "linux/arm/v6", "linux/arm/v6"),
        (["linux/arm/v7"], "linux/arm", "linux/arm/v7"),
        (["linux/arm/v7"], "linux/armhf", "linux/arm/v7"),
        (["linux/arm/v8"], "linux/arm/v7", None),
        (["linux/amd64", "linux/amd64/v2", "linux/amd64/v3"], "linux/amd64/v2", "linux/amd64/v2"),
        (["linux/amd64", "linux/amd64/v4"], "linux/amd64/v3", "linux/amd64"),
        (["linux/s390x"], "linux/amd64", None),
        (["windows/amd64"], "linux/amd64", None),
        ([""], "linux/amd64", None),
        (["linux/riscv64/rva23"], "linux/riscv64/rva23", "linux/riscv64/rva23"),
    ],
)
def test_the_entry_for_a_platform_is_chosen(
    available: list[str], wanted: str | None, chosen: str | None
) -> None:
    entries = [entry(each) for each in available]
    platform = parse_platform(wanted) if wanted else None
    if chosen is None:
        with pytest.raises(ImageNotFound, match=r"has no image for linux/.*; it has: "):
            choose(entries, platform)
    else:
        assert choose(entries, platform) == entry(chosen)


def test_attestations_are_no_images() -> None:
    attestation = entry("linux/amd64", **{"vnd.docker.reference.type": "attestation-manifest"})
    assert choose([attestation, entry("linux/s390x")], None) == entry("linux/s390x")


@pytest.mark.parametrize("text", ["", "linux", "linux/", "/amd64", "linux/arm/v7/x", "linux//v7"])
def test_what_is_no_platform_is_refused(text: str) -> None:
    with pytest.raises(BadReference, match="not a platform"):
        parse_platform(text)


async def put(store: Memory, value: dict[str, Any], media_type: str, tag: str = "") -> Descriptor:
    """Any document, whether the store would take it or not."""
    data = json.dumps(value).encode()
    descriptor = descriptor_of(data, media_type)
    store.content[descriptor.digest] = data
    if tag:
        store.tagged[tag] = descriptor
    return descriptor


def listed(*descriptors: Descriptor) -> dict[str, Any]:
    manifests = [
        {"mediaType": each.media_type, "digest": each.digest, "size": each.size} for each in descriptors
    ]
    return {"schemaVersion": 2, "manifests": manifests}


async def test_an_image_is_found_in_nested_indexes() -> None:
    store = Memory()
    built = build.image([], labels={"deep": "yes"})
    descriptor = await build.write(store, built)
    for media_type in (OCI_INDEX, DOCKER_LIST, OCI_INDEX):
        descriptor = await put(store, listed(descriptor), media_type, "nested")
    assert (await images.pull(store, "nested")).labels == {"deep": "yes"}


async def test_indexes_nested_without_end_are_refused() -> None:
    store = Memory()
    descriptor = await build.write(store, build.image([]))
    for _ in range(5):
        descriptor = await put(store, listed(descriptor), OCI_INDEX, "nested")
    with pytest.raises(Unacceptable, match="nests indexes more than"):
        await images.pull(store, "nested")


async def test_an_index_that_multiplies_is_refused() -> None:
    store = Memory()
    descriptor = await build.write(store, build.image([]))
    for _ in range(3):
        descriptor = await put(store, listed(*[descriptor] * 600), OCI_INDEX, "many")
    with pytest.raises(Unacceptable, match="more than 1000 manifests"):
        await images.pull(store, "many")


async def test_a_tag_is_resolved_once_and_the_image_is_its_digest() -> None:
    store = Memory()
    built = build.image([build.layer({"manifests/a": b"1"})])
    await build.write(store, build.index([built]), "x")
    image = await images.pull(store, "x")
    assert store.resolved == 1
    assert image.descriptor.digest == built.descriptor.digest
    assert (await images.pull(store, built.descriptor.digest)).descriptor.digest == built.descriptor.digest


async def test_an_image_for_another_platform_than_asked_for_is_refused() -> None:
    store = Memory()
    await build.write(store, build.image([], platform=parse_platform("linux/arm64")), "x")
    assert (await images.pull(store, "x")).platform.architecture == "arm64"
    assert (await images.pull(store, "x", "linux/arm64/v8")).platform.architecture == "arm64"
    with pytest.raises(ImageNotFound, match="is for linux/arm64, not for linux/amd64"):
        await images.pull(store, "x", "linux/amd64")


async def test_an_artifact_that_is_no_image_has_no_config() -> None:
    store = Memory()
    blob = descriptor_of(b"{}", "application/vnd.oci.empty.v1+json")
    store.content[blob.digest] = b"{}"
    config = {"mediaType": blob.media_type, "digest": blob.digest, "size": blob.size}
    await put(store, {"schemaVersion": 2, "config": config, "layers": [config]}, OCI_MANIFEST, "x")
    image = await images.pull(store, "x")
    assert (image.labels, image.diff_ids, image.is_container_image) == ({}, [], False)


DIGEST = digest_of(b"")
DESCRIPTOR = {"mediaType": OCI_CONFIG, "digest": DIGEST, "size": 0}


@pytest.mark.parametrize(
    ("media_type", "text", "why"),
    [
        (OCI_MANIFEST, "", "malformed"),
        (OCI_MANIFEST, "[]", "malformed"),
        (OCI_MANIFEST, "{}", "malformed"),
        (OCI_MANIFEST, "[" * 100_000, "malformed"),
        (OCI_MANIFEST, '{"x":' * 100_000, "malformed"),
        (OCI_MANIFEST, '{"schemaVersion":1,"config":%s}', "schemaVersion is 1"),
        (OCI_MANIFEST, '{"schemaVersion":2,"config":%s,"manifests":[]}', "of a manifest and of an index"),
        (OCI_INDEX, '{"schemaVersion":2,"manifests":[],"layers":[]}', "of a manifest and of an index"),
        (OCI_INDEX, '{"schemaVersion":2,"manifests":[],"config":%s}', "of a manifest and of an index"),
        (OCI_INDEX, '{"schemaVersion":2,"mediaType":"text/plain"}', "but says it is"),
        (
            DOCKER_MANIFEST,
            '{"schemaVersion":2,"mediaType":"text/plain","config":%s}',
            "but says it is",
        ),
        ("text/plain", "{}", "not an image manifest or index"),
        ("application/vnd.docker.distribution.manifest.v1+json", "{}", "not an image manifest or index"),
        (
            OCI_MANIFEST,
            '{"schemaVersion":2,"config":{"mediaType":"a","digest":"md5:x","size":1}}',
            "descriptor",
        ),
        (
            OCI_INDEX,
            '{"schemaVersion":2,"manifests":[{"mediaType":"a","digest":"sha256:..","size":1}]}',
            "desc",
        ),
        (OCI_MANIFEST, " " * MAX_MANIFEST + "{}", "at most"),
    ],
)
def test_malformed_manifests_are_refused(media_type: str, text: str, why: str) -> None:
    with pytest.raises(Unacceptable, match=why):
        decode(text.replace("%s", json.dumps(DESCRIPTOR)).encode(), media_type)


def test_a_descriptor_may_not_have_a_negative_size() -> None:
    text = json.dumps({"schemaVersion": 2, "config": {**DESCRIPTOR, "size": -1}})
    with pytest.raises(Unacceptable, match="malformed descriptor"):
        decode(text.encode(), OCI_MANIFEST)


def test_nulls_of_go_tools_are_empty_lists() -> None:
    assert decode(b'{"schemaVersion":2,"manifests":null,"annotations":null}', OCI_INDEX).annotations == {}


@given(st.binary(max_size=200) | st.recursive(st.none() | st.integers() | st.text(), lambda inner: (
    st.dictionaries(st.sampled_from(["schemaVersion", "config", "layers", "manifests", "digest"]), inner)
    | st.lists(inner, max_size=3)
)).map(lambda value: json.dumps(value).encode()))  # fmt: skip
def test_any_document_is_a_manifest_or_refused(data: bytes) -> None:
    for media_type in (OCI_MANIFEST, OCI_INDEX):
        try:
            decode(data, media_type)
        except Unacceptable:
            continue


@pytest.mark.parametrize(
    "config",
    [
        b"",
        b"[]",
        b"null",
        b"[" * 100_000,
        b'{"a":"\xff"}',
        b'{"config":[]}',
        b'{"config":{"Labels":["a"]}}',
        b'{"rootfs":[]}',
        b'{"rootfs":{"diff_ids":"sha256:"}}',
        b'{"rootfs":{"diff_ids":[1]}}',
        b'{"rootfs":{"diff_ids":["sha256:../../x"]}}',
        b'{"rootfs":{"diff_ids":[]}}',
        b"{}",
        b'{"history": 5, "rootfs": {"diff_ids": ["%s"]}}' % DIGEST.encode(),
    ],
)
async def test_a_malformed_config_is_refused(config: bytes) -> None:
    store = Memory()
    described = descriptor_of(config, OCI_CONFIG)
    store.content[described.digest] = config
    value = {
        "schemaVersion": 2,
        "config": {"mediaType": OCI_CONFIG, "digest": described.digest, "size": described.size},
        "layers": [{"mediaType": OCI_LAYER, "digest": DIGEST, "size": 0}],
    }
    await put(store, value, OCI_MANIFEST, "x")
    with pytest.raises(Unacceptable, match="malformed config"):
        await images.pull(store, "x")


async def test_a_config_of_a_gigabyte_is_not_even_asked_for() -> None:
    store = Memory()
    large = {"mediaType": OCI_CONFIG, "digest": Digest(DIGEST), "size": 1 << 30}
    await put(store, {"schemaVersion": 2, "config": large}, OCI_MANIFEST, "x")
    with pytest.raises(Unacceptable, match="config of 1073741824 bytes"):
        await images.pull(store, "x")


async def test_labels_that_are_no_text_are_left_out() -> None:
    store = Memory()
    built = build.image([], labels={"a": "b"})
    config = built.config.replace(b'"a":"b"', b'"a":"b","n":1')
    described = descriptor_of(config, OCI_CONFIG)
    store.content[described.digest] = config
    value = {
        **json.loads(built.manifest),
        "config": {**DESCRIPTOR, "digest": described.digest, "size": len(config)},
    }
    await put(store, value, OCI_MANIFEST, "x")
    assert (await images.pull(store, "x")).labels == {"a": "b"}
