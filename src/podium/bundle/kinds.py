"""The Go types that manifests of a bundle are decoded into, as tables: ClusterServiceVersion and old CRDs.

Kubernetes' own types come from `podium.schema.facts`; the tables name them.
"""

from __future__ import annotations

from typing import Any

from podium.bundle.typed import (
    ANY,
    BOOL,
    INT32,
    STRING,
    STRING_MAP,
    STRINGS,
    TIME,
    Builtin,
    Custom,
    ListOf,
    Shape,
    Struct,
    text_or_number,
)
from podium.text.semver import Version, prerelease_identifiers


def _version(value: Any) -> Version:
    """The operator's version; text that is nearly semver will do, nothing else will, not even null."""
    if value is not None and not isinstance(value, str):
        raise ValueError(f"expected a version as text, found {value!r}; put it in quotes")
    return Version.parse_tolerant(value or "")


def _release(value: Any) -> str:
    if value is not None and not isinstance(value, str):
        raise ValueError(f"expected a release as text, found {value!r}; put it in quotes")
    return ".".join(prerelease_identifiers(value or ""))


def _strings(*names: str) -> Struct:
    return Struct(dict.fromkeys(names, STRING))


_DESCRIPTORS = ListOf(
    Struct(
        {
            "path": STRING,
            "displayName": STRING,
            "description": STRING,
            "x-descriptors": STRINGS,
            "value": ANY,
        }
    )
)
_DESCRIBED: dict[str, Shape] = {
    "name": STRING,
    "version": STRING,
    "kind": STRING,
    "displayName": STRING,
    "description": STRING,
    "resources": ListOf(_strings("name", "kind", "version")),
    "statusDescriptors": _DESCRIPTORS,
    "specDescriptors": _DESCRIPTORS,
    "actionDescriptors": _DESCRIPTORS,
}
_CRD_DESCRIPTION = Struct(_DESCRIBED)
_API_DESCRIPTION = Struct(_DESCRIBED | {"group": STRING, "deploymentName": STRING, "containerPort": INT32})
_WEBHOOK = Struct(
    {
        "generateName": STRING,
        "type": STRING,
        "deploymentName": STRING,
        "containerPort": INT32,
        "targetPort": Custom(text_or_number),
        "rules": ListOf(Builtin("admissionregistration/v1.RuleWithOperations")),
        "failurePolicy": STRING,
        "matchPolicy": STRING,
        "objectSelector": Builtin("meta/v1.LabelSelector"),
        "sideEffects": STRING,
        "timeoutSeconds": INT32,
        "admissionReviewVersions": STRINGS,
        "reinvocationPolicy": STRING,
        "webhookPath": STRING,
        "conversionCRDs": STRINGS,
    }
)
_DEPLOYMENT = Struct({"name": STRING, "spec": Builtin("apps/v1.DeploymentSpec"), "label": STRING_MAP})
_PERMISSIONS = ListOf(Struct({"serviceAccountName": STRING, "rules": ListOf(Builtin("rbac/v1.PolicyRule"))}))
STRATEGY = Struct(
    {"deployments": ListOf(_DEPLOYMENT), "permissions": _PERMISSIONS, "clusterPermissions": _PERMISSIONS}
)
INSTALL = Struct({"strategy": STRING, "spec": STRATEGY})
SPEC = Struct(
    {
        "install": INSTALL,
        "version": Custom(_version, null=True),
        "release": Custom(_release, null=True),
        "maturity": STRING,
        "customresourcedefinitions": Struct(
            {"owned": ListOf(_CRD_DESCRIPTION), "required": ListOf(_CRD_DESCRIPTION)}
        ),
        "apiservicedefinitions": Struct(
            {"owned": ListOf(_API_DESCRIPTION), "required": ListOf(_API_DESCRIPTION)}
        ),
        "webhookdefinitions": ListOf(_WEBHOOK),
        "nativeAPIs": ListOf(_strings("group", "version", "kind")),
        "minKubeVersion": STRING,
        "displayName": STRING,
        "description": STRING,
        "keywords": STRINGS,
        "maintainers": ListOf(_strings("name", "email")),
        "provider": _strings("name", "url"),
        "links": ListOf(_strings("name", "url")),
        "icon": ListOf(_strings("base64data", "mediatype")),
        "installModes": ListOf(Struct({"type": STRING, "supported": BOOL})),
        "replaces": STRING,
        "labels": STRING_MAP,
        "annotations": STRING_MAP,
        "selector": Builtin("meta/v1.LabelSelector"),
        "cleanup": Struct({"enabled": BOOL}),
        "skips": STRINGS,
        "relatedImages": ListOf(_strings("name", "image")),
    }
)
METADATA = Builtin("meta/v1.ObjectMeta")
_CONDITION: dict[str, Shape] = {
    "phase": STRING,
    "message": STRING,
    "reason": STRING,
    "lastUpdateTime": TIME,
    "lastTransitionTime": TIME,
}
_STATUS = Struct(
    _CONDITION
    | {
        "certsLastUpdated": TIME,
        "certsRotateAt": TIME,
        "conditions": ListOf(Struct(dict(_CONDITION))),
        "requirementStatus": ListOf(
            Struct(
                dict.fromkeys(("group", "version", "kind", "name", "status", "message", "uuid"), STRING)
                | {"dependents": ListOf(_strings("group", "version", "kind", "status", "uuid", "message"))}
            )
        ),
        "cleanup": Struct(
            {
                "pendingDeletion": ListOf(
                    Struct(
                        {
                            "group": STRING,
                            "kind": STRING,
                            "instances": ListOf(_strings("name", "namespace")),
                        }
                    )
                )
            }
        ),
    }
)
CSV = Struct(
    {"apiVersion": STRING, "kind": STRING, "metadata": METADATA, "spec": SPEC, "status": _STATUS},
    inlined=frozenset({"apiVersion", "kind"}),
)

