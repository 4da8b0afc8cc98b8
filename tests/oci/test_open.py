"""From what a user types to a store; mirrors, blocked registries, certificates and proxies on the way."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from aiohttp import web

from harness.fakeregistry import FakeRegistry, break_off, images, running
from harness.tls import Authority
from podium.oci import model
from podium.oci.archive import Archive
from podium.oci.errors import BadReference, BadSetup, Blocked, Corrupt, ImageNotFound, Unreachable
from podium.oci.layout import Layout
from podium.oci.model import Descriptor
from podium.oci.registry import Repository
from podium.oci.store import Store

DIGEST = "sha256:" + "a" * 64


@pytest.fixture
async def origin() -> AsyncIterator[FakeRegistry]:
    async with running() as registry:
        yield registry


@pytest.fixture
async def mirror() -> AsyncIterator[FakeRegistry]:
    async with running() as registry:
        yield registry


async def collected(store: Store, descriptor: Descriptor) -> bytes:
    return b"".join([part async for part in store.blob(descriptor)])


@pytest.mark.parametrize(
    ("text", "name", "tag"),
    [
        ("alpine", "docker.io/library/alpine", "latest"),
        ("docker://alpine:3", "docker.io/library/alpine", "3"),
        ("quay.io/a/b:v1", "quay.io/a/b", "v1"),
        (f"docker://quay.io/a/b:v1@{DIGEST}", "quay.io/a/b", DIGEST),
        ("localhost:5000/a", "localhost:5000/a", "latest"),
    ],
)
async def test_names_of_images_in_registries(text: str, name: str, tag: str, tmp_path: Path) -> None:
    async with images(tmp_path) as opened:
        store, found = opened.store(text)
    assert isinstance(store, Repository)
    assert (store.name, found) == (name, tag)


@pytest.mark.parametrize(
    ("text", "path", "tag"),
    [
        ("oci:some/dir", "some/dir", ""),
        ("oci:/abs/dir:v1", "/abs/dir", "v1"),
        ("oci:dir:docker.io/library/alpine:3", "dir", "docker.io/library/alpine:3"),
        (f"oci:dir@{DIGEST}", "dir", DIGEST),
    ],
)
async def test_names_of_images_in_layouts(text: str, path: str, tag: str, tmp_path: Path) -> None:
    async with images(tmp_path) as opened:
        store, found = opened.store(text)
    assert isinstance(store, Layout)
    assert (store.name, found) == (f"oci:{path}", tag)


@pytest.mark.parametrize(
    "text",
    ["", "UPPER", "a b", "https://quay.io/a", "http://quay.io/a", "oci-archive:", "docker-daemon:x:y",
     "dir:/x", "oci:", "oci::tag", f"oci:dir:tag@{DIGEST}", "quay.io/a@sha256:abc", "docker://", "docker:///a",
     "quay.io/../a", "a_b.c/x", "docker://a_b.c/x",
     "x.example:99999/a", "x.example:0/a", f"x.example:{'9' * 5000}/a", "[::::]/a"],
)  # fmt: skip
async def test_what_names_nothing_is_refused(text: str, tmp_path: Path) -> None:
    async with images(tmp_path) as opened:
        with pytest.raises(BadReference):
            opened.store(text)


def conf(home: Path, text: str) -> Path:
    file = home / "registries.conf"
    file.write_text(text)
    return file


def mirrored(home: Path, *mirrors: FakeRegistry, extra: str = "") -> Path:
    tables = "".join(f"[[registry.mirror]]\nlocation = '{each.host}/mirrored'\n" for each in mirrors)
    return conf(
        home, f"[[registry]]\nprefix = 'named.example'\nlocation = '{mirrors[-1].host}'\n{extra}{tables}"
    )


async def test_a_mirror_is_asked_first_and_gives_everything(
    origin: FakeRegistry, mirror: FakeRegistry, tmp_path: Path
) -> None:
    pushed = mirror.add_image("v1", b"from the mirror")
    file = conf(
        tmp_path,
        f"[[registry]]\nprefix = 'named.example/team'\nlocation = '{origin.host}/real'\n"
        f"[[registry.mirror]]\nlocation = '{mirror.host}/copy'\n",
    )
    async with images(tmp_path, origin, mirror, registries_conf=file) as opened:
        store, tag = opened.store("named.example/team/app:v1")
        descriptor = await store.resolve(tag)
        manifest = model.decode(await store.manifest(descriptor), descriptor.media_type)
        assert isinstance(manifest, model.Manifest)
        assert await collected(store, manifest.layers[0]) == b"from the mirror"
    assert descriptor == pushed
    assert origin.seen == []
    assert mirror.paths()[0] == "/v2/copy/app/manifests/v1"


@pytest.mark.parametrize("trouble", ["missing", "broken", "corrupt", "down"])
async def test_a_mirror_in_trouble_is_passed_over(
    trouble: str, origin: FakeRegistry, mirror: FakeRegistry, tmp_path: Path
) -> None:
    pushed = origin.add_image("v1", b"from the origin")
    blob = origin.add_blob(b"from the origin")
    host = mirror.host
    if trouble == "corrupt":
        mirror.manifests[pushed.digest] = (model.OCI_MANIFEST, b"{}")
        mirror.tag_names["v1"] = pushed.digest
        mirror.blobs[blob.digest] = b"from the mirror"[:-1]
    if trouble == "down":
        host = "127.0.0.1:1"

    async def broken(request: web.Request) -> web.StreamResponse | None:
        return web.Response(status=500)

    if trouble == "broken":
        mirror.before = broken
    file = conf(
        tmp_path,
        f"[[registry]]\nprefix = 'named.example'\nlocation = '{origin.host}'\n"
        f"[[registry.mirror]]\nlocation = '{host}'\ninsecure = true\n",
    )
    async with images(tmp_path, origin, mirror, registries_conf=file) as opened:
        store, tag = opened.store("named.example/app:v1")
        assert await collected(store, blob) == b"from the origin"
        assert await store.resolve(tag) == pushed


async def test_the_origin_goes_on_where_a_mirror_broke_off(
    origin: FakeRegistry, mirror: FakeRegistry, tmp_path: Path
) -> None:
    data = bytes(range(256)) * 1000
    blob = origin.add_blob(data)

    async def breaking(request: web.Request) -> web.StreamResponse | None:
        if "Range" in request.headers:
            return web.Response(status=404)
        return await break_off(request, data[:100_000], claimed=len(data))

    mirror.before = breaking
    file = conf(
        tmp_path,
        f"[[registry]]\nprefix = 'named.example'\nlocation = '{origin.host}'\n"
        f"[[registry.mirror]]\nlocation = '{mirror.host}'\n",
    )
    async with images(tmp_path, origin, mirror, registries_conf=file) as opened:
        store, _ = opened.store("named.example/app")
        assert await collected(store, blob) == data
    assert origin.seen[0].headers["Range"] == f"bytes=100000-{len(data) - 1}"


async def test_a_mirror_that_lies_about_the_bytes_of_a_blob_is_found_out(
    origin: FakeRegistry, mirror: FakeRegistry, tmp_path: Path
) -> None:
    blob = origin.add_blob(b"from the origin")
    mirror.blobs[blob.digest] = b"from the m1rror"
    file = conf(
        tmp_path,
        f"[[registry]]\nprefix = 'named.example'\nlocation = '{origin.host}'\n"
        f"[[registry.mirror]]\nlocation = '{mirror.host}'\n",
    )
    async with images(tmp_path, origin, mirror, registries_conf=file) as opened:
        store, _ = opened.store("named.example/app")
        with pytest.raises(Corrupt):
            await collected(store, blob)


async def test_when_nobody_has_it_all_say_so(
    origin: FakeRegistry, mirror: FakeRegistry, tmp_path: Path
) -> None:
    file = conf(
        tmp_path,
        f"[[registry]]\nprefix = 'named.example'\nlocation = '{origin.host}'\n"
        f"[[registry.mirror]]\nlocation = '{mirror.host}'\n",
    )
    async with images(tmp_path, origin, mirror, registries_conf=file) as opened:
        store, tag = opened.store("named.example/app:v1")
        with pytest.raises(ImageNotFound) as caught:
            await store.resolve(tag)
    assert origin.host in str(caught.value)
    assert [note for note in caught.value.__notes__ if mirror.host in note]


async def test_a_blocked_registry_is_refused_before_any_connection(
    origin: FakeRegistry, tmp_path: Path
) -> None:
    file = conf(tmp_path, f"[[registry]]\nlocation = '{origin.host}'\nblocked = true\n")
    async with images(tmp_path, origin, registries_conf=file) as opened:
        with pytest.raises(Blocked, match="blocks"):
            opened.store(f"{origin.host}/app:v1")
    assert origin.seen == []


async def test_insecure_in_registries_conf_allows_plain_http(origin: FakeRegistry, tmp_path: Path) -> None:
    origin.add_image("v1")
    file = conf(tmp_path, f"[[registry]]\nlocation = '{origin.host}'\ninsecure = true\n")
    async with images(tmp_path, registries_conf=file) as opened:
        store, tag = opened.store(f"{origin.host}/app:v1")
        await store.resolve(tag)


async def test_insecure_in_registries_conf_allows_any_certificate(
    tmp_path: Path, authority: Authority
) -> None:
    async with running(authority.server("wrong.example")) as secure:
        secure.add_image("v1")
        file = conf(tmp_path, f"[[registry]]\nlocation = '{secure.host}'\ninsecure = true\n")
        async with images(tmp_path, registries_conf=file) as opened:
            store, tag = opened.store(f"{secure.host}/app:v1")
            await store.resolve(tag)


@pytest.mark.parametrize("name", ["localhost", "wrong.example"])
async def test_a_certificate_is_checked(name: str, tmp_path: Path, authority: Authority) -> None:
    async with running(authority.server(name)) as secure:
        # The name is right but the authority unknown, or the authority known but the name wrong.
        environ = {"SSL_CERT_FILE": str(authority.file(tmp_path))} if name != "localhost" else {}
        async with images(tmp_path, environ=environ) as opened:
            store, tag = opened.store(f"{secure.host}/app:v1")
            with pytest.raises(Unreachable, match="certificate is not trusted"):
                await store.resolve(tag)
        fields = {"insecure_skip_tls_verify": frozenset({secure.host})}
        async with images(tmp_path, **fields) as opened:  # type: ignore[arg-type]
            store, tag = opened.store(f"{secure.host}/app:v1")
            with pytest.raises(ImageNotFound):
                await store.resolve(tag)


PLACES = [
    "given",
    ".config/containers/certs.d",
    "etc/containers/certs.d",
    "share/containers/certs.d",
    "etc/docker/certs.d",
]


@pytest.mark.parametrize("place", PLACES)
async def test_authorities_and_client_certificates_come_from_certs_d(
    place: str, tmp_path: Path, authority: Authority
) -> None:
    async with running(authority.server("localhost", asks_clients=True)) as secure:
        secure.add_image("v1")
        directory = tmp_path / place / secure.host
        directory.mkdir(parents=True)
        authority.file(directory).rename(directory / "ca.crt")
        async with images(tmp_path, cert_dirs=(tmp_path / "given",)) as opened:
            store, tag = opened.store(f"{secure.host}/app:v1")
            with pytest.raises(Unreachable):
                await store.resolve(tag)
        authority.files("client", directory / "client.cert", directory / "client.key")
        async with images(tmp_path, cert_dirs=(tmp_path / "given",)) as opened:
            store, tag = opened.store(f"{secure.host}/app:v1")
            await store.resolve(tag)


@pytest.mark.parametrize(
    ("files", "words"),
    [
        ({"ca.crt": "nonsense"}, "not a PEM certificate authority"),
        ({"client.cert": "x"}, "has no key beside it"),
        ({"client.key": "x"}, "has no certificate beside it"),
        ({"client.cert": "x", "client.key": "y"}, "do not fit"),
    ],
)
async def test_certificates_that_cannot_be_used_say_so(
    files: dict[str, str], words: str, tmp_path: Path
) -> None:
    directory = tmp_path / "etc/containers/certs.d/reg.example"
    directory.mkdir(parents=True)
    for name, content in files.items():
        (directory / name).write_text(content)
    async with images(tmp_path) as opened:
        store, tag = opened.store("reg.example/app:v1")
        with pytest.raises(BadSetup, match=words):
            await store.resolve(tag)


async def test_a_proxy_from_the_environment_is_used_unless_excepted(
    origin: FakeRegistry, tmp_path: Path
) -> None:
    origin.add_image("v1")
    fields = {"plain_http": ["far.example"], "environ": {"http_proxy": origin.url.removeprefix("http://")}}
    async with images(tmp_path, **fields) as opened:  # type: ignore[arg-type]
        store, tag = opened.store("far.example/app:v1")
        await store.resolve(tag)
    assert origin.seen[0].headers["Host"] == "far.example"
    fields["environ"] = {"HTTP_PROXY": origin.url, "NO_PROXY": "far.example"}
    async with images(tmp_path, **fields) as opened:  # type: ignore[arg-type]
        store, tag = opened.store("far.example/app:v1")
        with pytest.raises(Unreachable):
            await store.resolve(tag)
    fields["environ"] = {"HTTP_PROXY": "socks5://x.example"}
    async with images(tmp_path, **fields) as opened:  # type: ignore[arg-type]
        store, tag = opened.store("far.example/app:v1")
        with pytest.raises(BadSetup, match="SOCKS"):
            await store.resolve(tag)


async def test_a_bad_registries_conf_does_not_matter_to_layouts(tmp_path: Path) -> None:
    async with images(tmp_path, registries_conf=conf(tmp_path, "[[")) as opened:
        opened.store("oci:dir")
        with pytest.raises(BadSetup):
            opened.store("quay.io/a")


async def test_a_host_is_the_same_however_it_is_capitalised(origin: FakeRegistry, tmp_path: Path) -> None:
    descriptor = origin.add_image("v1")
    port = origin.host.rpartition(":")[2]
    for allowed in ("localhost", "LocalHost"):
        async with images(tmp_path, plain_http=[f"{allowed}:{port}"]) as opened:
            store, tag = opened.store(f"LocalHost:{port}/app:v1")
            assert await store.resolve(tag) == descriptor


@pytest.mark.parametrize(
    ("proxy", "words"),
    [
        ("http://me:hidden@nowhere.invalid:1", "no such host; check the name, or the proxy"),
        ("http://me:hidden@127.0.0.1:1", r"proxy 127\.0\.0\.1:1 cannot be reached"),
        ("http://me:hidden@{refusing}", "proxy answers 4"),
    ],
)
async def test_a_proxy_that_does_not_help_is_named_without_its_password(
    proxy: str, words: str, tmp_path: Path, origin: FakeRegistry
) -> None:
    environ = {"HTTPS_PROXY": proxy.replace("{refusing}", origin.host)}
    async with images(tmp_path, environ=environ) as opened:
        store, tag = opened.store("registry.example/app:v1")
        with pytest.raises(Unreachable, match=words) as caught:
            await store.resolve(tag)
    assert "hidden" not in str(caught.value)


def test_local_images_need_no_http_client() -> None:
    code = "import sys, podium.oci.open as o; o.Images().store('oci:x'); print('aiohttp' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "False\n"


async def test_archives_are_stores(tmp_path: Path) -> None:
    async with images(tmp_path) as opened:
        for prefix in ("oci-archive:", "docker-archive:"):
            store, tag = opened.store(f"{prefix}saved.tar:1.0")
            assert isinstance(store, Archive)
            assert tag == "1.0"
