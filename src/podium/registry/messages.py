"""The messages and services of `api.Registry`, as protocol buffer descriptors made from a table.

The table is the wire format: a field's place in its list is its number. Making the classes here, rather than
from a generated file, keeps one source for both and needs no compiler.
"""

from __future__ import annotations

from typing import Any

from google.protobuf import descriptor_pb2, descriptor_pool, message_factory, struct_pb2

_PACKAGE = "api"

# `*` before a name means repeated; a type after `:` means another message, text otherwise.
_MESSAGES = {
    "Channel": "name csvName deprecation:Deprecation",
    "PackageName": "name",
    "Package": "name *channels:Channel defaultChannelName deprecation:Deprecation",
    "GroupVersionKind": "group version kind plural",
    "Dependency": "type value",
    "Property": "type value",
    "Bundle": "csvName packageName channelName csvJson *object bundlePath *providedApis:GroupVersionKind"
    " *requiredApis:GroupVersionKind version skipRange *dependencies:Dependency *properties:Property replaces"
    " *skips deprecation:Deprecation",
    "ChannelEntry": "packageName channelName bundleName replaces",
    "ListPackageRequest": "",
    "ListBundlesRequest": "",
    "GetPackageRequest": "name",
    "GetBundleRequest": "pkgName channelName csvName",
    "GetBundleInChannelRequest": "pkgName channelName",
    "GetAllReplacementsRequest": "csvName",
    "GetReplacementRequest": "csvName pkgName channelName",
    "GetAllProvidersRequest": "group version kind plural",
    "GetLatestProvidersRequest": "group version kind plural",
    "GetDefaultProviderRequest": "group version kind plural",
    "Deprecation": "message",
    "ExperimentalListPackageCustomSchemasRequest": "schema packageName",
}

# method -> request and response; a `*` before the response means a stream of them.
SERVICES: dict[str, dict[str, tuple[str, str]]] = {
    "api.Registry": {
        "ListPackages": ("ListPackageRequest", "*PackageName"),
        "GetPackage": ("GetPackageRequest", "Package"),
        "GetBundle": ("GetBundleRequest", "Bundle"),
        "GetBundleForChannel": ("GetBundleInChannelRequest", "Bundle"),
        "GetChannelEntriesThatReplace": ("GetAllReplacementsRequest", "*ChannelEntry"),
        "GetBundleThatReplaces": ("GetReplacementRequest", "Bundle"),
        "GetChannelEntriesThatProvide": ("GetAllProvidersRequest", "*ChannelEntry"),
        "GetLatestChannelEntriesThatProvide": ("GetLatestProvidersRequest", "*ChannelEntry"),
        "GetDefaultBundleThatProvides": ("GetDefaultProviderRequest", "Bundle"),
        "ListBundles": ("ListBundlesRequest", "*Bundle"),
    },
    "api.ExperimentalRegistry": {
        "ExperimentalListPackageCustomSchemas": (
            "ExperimentalListPackageCustomSchemasRequest",
            "*google.protobuf.Struct",
        ),
    },
}


def _file() -> descriptor_pb2.FileDescriptorProto:
    file = descriptor_pb2.FileDescriptorProto(name="registry.proto", package=_PACKAGE, syntax="proto3")
    file.dependency.append(struct_pb2.DESCRIPTOR.name)
    for name, fields in _MESSAGES.items():
        message = file.message_type.add(name=name)
        for number, text in enumerate(fields.split(), 1):
            field_name, _, kind = text.removeprefix("*").partition(":")
            field = message.field.add(name=field_name, number=number, json_name=field_name)
            repeated = text.startswith("*")
            field.label = field.LABEL_REPEATED if repeated else field.LABEL_OPTIONAL
            field.type = field.TYPE_MESSAGE if kind else field.TYPE_STRING
            if kind:
                field.type_name = _full_name(kind)
    for service_name, methods in SERVICES.items():
        service = file.service.add(name=service_name.rpartition(".")[2])
        for method, (request, response) in methods.items():
            service.method.add(
                name=method,
                input_type=_full_name(request),
                output_type=_full_name(response.removeprefix("*")),
                server_streaming=response.startswith("*"),
            )
    return file


def _full_name(name: str) -> str:
    return f".{name}" if "." in name else f".{_PACKAGE}.{name}"


# A pool of our own: another library in the process may have registered the same file in the default one.
POOL = descriptor_pool.DescriptorPool()
POOL.Add(descriptor_pb2.FileDescriptorProto.FromString(struct_pb2.DESCRIPTOR.serialized_pb))
POOL.Add(_file())


def message(name: str) -> Any:
    """The class of a message by its short name (`Bundle`) or full name (`google.protobuf.Struct`)."""
    descriptor = POOL.FindMessageTypeByName(_full_name(name).removeprefix("."))
    return message_factory.GetMessageClass(descriptor)
