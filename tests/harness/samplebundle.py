"""A small bundle that passes every check, with something in it for each check to look at.

`documents()` gives its objects as plain values to be changed, `files()` writes them down.
"""

from __future__ import annotations

import copy
import json
from typing import Any

Documents = dict[str, Any]

_PREFIX = "operators.operatorframework.io."
_ICON = "PHN2ZyB4bWxucz0iaHR0cDovL3d3dy53My5vcmcvMjAwMC9zdmciLz4="
_AFFINITY = {
    "nodeAffinity": {
        "requiredDuringSchedulingIgnoredDuringExecution": {
            "nodeSelectorTerms": [
                {
                    "matchExpressions": [
                        {"key": "kubernetes.io/arch", "operator": "In", "values": ["amd64"]},
                        {"key": "kubernetes.io/os", "operator": "In", "values": ["linux"]},
                    ]
                }
            ]
        }
    }
}

ANNOTATIONS = {
    "annotations": {
        _PREFIX + "bundle.mediatype.v1": "registry+v1",
        _PREFIX + "bundle.manifests.v1": "manifests/",
        _PREFIX + "bundle.metadata.v1": "metadata/",
        _PREFIX + "bundle.package.v1": "cache",
        _PREFIX + "bundle.channels.v1": "stable,fast",
        _PREFIX + "bundle.channel.default.v1": "stable",
    }
}

DEPENDENCIES = {
    "dependencies": [
        {"type": "olm.gvk", "value": {"group": "etcd.example.com", "kind": "Etcd", "version": "v1"}},
        {"type": "olm.package", "value": {"packageName": "etcd", "version": ">=1.0.0 <2.0.0"}},
        {"type": "olm.label", "value": {"label": "fast-storage"}},
        {
            "type": "olm.constraint",
            "value": {
                "failureMessage": "needs storage",
                "cel": {"rule": "properties.exists(p, semver_compare(p.value, '1.0.0') >= 0)"},
            },
        },
    ]
}


def _crd(group: str, kind: str) -> dict[str, Any]:
    plural = kind.lower() + "s"
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{plural}.{group}"},
        "spec": {
            "group": group,
            "names": {"kind": kind, "listKind": kind + "List", "plural": plural, "singular": kind.lower()},
            "scope": "Namespaced",
            "versions": [
                {
                    "name": "v1",
                    "served": True,
                    "storage": True,
                    "schema": {"openAPIV3Schema": {"type": "object"}},
                    "additionalPrinterColumns": [
                        {"name": "Size", "type": "integer", "jsonPath": ".spec.size"}
                    ],
                }
            ],
        },
    }


def _deployment() -> dict[str, Any]:
    return {
        "name": "cache-manager",
        "spec": {
            "replicas": 1,
            "selector": {"matchLabels": {"app": "cache"}},
            "template": {
                "metadata": {"labels": {"app": "cache"}},
                "spec": {
                    "serviceAccountName": "cache-manager",
                    "affinity": copy.deepcopy(_AFFINITY),
                    "containers": [
                        {
                            "name": "manager",
                            "image": "registry.example.com/cache/manager:1.2.3",
                            "resources": {"requests": {"cpu": "10m", "memory": "64Mi"}},
                        }
                    ],
                },
            },
        },
    }


