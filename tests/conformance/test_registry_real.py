"""Our registry client against the real docker-registry, and in exchange with the real skopeo."""

from __future__ import annotations

import asyncio
import base64
import gzip
import hashlib
import io
import json
import sys
import tarfile
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import aiohttp
import msgspec
import pytest
from aiohttp import web
from multidict import CIMultiDict

from harness import fakeregistry
from harness.fakeregistry import image_bytes, images
from harness.registry import PASSWORD, USER, RealRegistry, Skopeo, TokenService, running
from harness.tls import Authority
from podium.oci import model
from podium.oci.errors import (
    AccessDenied,
    Blocked,
    Corrupt,
    ImageNotFound,
    OCIError,
    RateLimited,
    Unreachable,
)
from podium.oci.layout import Layout
from podium.oci.model import Descriptor
from podium.oci.store import Store

pytestmark = pytest.mark.registry


@dataclass(frozen=True)
class Image:
    """A small image that every tool understands."""

    layer: bytes
    config: bytes
    manifest: bytes

    @property
    def descriptor(self) -> Descriptor:
        return model.descriptor_of(self.manifest, model.OCI_MANIFEST)

    @property
    def blobs(self) -> list[tuple[Descriptor, bytes]]:
        return [
            (model.descriptor_of(self.layer, model.OCI_LAYER_GZIP), self.layer),
            (model.descriptor_of(self.config, model.OCI_CONFIG), self.config),
        ]


def image(content: bytes = b"content", **fields: Any) -> Image:
    archive = io.BytesIO()
    with tarfile.open(fileobj=archive, mode="w") as tar:
        member = tarfile.TarInfo("manifests/file.yaml")
        member.size = len(content)
        tar.addfile(member, io.BytesIO(content))
    layer = gzip.compress(archive.getvalue(), mtime=0)
    diff = "sha256:" + hashlib.sha256(archive.getvalue()).hexdigest()
    config = msgspec.json.encode(
        {
            "architecture": "amd64",
            "os": "linux",
            "config": {"Labels": {"a": "b"}},
            "rootfs": {"type": "layers", "diff_ids": [diff]},
            "history": [{"created_by": "tests"}],
        }
    )
    manifest = image_bytes(
        model.descriptor_of(config, model.OCI_CONFIG),
        model.descriptor_of(layer, model.OCI_LAYER_GZIP),
        **fields,
    )
    return Image(layer, config, manifest)


async def parts(data: bytes, size: int = 10_000) -> AsyncIterator[bytes]:
    for start in range(0, len(data), size):
        yield data[start : start + size]


async def push(store: Store, pushed: Image, tag: str = "v1") -> None:
    for descriptor, data in pushed.blobs:
        await store.put_blob(descriptor, lambda data=data: parts(data))  # type: ignore[misc]
    await store.put_manifest(pushed.descriptor, pushed.manifest, tag)


async def collected(store: Store, descriptor: Descriptor) -> bytes:
    return b"".join([part async for part in store.blob(descriptor)])


async def pull(store: Store, tag: str = "v1") -> Image:
    descriptor = await store.resolve(tag)
    data = await store.manifest(descriptor)
    manifest = msgspec.json.decode(data, type=model.Manifest)
    return Image(await collected(store, manifest.layers[0]), await collected(store, manifest.config), data)


@pytest.fixture(scope="module")
def authority() -> Authority:
    return Authority()


@pytest.fixture(scope="module")
def plain(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RealRegistry]:
    with running(tmp_path_factory.mktemp("plain")) as registry:
        yield registry


@pytest.fixture
def skopeo(tmp_path: Path) -> Skopeo:
    return Skopeo(tmp_path)


def known(*registries: RealRegistry) -> dict[str, Any]:
    return {"plain_http": [each.host for each in registries]}


async def test_what_we_push_skopeo_inspects_and_copies(
    plain: RealRegistry, skopeo: Skopeo, tmp_path: Path
) -> None:
    pushed = image()
    async with images(tmp_path, **known(plain)) as opened:
        store, _ = opened.store(f"{plain.host}/ours/app")
        await push(store, pushed)
        name = f"docker://{plain.host}/ours/app:v1"
        inspected = json.loads(await skopeo.run("inspect", "--tls-verify=false", name))
        await skopeo.run("copy", "--src-tls-verify=false", name, f"oci:{tmp_path / 'copy'}:v1")
        copied = await pull(Layout(tmp_path / "copy"))
    assert inspected["Digest"] == pushed.descriptor.digest
    assert inspected["Labels"] == {"a": "b"}
    assert copied == pushed


