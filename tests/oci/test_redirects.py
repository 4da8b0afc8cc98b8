"""Where a registry may send us, and what we take along: redirects, token realms, addresses."""

from __future__ import annotations

import base64
import ipaddress
import json
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from aiohttp import web

from harness.fakeregistry import FakeRegistry, image_bytes, images, ranged, running, settings
from harness.tls import Authority
from podium.oci import model
from podium.oci.addresses import Ground, Guard, Lookup, Refused, ground, literal
from podium.oci.certificates import Certificates
from podium.oci.errors import OCIError, RegistryError, Unreachable
from podium.oci.model import Descriptor
from podium.oci.store import Store
from podium.oci.transport import Request, Transport


@pytest.fixture
async def registry() -> AsyncIterator[FakeRegistry]:
    async with running() as registry:
        yield registry


@pytest.fixture
async def other() -> AsyncIterator[FakeRegistry]:
    async with running() as other:
        yield other


async def collected(store: Store, descriptor: Descriptor) -> bytes:
    return b"".join([part async for part in store.blob(descriptor)])


def logged_in(home: Path, *registries: FakeRegistry) -> Path:
    auth = base64.b64encode(b"user:secret").decode()
    file = home / "auth.json"
    file.write_text(json.dumps({"auths": {each.host: {"auth": auth} for each in registries}}))
    return file


async def test_a_blob_store_on_another_host_gets_no_credentials(
    registry: FakeRegistry, other: FakeRegistry, tmp_path: Path
) -> None:
    data = b"blob" * 1000
    descriptor = registry.add_blob(data)

    async def redirecting(request: web.Request) -> web.StreamResponse | None:
        if "Authorization" not in request.headers:
            return web.Response(status=401, headers={"WWW-Authenticate": "Basic realm=x"})
        return web.Response(status=307, headers={"Location": f"{other.url}/store?sig=a%2Fb%20c&x=ü"})

    async def storing(request: web.Request) -> web.StreamResponse | None:
        return web.Response(body=data)

    registry.before, other.before = redirecting, storing
    async with images(tmp_path, registry, auth_file=logged_in(tmp_path, registry, other)) as opened:
        store, _ = opened.store(f"{registry.host}/app")
        assert await collected(store, descriptor) == data
    assert "Authorization" in registry.seen[-1].headers
    assert "Authorization" not in other.seen[0].headers
    assert other.seen[0].path == "/store?sig=a%2Fb%20c&x=%C3%BC", "a presigned URL is not written anew"


async def test_a_redirect_to_the_same_origin_keeps_the_credentials(
    registry: FakeRegistry, tmp_path: Path
) -> None:
    descriptor = registry.add_blob(b"blob")

    async def moving(request: web.Request) -> web.StreamResponse | None:
        if "Authorization" not in request.headers:
            return web.Response(status=401, headers={"WWW-Authenticate": "Basic realm=x"})
        if request.path.startswith("/v2/"):
            return web.Response(status=302, headers={"Location": "/elsewhere"})
        return web.Response(body=b"blob")

    registry.before = moving
    async with images(tmp_path, registry, auth_file=logged_in(tmp_path, registry)) as opened:
        store, _ = opened.store(f"{registry.host}/app")
        assert await collected(store, descriptor) == b"blob"


async def test_a_challenge_from_the_blob_store_is_not_answered(
    registry: FakeRegistry, other: FakeRegistry, tmp_path: Path
) -> None:
    descriptor = registry.add_blob(b"blob")

    async def redirecting(request: web.Request) -> web.StreamResponse | None:
        return web.Response(status=307, headers={"Location": f"{other.url}/store"})

    async def asking(request: web.Request) -> web.StreamResponse | None:
        return web.Response(status=401, headers={"WWW-Authenticate": 'Basic realm="give me your password"'})

    registry.before, other.before = redirecting, asking
    async with images(tmp_path, registry, auth_file=logged_in(tmp_path, registry, other)) as opened:
        store, _ = opened.store(f"{registry.host}/app")
        with pytest.raises(RegistryError, match="answers 401"):
            await collected(store, descriptor)
    assert all("Authorization" not in each.headers for each in (*registry.seen, *other.seen))


