"""The gRPC registry, asked over a socket as OLM v0 asks it."""

from __future__ import annotations

import base64
import json
from collections.abc import AsyncIterator
from typing import Any

import grpc
import pytest
from grpc_health.v1 import health_pb2, health_pb2_grpc
from grpc_reflection.v1alpha import reflection_pb2, reflection_pb2_grpc

from podium.catalog.read import read
from podium.registry.messages import SERVICES, message
from podium.registry.queries import Queries
from podium.registry.server import start

METADATA = {
    "displayName": "Pantry",
    "description": "Keeps things",
    "annotations": {"capabilities": "Basic Install"},
    "provider": {"name": "Acme"},
}
CSV = {"kind": "ClusterServiceVersion", "metadata": {"name": "pantry.v1.0.0"}}


def bundle(
    version: str, *properties: tuple[str, Any], image: str = "docker.io/acme/pantry"
) -> dict[str, Any]:
    about = {"packageName": "pantry", "version": version}
    every = [("olm.package", about), *properties]
    return {
        "schema": "olm.bundle",
        "name": f"pantry.v{version}",
        "package": "pantry",
        "image": image and f"{image}:{version}",
        "properties": [{"type": kind, "value": value} for kind, value in every],
    }


SHELF = ("olm.gvk", {"group": "acme.io", "version": "v1", "kind": "Shelf"})
JAR_REQUIRED = ("olm.gvk.required", {"group": "glass.io", "version": "v1", "kind": "Jar"})
LID_REQUIRED = ("olm.package.required", {"packageName": "lids", "versionRange": ">=1.0.0"})
INLINE = ("olm.bundle.object", {"data": base64.b64encode(json.dumps(CSV).encode()).decode()})

CATALOG: list[dict[str, Any]] = [
    {"schema": "olm.package", "name": "pantry", "defaultChannel": "stable", "description": "All about food"},
    {
        "schema": "olm.channel",
        "name": "stable",
        "package": "pantry",
        "entries": [
            {"name": "pantry.v1.0.0"},
            {"name": "pantry.v1.1.0", "replaces": "pantry.v1.0.0", "skips": ["pantry.v1.0.5"]},
        ],
    },
    {"schema": "olm.channel", "name": "fast", "package": "pantry", "entries": [{"name": "pantry.v1.1.0"}]},
    bundle("1.0.0", INLINE, image=""),
    bundle("1.1.0", SHELF, JAR_REQUIRED, LID_REQUIRED, ("olm.csv.metadata", METADATA)),
    {
        "schema": "olm.deprecations",
        "package": "pantry",
        "entries": [
            {"reference": {"schema": "olm.bundle", "name": "pantry.v1.0.0"}, "message": "too old"},
            {"reference": {"schema": "olm.channel", "name": "fast"}, "message": "use stable"},
        ],
    },
    {"schema": "acme.recipe", "package": "pantry", "name": "jam", "minutes": 40},
]


@pytest.fixture
async def channel() -> AsyncIterator[grpc.aio.Channel]:
    text = "\n".join(map(json.dumps, CATALOG)).encode()
    server, port = await start(Queries(read([("catalog.json", text)])), "127.0.0.1:0")
    async with grpc.aio.insecure_channel(f"127.0.0.1:{port}") as connection:
        yield connection
    await server.stop(None)


async def call(channel: grpc.aio.Channel, method: str, metadata: Any = None, **request: str) -> Any:
    """One message, or a list of them for a method that streams."""
    service = next(name for name, methods in SERVICES.items() if method in methods)
    asked, answered = SERVICES[service][method]
    codec = {
        "request_serializer": lambda value: value.SerializeToString(),
        "response_deserializer": message(answered.removeprefix("*")).FromString,
    }
    path = f"/{service}/{method}"
    if answered.startswith("*"):
        stream = channel.unary_stream(path, **codec)(message(asked)(**request), metadata=metadata)
        return [item async for item in stream]
    return await channel.unary_unary(path, **codec)(message(asked)(**request), metadata=metadata)


async def test_packages_tell_their_channels_heads_and_deprecations(channel: grpc.aio.Channel) -> None:
    assert [package.name for package in await call(channel, "ListPackages")] == ["pantry"]
    package = await call(channel, "GetPackage", name="pantry")
    assert package.defaultChannelName == "stable"
    assert [(c.name, c.csvName, c.deprecation.message) for c in package.channels] == [
        ("fast", "pantry.v1.1.0", "use stable"),
        ("stable", "pantry.v1.1.0", ""),
    ]


async def test_listed_bundles_have_edges_and_no_manifests_if_they_have_an_image(
    channel: grpc.aio.Channel,
) -> None:
    bundles = await call(channel, "ListBundles")
    rows = [(b.channelName, b.csvName, b.replaces, list(b.skips), bool(b.csvJson)) for b in bundles]
    assert rows == [
        ("fast", "pantry.v1.1.0", "", [], False),
        ("stable", "pantry.v1.0.0", "", [], True),
        ("stable", "pantry.v1.1.0", "pantry.v1.0.0", ["pantry.v1.0.5"], False),
    ]
    assert bundles[1].deprecation.message == "too old"


