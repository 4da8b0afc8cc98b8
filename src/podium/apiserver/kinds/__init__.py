"""Defaults and validation of the built-in kinds: one `Strategy` per kind, one module per family.

`strategy_for` is the only door. A family's module is imported when the first object of one of its kinds
arrives, so that a server that never sees an Ingress never loads the rules for one. A kind that is not
listed gets the rules every object has: those of its metadata.

Start with `base.KindStrategy` (the order of the checks), `metadata` (what every object must satisfy) and
`podtemplate` (what all workloads share).
"""

from __future__ import annotations

from importlib import import_module

from podium.apiserver.strategy import Strategy

# (group, kind) -> module that defines `<Kind>Strategy`.
_MODULES: dict[str, dict[str, tuple[str, ...]]] = {
    "": {
        "pods": ("Pod",),
        "replication": ("ReplicationController", "PodTemplate"),
        "services": ("Service",),
        "configuration": ("ConfigMap", "Secret", "ServiceAccount"),
        "cluster": ("Namespace", "Node"),
        "persistentvolumes": ("PersistentVolume", "PersistentVolumeClaim"),
        "quotas": ("LimitRange", "ResourceQuota"),
        "events": ("Event",),
        "endpoints": ("Endpoints",),
    },
    "events.k8s.io": {"events": ("Event",)},
    "apps": {"apps": ("Deployment", "ReplicaSet", "StatefulSet", "DaemonSet", "ControllerRevision")},
    "batch": {"batch": ("Job", "CronJob")},
    "rbac.authorization.k8s.io": {"rbac": ("Role", "ClusterRole", "RoleBinding", "ClusterRoleBinding")},
    "networking.k8s.io": {"networking": ("Ingress", "IngressClass", "NetworkPolicy")},
    "policy": {"policy": ("PodDisruptionBudget",)},
    "autoscaling": {"autoscaling": ("HorizontalPodAutoscaler",)},
    "storage.k8s.io": {
        "storage": (
            "StorageClass",
            "CSIDriver",
            "CSINode",
            "CSIStorageCapacity",
            "VolumeAttachment",
            "VolumeAttributesClass",
        )
    },
    "scheduling.k8s.io": {"scheduling": ("PriorityClass",)},
    "coordination.k8s.io": {"coordination": ("Lease",)},
    "discovery.k8s.io": {"endpoints": ("EndpointSlice",)},
    "admissionregistration.k8s.io": {
        "admissionregistration": (
            "ValidatingWebhookConfiguration",
            "MutatingWebhookConfiguration",
            "ValidatingAdmissionPolicy",
            "ValidatingAdmissionPolicyBinding",
            "MutatingAdmissionPolicy",
            "MutatingAdmissionPolicyBinding",
        )
    },
    "apiextensions.k8s.io": {"apiextensions": ("CustomResourceDefinition",)},
    "certificates.k8s.io": {"certificates": ("CertificateSigningRequest",)},
    "apiregistration.k8s.io": {"apiregistration": ("APIService",)},
    "node.k8s.io": {"node": ("RuntimeClass",)},
    "flowcontrol.apiserver.k8s.io": {"flowcontrol": ("FlowSchema", "PriorityLevelConfiguration")},
}

# Kinds without rules of their own: whether they are namespaced, and whether they have a status to protect.
_PLAIN: dict[tuple[str, str], tuple[bool, bool]] = {
    ("", "Binding"): (True, False),
    ("certificates.k8s.io", "ClusterTrustBundle"): (False, False),
    ("coordination.k8s.io", "LeaseCandidate"): (True, False),
    ("internal.apiserver.k8s.io", "StorageVersion"): (False, True),
    ("networking.k8s.io", "IPAddress"): (False, False),
    ("networking.k8s.io", "ServiceCIDR"): (False, True),
    ("resource.k8s.io", "DeviceClass"): (False, False),
    ("resource.k8s.io", "ResourceClaim"): (True, True),
    ("resource.k8s.io", "ResourceClaimTemplate"): (True, False),
    ("resource.k8s.io", "ResourceSlice"): (False, False),
}

_strategies: dict[tuple[str, str], Strategy] = {}


def strategy_for(group: str, kind: str) -> Strategy:
    """The rules of one built-in kind; the same object at every call."""
    found = _strategies.get((group, kind))
    if found is None:
        found = _strategies[group, kind] = _load(group, kind)
    return found


def covered_kinds() -> list[tuple[str, str]]:
    """Every (group, kind) with rules of its own."""
    return [
        (group, kind) for group, modules in _MODULES.items() for kinds in modules.values() for kind in kinds
    ]


def _load(group: str, kind: str) -> Strategy:
    for module, kinds in _MODULES.get(group, {}).items():
        if kind in kinds:
            loaded = getattr(import_module(f"{__name__}.{module}"), f"{kind}Strategy")()
            assert isinstance(loaded, Strategy)
            return loaded
    from podium.apiserver.kinds.base import PlainStrategy

    namespaced, has_status = _PLAIN.get((group, kind), (None, False))
    return PlainStrategy(namespaced, has_status)
