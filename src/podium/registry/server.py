"""The gRPC server: `api.Registry`, its experimental sister, health and reflection.

Errors carry the code that opm's carry (UNKNOWN for what is not there), because clients match on the text.
"""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Callable, Iterable
from typing import Any

import grpc
from google.protobuf import struct_pb2
from grpc_health.v1 import health, health_pb2, health_pb2_grpc
from grpc_reflection.v1alpha import reflection

from podium.registry.messages import POOL, SERVICES, message
from podium.registry.queries import NotFound, Queries

_ACKNOWLEDGE = "x-acknowledge-experimental"
_COMPONENT = re.compile(r"[a-zA-Z0-9][a-zA-Z0-9._-]*")


async def start(queries: Queries, address: str) -> tuple[grpc.aio.Server, int]:
    """A server that listens on an address (`host:port`, 0 for any) and the port it got."""
    server = grpc.aio.server(options=(("grpc.so_reuseport", 0),))
    answers = _answers(queries)
    for service, methods in SERVICES.items():
        handlers = {
            name: _handler(request, response, answers[name]) for name, (request, response) in methods.items()
        }
        server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler(service, handlers),))
    checks = health.aio.HealthServicer()
    await checks.set("", health_pb2.HealthCheckResponse.SERVING)
    await checks.set("Registry", health_pb2.HealthCheckResponse.SERVING)
    health_pb2_grpc.add_HealthServicer_to_server(checks, server)
    names = (*SERVICES, health.SERVICE_NAME, reflection.SERVICE_NAME)
    reflection.enable_server_reflection(names, server, pool=_everything())
    port = server.add_insecure_port(address)
    await server.start()
    return server, port


def _everything() -> Any:
    """Our messages and those of health and reflection in one pool."""
    from google.protobuf import descriptor_pb2
    from grpc_reflection.v1alpha import reflection_pb2

    for module in (health_pb2, reflection_pb2):
        POOL.Add(descriptor_pb2.FileDescriptorProto.FromString(module.DESCRIPTOR.serialized_pb))
    return POOL


def _answers(queries: Queries) -> dict[str, Callable[[Any], Any]]:
    """What each method answers: one message, or an iterable of them where it streams."""
    name = message("PackageName")
    return {
        "ListPackages": lambda r: (name(name=package) for package in queries.packages()),
        "GetPackage": lambda r: queries.package(r.name),
        "GetBundle": lambda r: queries.bundle(r.pkgName, r.channelName, r.csvName),
        "GetBundleForChannel": lambda r: queries.head(r.pkgName, r.channelName),
        "GetChannelEntriesThatReplace": lambda r: queries.entries_that_replace(r.csvName),
        "GetBundleThatReplaces": lambda r: queries.replacement(r.csvName, r.pkgName, r.channelName),
        "GetChannelEntriesThatProvide": lambda r: queries.entries_that_provide(r.group, r.version, r.kind),
        "GetLatestChannelEntriesThatProvide": lambda r: queries.latest_that_provide(
            r.group, r.version, r.kind
        ),
        "GetDefaultBundleThatProvides": lambda r: queries.default_that_provides(r.group, r.version, r.kind),
        "ListBundles": lambda r: queries.bundles(),
        "ExperimentalListPackageCustomSchemas": lambda r: _custom(queries, r.schema, r.packageName),
    }


class _Invalid(ValueError):
    """A request that names something impossible."""


def _custom(queries: Queries, schema: str, package: str) -> Iterable[Any]:
    if not schema:
        raise _Invalid("schema is required")
    for name, value in (("schema", schema), ("packageName", package)):
        if value and not _COMPONENT.fullmatch(value):
            raise _Invalid(
                f'invalid custom schema query: invalid {name} "{value}": must match ^{_COMPONENT.pattern}$'
            )
    struct = message("google.protobuf.Struct")
    for content in queries.custom(schema, package):
        plain = struct_pb2.Struct()
        plain.update(content)
        yield struct.FromString(plain.SerializeToString())


def _handler(request: str, response: str, answer: Callable[[Any], Any]) -> Any:
    experimental = request.startswith("Experimental")

    async def one(asked: Any, context: Any) -> Any:
        try:
            return answer(asked)
        except NotFound as error:
            await context.abort(grpc.StatusCode.UNKNOWN, str(error))

    async def stream(asked: Any, context: Any) -> AsyncIterator[Any]:
        if experimental and dict(context.invocation_metadata() or ()).get(_ACKNOWLEDGE) != "true":
            return  # as if there were nothing: only those who ask for it get what may change
        try:
            for item in answer(asked):
                yield item
        except NotFound as error:
            await context.abort(grpc.StatusCode.UNKNOWN, str(error))
        except _Invalid as error:
            await context.abort(grpc.StatusCode.INVALID_ARGUMENT, str(error))

    codec = {
        "request_deserializer": message(request).FromString,
        "response_serializer": lambda reply: reply.SerializeToString(),
    }
    if response.startswith("*"):
        return grpc.unary_stream_rpc_method_handler(stream, **codec)
    return grpc.unary_unary_rpc_method_handler(one, **codec)