async def test_what_skopeo_pushes_we_pull(plain: RealRegistry, skopeo: Skopeo, tmp_path: Path) -> None:
    made = image(b"by skopeo")
    await push(Layout(tmp_path / "made"), made)
    for kind, name in (("oci", "oci"), ("v2s2", "docker")):
        target = f"docker://{plain.host}/theirs/{name}:v1"
        arguments = ["--dest-tls-verify=false", f"--format={kind}", f"oci:{tmp_path / 'made'}:v1", target]
        await skopeo.run("copy", *arguments)
    async with images(tmp_path, **known(plain)) as opened:
        assert await pull(opened.store(f"{plain.host}/theirs/oci:v1")[0]) == made
        converted, _ = opened.store(f"{plain.host}/theirs/docker:v1")
        assert (await converted.resolve("v1")).media_type == model.DOCKER_MANIFEST
        assert (await pull(converted)).layer == made.layer


async def test_an_index_with_its_platforms_goes_through_skopeo_unchanged(
    plain: RealRegistry, skopeo: Skopeo, tmp_path: Path
) -> None:
    made = [image(b"amd64"), image(b"arm64")]
    platforms = [model.Platform("amd64", "linux"), model.Platform("arm64", "linux")]
    entries = [
        msgspec.structs.replace(each.descriptor, platform=at)
        for each, at in zip(made, platforms, strict=True)
    ]
    index = msgspec.json.encode(model.Index(schema_version=2, media_type=model.OCI_INDEX, manifests=entries))
    descriptor = model.descriptor_of(index, model.OCI_INDEX)
    async with images(tmp_path, **known(plain)) as opened:
        store, _ = opened.store(f"{plain.host}/index/ours")
        for each in made:
            await push(store, each, "")
        await store.put_manifest(descriptor, index, "v1")
        source, target = (f"docker://{plain.host}/index/{name}:v1" for name in ("ours", "copied"))
        await skopeo.run("copy", "--all", "--src-tls-verify=false", "--dest-tls-verify=false", source, target)
        copied, _ = opened.store(f"{plain.host}/index/copied")
        assert await copied.resolve("v1") == descriptor
        assert await copied.manifest(entries[1]) == made[1].manifest
        assert await copied.has(entries[0])


async def test_pieces_mounts_tags_and_what_is_missing(plain: RealRegistry, tmp_path: Path) -> None:
    data = bytes(range(256)) * 10_000
    blob = model.descriptor_of(data, model.OCI_LAYER)
    async with images(tmp_path, **known(plain), upload_chunk=300_000) as opened:
        store, _ = opened.store(f"{plain.host}/pieces/a")
        other, _ = opened.store(f"{plain.host}/pieces/b")
        missing, _ = opened.store(f"{plain.host}/pieces/none")
        await store.put_blob(blob, lambda: parts(data))
        assert await collected(store, blob) == data
        assert not await other.has(blob)
        assert await other.mount(blob, store)
        assert await other.has(blob)
        assert not await other.mount(model.descriptor_of(b"unknown", model.OCI_LAYER), store)
        pushed = image()
        for number in range(5):
            await push(store, pushed, f"v{number}")
        assert await store.tags() == [f"v{number}" for number in range(5)]
        with pytest.raises(ImageNotFound):
            await missing.tags()
        with pytest.raises(ImageNotFound):
            await missing.resolve("v1")


async def test_an_upload_that_is_cut_off_completes(plain: RealRegistry, tmp_path: Path) -> None:
    data = bytes(range(256)) * 10_000
    blob = model.descriptor_of(data, model.OCI_LAYER)
    calls = 0

    async def counted() -> AsyncIterator[bytes]:
        nonlocal calls
        calls += 1
        async for part in parts(data):
            yield part

    async with fakeregistry.running() as front:
        cut = 1

        async def cutting(request: web.Request) -> web.StreamResponse | None:
            nonlocal cut
            if request.method in ("PUT", "PATCH") and cut:
                cut -= 1
                await request.content.read(100_000)
                assert request.transport is not None
                request.transport.close()
                return web.Response()
            return await forwarded(request, plain)

        front.before = cutting
        for piece in (0, 1_000_000):
            cut = 1
            async with images(tmp_path, front, upload_chunk=piece) as opened:
                store, _ = opened.store(f"{front.host}/cut/{piece}")
                await store.put_blob(blob, counted)
                assert await collected(store, blob) == data
    assert calls == 4


