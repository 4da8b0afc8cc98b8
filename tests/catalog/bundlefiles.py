"""A small bundle as files, for tests that render one."""

from __future__ import annotations

import json
from typing import Any

Files = dict[str, bytes]


def files(version: str = "1.0.0", *, package: str = "demo", **spec: Any) -> Files:
    """A bundle with one CRD and one Deployment; more of the ClusterServiceVersion's spec by keyword."""
    csv = {
        "apiVersion": "operators.coreos.com/v1alpha1",
        "kind": "ClusterServiceVersion",
        "metadata": {"name": f"{package}.v{version}", "annotations": spec.pop("annotations", {})},
        "spec": {
            "version": version,
            "displayName": "Demo <operator>",
            "customresourcedefinitions": {"owned": [{"name": "demos.x.io", "version": "v1", "kind": "Demo"}]},
            "install": {
                "strategy": "deployment",
                "spec": {
                    "deployments": [
                        {
                            "name": "d",
                            "spec": {"template": {"spec": {"containers": [{"image": "a.io/op:1"}]}}},
                        }
                    ]
                },
            },
        }
        | spec,
    }
    crd = {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "demos.x.io"},
        "spec": {
            "group": "x.io",
            "names": {"kind": "Demo", "plural": "demos"},
            "versions": [{"name": "v1", "schema": {"openAPIV3Schema": {"maximum": 18446744073709551615}}}],
        },
    }
    prefix = "operators.operatorframework.io.bundle"
    annotations = {f"{prefix}.package.v1": package, f"{prefix}.channels.v1": "stable"}
    return {
        "manifests/csv.yaml": json.dumps(csv).encode(),
        "manifests/crd.yaml": json.dumps(crd).encode(),
        "metadata/annotations.yaml": json.dumps({"annotations": annotations}).encode(),
    }