async def test_pages_on_another_host_get_no_credentials(
    registry: FakeRegistry, other: FakeRegistry, tmp_path: Path
) -> None:
    async def moved(request: web.Request) -> web.StreamResponse | None:
        if "Authorization" not in request.headers:
            return web.Response(status=401, headers={"WWW-Authenticate": "Basic realm=x"})
        return web.Response(status=307, headers={"Location": f"{other.url}{request.path_qs}"})

    registry.before = moved
    other.page = 1
    for tag in ("v1", "v2", "v3"):
        other.add_image(tag)
    async with images(tmp_path, registry, auth_file=logged_in(tmp_path, registry, other)) as opened:
        store, _ = opened.store(f"{registry.host}/app")
        assert await store.tags() == ["v1", "v2", "v3"]
    assert len(other.seen) == 3
    assert all("Authorization" not in each.headers for each in other.seen)


async def test_an_expired_link_is_fetched_anew_from_the_registry(
    registry: FakeRegistry, other: FakeRegistry, tmp_path: Path
) -> None:
    descriptor = registry.add_blob(b"blob")
    links = 0

    async def redirecting(request: web.Request) -> web.StreamResponse | None:
        nonlocal links
        links += 1
        return web.Response(status=307, headers={"Location": f"{other.url}/store?link={links}"})

    async def expiring(request: web.Request) -> web.StreamResponse | None:
        return web.Response(status=403) if request.query["link"] == "1" else ranged(request, b"blob")

    registry.before, other.before = redirecting, expiring
    async with images(tmp_path, registry) as opened:
        store, _ = opened.store(f"{registry.host}/app")
        assert await collected(store, descriptor) == b"blob"


async def test_redirects_have_an_end(registry: FakeRegistry, tmp_path: Path) -> None:
    descriptor = registry.add_blob(b"blob")
    hops = 0

    async def hopping(request: web.Request) -> web.StreamResponse | None:
        nonlocal hops
        hops += 1
        return web.Response(status=302, headers={"Location": f"/hop/{hops}"})

    registry.before = hopping
    async with images(tmp_path, registry) as opened:
        store, _ = opened.store(f"{registry.host}/app")
        with pytest.raises(RegistryError, match="more than 10 times"):
            await collected(store, descriptor)
    assert hops == 11


async def test_a_redirect_without_a_place_is_an_error(registry: FakeRegistry, tmp_path: Path) -> None:
    async def nowhere(request: web.Request) -> web.StreamResponse | None:
        return web.Response(status=307)

    registry.before = nowhere
    async with images(tmp_path, registry) as opened:
        store, _ = opened.store(f"{registry.host}/app:v1")
        with pytest.raises(RegistryError, match="307"):
            await store.resolve("v1")


async def test_what_is_uploaded_is_not_redirected_by_chance(registry: FakeRegistry, tmp_path: Path) -> None:
    async def moving(request: web.Request) -> web.StreamResponse | None:
        return web.Response(status=302, headers={"Location": "/other"}) if request.method == "PUT" else None

    registry.before = moving
    data = image_bytes(model.descriptor_of(b"{}", model.OCI_CONFIG))
    async with images(tmp_path, registry) as opened:
        store, _ = opened.store(f"{registry.host}/app")
        with pytest.raises(RegistryError, match="cannot be followed"):
            await store.put_manifest(model.descriptor_of(data, model.OCI_MANIFEST), data, "v1")