CRD = Builtin("apiextensions/v1.CustomResourceDefinition")

_OLD_COLUMNS = ListOf(
    Struct(
        {
            "name": STRING,
            "type": STRING,
            "format": STRING,
            "description": STRING,
            "priority": INT32,
            "JSONPath": STRING,
        }
    )
)
_OLD_PARTS: dict[str, Shape] = {
    "subresources": Builtin("apiextensions/v1.CustomResourceSubresources"),
    "additionalPrinterColumns": _OLD_COLUMNS,
    "selectableFields": ListOf(Builtin("apiextensions/v1.SelectableField")),
}
_VALIDATION = Builtin("apiextensions/v1.CustomResourceValidation")
OLD_CRD = Struct(
    {
        "apiVersion": STRING,
        "kind": STRING,
        "metadata": METADATA,
        "spec": Struct(
            {
                "group": STRING,
                "version": STRING,
                "names": Builtin("apiextensions/v1.CustomResourceDefinitionNames"),
                "scope": STRING,
                "validation": _VALIDATION,
                "versions": ListOf(
                    Struct(
                        {
                            "name": STRING,
                            "served": BOOL,
                            "storage": BOOL,
                            "deprecated": BOOL,
                            "deprecationWarning": STRING,
                            "schema": _VALIDATION,
                            **_OLD_PARTS,
                        }
                    )
                ),
                "conversion": Struct(
                    {
                        "strategy": STRING,
                        "webhookClientConfig": Builtin("apiextensions/v1.WebhookClientConfig"),
                        "conversionReviewVersions": STRINGS,
                    }
                ),
                "preserveUnknownFields": BOOL,
                **_OLD_PARTS,
            }
        ),
        "status": Builtin("apiextensions/v1.CustomResourceDefinitionStatus"),
    },
    inlined=frozenset({"apiVersion", "kind"}),
)