async def test_referrers_are_kept_by_tag_where_the_registry_has_no_api(
    plain: RealRegistry, tmp_path: Path
) -> None:
    subject = image(b"subject")
    async with images(tmp_path, **known(plain)) as opened:
        store, _ = opened.store(f"{plain.host}/referred/app")
        await push(store, subject)
        for number in (1, 2):
            signature = image(subject=subject.descriptor, artifact_type=f"application/vnd.example.{number}")
            await push(store, signature, "")
        found = await store.referrers(subject.descriptor.digest)
        assert [each.artifact_type for each in found] == [f"application/vnd.example.{n}" for n in (1, 2)]
        assert await store.referrers(subject.descriptor.digest, "application/vnd.example.2") == found[1:]
        fallback = subject.descriptor.digest.replace(":", "-")
        assert await store.tags() == sorted([fallback, "v1"])


async def test_tls_with_an_authority_in_certs_d(authority: Authority, skopeo: Skopeo, tmp_path: Path) -> None:
    with running(tmp_path / "registry", authority=authority) as registry:
        async with images(tmp_path) as opened:
            with pytest.raises(Unreachable, match="certificate is not trusted"):
                await opened.store(f"{registry.host}/app")[0].resolve("v1")
        certificates = tmp_path / ".config/containers/certs.d" / registry.host
        certificates.mkdir(parents=True)
        authority.file(certificates).rename(certificates / "ca.crt")
        async with images(tmp_path) as opened:
            store, _ = opened.store(f"{registry.host}/app")
            await push(store, image())
            assert await pull(store) == image()
        inspected = await skopeo.run(
            "inspect", f"--cert-dir={certificates}", f"docker://{registry.host}/app:v1"
        )
        assert json.loads(inspected)["Digest"] == image().descriptor.digest


async def test_basic_auth_with_a_credential_helper(skopeo: Skopeo, tmp_path: Path) -> None:
    with running(tmp_path / "registry", basic=True) as registry:
        binaries = tmp_path / "bin"
        binaries.mkdir()
        helper = binaries / "docker-credential-tests"
        stored = {registry.host: {"Username": USER, "Secret": PASSWORD}}
        helper.write_text(
            f"#!{sys.executable} -S\nimport json, sys\nfound = {stored!r}.get(sys.stdin.read().strip())\n"
            "print(json.dumps(found) if found else 'credentials not found in native keychain')\n"
            "sys.exit(0 if found else 1)\n"
        )
        helper.chmod(0o755)
        auth_file = tmp_path / "auth.json"
        auth_file.write_text(json.dumps({"credHelpers": {registry.host: "tests"}}))
        environ = {"PATH": f"{binaries}:/usr/bin:/bin", "REGISTRY_AUTH_FILE": str(auth_file)}
        async with images(tmp_path, **known(registry), environ=environ) as opened:
            store, _ = opened.store(f"{registry.host}/app")
            await push(store, image())
            assert await pull(store) == image()
        # skopeo finds its way with the same files, and nobody finds a way without.
        skopeo.environ = environ
        await skopeo.run("inspect", "--tls-verify=false", f"docker://{registry.host}/app:v1")
        async with images(tmp_path, **known(registry)) as opened:
            with pytest.raises(AccessDenied, match="no credentials found"):
                await opened.store(f"{registry.host}/app")[0].resolve("v1")
        stored_elsewhere = {"auths": {registry.host: {"username": USER, "password": "wrong"}}}
        auth_file.write_text(json.dumps(stored_elsewhere))
        async with images(tmp_path, **known(registry), auth_file=auth_file) as opened:
            with pytest.raises(AccessDenied, match=str(auth_file)):
                await opened.store(f"{registry.host}/app")[0].resolve("v1")