async def test_an_upload_may_be_sent_elsewhere_without_credentials(
    registry: FakeRegistry, other: FakeRegistry, tmp_path: Path
) -> None:
    async def elsewhere(request: web.Request) -> web.StreamResponse | None:
        if "Authorization" not in request.headers:
            return web.Response(status=401, headers={"WWW-Authenticate": "Basic realm=x"})
        if request.method == "POST":
            return web.Response(status=202, headers={"Location": f"{registry.url}/v2/app/blobs/uploads/away"})
        if request.method == "PUT":
            return web.Response(status=307, headers={"Location": f"{other.url}/bucket"})
        return None

    async def bucket(request: web.Request) -> web.StreamResponse | None:
        assert await request.read() == b"layer"
        return web.Response(status=201)

    registry.before, other.before = elsewhere, bucket
    layer = model.descriptor_of(b"layer", model.OCI_LAYER)

    async def chunks() -> AsyncIterator[bytes]:
        yield b"lay"
        yield b"er"

    async with images(tmp_path, registry, auth_file=logged_in(tmp_path, registry, other)) as opened:
        store, _ = opened.store(f"{registry.host}/app")
        await store.put_blob(layer, chunks)
    assert [each.method for each in other.seen] == ["PUT"]
    assert "Authorization" not in other.seen[0].headers


@pytest.mark.parametrize("piece", [0, 2])
async def test_a_place_to_upload_to_on_another_host_gets_no_credentials(
    piece: int, registry: FakeRegistry, other: FakeRegistry, tmp_path: Path
) -> None:
    async def elsewhere(request: web.Request) -> web.StreamResponse | None:
        if "Authorization" not in request.headers:
            return web.Response(status=401, headers={"WWW-Authenticate": "Basic realm=x"})
        if request.method == "POST":
            other.uploads["u"] = bytearray()
            location = f"{other.url}/v2/app/blobs/uploads/u"
            return web.Response(status=202, headers={"Location": location})
        return None

    registry.before = elsewhere
    layer = model.descriptor_of(b"layer", model.OCI_LAYER)

    async def chunks() -> AsyncIterator[bytes]:
        yield b"layer"

    auth_file = logged_in(tmp_path, registry, other)
    async with images(tmp_path, registry, auth_file=auth_file, upload_chunk=piece) as opened:
        store, _ = opened.store(f"{registry.host}/app")
        await store.put_blob(layer, chunks)
    assert other.blobs[layer.digest] == b"layer"
    assert all("Authorization" not in each.headers for each in other.seen)


async def test_a_challenge_from_a_place_to_upload_to_on_another_host_is_not_answered(
    registry: FakeRegistry, other: FakeRegistry, tmp_path: Path
) -> None:
    async def elsewhere(request: web.Request) -> web.StreamResponse | None:
        if request.method != "POST":
            return None
        return web.Response(status=202, headers={"Location": f"{other.url}/bucket"})

    async def asking(request: web.Request) -> web.StreamResponse | None:
        return web.Response(status=401, headers={"WWW-Authenticate": "Basic realm=x"})

    registry.before, other.before = elsewhere, asking
    layer = model.descriptor_of(b"layer", model.OCI_LAYER)

    async def chunks() -> AsyncIterator[bytes]:
        yield b"layer"

    async with images(tmp_path, registry, auth_file=logged_in(tmp_path, registry, other)) as opened:
        store, _ = opened.store(f"{registry.host}/app")
        with pytest.raises(RegistryError, match="answers 401"):
            await store.put_blob(layer, chunks)
    assert other.seen
    assert all("Authorization" not in each.headers for each in (*registry.seen, *other.seen))


