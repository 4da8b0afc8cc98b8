"""Mends references after objects were renamed or moved to another namespace.

Each rule says which kind of object refers to which other kind, and where. A reference follows the one object
that was ever called so; if layers gave several objects that former name, the one with the same prefixes and
suffixes as the referring object is meant, and if that does not decide it, the author is told.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from podium.api.kinds import Object
from podium.bundle.authored import Authored
from podium.bundle.overlay.errors import OverlayError
from podium.bundle.overlay.fields import POD_SPECS, Path, at

# Where a pod's spec names other objects; the last key holds the name.
_IN_PODS: Mapping[str, tuple[Path, ...]] = {
    "ConfigMap": (
        ("volumes", "configMap", "name"),
        ("volumes", "projected", "sources", "configMap", "name"),
        *(
            (containers, *rest, "name")
            for containers in ("containers", "initContainers")
            for rest in (("env", "valueFrom", "configMapKeyRef"), ("envFrom", "configMapRef"))
        ),
    ),
    "Secret": (
        ("volumes", "secret", "secretName"),
        ("volumes", "projected", "sources", "secret", "name"),
        ("imagePullSecrets", "name"),
        *(
            (containers, *rest, "name")
            for containers in ("containers", "initContainers")
            for rest in (("env", "valueFrom", "secretKeyRef"), ("envFrom", "secretRef"))
        ),
    ),
    "ServiceAccount": (("serviceAccountName",), ("serviceAccount",)),
    "PersistentVolumeClaim": (("volumes", "persistentVolumeClaim", "claimName"),),
    "PriorityClass": (("priorityClassName",),),
}

_WEBHOOKS: Path = ("webhooks", "clientConfig", "service")
_CONVERSION: Path = ("spec", "conversion", "webhook", "clientConfig", "service")

# Referring kind, and the path to a name.
_NAMES: Mapping[str, tuple[tuple[str, Path], ...]] = {
    "Secret": (
        ("ServiceAccount", ("imagePullSecrets", "name")),
        ("ServiceAccount", ("secrets", "name")),
        ("Ingress", ("spec", "tls", "secretName")),
    ),
    "Service": (
        ("StatefulSet", ("spec", "serviceName")),
        ("Ingress", ("spec", "rules", "http", "paths", "backend", "service", "name")),
        ("Ingress", ("spec", "defaultBackend", "service", "name")),
        ("APIService", ("spec", "service", "name")),
    ),
    "Role": (("RoleBinding", ("roleRef", "name")),),
    "ClusterRole": (("RoleBinding", ("roleRef", "name")), ("ClusterRoleBinding", ("roleRef", "name"))),
    "PersistentVolume": (("PersistentVolumeClaim", ("spec", "volumeName")),),
    "StorageClass": (
        ("PersistentVolume", ("spec", "storageClassName")),
        ("PersistentVolumeClaim", ("spec", "storageClassName")),
        ("StatefulSet", ("spec", "volumeClaimTemplates", "spec", "storageClassName")),
    ),
    "IngressClass": (("Ingress", ("spec", "ingressClassName")),),
    "ValidatingAdmissionPolicy": (("ValidatingAdmissionPolicyBinding", ("spec", "policyName")),),
    **dict.fromkeys(
        ("Deployment", "ReplicationController", "ReplicaSet", "StatefulSet"),
        (("HorizontalPodAutoscaler", ("spec", "scaleTargetRef", "name")),),
    ),
}

# Referring kind, and the path to a mapping that has a name and a namespace.
_PAIRS: Mapping[str, tuple[tuple[str, Path], ...]] = {
    "Service": (
        ("ValidatingWebhookConfiguration", _WEBHOOKS),
        ("MutatingWebhookConfiguration", _WEBHOOKS),
        ("CustomResourceDefinition", _CONVERSION),
    ),
    "ServiceAccount": (("RoleBinding", ("subjects",)), ("ClusterRoleBinding", ("subjects",))),
}

# Resources whose objects a rule can name, by kind.
_RESOURCES = {
    "ConfigMap": "configmaps",
    "Secret": "secrets",
    "Service": "services",
    "ServiceAccount": "serviceaccounts",
    "Deployment": "deployments",
    "PersistentVolume": "persistentvolumes",
    "PersistentVolumeClaim": "persistentvolumeclaims",
    "Role": "roles",
    "ClusterRole": "clusterroles",
    "RoleBinding": "rolebindings",
    "ClusterRoleBinding": "clusterrolebindings",
    "ValidatingWebhookConfiguration": "validatingwebhookconfigurations",
    "MutatingWebhookConfiguration": "mutatingwebhookconfigurations",
}
_CLUSTER_WIDE = {
    "ClusterRole",
    "ClusterRoleBinding",
    "PriorityClass",
    "StorageClass",
    "PersistentVolume",
    "IngressClass",
    "CustomResourceDefinition",
    "APIService",
    "ValidatingWebhookConfiguration",
    "MutatingWebhookConfiguration",
    "ValidatingAdmissionPolicy",
    "ValidatingAdmissionPolicyBinding",
}


@dataclass(frozen=True, slots=True)
class Reference:
    """One place that names an object of a kind: the mapping (or list) that holds the name, and its key."""

    kind: str
    holder: Any
    key: Any
    paired: bool = False  # the holder also has the object's namespace

    @property
    def name(self) -> str:
        """The name that is written there."""
        return str(self.holder[self.key])


def resolve(objects: Sequence[Authored], extra: Iterable[tuple[str, str, Path]] = ()) -> list[Authored]:
    """The objects, references to renamed ones mended; `extra` adds rules (target, referrer, path)."""
    by_name: dict[tuple[str, str], list[Authored]] = {}
    for item in objects:
        for name in {key.name for key in item.former}:
            by_name.setdefault((item.kind, name), []).append(item)
    if by_name:
        for item in objects:
            for reference in references(item.object, extra):
                found = _meant(item, reference, by_name.get((reference.kind, reference.name), ()))
                if found is not None:
                    _mend(reference, found)
    return list(objects)


def references(obj: Object, extra: Iterable[tuple[str, str, Path]] = ()) -> Iterator[Reference]:
    """Every place in an object that names another one."""
    kind = str(obj.get("kind"))
    if kind in POD_SPECS:
        for pods in at(obj, POD_SPECS[kind]):
            for target, paths in _IN_PODS.items():
                for path in paths:
                    yield from _named(target, pods, path)
    for target, rules in _NAMES.items():
        for referrer, path in rules:
            if referrer == kind and _is_for(obj, target):
                yield from _named(target, obj, path)
    for target, rules in _PAIRS.items():
        for referrer, path in rules:
            if referrer == kind:
                for holder in at(obj, path):
                    if isinstance(holder, dict) and _is_account(holder, target):
                        yield from _named(target, holder, ("name",), paired=True)
    if kind in ("Role", "ClusterRole"):
        yield from _resource_names(obj)
    for target, referrer, path in extra:
        if referrer == kind:
            yield from _named(target, obj, path)


def _named(target: str, value: Any, path: Path, *, paired: bool = False) -> Iterator[Reference]:
    for holder in at(value, path[:-1]):
        if isinstance(holder, dict) and isinstance(holder.get(path[-1]), str):
            yield Reference(target, holder, path[-1], paired)


def _is_for(obj: Object, target: str) -> bool:
    """Whether a reference that says its kind means this one."""
    for path in (("roleRef",), ("spec", "scaleTargetRef")):
        for reference in at(obj, path):
            if isinstance(reference, dict) and "kind" in reference:
                return bool(reference["kind"] == target)
    return True


def _is_account(holder: Object, target: str) -> bool:
    return target != "ServiceAccount" or holder.get("kind") == "ServiceAccount"


def _resource_names(obj: Object) -> Iterator[Reference]:
    for rule in at(obj, ("rules",)):
        names = rule.get("resourceNames") if isinstance(rule, dict) else None
        resources = rule.get("resources") if isinstance(rule, dict) else None
        if not isinstance(names, list) or not isinstance(resources, list):
            continue
        plain = {str(resource).partition("/")[0] for resource in resources}
        for kind, plural in _RESOURCES.items():
            if plural in plain:
                for index, name in enumerate(names):
                    if isinstance(name, str):
                        yield Reference(kind, names, index)


def _meant(referrer: Authored, reference: Reference, candidates: Sequence[Authored]) -> Authored | None:
    wanted = _same_namespace(referrer, reference)
    found = [item for item in candidates if wanted(item)]
    if len(found) > 1:
        found = [i for i in found if not i.affixes or not referrer.affixes or i.affixes == referrer.affixes]
    if len(found) > 1:
        found = [item for item in found if item.affixes == referrer.affixes] or found
    if len({(item.namespace if reference.paired else "", item.name) for item in found}) > 1:
        names = ", ".join(sorted(item.title for item in found))
        raise OverlayError(
            f"{referrer.title} refers to {reference.kind} {reference.name}, which may now be any of {names}; "
            "give the originals different names",
            referrer.place,
        )
    return found[0] if found else None


def _same_namespace(referrer: Authored, reference: Reference) -> Callable[[Authored], bool]:
    if reference.paired:
        namespace = reference.holder.get("namespace")
        if not namespace:
            return lambda item: True
        return lambda item: namespace in (item.namespace, *(key.namespace for key in item.former))
    if referrer.kind in _CLUSTER_WIDE or reference.kind in _CLUSTER_WIDE:
        return lambda item: True
    return lambda item: item.namespace == referrer.namespace


def _mend(reference: Reference, target: Authored) -> None:
    reference.holder[reference.key] = target.name
    if reference.paired and target.namespace:
        reference.holder["namespace"] = target.namespace