async def test_a_bundle_with_metadata_only_comes_with_a_made_up_csv(channel: grpc.aio.Channel) -> None:
    found = await call(channel, "GetBundle", pkgName="pantry", channelName="stable", csvName="pantry.v1.1.0")
    csv = json.loads(found.csvJson)
    assert csv["metadata"] == {"name": "pantry.v1.1.0", "annotations": {"capabilities": "Basic Install"}}
    assert (csv["spec"]["displayName"], csv["spec"]["version"]) == ("Pantry", "1.1.0")
    assert csv["spec"]["install"]["strategy"] == "deployment"
    assert list(found.object) == [found.csvJson]
    assert [api.kind for api in found.requiredApis] == ["Jar"]
    assert [(d.type, json.loads(d.value)) for d in found.dependencies] == [
        ("olm.gvk", JAR_REQUIRED[1]),
        ("olm.package", {"packageName": "lids", "version": ">=1.0.0"}),
    ]
    assert "olm.csv.metadata" not in {p.type for p in found.properties}
    assert (found.replaces, list(found.skips)) == ("", [])


async def test_who_replaces_and_who_provides(channel: grpc.aio.Channel) -> None:
    asked = {"csvName": "pantry.v1.0.0", "pkgName": "pantry", "channelName": "stable"}
    assert (await call(channel, "GetBundleThatReplaces", **asked)).csvName == "pantry.v1.1.0"
    entries = await call(channel, "GetChannelEntriesThatReplace", csvName="pantry.v1.0.5")
    assert [(e.channelName, e.bundleName) for e in entries] == [("stable", "pantry.v1.1.0")]
    shelf = {"group": "acme.io", "version": "v1", "kind": "Shelf"}
    entries = await call(channel, "GetChannelEntriesThatProvide", **shelf)
    assert [(e.channelName, e.replaces) for e in entries] == [
        ("fast", ""),
        ("stable", "pantry.v1.0.0"),
        ("stable", "pantry.v1.0.5"),
    ]
    entries = await call(channel, "GetLatestChannelEntriesThatProvide", **shelf)
    assert [(e.channelName, e.replaces) for e in entries] == [("fast", ""), ("stable", "pantry.v1.0.0")]
    assert (await call(channel, "GetDefaultBundleThatProvides", **shelf)).channelName == "stable"
    asked = {"pkgName": "pantry", "channelName": "fast"}
    assert (await call(channel, "GetBundleForChannel", **asked)).csvName == "pantry.v1.1.0"


@pytest.mark.parametrize(
    ("method", "request_", "words"),
    [
        ("GetPackage", {"name": "x"}, 'package "x" not found'),
        ("GetBundle", {"pkgName": "pantry", "channelName": "x"}, 'package "pantry", channel "x" not found'),
        ("GetDefaultBundleThatProvides", {"kind": "X"}, "no channel entries found that provide"),
        ("GetChannelEntriesThatReplace", {"csvName": "x"}, "no channel entries found that replace x"),
    ],
)
async def test_what_is_not_there_is_an_error_with_opms_words(
    channel: grpc.aio.Channel, method: str, request_: dict[str, str], words: str
) -> None:
    with pytest.raises(grpc.aio.AioRpcError) as caught:
        await call(channel, method, **request_)
    assert caught.value.code() is grpc.StatusCode.UNKNOWN
    assert words in (caught.value.details() or "")


async def test_custom_schemas_only_for_those_who_know_they_are_experimental(
    channel: grpc.aio.Channel,
) -> None:
    method = "ExperimentalListPackageCustomSchemas"
    acknowledged = (("x-acknowledge-experimental", "true"),)
    asked = {"schema": "acme.recipe", "packageName": "pantry"}
    assert await call(channel, method, **asked) == []
    (found,) = await call(channel, method, acknowledged, **asked)
    assert found["minutes"] == 40
    with pytest.raises(grpc.aio.AioRpcError) as caught:
        await call(channel, method, acknowledged, schema="../etc")
    assert caught.value.code() is grpc.StatusCode.INVALID_ARGUMENT


async def test_health_and_reflection_answer(channel: grpc.aio.Channel) -> None:
    health = health_pb2_grpc.HealthStub(channel)
    assert (await health.Check(health_pb2.HealthCheckRequest())).status == 1
    stub = reflection_pb2_grpc.ServerReflectionStub(channel)
    asked = [
        reflection_pb2.ServerReflectionRequest(list_services=""),
        reflection_pb2.ServerReflectionRequest(file_containing_symbol="api.Registry"),
    ]
    listed, file = [reply async for reply in stub.ServerReflectionInfo(iter(asked))]
    names = {service.name for service in listed.list_services_response.service}
    assert {"api.Registry", "api.ExperimentalRegistry", "grpc.health.v1.Health"} <= names
    assert b"GetBundleThatReplaces" in file.file_descriptor_response.file_descriptor_proto[0]
