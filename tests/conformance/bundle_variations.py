"""Bundles and options made by dice: mostly sound, sometimes broken, now and then of a wrong type somewhere.

The same seed gives the same bundle, so that a difference can be looked at again. Values are drawn from small
pools on purpose: names that clash, ports that are equal and paths that overlap are where conversion has its
rules.
"""

from __future__ import annotations

import base64
import copy
import json
import random
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

Object = dict[str, Any]

_LONG = "a-rather-long-name-for-a-deployment-that-still-fits-somewhere"
_NAMES = ("manager", "web", "a.b.c", _LONG, _LONG[:55], _LONG[:56], _LONG[:57], f"{_LONG}.{_LONG}")
_BAD_NAMES = ("Upper", "under_score", "-dash", "x" * 254, "")
_CRDS = ("ones.example.com", "twos.example.com", "threes.example.com")
_MODES = ("AllNamespaces", "OwnNamespace", "SingleNamespace", "MultiNamespace")
_HOOKS = ("ValidatingAdmissionWebhook", "MutatingAdmissionWebhook", "ConversionWebhook")
_TEXTS = ("plain", "a<b>&c", "ümläut", "line\u2028break", 'quo"te', "tab\there", "0", "")
_KINDS = (
    "ConfigMap", "Secret", "Service", "ServiceAccount", "Role", "ClusterRole", "ClusterRoleBinding",
    "NetworkPolicy", "PodDisruptionBudget", "PriorityClass", "PrometheusRule", "ServiceMonitor", "PodMonitor",
    "ConsoleLink", "ConsolePlugin", "VerticalPodAutoscaler",
)  # fmt: skip
_WRONG: tuple[Any, ...] = (5, 1.5, "text", True, [], {}, None, ["x"], {"x": "y"}, -1, [None])


@dataclass(frozen=True, slots=True)
class Variation:
    """A bundle's files, and how it is to be installed."""

    files: dict[str, bytes]
    namespace: str
    watched: list[str] | None
    certificates: str
    config: Object | None

    def question(self) -> Object:
        """What the converter in Go is asked."""
        return {
            "files": {path: base64.b64encode(data).decode() for path, data in self.files.items()},
            "installNamespace": self.namespace,
            "watchNamespaces": self.watched,
            "certificates": self.certificates,
            "deploymentConfig": self.config,
        }


def variation(seed: int) -> Variation:
    """The bundle and options of this number."""
    return _Dice(seed).variation()


def options(seed: int) -> tuple[str, list[str] | None, str, Object | None]:
    """Namespace, watched namespaces, certificates and overrides, for a bundle that is there already."""
    return _Dice(seed).options()