async def test_a_blob_store_that_speaks_no_http_does_not_bring_its_link_into_the_error(
    registry: FakeRegistry, other: FakeRegistry, tmp_path: Path
) -> None:
    descriptor = registry.add_blob(b"blob")

    async def redirecting(request: web.Request) -> web.StreamResponse | None:
        return web.Response(status=307, headers={"Location": f"{other.url}/store?sig=hidden"})

    async def babbling(request: web.Request) -> web.StreamResponse | None:
        assert request.transport is not None
        request.transport.write(b"HTTP/1.1 200 OK\r\nno header\x1b at all\r\n\r\n")
        request.transport.close()
        return web.Response()

    registry.before, other.before = redirecting, babbling
    async with images(tmp_path, registry) as opened:
        store, _ = opened.store(f"{registry.host}/app")
        with pytest.raises(Unreachable, match="the connection broke") as caught:
            await collected(store, descriptor)
    assert "hidden" not in str(caught.value)
    assert str(caught.value).isprintable()


async def test_https_is_never_left_for_http(
    other: FakeRegistry, tmp_path: Path, authority: Authority
) -> None:
    async with running(authority.server("localhost")) as secure:
        descriptor = secure.add_blob(b"blob")

        async def downgrading(request: web.Request) -> web.StreamResponse | None:
            return web.Response(status=307, headers={"Location": f"{other.url}/store"})

        secure.before = downgrading
        environ = {"SSL_CERT_FILE": str(authority.file(tmp_path))}
        async with images(tmp_path, other, environ=environ) as opened:
            store, _ = opened.store(f"{secure.host}/app")
            with pytest.raises(RegistryError, match="leaving HTTPS for plain HTTP is refused"):
                await collected(store, descriptor)
    assert other.seen == []


async def test_a_registry_behind_a_proxy_that_ends_tls_may_mistake_its_scheme(
    tmp_path: Path, authority: Authority
) -> None:
    async with running(authority.server("localhost")) as secure:

        async def mistaken(request: web.Request) -> web.StreamResponse | None:
            if request.method != "POST":
                return None
            secure.uploads["u"] = bytearray()
            location = f"http://{secure.host}/v2/app/blobs/uploads/u"
            return web.Response(status=202, headers={"Location": location})

        secure.before = mistaken
        layer = model.descriptor_of(b"layer", model.OCI_LAYER)

        async def chunks() -> AsyncIterator[bytes]:
            yield b"layer"

        environ = {"SSL_CERT_FILE": str(authority.file(tmp_path))}
        async with images(tmp_path, environ=environ) as opened:
            store, _ = opened.store(f"{secure.host}/app")
            await store.put_blob(layer, chunks)
        assert secure.blobs[layer.digest] == b"layer"


# A registry on the Internet (here: behind a proxy, which does the lookups) must not lead us to any of these.
FORBIDDEN = [
    "http://169.254.169.254/latest/meta-data/",
    "http://169.254.169.254:80/",
    "http://169.254.170.2/v2/credentials",
    "http://[fd00:ec2::254]/latest/meta-data/",
    "http://[::ffff:169.254.169.254]/",
    "http://[::ffff:a9fe:a9fe]/",
    "http://[64:ff9b::a9fe:a9fe]/",
    "http://[2002:a9fe:a9fe::]/",
    "http://[fe80::1]/",
    "http://[fe80::a9fe:a9fe%25eth0]/",
    "http://100.100.100.200/latest/meta-data/",
    "http://192.0.0.192/opc/v2/",
    "http://168.63.129.16/",
    "http://metadata.google.internal/computeMetadata/v1/",
    "http://METADATA.google.internal./",
    "http://metadata/",
    "http://instance-data/latest/",
    "http://127.0.0.1/",
    "http://127.0.0.1:6443/",
    "http://127.255.255.254/",
    "http://127.1/",
    "http://0177.0.0.1/",
    "http://0x7f.0.0.1/",
    "http://0x7f000001/",
    "http://2130706433/",
    "http://2852039166/",
    "http://0xA9FEA9FE/",
    "http://017700000001/",
    "http://0.0.0.0/",
    "http://0/",
    "http://[::]/",
    "http://[::1]/",
    "http://[::ffff:127.0.0.1]/",
    "http://[0:0:0:0:0:ffff:7f00:1]/",
    "http://10.0.0.1/",
    "http://10.96.0.1:443/api",
    "http://172.16.0.1/",
    "http://172.31.255.255/",
    "http://192.168.1.1/admin",
    "http://100.64.0.1/",
    "http://[fc00::1]/",
    "http://[fd12:3456::1]/",
    "http://224.0.0.1/",
    "http://255.255.255.255/",
    "http://[ff02::1]/",
    "http://198.18.0.1/",
    "http://[::127.0.0.1]/",
    "http://[::ffff:0:127.0.0.1]/",
    "http://[64:ff9b:1::7f00:1]/",
    "http://[fec0::1]/",
    "http://①②⑦.⓪.⓪.①/",
    "http://127。0。0。1/",
    "http://127.0.0.%31/",
    "http://../",
    "http://public.example..evil/",
    f"http://{'x' * 300}.example/",
    "file:///etc/passwd",
    "ftp://public.example/blob",
    "gopher://public.example/",
    "unix:///var/run/docker.sock",
    "data:text/plain,hello",
    "javascript:alert(1)",
    "http://",
    "http:///path",
    "http://user:password@public.example/",
    "http://public.example:99999/",
    "http://public.example:0/",
    "http://public.example\\@127.0.0.1/",
    "http://[::1",
    "//169.254.169.254/latest",
    "//localhost.localdomain:80\\/",
]


