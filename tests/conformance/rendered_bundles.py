"""Bundles by the hundred: everything that decides what is rendered from one, now and then wrong.

Everything follows from a seed. A case is the files of a bundle; most are rendered, some refused.
"""

from __future__ import annotations

import json
import random
from typing import Any

import yaml

Files = dict[str, bytes]

_PREFIX = "operators.operatorframework.io.bundle"
_TEXTS = ("plain", "", "<a> & b", "two\nlines\n", "\u2028", "yes", "1.10", "😀", "long " * 40)


def draw(chance: random.Random) -> Files:
    """The files of one bundle."""
    made = {f"manifests/{name}": _written(value, chance) for name, value in _manifests(chance).items()}
    made |= {f"metadata/{name}": _written(value, chance) for name, value in _metadata(chance).items()}
    if chance.random() < 0.1:
        made |= {"manifests/.hidden.yaml": b"kind: Secret\n", "manifests/sub/x.yaml": b"kind: Secret\n"}
    if chance.random() < 0.1:
        made["manifests/zz.yaml"] = chance.choice(
            (b"not: [yaml", b"# nothing\n", b"no: kind\n", b"text", b"")
        )
    return made


def _manifests(chance: random.Random) -> dict[str, Any]:
    crds = [_crd(name, chance) for name in chance.sample(("alphas", "betas"), chance.randint(0, 2))]
    owned = [
        {"name": crd["metadata"]["name"], "version": "v1", "kind": crd["spec"]["names"]["kind"]}
        for crd in crds
    ]
    for each in owned:
        if chance.random() < 0.5:
            each |= _described(chance)
    if chance.random() < 0.05:
        owned.append({"name": chance.choice(("gone.x.io", "nodot")), "version": "v1", "kind": "Gone"})
    made: dict[str, Any] = {"csv.yaml": _csv(owned, chance)}
    if chance.random() < 0.1:
        made["csv2.yaml"] = _csv([], chance)
    for index, crd in enumerate(crds):
        made[f"{index}.crd.yaml"] = crd
    if chance.random() < 0.3:
        made["cm.yaml"] = {"apiVersion": "v1", "kind": "ConfigMap", "data": {"a": chance.choice(_TEXTS)}}
    if chance.random() < 0.03:
        del made["csv.yaml"]
    return made


def _csv(owned: list[Any], chance: random.Random) -> dict[str, Any]:
    definitions: dict[str, Any] = {"owned": owned}
    if chance.random() < 0.4:
        name = chance.choice(("ones.y.io", "twos.y.io", "nodot")) if chance.random() < 0.1 else "ones.y.io"
        definitions["required"] = [{"name": name, "version": "v2", "kind": "One"}]
    spec: dict[str, Any] = {
        "version": chance.choice(("1.0.0", "1.2.3-rc.1+b", "not semver")),
        "displayName": chance.choice(_TEXTS),
        "customresourcedefinitions": definitions,
        "install": _install(chance),
    }
    for key, values in _SPEC.items():
        if chance.random() < 0.4:
            spec[key] = chance.choice(values)
    if chance.random() < 0.5:
        count = chance.choice((1, 3, 14, 30))
        spec["relatedImages"] = [
            {"name": f"n{index}", "image": f"a.io/i{chance.randrange(1 + count // 2)}:1"}
            for index in range(count)
        ]
    metadata: dict[str, Any] = {"name": "demo.v1.0.0"}
    if chance.random() < 0.6:
        metadata["annotations"] = {
            "olm.properties": chance.choice(_ANNOTATED),
            "b": "x",
            "a": chance.choice(_TEXTS),
        }
    if chance.random() < 0.3:
        metadata["labels"] = {"z": "1", "a": "2"}
    kind = "ClusterServiceVersion"
    return {"apiVersion": "operators.coreos.com/v1alpha1", "kind": kind, "metadata": metadata, "spec": spec}


_SPEC: dict[str, tuple[Any, ...]] = {
    "release": ("1", "2.alpha", 3, 1.5, ""),
    "description": _TEXTS,
    "keywords": (["a", "b"], [], None),
    "maintainers": ([{"name": "n", "email": "e", "phone": "p"}], [{}]),
    "provider": ({"name": "p"}, {}, {"url": "u"}),
    "links": ([{"name": "n", "url": "https://x?a=1&b=2"}],),
    "maturity": ("alpha",),
    "minKubeVersion": ("1.20.0",),
    "installModes": (
        [{"type": "AllNamespaces", "supported": True}, {"type": "OwnNamespace", "supported": False}],
    ),
    "nativeAPIs": ([{"group": "g", "version": "v", "kind": "k"}],),
    "apiservicedefinitions": (
        {
            "owned": [
                {"name": "ones", "group": "api.io", "version": "v1", "kind": "Api", "containerPort": 443}
            ]
        },
        {"required": [{"name": "twos", "group": "api.io", "version": "v1", "kind": "Two"}]},
    ),
    "icon": ([{"base64data": "PHN2Zy8+", "mediatype": "image/svg+xml"}],),
}
_ANNOTATED = (
    '[{"type":"olm.maxOpenShiftVersion","value":"4.16"}]',
    '[{"type": "own", "value": {"b": 1, "a": "<"}}, {"type": "own", "value": {"b": 1, "a": "<"}}]',
    '[{"type":"olm.gvk","value":{"group":"s","kind":"S","version":"v1"}}]',
    '[{"type":"olm.package","value":{"packageName":"renamed","version":"9.9.9"}}]',
    '[{"type":"own"}]',
    '[{"TYPE":"own","Value":1.0}]',
    "[{]",
    "{}",
    "",
    "[null]",
)