class _Dice(random.Random):
    def __init__(self, seed: int) -> None:
        super().__init__(seed)
        self.careful = self.random() < 0.7  # such a bundle breaks no rule on purpose
        self.modes: list[str] = []
        self.hooks = 0

    def odd(self, chance: float) -> bool:
        """Whether to break a rule here."""
        return self.random() < chance and not self.careful

    def maybe(self, make: Callable[[], Any], chance: float = 0.5) -> Any:
        return make() if self.random() < chance else None

    def some(self, make: Callable[[], Any], most: int) -> list[Any]:
        return [make() for _ in range(self.randint(0, most))]

    def fields(self, makers: dict[str, Callable[[], Any]], chance: float = 0.5) -> Object:
        """Each field or none; null is as good as none, but not always the same."""
        made = {name: make() for name, make in makers.items() if self.random() < chance}
        return {name: value for name, value in made.items() if value is not None or self.random() < 0.1}

    def variation(self) -> Variation:
        csv = self.csv()
        objects = [self.crd(name) for name in self.crds()] + self.some(self.other, 3)
        if self.odd(0.5):
            self.distort(self.choice([csv, *(obj for obj in objects if obj["kind"] != "List")]))
        files = {f"manifests/{n}.yaml": json.dumps(obj).encode() for n, obj in enumerate(objects)}
        files["manifests/csv.yaml"] = json.dumps(csv).encode()
        package = "" if self.odd(0.1) else "package"
        annotations = {"operators.operatorframework.io.bundle.package.v1": package}
        files["metadata/annotations.yaml"] = json.dumps({"annotations": annotations}).encode()
        if properties := self.maybe(self.properties, 0.2):
            files["metadata/properties.yaml"] = properties
        return Variation(files, *self.options())

    def options(self) -> tuple[str, list[str] | None, str, Object | None]:
        several = ["here", "far"] if "OwnNamespace" in self.modes else ["there", "far"]
        asked = {
            "AllNamespaces": self.choice((None, [], [""])),
            "OwnNamespace": ["here"],
            "SingleNamespace": ["there"],
            "MultiNamespace": several,
        }
        watched = asked[self.choice(self.modes)] if self.modes else None
        if self.odd(0.5):
            watched = self.choice(
                (None, [""], ["here"], ["there"], ["there", "far"], ["here", "far"], ["", "far"])
            )
        return "here", watched, self.choice(("", "cert-manager", "service-ca")), self.maybe(self.config)

    def name(self) -> str:
        return self.choice(_BAD_NAMES if self.odd(0.1) else _NAMES)

    def text(self) -> str:
        return self.choice(_TEXTS)

    def texts(self) -> list[str]:
        return self.some(self.text, 3)

    def labels(self) -> dict[str, str]:
        return {self.choice("abc"): self.text() for _ in range(self.randint(0, 2))}

    def csv(self) -> Object:
        names = self.some(self.name, 3)
        if not self.odd(0.3):
            names = list(dict.fromkeys(names))
        hooks = self.some(lambda: self.webhook(names), 4) if names and self.random() < 0.6 else []
        converts = any(hook["type"] == "ConversionWebhook" for hook in hooks)
        supported = [mode for mode in _MODES if self.random() < 0.5] or [self.choice(_MODES)]
        if converts and not self.odd(0.3):
            supported = ["AllNamespaces"]
        self.modes = supported
        modes = [{"type": mode, "supported": mode in supported} for mode in _MODES]
        strategy = {
            "deployments": [self.deployment(name) for name in names],
            **self.fields(
                {
                    "permissions": lambda: self.some(self.permission, 3),
                    "clusterPermissions": lambda: self.some(self.permission, 2),
                },
                0.8,
            ),
        }
        return {
            "apiVersion": "operators.coreos.com/v1alpha1",
            "kind": "ClusterServiceVersion",
            "metadata": {
                "name": self.choice(("op.v1.2.3", "o", f"{_LONG}.v1.2.3", "öp.v1")),
                **self.fields({"annotations": self.csv_annotations, "namespace": lambda: "placeholder"}),
            },
            "spec": {
                "version": "1.2.3",
                "displayName": "An operator",
                "unknown": {"field": 1},
                "installModes": modes,
                "install": {"strategy": "deployment", "spec": strategy},
                "customresourcedefinitions": {
                    "owned": [{"name": n, "kind": "K", "version": "v1"} for n in self.crds()]
                },
                "webhookdefinitions": hooks,
                **self.fields(
                    {"keywords": self.texts, "relatedImages": lambda: [{"name": "n", "image": "i"}]}
                ),
            },
        }

    def csv_annotations(self) -> dict[str, str]:
        listed = self.choice(('[{"value": {"b": 1.0, "a": "<"}, "type": "t"}]', "[]", "null", "[ {} ]"))
        if self.odd(0.2):
            listed = "{"
        kept: Object = {"olm.properties": listed} if self.random() < 0.2 else {}
        return kept | {"olm.targetNamespaces": "gone", "shared": "csv"} | self.labels()

    def properties(self) -> bytes:
        sound = (b"properties:\n- type: a\n  value:\n    z: 1\n    b: <x>\n", b"{}", b"properties: []")
        return b"no" if self.odd(0.2) else self.choice(sound)

    def crds(self) -> list[str]:
        return [self.choice(_CRDS) for _ in range(self.randint(0, 3))] if self.odd(0.2) else list(_CRDS)

    def permission(self) -> Object:
        account = self.choice(("", "default", "manager", "manager", "other", _LONG))
        return self.fields(
            {"serviceAccountName": lambda: account, "rules": lambda: self.some(self.rule, 3)}, 0.9
        )

    def rule(self) -> Object:
        verbs = self.choice((["get"], ["*"], ["list", "watch"], [], None))
        return self.fields({"verbs": lambda: verbs}, 0.95) | self.fields(
            {
                "nonResourceURLs": lambda: ["/metrics?a=<b>&c"],
                "resourceNames": self.texts,
                "resources": lambda: ["pods", "*"],
                "apiGroups": lambda: ["", "apps", self.text()],
            }
        )

    def deployment(self, name: str) -> Object:
        return {"name": name, "spec": self.deployment_spec(), **self.fields({"label": self.labels})}

    def deployment_spec(self) -> Object:
        pod = {"containers": self.some(self.container, 2)} | self.fields(
            {
                "volumes": lambda: self.some(self.volume, 3),
                "tolerations": lambda: self.some(self.toleration, 2),
                "affinity": self.affinity,
                "nodeSelector": self.labels,
                "serviceAccountName": lambda: "manager",
                "terminationGracePeriodSeconds": lambda: 10,
                "initContainers": lambda: self.some(self.container, 1),
                "unknownField": lambda: [1],
            }
        )
        template = {"spec": pod} | self.fields(
            {"metadata": lambda: self.fields({"annotations": self.labels, "labels": self.labels}, 0.7)}, 0.8
        )
        return {"template": template} | self.fields(
            {
                "replicas": lambda: 1,
                "revisionHistoryLimit": lambda: 7,
                "strategy": lambda: {"type": "Recreate"},
                "selector": lambda: {"matchLabels": self.labels()},
            },
            0.7,
        )

    def container(self) -> Object:
        return {"name": self.choice("xyz")} | self.fields(
            {
                "image": self.text,
                "env": lambda: self.some(self.variable, 3),
                "envFrom": lambda: self.some(self.variable_source, 2),
                "volumeMounts": lambda: self.some(self.mount, 3),
                "resources": self.resources,
                "ports": lambda: [{"containerPort": 80, "name": "http"}],
                "livenessProbe": lambda: {"httpGet": {"port": self.choice((80, "http")), "path": "/"}},
                "securityContext": lambda: {"capabilities": {"drop": ["ALL"]}},
            }
        )

    def variable(self) -> Object:
        source = {"fieldRef": {"fieldPath": "metadata.annotations['olm.targetNamespaces']"}}
        return {"name": self.choice("ABC")} | self.fields(
            {"value": self.text, "valueFrom": lambda: source}, 0.4
        )

    def variable_source(self) -> Object:
        return self.fields(
            {
                "prefix": self.text,
                "configMapRef": lambda: {"name": self.choice("mn")},
                "secretRef": dict,
            },
            0.4,
        )

    def volume(self) -> Object:
        name = self.choice(("webhook-cert", "apiservice-cert", "v", "w", "cert"))
        source: Object = self.choice(
            (
                {"emptyDir": {}},
                {"secret": {"secretName": "s", "defaultMode": 420}},
                {"configMap": {"name": "c", "items": []}},
                {"projected": {"sources": []}},
                {},
            )
        )
        return {"name": name, **source}

    def mount(self) -> Object:
        paths = (
            "/tmp/k8s-webhook-server/serving-certs",
            "/apiserver.local.config/certificates",
            "/data",
            "/tmp",
        )
        name = self.choice(("webhook-cert", "v", "w", "cert"))
        return {"name": name, "mountPath": self.choice(paths)} | self.fields({"readOnly": lambda: True}, 0.3)

    def toleration(self) -> Object:
        return self.fields(
            {"key": self.text, "operator": lambda: "Exists", "tolerationSeconds": lambda: 0}, 0.5
        )

    def resources(self) -> Object:
        amount = self.choice(("100m", "0.1", 1, 0.5, "1024Mi", "1Gi", "1e3", "1000000k"))
        return self.fields(
            {"limits": lambda: {"cpu": amount}, "requests": lambda: {"memory": amount}, "claims": list}
        )

    def affinity(self) -> Object:
        term = {"topologyKey": "zone", "labelSelector": {"matchLabels": self.labels()}}
        required, preferred = (
            "requiredDuringSchedulingIgnoredDuringExecution",
            "preferredDuringSchedulingIgnoredDuringExecution",
        )
        expressions = {"matchExpressions": [{"key": "os", "operator": "In", "values": ["linux"]}]}
        terms = self.choice(([], [expressions]))
        pods = {
            required: lambda: self.choice(([], [term])),
            preferred: lambda: [{"weight": 1, "podAffinityTerm": term}],
        }
        nodes = {
            required: lambda: {"nodeSelectorTerms": terms},
            preferred: lambda: [{"weight": 1, "preference": {}}],
        }
        return self.fields(
            {
                "nodeAffinity": lambda: self.fields(nodes, 0.4),
                "podAffinity": lambda: self.fields(pods, 0.4),
                "podAntiAffinity": lambda: self.fields(pods, 0.4),
            }
        )

    def webhook(self, deployments: list[str]) -> Object:
        self.hooks += 1
        name = f"hook-{self.hooks}.example.com"
        required = {
            "type": "OtherWebhook" if self.odd(0.05) else self.choice(_HOOKS),
            "deploymentName": "absent" if self.odd(0.1) else self.choice(deployments),
            "generateName": self.choice(("hook-1.example.com", f"{name}-", "Bad_", ""))
            if self.odd(0.2)
            else name,
        }
        crds = [_CRDS[(self.hooks - 1) % len(_CRDS)]] if self.hooks <= len(_CRDS) else []
        if self.odd(0.3):
            crds = self.choice(([_CRDS[0]], list(_CRDS[:2]), ["absent.example.com"], [_CRDS[2]] * 2))
        return required | self.fields(
            {
                "containerPort": lambda: self.choice((0, 443, 8443, 9443)),
                "targetPort": lambda: self.choice((0, 443, "443", 9443, "9443", "https", "-1")),
                "rules": lambda: self.some(self.hook_rule, 2),
                "failurePolicy": lambda: self.choice(("Fail", "Ignore", "")),
                "matchPolicy": lambda: "Exact",
                "objectSelector": lambda: self.choice(({}, {"matchLabels": {"a": "b"}})),
                "sideEffects": lambda: "None",
                "timeoutSeconds": lambda: self.choice((0, 10)),
                "admissionReviewVersions": lambda: self.choice((["v1"], [], None)),
                "reinvocationPolicy": lambda: "IfNeeded",
                "webhookPath": lambda: self.choice(("", "/validate", "/convert")),
                "conversionCRDs": lambda: crds,
            },
            0.7,
        )

    def hook_rule(self) -> Object:
        group = self.choice(("apps", "", "example.com", "admissionregistration.k8s.io"))
        resources = self.choice((["pods"], ["pods", "x"]))
        if self.odd(0.3):
            group = self.choice(("*", "olm.operatorframework.io", "admissionregistration.k8s.io"))
            resources = self.choice(
                (["ValidatingWebhookConfigurations", "x"], ["*"], ["mutatingwebhookconfiguration"])
            )
        return self.fields(
            {
                "apiGroups": lambda: [group],
                "apiVersions": lambda: ["v1"],
                "operations": lambda: ["CREATE"],
                "resources": lambda: resources,
                "scope": lambda: "Namespaced",
            },
            0.9,
        )

    def crd(self, name: str) -> Object:
        schema = {
            "type": "object",
            "properties": {"size": {"type": "integer", "minimum": 1.0, "default": 3, "enum": [1, 3]}},
            "x-kubernetes-preserve-unknown-fields": True,
            "additionalProperties": self.choice((True, {"type": "string"})),
        }
        version = {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}
        return {
            "apiVersion": self.choice(
                ("apiextensions.k8s.io/v1", "apiextensions.k8s.io/v1", "apiextensions.k8s.io/v1beta1")
            ),
            "kind": "CustomResourceDefinition",
            "metadata": {
                "name": name,
                **self.fields({"annotations": self.labels, "creationTimestamp": lambda: None}),
            },
            "spec": {
                "group": "example.com",
                "names": {"kind": "K", "plural": name.partition(".")[0]},
                "scope": "Namespaced",
                "versions": [version],
                **self.fields(
                    {
                        "preserveUnknownFields": lambda: self.odd(0.3),
                        "conversion": lambda: {"strategy": "None"},
                    },
                    0.3,
                ),
            },
        }

    def other(self) -> Object:
        kind = "Deployment" if self.odd(0.1) else self.choice(_KINDS)
        metadata = {"name": self.name()} | self.fields(
            {"namespace": lambda: "elsewhere", "labels": self.labels}
        )
        obj: Object = {"apiVersion": "v1", "kind": kind} | self.fields(
            {"data": self.labels, "spec": lambda: {"n": 1.0, "m": None}}
        )
        if self.random() < 0.97:
            obj["metadata"] = metadata
        if self.random() < 0.9:
            return obj
        return {"apiVersion": "v1", "kind": "List", "items": [obj, copy.deepcopy(obj)]}

    def config(self) -> Object:
        return self.fields(
            {
                "selector": lambda: {"matchLabels": {"a": "b"}},
                "nodeSelector": self.labels,
                "tolerations": lambda: self.some(self.toleration, 2),
                "resources": self.resources,
                "env": lambda: self.some(self.variable, 3),
                "envFrom": lambda: self.some(self.variable_source, 2),
                "volumes": lambda: self.some(self.volume, 2),
                "volumeMounts": lambda: self.some(self.mount, 2),
                "affinity": self.affinity,
                "annotations": self.labels,
            }
        )

    def distort(self, obj: Object) -> None:
        """Put a value of some other type somewhere below the object's top."""
        places: list[tuple[Any, Any]] = []
        pending: list[Any] = [value for key, value in obj.items() if key not in ("apiVersion", "kind")]
        while pending:
            value = pending.pop()
            keys = (
                list(value)
                if isinstance(value, dict)
                else range(len(value))
                if isinstance(value, list)
                else ()
            )
            places += [(value, key) for key in keys]
            pending += [value[key] for key in keys]
        if places:
            holder, key = self.choice(places)
            holder[key] = copy.deepcopy(self.choice(_WRONG))