@pytest.mark.parametrize("target", FORBIDDEN)
@pytest.mark.parametrize("way", ["redirect", "realm", "upload"])
async def test_a_public_registry_cannot_send_us_into_private_ground(
    target: str, way: str, registry: FakeRegistry, tmp_path: Path
) -> None:
    descriptor = registry.add_blob(b"blob")

    async def forging(request: web.Request) -> web.StreamResponse | None:
        if way == "realm":
            return web.Response(
                status=401, headers={"WWW-Authenticate": f'Bearer realm="{target}",service="x"'}
            )
        if way == "upload":
            return web.Response(status=202 if request.method == "POST" else 404, headers={"Location": target})
        return web.Response(status=307, headers={"Location": target})

    registry.before = forging
    environ = {"HTTP_PROXY": registry.url, "HTTPS_PROXY": registry.url}
    fields = {"plain_http": ["registry.example"], "environ": environ}
    async with images(tmp_path, **fields) as opened:  # type: ignore[arg-type]
        store, _ = opened.store("registry.example/app")

        async def chunks() -> AsyncIterator[bytes]:
            yield b"blob"

        attempt = store.put_blob(descriptor, chunks) if way == "upload" else collected(store, descriptor)
        with pytest.raises(OCIError):
            await attempt
    assert {each.headers["Host"] for each in registry.seen} == {"registry.example"}


async def test_a_name_that_leads_into_private_ground_is_refused_when_it_is_looked_up() -> None:
    guard = Guard("registry.example")
    guard.learned("registry.example", [ipaddress.ip_address("93.184.216.34")])
    with pytest.raises(Refused, match="loopback address"):
        await Lookup(guard, guarded=True).resolve("localhost", 80)
    # The registry's own name is never refused.
    assert await Lookup(guard, guarded=False).resolve("localhost", 80)


async def test_a_name_that_leads_into_private_ground_is_never_connected_to(
    other: FakeRegistry, tmp_path: Path
) -> None:
    # Nothing is known yet of where the registry lies, so it counts as public.
    config = settings(tmp_path)
    transport = Transport("registry.example", config, Certificates(config), lax=False)
    url = f"http://localhost:{other.host.rpartition(':')[2]}/latest"
    try:
        with pytest.raises(RegistryError, match=r"localhost .* is a loopback address"):
            await transport.open(Request("GET", url, {})).__aenter__()
    finally:
        await transport.close()
    assert other.seen == []