async def test_token_auth_with_a_token_server_of_its_own(skopeo: Skopeo, tmp_path: Path) -> None:
    async with fakeregistry.running() as realm:
        tokens = TokenService(f"{realm.url}/token")
        realm.before = tokens.handle
        with running(tmp_path / "registry", tokens=tokens) as registry:
            auth_file = tmp_path / "auth.json"
            auth = base64.b64encode(f"{USER}:{PASSWORD}".encode()).decode()
            auth_file.write_text(json.dumps({"auths": {registry.host: {"auth": auth}}}))
            fields = known(registry)
            async with images(tmp_path, **fields, auth_file=auth_file) as opened:
                for name in ("public/app", "private/app"):
                    await push(opened.store(f"{registry.host}/{name}")[0], image())
                layer = image().blobs[0][0]
                source, _ = opened.store(f"{registry.host}/private/app")
                assert await opened.store(f"{registry.host}/private/other")[0].mount(layer, source)
            async with images(tmp_path, **fields) as opened:
                assert await pull(opened.store(f"{registry.host}/public/app")[0]) == image()
                with pytest.raises(AccessDenied):
                    await opened.store(f"{registry.host}/private/app")[0].resolve("v1")
                with pytest.raises(AccessDenied):
                    await push(opened.store(f"{registry.host}/public/app")[0], image(b"other"))
            skopeo.environ = {"REGISTRY_AUTH_FILE": str(auth_file)}
            await skopeo.run("inspect", "--tls-verify=false", f"docker://{registry.host}/private/app:v1")
        assert ["repository:private/other:pull,push", "repository:private/app:pull"] in [
            scopes for _, scopes in tokens.asked
        ]


async def test_a_mirror_a_blocked_registry_and_insecure_by_registries_conf(
    plain: RealRegistry, tmp_path: Path
) -> None:
    with running(tmp_path / "origin") as origin:
        conf = tmp_path / "registries.conf"
        conf.write_text(
            f"[[registry]]\nprefix = 'named.example'\nlocation = '{origin.host}'\ninsecure = true\n"
            f"[[registry.mirror]]\nlocation = '{plain.host}/mirrored'\ninsecure = true\n"
            f"[[registry]]\nlocation = '{origin.host}/forbidden'\nblocked = true\n"
            f"[[registry]]\nlocation = '{plain.host}'\ninsecure = true\n"
        )
        async with images(tmp_path, **known(origin, plain)) as opened:
            await push(opened.store(f"{origin.host}/app")[0], image(b"origin"), "v1")
            await push(opened.store(f"{origin.host}/app")[0], image(b"only there"), "v2")
            await push(opened.store(f"{plain.host}/mirrored/app")[0], image(b"mirror"), "v1")
        async with images(tmp_path, registries_conf=conf) as opened:
            store, _ = opened.store("named.example/app")
            assert await pull(store, "v1") == image(b"mirror")
            assert await pull(store, "v2") == image(b"only there")
            with pytest.raises(Blocked):
                opened.store(f"{origin.host}/forbidden/app:v1")
        assert "forbidden" not in origin.log.read_text()


async def test_every_changed_byte_in_the_registrys_storage_is_refused(
    plain: RealRegistry, tmp_path: Path
) -> None:
    pushed = image(b"tampered with")
    layer, data = pushed.blobs[0]
    manifest = pushed.descriptor
    async with images(tmp_path, **known(plain)) as opened:
        store, _ = opened.store(f"{plain.host}/tampered/app")
        await push(store, pushed)
        for at in range(len(data)):
            plain.blob_file(layer.digest).write_bytes(data[:at] + bytes([data[at] ^ 1]) + data[at + 1 :])
            with pytest.raises(Corrupt):
                await collected(store, layer)
        for wrong in (data[:-1], data + b"x", b""):
            plain.blob_file(layer.digest).write_bytes(wrong)
            with pytest.raises(OCIError):
                await collected(store, layer)
            assert not await store.has(layer) or wrong == b""
        original = pushed.manifest
        for at in range(len(original)):
            changed = original[:at] + bytes([original[at] ^ 1]) + original[at + 1 :]
            plain.blob_file(manifest.digest).write_bytes(changed)
            for tag in ("v1", manifest.digest):
                fresh, _ = opened.store(f"{plain.host}/tampered/app")
                # The registry itself notices some changes: those that make it no manifest.
                with pytest.raises(OCIError):
                    await fresh.resolve(tag)
        plain.blob_file(manifest.digest).write_bytes(original)
        plain.blob_file(layer.digest).write_bytes(data)
        assert await pull(opened.store(f"{plain.host}/tampered/app")[0]) == pushed


