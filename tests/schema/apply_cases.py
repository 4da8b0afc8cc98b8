"""Sequences of writes and applies, as data: what each manager does, and who owns what in the end.

Run by tests/schema/test_managedfields.py on the pure functions, by tests/conformance on a real kube-apiserver
step by step, and usable against any server: a step is one request. Owners are written as conflicts name
fields; a case lists only the managers whose fields do not depend on the server's defaults.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal

from podium.schema import coerce, facts, fieldset, patches, structural
from podium.schema.fieldset import FieldSet
from podium.schema.shape import Shape

Object = dict[str, Any]
Verb = Literal["create", "update", "patch", "apply"]


@dataclass(frozen=True)
class Resource:
    """Where objects of one kind are served."""

    api_version: str
    kind: str
    plural: str

    def path(self, namespace: str, name: str = "") -> str:
        root = "/apis" if "/" in self.api_version else "/api"
        collection = f"{root}/{self.api_version}/namespaces/{namespace}/{self.plural}"
        return f"{collection}/{name}" if name else collection


@dataclass(frozen=True)
class Step:
    """One request. An `update` sends the live object with `body` merged in, a `patch` sends only `body`."""

    verb: Verb
    manager: str
    body: Object
    force: bool = False
    subresource: str = ""
    # The message that an apply is refused with; the object stays as it was.
    conflict: str = ""


@dataclass(frozen=True)
class Case:
    """A story about one object."""

    name: str
    resource: Resource
    steps: tuple[Step, ...]
    # Per `manager Operation[ subresource]`, all that it owns in the end; None: it has no entry.
    owners: dict[str, list[str] | None] = field(default_factory=dict)
    # Parts that the object has in the end. A field that must be gone stands here as None.
    result: Object = field(default_factory=dict)


CONFIG_MAP = Resource("v1", "ConfigMap", "configmaps")
SERVICE = Resource("v1", "Service", "services")
DEPLOYMENT = Resource("apps/v1", "Deployment", "deployments")
WIDGET = Resource("apply.podium.dev/v1", "Widget", "widgets")

_NAMED = {"type": "object", "required": ["name"], "properties": {"name": {"type": "string"}}}
WIDGET_SCHEMA: Object = {
    "type": "object",
    "properties": {
        "spec": {
            "type": "object",
            "properties": {
                "size": {"type": "integer"},
                "parts": {
                    "type": "array",
                    "x-kubernetes-list-type": "map",
                    "x-kubernetes-list-map-keys": ["name"],
                    "items": {
                        **_NAMED,
                        "properties": {"name": {"type": "string"}, "count": {"type": "integer"}},
                    },
                },
                "ports": {
                    "type": "array",
                    "x-kubernetes-list-type": "map",
                    "x-kubernetes-list-map-keys": ["number", "protocol"],
                    "items": {
                        "type": "object",
                        "required": ["number"],
                        "properties": {
                            "number": {"type": "integer"},
                            "protocol": {"type": "string", "default": "TCP"},
                            "note": {"type": "string"},
                        },
                    },
                },
                "tags": {"type": "array", "x-kubernetes-list-type": "set", "items": {"type": "string"}},
                "plain": {"type": "array", "items": {"type": "string"}},
                "whole": {
                    "type": "object",
                    "x-kubernetes-map-type": "atomic",
                    "properties": {"a": {"type": "string"}, "b": {"type": "string"}},
                },
                "rooms": {
                    "type": "object",
                    "additionalProperties": {
                        "type": "object",
                        "properties": {"beds": {"type": "integer"}, "view": {"type": "string"}},
                    },
                },
                "free": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
            },
        },
        "status": {
            "type": "object",
            "properties": {"ready": {"type": "boolean"}, "seen": {"type": "integer"}},
        },
    },
}
WIDGET_CRD: Object = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {"name": "widgets.apply.podium.dev"},
    "spec": {
        "group": "apply.podium.dev",
        "scope": "Namespaced",
        "names": {"plural": "widgets", "singular": "widget", "kind": "Widget", "listKind": "WidgetList"},
        "versions": [
            {
                "name": "v1",
                "served": True,
                "storage": True,
                "schema": {"openAPIV3Schema": WIDGET_SCHEMA},
                "subresources": {"status": {}},
            }
        ],
    },
}


def apply(
    manager: str, body: Object, *, force: bool = False, conflict: str = "", subresource: str = ""
) -> Step:
    return Step("apply", manager, body, force, subresource, conflict)


def create(manager: str, body: Object) -> Step:
    return Step("create", manager, body)


def update(manager: str, body: Object, *, subresource: str = "") -> Step:
    return Step("update", manager, body, subresource=subresource)


def patch(manager: str, body: Object, *, subresource: str = "") -> Step:
    return Step("patch", manager, body, subresource=subresource)


def _deployment(replicas: int | None = None, image: str = "nginx:1", **container: Any) -> Object:
    spec: Object = {
        "selector": {"matchLabels": {"app": "web"}},
        "template": {
            "metadata": {"labels": {"app": "web"}},
            "spec": {"containers": [{"name": "web", "image": image, **container}]},
        },
    }
    return {"spec": spec if replicas is None else {"replicas": replicas, **spec}}


_DEPLOYMENT_FIELDS = [
    ".spec.selector",
    ".spec.template.metadata.labels.app",
    '.spec.template.spec.containers[name="web"]',
    '.spec.template.spec.containers[name="web"].image',
    '.spec.template.spec.containers[name="web"].name',
]

CASES: tuple[Case, ...] = (
    Case(
        "an apply that creates owns what it says and nothing else",
        CONFIG_MAP,
        (apply("one", {"data": {"a": "1"}, "metadata": {"labels": {"x": "y"}}}),),
        {"one Apply": [".data.a", ".metadata.labels.x"]},
        {"data": {"a": "1"}},
    ),
    Case(
        "a create owns every field with its containers",
        CONFIG_MAP,
        (create("one", {"data": {"a": "1", "b": "2"}, "metadata": {"annotations": {"x": "y"}}}),),
        {"one Update": [".data", ".data.a", ".data.b", ".metadata.annotations", ".metadata.annotations.x"]},
    ),
    Case(
        "an update takes the fields it changes",
        CONFIG_MAP,
        (create("one", {"data": {"a": "1", "b": "2"}}), update("two", {"data": {"a": "9"}})),
        {"one Update": [".data", ".data.b"], "two Update": [".data.a"]},
    ),
    Case(
        "an update that changes nothing leaves the managers alone",
        CONFIG_MAP,
        (create("one", {"data": {"a": "1"}}), update("two", {"data": {"a": "1"}})),
        {"one Update": [".data", ".data.a"], "two Update": None},
    ),
    Case(
        "a field that is deleted is owned by nobody",
        CONFIG_MAP,
        (create("one", {"data": {"a": "1", "b": "2"}}), patch("two", {"data": {"a": None}})),
        {"one Update": [".data", ".data.b"], "two Update": None},
        {"data": {"a": None, "b": "2"}},
    ),
    Case(
        "two appliers of the same value share it",
        CONFIG_MAP,
        (apply("one", {"data": {"a": "1"}}), apply("two", {"data": {"a": "1"}})),
        {"one Apply": [".data.a"], "two Apply": [".data.a"]},
    ),
    Case(
        "an applier of another value is refused",
        CONFIG_MAP,
        (
            apply("one", {"data": {"a": "1"}}),
            apply(
                "two",
                {"data": {"a": "2"}},
                conflict='Apply failed with 1 conflict: conflict with "one": .data.a',
            ),
        ),
        {"one Apply": [".data.a"], "two Apply": None},
        {"data": {"a": "1"}},
    ),
    Case(
        "force takes the field over",
        CONFIG_MAP,
        (apply("one", {"data": {"a": "1", "b": "1"}}), apply("two", {"data": {"a": "2"}}, force=True)),
        {"one Apply": [".data.b"], "two Apply": [".data.a"]},
        {"data": {"a": "2", "b": "1"}},
    ),
    Case(
        "conflicts are listed by manager",
        CONFIG_MAP,
        (
            create("editor", {"data": {"a": "1", "b": "1"}}),
            apply("one", {"data": {"c": "1"}}),
            apply(
                "two",
                {"data": {"a": "2", "b": "2", "c": "2"}},
                conflict="Apply failed with 3 conflicts: "
                'conflicts with "editor" using v1:\n- .data.a\n- .data.b\nconflicts with "one":\n- .data.c',
            ),
        ),
        {"two Apply": None},
    ),
    Case(
        "a field no longer applied is removed",
        CONFIG_MAP,
        (apply("one", {"data": {"a": "1", "b": "2"}}), apply("one", {"data": {"a": "1"}})),
        {"one Apply": [".data.a"]},
        {"data": {"a": "1", "b": None}},
    ),
    Case(
        "a field no longer applied stays if someone else applies it",
        CONFIG_MAP,
        (
            apply("one", {"data": {"a": "1", "b": "2"}}),
            apply("two", {"data": {"b": "2"}}),
            apply("one", {"data": {"a": "1"}}),
        ),
        {"one Apply": [".data.a"], "two Apply": [".data.b"]},
        {"data": {"a": "1", "b": "2"}},
    ),
    Case(
        "a field no longer applied stays if someone updated it since",
        CONFIG_MAP,
        (
            apply("one", {"data": {"a": "1", "b": "2"}}),
            update("two", {"data": {"b": "9"}}),
            apply("one", {"data": {"a": "1"}}),
        ),
        {"one Apply": [".data.a"], "two Update": [".data.b"]},
        {"data": {"a": "1", "b": "9"}},
    ),
    Case(
        "an applier gives up the last field and the map goes with it",
        CONFIG_MAP,
        (
            apply("one", {"data": {"a": "1"}, "metadata": {"labels": {"x": "y"}}}),
            apply("one", {"metadata": {"labels": {"x": "y"}}}),
        ),
        {"one Apply": [".metadata.labels.x"]},
        {"data": None},
    ),
    Case(
        "one name can apply and update side by side",
        CONFIG_MAP,
        (apply("one", {"data": {"a": "1"}}), update("one", {"data": {"b": "2"}})),
        {"one Apply": [".data.a"], "one Update": [".data.b"]},
    ),
    Case(
        "an applier meets its own updates as those of another",
        CONFIG_MAP,
        (
            apply("one", {"data": {"a": "1"}}),
            update("one", {"data": {"a": "2"}}),
            apply(
                "one",
                {"data": {"a": "3"}},
                conflict='Apply failed with 1 conflict: conflict with "one" using v1: .data.a',
            ),
        ),
        {"one Apply": None, "one Update": [".data.a"]},
    ),
    Case(
        "managedFields are reset by an empty entry and tracked again from the next apply",
        CONFIG_MAP,
        (
            create("one", {"data": {"a": "1"}}),
            update("one", {"metadata": {"managedFields": [{}]}}),
            apply("two", {"data": {"a": "1"}}),
        ),
        {"two Apply": [".data.a"], "before-first-apply Update": [".data", ".data.a"]},
    ),
    Case(
        "finalizers are a set and owner references are keyed",
        CONFIG_MAP,
        (
            apply("one", {"metadata": {"finalizers": ["podium.dev/a"]}, "data": {"a": "1"}}),
            apply("two", {"metadata": {"finalizers": ["podium.dev/b"]}}),
            apply("one", {"data": {"a": "1"}}),
            apply("two", {"metadata": {"labels": {"done": "yes"}}}),
        ),
        {"one Apply": [".data.a"], "two Apply": [".metadata.labels.done"]},
        {"metadata": {"finalizers": None}},
    ),
    Case(
        "ports of a service are told apart by number and protocol, which has a default",
        SERVICE,
        (
            apply("one", {"spec": {"selector": {"app": "x"}, "ports": [{"name": "dns", "port": 53}]}}),
            apply("two", {"spec": {"ports": [{"name": "udp", "port": 53, "protocol": "UDP"}]}}),
        ),
        {
            "one Apply": [
                ".spec.selector",
                '.spec.ports[port=53,protocol="TCP"]',
                '.spec.ports[port=53,protocol="TCP"].name',
                '.spec.ports[port=53,protocol="TCP"].port',
            ],
            "two Apply": [
                '.spec.ports[port=53,protocol="UDP"]',
                '.spec.ports[port=53,protocol="UDP"].name',
                '.spec.ports[port=53,protocol="UDP"].port',
                '.spec.ports[port=53,protocol="UDP"].protocol',
            ],
        },
    ),
    Case(
        "the selector of a service has one owner",
        SERVICE,
        (
            apply("one", {"spec": {"selector": {"app": "x"}, "ports": [{"port": 80}]}}),
            apply(
                "two",
                {"spec": {"selector": {"tier": "y"}}},
                conflict='Apply failed with 1 conflict: conflict with "one": .spec.selector',
            ),
        ),
        {"two Apply": None},
        {"spec": {"selector": {"app": "x"}}},
    ),
    Case(
        "a service made by a plain create",
        SERVICE,
        (create("one", {"spec": {"selector": {"app": "x"}, "ports": [{"port": 80, "targetPort": "http"}]}}),),
    ),
    Case(
        "an autoscaler takes the replicas and the applier lets go of them",
        DEPLOYMENT,
        (
            apply("owner", _deployment(replicas=2)),
            patch("scaler", {"spec": {"replicas": 5}}),
            apply(
                "owner",
                _deployment(replicas=2),
                conflict='Apply failed with 1 conflict: conflict with "scaler" using apps/v1: .spec.replicas',
            ),
            apply("owner", _deployment()),
        ),
        {"owner Apply": _DEPLOYMENT_FIELDS, "scaler Update": [".spec.replicas"]},
        {"spec": {"replicas": 5}},
    ),
    Case(
        "a second applier adds a container and takes it away again",
        DEPLOYMENT,
        (
            apply("owner", _deployment(replicas=1)),
            apply(
                "sidecar",
                {"spec": {"template": {"spec": {"containers": [{"name": "side", "image": "side:1"}]}}}},
            ),
            apply("sidecar", {"spec": {"template": {"metadata": {"annotations": {"side": "off"}}}}}),
        ),
        {
            "owner Apply": [".spec.replicas", *_DEPLOYMENT_FIELDS],
            "sidecar Apply": [".spec.template.metadata.annotations.side"],
        },
    ),
    Case(
        "a deployment made by a plain create, changed and scaled",
        DEPLOYMENT,
        (
            create("one", _deployment(replicas=1, env=[{"name": "A", "value": "1"}])),
            update("two", {"spec": {"template": {"spec": {"dnsPolicy": "Default"}}}}),
            patch("three", {"metadata": {"labels": {"app": "web"}}, "spec": {"paused": True}}),
        ),
        {
            "two Update": [".spec.template.spec.dnsPolicy"],
            "three Update": [".metadata.labels", ".metadata.labels.app", ".spec.paused"],
        },
    ),
    Case(
        "status has entries of its own",
        DEPLOYMENT,
        (
            apply("owner", _deployment(replicas=1)),
            patch("controller", {"status": {"replicas": 1, "observedGeneration": 1}}, subresource="status"),
        ),
        {
            "owner Apply": [".spec.replicas", *_DEPLOYMENT_FIELDS],
            "controller Update status": [".status.observedGeneration", ".status.replicas"],
        },
    ),
    Case(
        "environment variables merge by name",
        DEPLOYMENT,
        (
            apply("owner", _deployment(env=[{"name": "A", "value": "1"}, {"name": "B", "value": "2"}])),
            apply(
                "other",
                {
                    "spec": {
                        "template": {
                            "spec": {
                                "containers": [
                                    {"name": "web", "env": [{"name": "C", "value": "3"}], "command": ["x"]}
                                ]
                            }
                        }
                    }
                },
            ),
            apply("owner", _deployment(env=[{"name": "B", "value": "2"}])),
        ),
        {
            "owner Apply": [
                *_DEPLOYMENT_FIELDS,
                '.spec.template.spec.containers[name="web"].env[name="B"]',
                '.spec.template.spec.containers[name="web"].env[name="B"].name',
                '.spec.template.spec.containers[name="web"].env[name="B"].value',
            ],
            "other Apply": [
                '.spec.template.spec.containers[name="web"]',
                '.spec.template.spec.containers[name="web"].command',
                '.spec.template.spec.containers[name="web"].env[name="C"]',
                '.spec.template.spec.containers[name="web"].env[name="C"].name',
                '.spec.template.spec.containers[name="web"].env[name="C"].value',
                '.spec.template.spec.containers[name="web"].name',
            ],
        },
    ),
    Case(
        "client-side apply is taken over by kubectl without conflict",
        CONFIG_MAP,
        (
            create(
                "kubectl-client-side-apply",
                {
                    "data": {"a": "1"},
                    "metadata": {
                        "annotations": {
                            "kubectl.kubernetes.io/last-applied-configuration": (
                                '{"apiVersion":"v1","kind":"ConfigMap","metadata":{"annotations":{}},'
                                '"data":{"a":"1"}}\n'
                            )
                        }
                    },
                },
            ),
            apply("kubectl", {"data": {"a": "2"}}),
        ),
        {"kubectl Apply": [".data.a"]},
        {"data": {"a": "2"}},
    ),
    Case(
        "client-side apply is not taken over by anyone else",
        CONFIG_MAP,
        (
            create(
                "kubectl-client-side-apply",
                {
                    "data": {"a": "1"},
                    "metadata": {
                        "annotations": {
                            "kubectl.kubernetes.io/last-applied-configuration": (
                                '{"apiVersion":"v1","kind":"ConfigMap","data":{"a":"1"}}'
                            )
                        }
                    },
                },
            ),
            apply(
                "other",
                {"data": {"a": "2"}},
                conflict="Apply failed with 1 conflict: "
                'conflict with "kubectl-client-side-apply" using v1: .data.a',
            ),
        ),
        {"other Apply": None},
    ),
    Case(
        "a custom resource owns its containers when created",
        WIDGET,
        (create("one", {"spec": {"size": 1, "tags": ["b", "a"], "parts": [{"name": "p", "count": 1}]}}),),
        {
            "one Update": [
                ".spec",
                ".spec.parts",
                ".spec.size",
                ".spec.tags",
                '.spec.parts[name="p"]',
                '.spec.parts[name="p"].count',
                '.spec.parts[name="p"].name',
                '.spec.tags[="a"]',
                '.spec.tags[="b"]',
            ]
        },
    ),
    Case(
        "sets and keyed lists of a custom resource are shared by element",
        WIDGET,
        (
            apply("one", {"spec": {"tags": ["a", "b"], "parts": [{"name": "p", "count": 1}, {"name": "q"}]}}),
            apply("two", {"spec": {"tags": ["c"], "parts": [{"name": "r"}, {"name": "q", "count": 7}]}}),
            apply("one", {"spec": {"tags": ["b"], "parts": [{"name": "p", "count": 2}]}}),
        ),
        {
            "one Apply": [
                '.spec.parts[name="p"]',
                '.spec.parts[name="p"].count',
                '.spec.parts[name="p"].name',
                '.spec.tags[="b"]',
            ],
            "two Apply": [
                '.spec.parts[name="q"]',
                '.spec.parts[name="r"]',
                '.spec.parts[name="q"].count',
                '.spec.parts[name="q"].name',
                '.spec.parts[name="r"].name',
                '.spec.tags[="c"]',
            ],
        },
    ),
    Case(
        "keys with defaults tell elements apart before defaulting",
        WIDGET,
        (
            apply("one", {"spec": {"ports": [{"number": 1, "note": "x"}]}}),
            apply(
                "two",
                {"spec": {"ports": [{"number": 1, "protocol": "TCP", "note": "y"}]}},
                conflict="Apply failed with 1 conflict: "
                'conflict with "one": .spec.ports[number=1,protocol="TCP"].note',
            ),
        ),
        {
            "one Apply": [
                '.spec.ports[number=1,protocol="TCP"]',
                '.spec.ports[number=1,protocol="TCP"].note',
                '.spec.ports[number=1,protocol="TCP"].number',
            ]
        },
    ),
    Case(
        "atomic maps and lists are replaced as a whole",
        WIDGET,
        (
            apply("one", {"spec": {"whole": {"a": "1"}, "plain": ["x"]}}),
            apply("two", {"spec": {"whole": {"b": "2"}, "plain": ["y"]}}, force=True),
        ),
        {"one Apply": None, "two Apply": [".spec.plain", ".spec.whole"]},
        {"spec": {"whole": {"a": None, "b": "2"}, "plain": ["y"]}},
    ),
    Case(
        "keys of a map of objects are members of their own",
        WIDGET,
        (
            apply("one", {"spec": {"rooms": {"red": {"beds": 2}}}}),
            apply("two", {"spec": {"rooms": {"red": {"view": "sea"}, "blue": {"beds": 1}}}}),
            apply("one", {"spec": {"size": 1}}),
        ),
        {
            "one Apply": [".spec.size"],
            "two Apply": [
                ".spec.rooms.blue",
                ".spec.rooms.red",
                ".spec.rooms.blue.beds",
                ".spec.rooms.red.view",
            ],
        },
        {"spec": {"rooms": {"red": {"beds": None, "view": "sea"}, "blue": {"beds": 1}}}},
    ),
    Case(
        "what nothing is declared about merges by field",
        WIDGET,
        (
            apply("one", {"spec": {"free": {"a": {"b": 1}, "list": [1, 2]}}}),
            apply("two", {"spec": {"free": {"a": {"c": True}}}}),
            update("three", {"spec": {"free": {"a": "text"}}}),
        ),
        {"one Apply": [".spec.free.list"], "three Update": [".spec.free.a"]},
    ),
    Case(
        "an empty map and a null are fields, too",
        WIDGET,
        (apply("one", {"spec": {"rooms": {"red": {}}, "tags": []}}),),
        {"one Apply": [".spec.rooms.red"]},
    ),
    Case(
        "the main resource cannot own status, and status nothing else",
        WIDGET,
        (
            apply("one", {"spec": {"size": 1}, "status": {"ready": True}}),
            apply("two", {"spec": {"size": 9}, "status": {"ready": True, "seen": 1}}, subresource="status"),
            patch("three", {"status": {"seen": 2}}, subresource="status"),
        ),
        {
            "one Apply": [".spec.size"],
            "two Apply status": [".status.ready"],
            "three Update status": [".status.seen"],
        },
        {"spec": {"size": 1}, "status": {"ready": True, "seen": 2}},
    ),
    Case(
        "only ten updaters are remembered by name",
        CONFIG_MAP,
        (
            create("m00", {"data": {"m00": "x"}}),
            *(update(f"m{number:02}", {"data": {f"m{number:02}": "x"}}) for number in range(1, 12)),
        ),
        {
            "ancient-changes Update": [".data", ".data.m00", ".data.m01", ".data.m02"],
            "m03 Update": [".data.m03"],
        },
    ),
)


# What each endpoint ignores of what it is sent.
RESET_FIELDS: dict[tuple[str, str], FieldSet] = {
    ("Deployment", ""): {"f:status": {}},
    ("Deployment", "status"): {"f:spec": {}, "f:metadata": {"f:labels": {}}},
    ("Service", ""): {"f:status": {}},
    ("Widget", ""): {"f:status": {}},
    ("Widget", "status"): {"f:metadata": {}, "f:spec": {}},
}


def arguments_for(case: Case, step: Step, now: str = "2030-01-01T00:00:00Z") -> dict[str, Any]:
    """The keyword arguments that `managedfields.update` and `apply` have in common for a step."""
    shape, zero = shape_and_zero(case.resource)
    return {
        "manager": step.manager,
        "api_version": case.resource.api_version,
        "shape": shape,
        "subresource": step.subresource,
        "now": now,
        "reset_fields": RESET_FIELDS.get((case.resource.kind, step.subresource)),
        "zero": zero,
    }


def shape_and_zero(resource: Resource) -> tuple[Shape, Object | None]:
    """The shape of a kind, and its zero value if it is built in."""
    if resource is WIDGET:
        metadata = shape_and_zero(CONFIG_MAP)[0].field("metadata")
        assert metadata
        return structural.shape_for(structural.parse(WIDGET_SCHEMA), metadata), None
    group, _, version = resource.api_version.rpartition("/")
    fact = facts.load().type_for(group, version, resource.kind)
    assert fact
    return facts.shape_for(fact), coerce.coerce({}, fact).object


def assert_outcome(case: Case, live: Object) -> None:
    """The owners and the parts that the case promises."""
    found = {}
    for entry in live["metadata"].get("managedFields", []):
        name = f"{entry['manager']} {entry['operation']} {entry.get('subresource', '')}".strip()
        found[name] = sorted(map(fieldset.show_path, fieldset.paths(entry["fieldsV1"])))
    for name, fields in case.owners.items():
        assert found.get(name) == (None if fields is None else sorted(fields)), name
    assert patches.merge_patch(live, case.result) == live