def _csv() -> dict[str, Any]:
    examples = [
        {"apiVersion": "cache.example.com/v1", "kind": "Cache", "metadata": {"name": "one"}, "spec": {}}
    ]
    return {
        "apiVersion": "operators.coreos.com/v1alpha1",
        "kind": "ClusterServiceVersion",
        "metadata": {
            "name": "cache.v1.2.3",
            "namespace": "placeholder",
            "annotations": {
                "alm-examples": json.dumps(examples),
                "capabilities": "Basic Install",
                "categories": "Database, Storage",
                "olm.skipRange": "<1.2.3",
            },
            "labels": {
                "operatorframework.io/arch.amd64": "supported",
                "operatorframework.io/os.linux": "supported",
            },
        },
        "spec": {
            "version": "1.2.3",
            "displayName": "Cache",
            "description": "Keeps what was asked for before.",
            "minKubeVersion": "1.25.0",
            "replaces": "cache.v1.2.2",
            "provider": {"name": "Example"},
            "maintainers": [{"name": "Ann", "email": "ann@example.com"}],
            "links": [{"name": "Home", "url": "https://example.com/cache"}],
            "icon": [{"base64data": _ICON, "mediatype": "image/svg+xml"}],
            "keywords": ["cache"],
            "installModes": [
                {"type": "OwnNamespace", "supported": False},
                {"type": "SingleNamespace", "supported": False},
                {"type": "MultiNamespace", "supported": False},
                {"type": "AllNamespaces", "supported": True},
            ],
            "relatedImages": [{"name": "manager", "image": "registry.example.com/cache/manager:1.2.3"}],
            "customresourcedefinitions": {
                "owned": [
                    {
                        "name": "caches.cache.example.com",
                        "kind": "Cache",
                        "version": "v1",
                        "description": "A cache.",
                        "resources": [{"kind": "Service", "version": "v1", "name": ""}],
                    }
                ],
                "required": [
                    {
                        "name": "etcds.etcd.example.com",
                        "kind": "Etcd",
                        "version": "v1",
                        "description": "Where caches are kept.",
                    }
                ],
            },
            "webhookdefinitions": [
                {
                    "generateName": "convert.cache.example.com",
                    "type": "ConversionWebhook",
                    "deploymentName": "cache-manager",
                    "containerPort": 443,
                    "targetPort": 9443,
                    "sideEffects": "None",
                    "admissionReviewVersions": ["v1"],
                    "webhookPath": "/convert",
                    "conversionCRDs": ["caches.cache.example.com"],
                }
            ],
            "install": {
                "strategy": "deployment",
                "spec": {
                    "deployments": [_deployment()],
                    "permissions": [
                        {
                            "serviceAccountName": "cache-manager",
                            "rules": [{"apiGroups": [""], "resources": ["configmaps"], "verbs": ["get"]}],
                        }
                    ],
                    "clusterPermissions": [
                        {
                            "serviceAccountName": "cache-manager",
                            "rules": [{"apiGroups": ["apps"], "resources": ["deployments"], "verbs": ["*"]}],
                        }
                    ],
                },
            },
        },
    }


def _others() -> Documents:
    return {
        "manifests/service.yaml": {
            "apiVersion": "v1",
            "kind": "Service",
            "metadata": {"name": "cache-metrics", "labels": {"app": "cache"}},
            "spec": {"ports": [{"port": 8443}], "selector": {"app": "cache"}},
        },
        "manifests/serviceaccount.yaml": {
            "apiVersion": "v1",
            "kind": "ServiceAccount",
            "metadata": {"name": "cache-reader", "annotations": {"example.com/why": "reads"}},
        },
        "manifests/role.yaml": {
            "apiVersion": "rbac.authorization.k8s.io/v1",
            "kind": "ClusterRole",
            "metadata": {"name": "cache-reader"},
            "rules": [
                {
                    "apiGroups": ["security.openshift.io"],
                    "resources": ["securitycontextconstraints"],
                    "resourceNames": ["own"],
                    "verbs": ["use"],
                },
                {"apiGroups": ["policy"], "resources": ["poddisruptionbudgets"], "verbs": ["get"]},
            ],
        },
        "manifests/pdb.yaml": {
            "apiVersion": "policy/v1",
            "kind": "PodDisruptionBudget",
            "metadata": {"name": "cache"},
            "spec": {"maxUnavailable": 1, "selector": {"matchLabels": {"app": "cache"}}},
        },
        "manifests/priority.yaml": {
            "apiVersion": "scheduling.k8s.io/v1",
            "kind": "PriorityClass",
            "metadata": {"name": "cache"},
            "value": 1000,
            "globalDefault": False,
        },
    }


CSV_FILE = "manifests/cache.clusterserviceversion.yaml"
CRD_FILE = "manifests/cache.example.com_caches.yaml"
ANNOTATIONS_FILE = "metadata/annotations.yaml"
DEPENDENCIES_FILE = "metadata/dependencies.yaml"


def documents() -> Documents:
    """The bundle's documents by file, a fresh copy to change."""
    return copy.deepcopy(
        {
            CSV_FILE: _csv(),
            CRD_FILE: _crd("cache.example.com", "Cache"),
            **_others(),
            ANNOTATIONS_FILE: ANNOTATIONS,
            DEPENDENCIES_FILE: DEPENDENCIES,
        }
    )


def files(changed: Documents | None = None) -> dict[str, bytes]:
    """The bundle as files; JSON is YAML. Values that are bytes already are taken as they are."""
    return {
        path: value if isinstance(value, bytes) else (json.dumps(value, indent=1) + "\n").encode()
        for path, value in (documents() if changed is None else changed).items()
    }