async def forwarded(request: web.Request, registry: RealRegistry) -> web.Response:
    """What the real registry answers to a request that came to somebody in front of it."""

    def passed_on(headers: Any) -> CIMultiDict[str]:
        return CIMultiDict(
            (name, text) for name, text in headers.items() if name.lower() != "transfer-encoding"
        )

    body = await request.read()
    async with (
        aiohttp.ClientSession(auto_decompress=False) as session,
        session.request(
            request.method,
            f"http://{registry.host}{request.raw_path}",
            headers=passed_on(request.headers),
            data=io.BytesIO(body) if body else None,
        ) as answer,
    ):
        return web.Response(status=answer.status, headers=passed_on(answer.headers), body=await answer.read())


async def test_a_redirecting_blob_store_and_a_rate_limit(
    plain: RealRegistry, skopeo: Skopeo, tmp_path: Path
) -> None:
    pushed = image(b"redirected" * 1000)
    async with fakeregistry.running() as front, fakeregistry.running() as bucket:
        limited = 2

        async def redirecting(request: web.Request) -> web.StreamResponse | None:
            nonlocal limited
            if request.method == "GET" and limited:
                limited -= 1
                return web.Response(status=429, headers={"Retry-After": "1"})
            if request.method == "GET" and "/blobs/sha256:" in request.path:
                location = f"{bucket.url}{request.path}?signature=a%2Bb"
                return web.Response(status=307, headers={"Location": location})
            return await forwarded(request, plain)

        async def storing(request: web.Request) -> web.StreamResponse | None:
            assert request.raw_path.endswith("?signature=a%2Bb")
            assert "Authorization" not in request.headers
            return web.FileResponse(plain.blob_file(request.path.rpartition("/")[2]))

        front.before, bucket.before = redirecting, storing
        waits = fakeregistry.Waits()
        async with images(tmp_path, front, waits=waits) as opened:
            store, _ = opened.store(f"{front.host}/redirected/app")
            await push(store, pushed)
            assert await pull(store) == pushed
        assert waits.waited == [1.0, 1.0]
        assert len(bucket.seen) == 2
        await skopeo.run("inspect", "--tls-verify=false", f"docker://{front.host}/redirected/app:v1")
        limited = 1000
        async with images(tmp_path, front) as opened:
            with pytest.raises(RateLimited):
                await opened.store(f"{front.host}/redirected/app")[0].resolve("v1")


async def test_a_tag_that_flips_during_a_pull_gives_one_image_or_the_other(
    plain: RealRegistry, tmp_path: Path
) -> None:
    both = [image(b"one"), image(b"two")]
    async with images(tmp_path, **known(plain)) as opened:
        writer, _ = opened.store(f"{plain.host}/flipping/app")
        for each in both:
            await push(writer, each, "v1")
        for number in range(50):
            store, tag = opened.store(f"{plain.host}/flipping/app:v1")
            before, after = both[number % 2 - 1], both[number % 2]
            assert await store.resolve(tag) == before.descriptor
            await writer.put_manifest(after.descriptor, after.manifest, "v1")
            descriptor = before.descriptor
            manifest = msgspec.json.decode(await store.manifest(descriptor), type=model.Manifest)
            assert await collected(store, manifest.layers[0]) == before.layer


async def test_thirty_blobs_at_once(plain: RealRegistry, tmp_path: Path) -> None:
    blobs = [bytes([number]) * 200_000 for number in range(30)]
    described = [(model.descriptor_of(data, model.OCI_LAYER), data) for data in blobs]
    async with images(tmp_path, **known(plain), concurrency=8) as opened:
        store, _ = opened.store(f"{plain.host}/many/app")
        await asyncio.gather(
            *(store.put_blob(descriptor, lambda data=data: parts(data)) for descriptor, data in described)  # type: ignore[misc]
        )
        assert await asyncio.gather(*(collected(store, descriptor) for descriptor, _ in described)) == blobs
