"""A repository in a registry, through sockets: what is read is checked, what is written arrives."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from pathlib import Path

import msgspec
import pytest
from aiohttp import web

from harness.fakeregistry import FakeRegistry, image_bytes, images, running
from podium.oci import model
from podium.oci.errors import (
    BadReference,
    Corrupt,
    ImageNotFound,
    OCIError,
    RegistryError,
    Unacceptable,
    Unreachable,
)
from podium.oci.model import Descriptor, Digest
from podium.oci.store import Store


@pytest.fixture
async def registry() -> AsyncIterator[FakeRegistry]:
    async with running() as registry:
        yield registry


def source(data: bytes, size: int = 1000) -> AsyncIterator[bytes]:
    async def parts() -> AsyncIterator[bytes]:
        for start in range(0, len(data), size):
            yield data[start : start + size]

    return parts()


async def collected(store: Store, descriptor: Descriptor) -> bytes:
    return b"".join([part async for part in store.blob(descriptor)])


async def test_an_image_is_resolved_and_read(registry: FakeRegistry, tmp_path: Path) -> None:
    pushed = registry.add_image("v1", b"x" * 700_000)

    async with images(tmp_path, registry) as opened:
        store, tag = opened.store(f"docker://{registry.host}/team/app:v1")
        descriptor = await store.resolve(tag)
        manifest = model.decode(await store.manifest(descriptor), descriptor.media_type)
        assert isinstance(manifest, model.Manifest)
        layer = await collected(store, manifest.layers[0])

    assert descriptor == pushed
    assert layer == b"x" * 700_000
    assert store.name == f"{registry.host}/team/app"


async def test_what_a_tag_named_is_fetched_with_one_request(registry: FakeRegistry, tmp_path: Path) -> None:
    registry.add_image("v1")

    async with images(tmp_path, registry) as opened:
        store, tag = opened.store(f"{registry.host}/app:v1")
        await store.manifest(await store.resolve(tag))

    assert [each.path for each in registry.seen] == ["/v2/app/manifests/v1"]


async def test_resolving_again_asks_only_whether_the_tag_has_moved(
    registry: FakeRegistry, tmp_path: Path
) -> None:
    first = registry.add_image("v1", b"one")

    async with images(tmp_path, registry) as opened:
        store, tag = opened.store(f"{registry.host}/app:v1")
        resolved = [await store.resolve(tag), await store.resolve(tag)]
        second = registry.add_image("v1", b"two")
        resolved.append(await store.resolve(tag))

    assert resolved == [first, first, second]
    assert [each.method for each in registry.seen] == ["GET", "HEAD", "HEAD", "GET"]


async def test_a_registry_without_head_is_asked_with_get(registry: FakeRegistry, tmp_path: Path) -> None:
    first = registry.add_image("v1")

    async def no_head(request: web.Request) -> web.StreamResponse | None:
        return web.Response(status=405) if request.method == "HEAD" else None

    registry.before = no_head
    async with images(tmp_path, registry) as opened:
        store, tag = opened.store(f"{registry.host}/app:v1")
        assert [await store.resolve(tag), await store.resolve(tag)] == [first, first]


async def test_a_tag_that_flips_a_thousand_times_never_gives_mixed_content(
    registry: FakeRegistry, tmp_path: Path
) -> None:
    layers = {}
    for content in (b"one", b"two"):
        layers[registry.add_image("v1", content).digest] = content
    digests = list(layers)

    async def flip(request: web.Request) -> web.StreamResponse | None:
        # Every request finds the tag at the other image, HEAD and GET alike.
        digests.reverse()
        registry.tag_names["v1"] = digests[0]
        return None

    registry.before = flip
    async with images(tmp_path, registry) as opened:
        for _ in range(500):
            store, tag = opened.store(f"{registry.host}/app:v1")
            for _ in range(2):
                descriptor = await store.resolve(tag)
                data = await store.manifest(descriptor)
                assert model.digest_of(data) == descriptor.digest
                layer = msgspec.json.decode(data, type=model.Manifest).layers[0]
            assert await collected(store, layer) == layers[descriptor.digest]


async def test_every_changed_byte_of_a_manifest_is_refused(registry: FakeRegistry, tmp_path: Path) -> None:
    descriptor = registry.add_image("v1")
    _, good = registry.manifests[descriptor.digest]
    bad = [good[:at] + bytes([good[at] ^ 1]) + good[at + 1 :] for at in range(len(good))]
    bad += [good + b" ", good[:-1], b""]

    async with images(tmp_path, registry) as opened:
        for data in bad:
            registry.manifests[descriptor.digest] = (model.OCI_MANIFEST, data)
            for text in (f"{registry.host}/app:v1", f"{registry.host}/app@{descriptor.digest}"):
                store, tag = opened.store(text)
                with pytest.raises(Corrupt):
                    await store.resolve(tag)
            with pytest.raises(Corrupt):
                await opened.store(f"{registry.host}/app")[0].manifest(descriptor)


async def test_every_changed_byte_of_a_blob_is_refused(registry: FakeRegistry, tmp_path: Path) -> None:
    good = bytes(range(256)) * 2
    descriptor = registry.add_blob(good)
    bad = [good[:at] + bytes([good[at] ^ 0x80]) + good[at + 1 :] for at in range(len(good))]

    async with images(tmp_path, registry) as opened:
        store, _ = opened.store(f"{registry.host}/app")
        for data in bad:
            registry.blobs[descriptor.digest] = data
            with pytest.raises(Corrupt):
                await collected(store, descriptor)


async def test_a_manifest_of_another_size_than_its_descriptor_is_refused(
    registry: FakeRegistry, tmp_path: Path
) -> None:
    descriptor = registry.add_image("v1")
    wrong = msgspec.structs.replace(descriptor, size=descriptor.size + 1)

    async with images(tmp_path, registry) as opened:
        store, _ = opened.store(f"{registry.host}/app")
        with pytest.raises(Corrupt, match="should have"):
            await store.manifest(wrong)


async def test_a_manifest_larger_than_any_registry_takes_is_not_read_to_its_end(
    registry: FakeRegistry, tmp_path: Path
) -> None:
    sent = 0

    async def endless(request: web.Request) -> web.StreamResponse | None:
        nonlocal sent
        response = web.StreamResponse(headers={"Content-Type": model.OCI_MANIFEST})
        await response.prepare(request)
        while sent < 100 << 20:
            await response.write(b" " * 65536)
            sent += 65536
        return response

    registry.before = endless
    async with images(tmp_path, registry) as opened:
        store, tag = opened.store(f"{registry.host}/app:v1")
        with pytest.raises(RegistryError, match="more than 4194304 bytes"):
            await store.resolve(tag)
    assert sent < 20 << 20


@pytest.mark.parametrize("header", ["sha256:xyz", "md5:d41d8cd98f00b204e9800998ecf8427e", "../../etc"])
async def test_a_claimed_digest_that_is_none_is_refused(
    header: str, registry: FakeRegistry, tmp_path: Path
) -> None:
    _, data = registry.manifests[registry.add_image("v1").digest]

    async def claim(request: web.Request) -> web.StreamResponse | None:
        return web.Response(
            body=data, content_type=model.OCI_MANIFEST, headers={"Docker-Content-Digest": header}
        )

    registry.before = claim
    async with images(tmp_path, registry) as opened:
        store, tag = opened.store(f"{registry.host}/app:v1")
        with pytest.raises(Corrupt):
            await store.resolve(tag)


@pytest.mark.parametrize("content_type", ["application/json", "text/plain; charset=utf-8", ""])
async def test_the_type_of_a_manifest_is_taken_from_its_content_if_no_header_says_it(
    content_type: str, registry: FakeRegistry, tmp_path: Path
) -> None:
    _, image = registry.manifests[registry.add_image("v1").digest]
    unnamed_index = b'{"schemaVersion": 2, "manifests": []}'

    async def untyped(request: web.Request) -> web.StreamResponse | None:
        data = image if request.path.endswith("/image") else unnamed_index
        response = web.StreamResponse(headers={"Content-Type": content_type} if content_type else {})
        response.content_length = len(data)
        await response.prepare(request)
        await response.write(data)
        return response

    registry.before = untyped
    async with images(tmp_path, registry) as opened:
        store, _ = opened.store(f"{registry.host}/app")
        assert (await store.resolve("image")).media_type == model.OCI_MANIFEST
        assert (await store.resolve("index")).media_type == model.OCI_INDEX


async def test_a_tag_can_name_content_by_sha512(registry: FakeRegistry, tmp_path: Path) -> None:
    import hashlib

    _, data = registry.manifests[registry.add_image("v1").digest]
    digest = "sha512:" + hashlib.sha512(data).hexdigest()
    registry.manifests[digest] = (model.OCI_MANIFEST, data)
    registry.tag_names["v1"] = digest

    async with images(tmp_path, registry) as opened:
        store, _ = opened.store(f"{registry.host}/app")
        assert (await store.resolve("v1")).digest == digest
        assert (await store.resolve(digest)).size == len(data)
        registry.manifests[digest] = (model.OCI_MANIFEST, data[:-1] + b" ")
        with pytest.raises(Corrupt):
            await opened.store(f"{registry.host}/app")[0].resolve(digest)


@pytest.mark.parametrize(
    "bad", ["", "a/b", "../v1", "v1?x=y", "sha256:abc", "sha384:" + "0" * 96, "x" * 129, "é"]
)
async def test_what_is_neither_tag_nor_digest_is_refused_before_any_request(
    bad: str, registry: FakeRegistry, tmp_path: Path
) -> None:
    async with images(tmp_path, registry) as opened:
        store, _ = opened.store(f"{registry.host}/app")
        with pytest.raises(BadReference):
            await store.resolve(bad)
        with pytest.raises(BadReference):
            await store.referrers(Digest(bad))
    assert registry.seen == []


async def test_missing_things_are_not_found(registry: FakeRegistry, tmp_path: Path) -> None:
    missing = model.descriptor_of(b"nothing", model.OCI_LAYER)

    async with images(tmp_path, registry) as opened:
        store, _ = opened.store(f"{registry.host}/app")
        assert not await store.has(missing)
        for attempt in (store.resolve("v1"), store.resolve(missing.digest), collected(store, missing)):
            with pytest.raises(ImageNotFound, match="not known"):
                await attempt


async def test_an_image_is_pushed_once(registry: FakeRegistry, tmp_path: Path) -> None:
    layer = model.descriptor_of(b"layer" * 1000, model.OCI_LAYER)
    config = model.descriptor_of(b"{}", model.OCI_CONFIG)
    data = image_bytes(config, layer)
    descriptor = model.descriptor_of(data, model.OCI_MANIFEST)

    async with images(tmp_path, registry) as opened:
        store, _ = opened.store(f"{registry.host}/app")
        for _ in range(2):
            await store.put_blob(layer, lambda: source(b"layer" * 1000))
            await store.put_blob(config, lambda: source(b"{}"))
            await store.put_manifest(descriptor, data, "v1")
        assert await store.has(layer)
        assert await store.has(descriptor)
        assert await store.tags() == ["v1"]

    assert registry.blobs[layer.digest] == b"layer" * 1000
    assert registry.manifests[registry.tag_names["v1"]][1] == data
    assert len(registry.paths("POST")) == 2
    sent = next(each for each in registry.seen if each.body == b"layer" * 1000)
    assert sent.headers["Content-Length"] == "5000", "not every registry takes a chunked encoding"


async def test_a_truncated_blob_in_the_registry_counts_as_missing(
    registry: FakeRegistry, tmp_path: Path
) -> None:
    layer = registry.add_blob(b"layer")
    registry.blobs[layer.digest] = b"lay"

    async with images(tmp_path, registry) as opened:
        store, _ = opened.store(f"{registry.host}/app")
        assert not await store.has(layer)
        await store.put_blob(layer, lambda: source(b"layer"))
    assert registry.blobs[layer.digest] == b"layer"


@pytest.mark.parametrize("wrong", [b"lay3r", b"layer!", b"laye", b""])
async def test_a_source_that_is_not_what_it_claims_is_never_stored(
    wrong: bytes, registry: FakeRegistry, tmp_path: Path
) -> None:
    layer = model.descriptor_of(b"layer", model.OCI_LAYER)

    async with images(tmp_path, registry) as opened:
        store, _ = opened.store(f"{registry.host}/app")
        with pytest.raises(Corrupt):
            await store.put_blob(layer, lambda: source(wrong))
    assert registry.blobs == {}


async def test_a_manifest_is_checked_before_it_is_sent(registry: FakeRegistry, tmp_path: Path) -> None:
    data = image_bytes(model.descriptor_of(b"{}", model.OCI_CONFIG))

    async with images(tmp_path, registry) as opened:
        store, _ = opened.store(f"{registry.host}/app")
        with pytest.raises(Corrupt):
            await store.put_manifest(model.descriptor_of(data + b" ", model.OCI_MANIFEST), data, "v1")
        with pytest.raises(Unacceptable):
            await store.put_manifest(model.descriptor_of(b"[]", model.OCI_MANIFEST), b"[]", "v1")
    assert registry.seen == []


async def test_a_registry_that_stores_another_manifest_is_not_believed(
    registry: FakeRegistry, tmp_path: Path
) -> None:
    data = image_bytes(model.descriptor_of(b"{}", model.OCI_CONFIG))

    async def rewrite(request: web.Request) -> web.StreamResponse | None:
        return web.Response(status=201, headers={"Docker-Content-Digest": model.digest_of(b"other")})

    registry.before = rewrite
    async with images(tmp_path, registry) as opened:
        store, _ = opened.store(f"{registry.host}/app")
        with pytest.raises(Corrupt, match="instead of"):
            await store.put_manifest(model.descriptor_of(data, model.OCI_MANIFEST), data, "v1")


@pytest.mark.parametrize("page", [0, 1, 2, 7, 100])
async def test_all_pages_of_tags_are_read(page: int, registry: FakeRegistry, tmp_path: Path) -> None:
    for number in range(7):
        registry.add_image(f"v{number}")
    registry.page = page

    async with images(tmp_path, registry) as opened:
        store, _ = opened.store(f"{registry.host}/app")
        assert await store.tags() == [f"v{number}" for number in range(7)]


@pytest.mark.parametrize(
    ("link", "words"),
    [
        ("</v2/app/tags/list?n=1000>; rel=next", "does not end after 2 pages"),
        ("<https://elsewhere.example/v2/app/tags/list>; rel=next", "another host"),
        ("<http://169.254.169.254/latest>; rel=next", "another host"),
        ("<//elsewhere.example/v2/app/tags/list>; rel=next", "another host"),
        ("<file:///etc/passwd>; rel=next", "no place for a registry"),
        ("<http://[::1>; rel=next", "malformed URL"),
    ],
)
async def test_pages_that_lead_in_circles_or_away_are_refused(
    link: str, words: str, registry: FakeRegistry, tmp_path: Path
) -> None:
    async def paging(request: web.Request) -> web.StreamResponse | None:
        return web.json_response({"tags": ["v1"]}, headers={"Link": link})

    registry.before = paging
    async with images(tmp_path, registry) as opened:
        store, _ = opened.store(f"{registry.host}/app")
        with pytest.raises(RegistryError, match=words):
            await store.tags()


async def test_pages_without_end_are_given_up(registry: FakeRegistry, tmp_path: Path) -> None:
    pages = 0

    async def paging(request: web.Request) -> web.StreamResponse | None:
        nonlocal pages
        pages += 1
        return web.json_response({"tags": None}, headers={"Link": f'<?page={pages}>; rel="next"'})

    registry.before = paging
    async with images(tmp_path, registry) as opened:
        store, _ = opened.store(f"{registry.host}/app")
        with pytest.raises(RegistryError, match="does not end after 1000 pages"):
            await store.tags()


async def test_lists_that_fill_the_memory_are_given_up(
    registry: FakeRegistry, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("podium.oci.remote._MAX_LIST", 1 << 20)
    pages = 0

    async def paging(request: web.Request) -> web.StreamResponse | None:
        nonlocal pages
        pages += 1
        tags = [f"{pages}-{number}" for number in range(10_000)]
        return web.json_response({"tags": tags}, headers={"Link": f'<?page={pages}>; rel="next"'})

    registry.before = paging
    async with images(tmp_path, registry) as opened:
        store, _ = opened.store(f"{registry.host}/app")
        with pytest.raises(RegistryError, match="has more than 1048576 bytes"):
            await store.tags()
    assert pages < 20


async def test_a_hostile_link_takes_no_time(registry: FakeRegistry, tmp_path: Path) -> None:
    async def linking(request: web.Request) -> web.StreamResponse | None:
        return web.json_response({"tags": ["v1"]}, headers={"Link": "<>;" * 10_000})

    registry.before = linking
    async with images(tmp_path, registry) as opened, asyncio.timeout(2):
        store, _ = opened.store(f"{registry.host}/app")
        start = time.process_time()
        assert await store.tags() == ["v1"]
    assert time.process_time() - start < 0.5


@pytest.mark.parametrize("body", ["[]", "not json", '{"tags": "v1"}', '{"tags": [1]}', "[" * 100_000])
async def test_a_malformed_tag_list_is_refused(body: str, registry: FakeRegistry, tmp_path: Path) -> None:
    async def malformed(request: web.Request) -> web.StreamResponse | None:
        return web.Response(text=body, content_type="application/json")

    registry.before = malformed
    async with images(tmp_path, registry) as opened:
        store, _ = opened.store(f"{registry.host}/app")
        with pytest.raises(RegistryError):
            await store.tags()


def signature(subject: Descriptor, number: int) -> tuple[Descriptor, bytes]:
    config = model.descriptor_of(b"{}", "application/vnd.example.signature")
    data = image_bytes(config, subject=subject, annotations={"number": str(number)})
    return model.descriptor_of(data, model.OCI_MANIFEST), data


@pytest.mark.parametrize("api", [True, False])
async def test_referrers_are_found_with_and_without_the_api(
    api: bool, registry: FakeRegistry, tmp_path: Path
) -> None:
    registry.has_referrers_api = api
    subject = registry.add_image("v1")

    async with images(tmp_path, registry) as opened:
        store, _ = opened.store(f"{registry.host}/app")
        for number in (1, 2, 2):
            await store.put_manifest(*signature(subject, number))
        found = await store.referrers(subject.digest)
        of_type = await store.referrers(subject.digest, "application/vnd.example.signature")
        others = await store.referrers(subject.digest, "application/other")
        none = await store.referrers(model.digest_of(b"unknown"))

    assert {each.digest for each in found} == {signature(subject, number)[0].digest for number in (1, 2)}
    assert len(found) == len(of_type) == 2
    assert others == none == []
    fallback = subject.digest.replace(":", "-")
    assert (fallback in registry.tag_names) is not api


@pytest.mark.parametrize("status", [400, 404, 405, 501])
async def test_a_registry_that_does_not_know_referrers_is_asked_for_the_tag(
    status: int, registry: FakeRegistry, tmp_path: Path
) -> None:
    async def unknown(request: web.Request) -> web.StreamResponse | None:
        return web.Response(status=status) if "/referrers/" in request.path else None

    registry.before = unknown
    subject = registry.add_image("v1")
    async with images(tmp_path, registry) as opened:
        store, _ = opened.store(f"{registry.host}/app")
        assert await store.referrers(subject.digest) == []
        registry.add_image(subject.digest.replace(":", "-"))
        with pytest.raises(Unacceptable, match="should be an index of referrers"):
            await store.referrers(subject.digest)


async def test_the_fallback_index_keeps_what_others_listed(registry: FakeRegistry, tmp_path: Path) -> None:
    subject = registry.add_image("v1")
    foreign = model.descriptor_of(b"foreign", model.OCI_MANIFEST, annotations={"by": "others"})
    tag = subject.digest.replace(":", "-")
    index = model.Index(schema_version=2, media_type=model.OCI_INDEX, manifests=[foreign])
    registry.add_manifest(msgspec.json.encode(index), tag, model.OCI_INDEX)

    async with images(tmp_path, registry) as opened:
        store, _ = opened.store(f"{registry.host}/app")
        await store.put_manifest(*signature(subject, 1))
        found = await store.referrers(subject.digest)

    assert found[0] == foreign
    assert found[1].annotations == {"number": "1"}
    assert found[1].artifact_type == "application/vnd.example.signature"


async def test_a_blob_is_mounted_from_another_repository(registry: FakeRegistry, tmp_path: Path) -> None:
    layer = model.descriptor_of(b"layer", model.OCI_LAYER)

    async with images(tmp_path, registry) as opened:
        here, _ = opened.store(f"{registry.host}/app")
        there, _ = opened.store(f"{registry.host}/base/image")
        elsewhere, _ = opened.store("other.example/base/image")
        assert not await here.mount(layer, there)
        assert registry.uploads == {}, "the upload that the registry began instead is given back"
        registry.mountable.add(layer.digest)
        assert await here.mount(layer, there)
        asked = len(registry.seen)
        assert not await here.mount(layer, elsewhere)
        assert not await here.mount(layer, here)

    assert len(registry.seen) == asked
    assert "from=base%2Fimage" in registry.paths("POST")[-1]


async def test_nothing_is_spoken_in_plain_http_unless_the_user_says_so(
    registry: FakeRegistry, tmp_path: Path
) -> None:
    registry.add_image("v1")

    async with images(tmp_path) as opened:
        store, tag = opened.store(f"{registry.host}/app:v1")
        with pytest.raises(Unreachable, match="plain HTTP"):
            await store.resolve(tag)
    assert registry.seen == []


@pytest.mark.parametrize("status", [400, 402, 410, 418])
async def test_other_answers_are_told_in_the_registrys_words(
    status: int, registry: FakeRegistry, tmp_path: Path
) -> None:
    async def complain(request: web.Request) -> web.StreamResponse | None:
        errors = [{"code": "X", "message": "no\nway"}, {"code": "ONLY_CODE"}, {}]
        return web.json_response({"errors": errors}, status=status)

    registry.before = complain
    async with images(tmp_path, registry) as opened:
        store, tag = opened.store(f"{registry.host}/app:v1")
        with pytest.raises(RegistryError, match="no way; ONLY_CODE") as caught:
            await store.resolve(tag)
    assert caught.value.status == status


@pytest.mark.parametrize(
    "body",
    [
        b"<html>",
        b'{"errors": 7}',
        b"[1]",
        b'{"errors": [1, null]}',
        b"\xff",
        b"x" * 200_000,
        b"[" * 60_000,
        b'{"errors": {"a": 1}}',
    ],
)
async def test_an_error_in_any_form_is_an_error(body: bytes, registry: FakeRegistry, tmp_path: Path) -> None:
    async def complain(request: web.Request) -> web.StreamResponse | None:
        return web.Response(body=body, status=400)

    registry.before = complain
    async with images(tmp_path, registry) as opened:
        store, tag = opened.store(f"{registry.host}/app:v1")
        with pytest.raises(OCIError):
            await store.resolve(tag)