def _described(chance: random.Random) -> dict[str, Any]:
    descriptor = {
        "path": "spec.x",
        "displayName": chance.choice(_TEXTS),
        "x-descriptors": ["urn:a"],
        "value": chance.choice(({"b": 1, "a": "<"}, 1.5, None, [1])),
    }
    return {
        "displayName": "Alpha",
        "description": chance.choice(_TEXTS),
        "resources": [{"kind": "Pod", "version": "v1"}],
        "specDescriptors": [descriptor],
        "statusDescriptors": [],
        "actionDescriptors": [descriptor],
    }


def _install(chance: random.Random) -> dict[str, Any]:
    # One image at most that is nowhere else: opm appends several of them in random order before it sorts.
    containers = [{"name": "c", "image": chance.choice(("a.io/op:1", "a.io/i0:1"))}]
    pod = {"containers": containers, "initContainers": [{"name": "i", "image": containers[0]["image"]}]}
    deployment = {"name": "d", "spec": {"selector": {}, "template": {"spec": pod}}}
    return {
        "strategy": chance.choice(("deployment", "deployment", "other")),
        "spec": {"deployments": [deployment]},
    }


def _crd(plural: str, chance: random.Random) -> dict[str, Any]:
    kind = plural[:-1].capitalize()
    schema = {"maximum": chance.choice((1, 1.0, 1.5e300, 18446744073709551615, 1e-7)), "description": "<b>"}
    versions = [{"name": "v1", "schema": {"openAPIV3Schema": schema}, "served": True, "storage": True}]
    if chance.random() < 0.3:
        versions.append({"name": "v2", "served": True, "storage": False})
    return {
        "apiVersion": chance.choice(("apiextensions.k8s.io/v1", "apiextensions.k8s.io/v1beta1")),
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{plural}.x.io", "creationTimestamp": None},
        "spec": {
            "group": "x.io",
            "names": {"kind": kind, "plural": plural},
            "scope": "Namespaced",
            "versions": versions,
        },
        "status": None,
    }


def _metadata(chance: random.Random) -> dict[str, Any]:
    annotations: dict[str, Any] = {
        f"{_PREFIX}.package.v1": "demo",
        f"{_PREFIX}.channels.v1": "a,b",
        "other": "x",
    }
    if chance.random() < 0.1:
        annotations[f"{_PREFIX}.package.v1"] = chance.choice(("", 7, True, None))
    made: dict[str, Any] = {"annotations.yaml": {"annotations": annotations}}
    if chance.random() < 0.5:
        listed = chance.sample(_DEPENDENCIES, chance.randint(1, 3))
        made["dependencies.yaml"] = {"dependencies": listed}
    if chance.random() < 0.4:
        made["properties.yaml"] = {"properties": chance.sample(_STATED, chance.randint(1, 3))}
    if chance.random() < 0.03:
        del made["annotations.yaml"]
    return made


_DEPENDENCIES: tuple[Any, ...] = (
    {"type": "olm.package", "value": {"packageName": "other", "version": ">=1.0.0 <2.0.0"}},
    {"type": "olm.gvk", "value": {"group": "y.io", "kind": "One", "version": "v2"}},
    {"type": "olm.gvk", "value": {"group": "y.io", "kind": "Two", "version": "v2"}},
    {"type": "olm.constraint", "value": {"failureMessage": "no", "cel": {"rule": "1 > 0 && true"}}},
    {"type": "olm.label", "value": {"label": "a"}},
    {"type": "olm.crd", "value": 7},
)
_STATED: tuple[Any, ...] = (
    {"type": "own", "value": {"z": [1, 2.5], "a": "<x>"}},
    {"type": "olm.maxOpenShiftVersion", "value": "4.9"},
    {"type": "olm.gvk", "value": {"group": "p.io", "kind": "P", "version": "v1"}},
    {"type": "olm.package", "value": {"packageName": "stated", "version": "0.0.1", "release": "r"}},
    {"type": "own", "value": "text"},
)


def _written(value: Any, chance: random.Random) -> bytes:
    if chance.random() < 0.5:
        text: str = yaml.safe_dump(value, allow_unicode=True, sort_keys=False)
        return ("---\n" + text if chance.random() < 0.2 else text).encode()
    return json.dumps(value, indent=chance.choice((None, 2)), ensure_ascii=chance.random() < 0.5).encode()