async def test_a_registry_on_this_machine_may_lead_to_names_on_it(
    registry: FakeRegistry, other: FakeRegistry, tmp_path: Path
) -> None:
    descriptor = registry.add_blob(b"blob")
    port = other.host.rpartition(":")[2]

    async def redirecting(request: web.Request) -> web.StreamResponse | None:
        return web.Response(status=307, headers={"Location": f"http://localhost:{port}/store"})

    async def storing(request: web.Request) -> web.StreamResponse | None:
        return web.Response(body=b"blob")

    registry.before, other.before = redirecting, storing
    async with images(tmp_path, registry) as opened:
        store, _ = opened.store(f"{registry.host}/app")
        assert await collected(store, descriptor) == b"blob"


PUBLIC, PRIVATE, LOOPBACK = "93.184.216.34", "10.1.2.3", "127.0.0.1"


@pytest.mark.parametrize(
    ("registry_at", "leads_to", "allowed"),
    [
        (PUBLIC, PUBLIC, True),
        (PUBLIC, PRIVATE, False),
        (PUBLIC, LOOPBACK, False),
        (PRIVATE, PUBLIC, True),
        (PRIVATE, "192.168.9.9", True),
        (PRIVATE, LOOPBACK, False),
        (PRIVATE, "169.254.169.254", False),
        (LOOPBACK, PRIVATE, True),
        (LOOPBACK, "127.0.0.2", True),
        (LOOPBACK, "::1", True),
        (LOOPBACK, "169.254.169.254", False),
        (LOOPBACK, "0.0.0.0", False),
        ("169.254.1.1", "169.254.1.1", True),
        ("169.254.1.1", "169.254.169.254", False),
    ],
)
def test_a_registry_leads_no_deeper_than_it_lies(registry_at: str, leads_to: str, allowed: bool) -> None:
    guard = Guard("registry.example")
    guard.learned("registry.example", [ipaddress.ip_address(registry_at)])
    assert (guard.refusal("x.example", 443, ipaddress.ip_address(leads_to)) == "") is allowed


def test_a_registry_with_a_public_address_among_private_ones_counts_as_public() -> None:
    guard = Guard("registry.example")
    guard.learned("registry.example", [ipaddress.ip_address(LOOPBACK), ipaddress.ip_address(PUBLIC)])
    guard.learned("registry.example", [ipaddress.ip_address(LOOPBACK)])
    assert guard.refusal("x.example", 443, ipaddress.ip_address(PRIVATE))


def test_a_registry_cannot_list_private_addresses_as_its_own_to_be_led_there() -> None:
    guard = Guard("registry.example")
    guard.learned("registry.example", [ipaddress.ip_address(each) for each in (PUBLIC, LOOPBACK, PRIVATE)])
    assert guard.refusal("x.example", 443, ipaddress.ip_address(PUBLIC)) == ""
    assert guard.refusal("x.example", 443, ipaddress.ip_address(LOOPBACK))
    assert guard.refusal("x.example", 443, ipaddress.ip_address(PRIVATE))


def test_hosts_that_the_user_trusts_may_lie_anywhere() -> None:
    guard = Guard("registry.example", frozenset({"s3.internal", "tokens.internal:8443"}))
    assert guard.refusal("s3.internal", 443, ipaddress.ip_address(PRIVATE)) == ""
    assert guard.refusal("tokens.internal", 8443, ipaddress.ip_address(PRIVATE)) == ""
    assert guard.refusal("tokens.internal", 443, ipaddress.ip_address(PRIVATE))


def test_addresses_inside_addresses_count() -> None:
    assert ground(ipaddress.ip_address("::ffff:10.0.0.1")) is Ground.PRIVATE
    assert ground(ipaddress.ip_address("64:ff9b::127.0.0.1")) is Ground.LOOPBACK
    assert ground(ipaddress.ip_address("2606:2800:220:1::1")) is Ground.PUBLIC
    assert literal("registry.example") is None
    assert literal("1.2.3.4.example") is None
