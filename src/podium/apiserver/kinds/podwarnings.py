"""Advice about Pods that are valid but will not do what their writer thinks."""

from __future__ import annotations

from podium.api import names
from podium.api.kinds import Object
from podium.apiserver.kinds import addresses, quantities
from podium.apiserver.kinds.podtemplate import containers_with_paths
from podium.apiserver.kinds.pvcspec import warn_claim_spec

_NODE_LABELS = {
    "app.kubernetes.io/created-by": "deprecated since v1.9",
    "scheduler.alpha.kubernetes.io/preferAvoidPods": (
        "deprecated since v1.22; use Taints and Tolerations instead"
    ),
    "node-role.kubernetes.io/master": 'use "node-role.kubernetes.io/control-plane" instead',
} | {
    old: f'deprecated since {since}; use "{new}" instead'
    for old, since, new in (
        ("beta.kubernetes.io/arch", "v1.14", "kubernetes.io/arch"),
        ("beta.kubernetes.io/os", "v1.14", "kubernetes.io/os"),
        ("failure-domain.beta.kubernetes.io/region", "v1.17", "topology.kubernetes.io/region"),
        ("failure-domain.beta.kubernetes.io/zone", "v1.17", "topology.kubernetes.io/zone"),
        ("beta.kubernetes.io/instance-type", "v1.17", "node.kubernetes.io/instance-type"),
    )
}
_ANNOTATIONS = {
    old: f'non-functional in {since}; use the "{field}" field instead'
    for old, since, field in (
        ("scheduler.alpha.kubernetes.io/critical-pod", "v1.16+", "priorityClassName"),
        ("security.alpha.kubernetes.io/sysctls", "v1.11+", "sysctls"),
        ("security.alpha.kubernetes.io/unsafe-sysctls", "v1.11+", "sysctls"),
    )
}
_VOLUMES = {
    "photonPersistentDisk": ("photonPersistentDisk", "deprecated in v1.11, non-functional in v1.16+"),
    "gitRepo": ("gitRepo", "deprecated in v1.11, and disabled by default in v1.33+"),
    "scaleIO": ("scaleIO", "deprecated in v1.16, non-functional in v1.22+"),
    "flocker": ("flocker", "deprecated in v1.22, non-functional in v1.25+"),
    "storageos": ("storageOS", "deprecated in v1.22, non-functional in v1.25+"),
    "quobyte": ("quobyte", "deprecated in v1.22, non-functional in v1.25+"),
    "glusterfs": ("glusterfs", "deprecated in v1.25, non-functional in v1.26+"),
    "cephfs": ("cephfs", "deprecated in v1.28, non-functional in v1.31+"),
    "rbd": ("rbd", "deprecated in v1.28, non-functional in v1.31+"),
}
_REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
_PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"
_SECCOMP = 'non-functional in v1.27+; use the "seccompProfile" field instead'
_SECCOMP_POD = "seccomp.security.alpha.kubernetes.io/pod"
_SECCOMP_CONTAINER = "container.seccomp.security.alpha.kubernetes.io/"


def name_warning(name: str, used_in: str) -> list[str]:
    """Advice about a name that is not a DNS label where it ends up in host names."""
    problems = names.dns_label(name)
    if not problems:
        return []
    text = f"this is used in {used_in}, which can result in surprising behavior; a DNS label is recommended"
    return [f"metadata.name: {text}: [{' '.join(problems)}]"]


def warn_pod(path: str, holder: Object) -> list[str]:
    """Advice about a Pod (`path` is empty) or a Pod template (`path` is where it stands)."""
    dot = f"{path}." if path else ""
    spec_path, spec = f"{dot}spec", holder.get("spec") or {}
    annotations = (holder.get("metadata") or {}).get("annotations") or {}
    found = _placement(spec_path, spec)
    for key, text in _ANNOTATIONS.items():
        if key in annotations:
            found.append(f"{dot}metadata.annotations[{key}]: {text}")
    found += _volumes(spec_path, spec)
    found += _duplicates(f"{spec_path}.hostAliases", spec.get("hostAliases") or [], "ip")
    found += _duplicates(f"{spec_path}.imagePullSecrets", spec.get("imagePullSecrets") or [], "name")
    for i, secret in enumerate(spec.get("imagePullSecrets") or ()):
        if not secret.get("name"):
            found.append(f'{spec_path}.imagePullSecrets[{i}].name: invalid empty name ""')
    if _SECCOMP_POD in annotations and not (spec.get("securityContext") or {}).get("seccompProfile"):
        found.append(f"{dot}metadata.annotations[{_SECCOMP_POD}]: {_SECCOMP}")
    for here, container in containers_with_paths(spec_path, spec):
        key = f"{_SECCOMP_CONTAINER}{container.get('name') or ''}"
        if key in annotations and not (container.get("securityContext") or {}).get("seccompProfile"):
            found.append(f"{dot}metadata.annotations[{key}]: {_SECCOMP}")
        found += _fractional_bytes(here, container) + _hidden_env(f"{here}.env", container.get("env") or [])
    found += _ports(spec_path, spec)
    if (spec.get("terminationGracePeriodSeconds") or 0) < 0:
        text = "must be >= 0; negative values are invalid and will be treated as 1"
        found.append(f"{spec_path}.terminationGracePeriodSeconds: {text}")
    found += _pod_affinity(f"{spec_path}.affinity", spec.get("affinity") or {})
    for i, server in enumerate((spec.get("dnsConfig") or {}).get("nameservers") or ()):
        found += addresses.warn_ip(f"{spec_path}.dnsConfig.nameservers[{i}]", server)
    for i, alias in enumerate(spec.get("hostAliases") or ()):
        found += addresses.warn_ip(f"{spec_path}.hostAliases[{i}].ip", alias.get("ip") or "")
    return found


def warn_node_term(path: str, term: Object, *, check_values: bool = False) -> list[str]:
    """Advice about node labels that have newer names."""
    found: list[str] = []
    for i, expression in enumerate(term.get("matchExpressions") or ()):
        key = expression.get("key") or ""
        if key in _NODE_LABELS:
            found.append(f"{path}.matchExpressions[{i}].key: {key} is {_NODE_LABELS[key]}")
        if check_values:
            for j, value in enumerate(expression.get("values") or ()):
                where = f"{path}.matchExpressions[{i}].values[{j}]"
                found += [f"{where}: {value} is invalid, {text}" for text in names.label_value(value)]
    return found


def warn_node_selector(path: str, selector: Object) -> list[str]:
    return [f"{path}[{key}]: {_NODE_LABELS[key]}" for key in selector if key in _NODE_LABELS]


def deprecated_node_labels(selector: Object) -> list[str]:
    """The advice for each label of a selector that has a newer name, without a path."""
    return [_NODE_LABELS[key] for key in selector if key in _NODE_LABELS]


def _placement(path: str, spec: Object) -> list[str]:
    found = warn_node_selector(f"{path}.nodeSelector", spec.get("nodeSelector") or {})
    if node := (spec.get("affinity") or {}).get("nodeAffinity"):
        here = f"{path}.affinity.nodeAffinity"
        for i, term in enumerate((node.get(_REQUIRED) or {}).get("nodeSelectorTerms") or ()):
            found += warn_node_term(f"{here}.{_REQUIRED}.nodeSelectorTerms[{i}]", term)
        for i, term in enumerate(node.get(_PREFERRED) or ()):
            where = f"{here}.{_PREFERRED}[{i}].preference"
            found += warn_node_term(where, term.get("preference") or {}, check_values=True)
    for i, constraint in enumerate(spec.get("topologySpreadConstraints") or ()):
        here, key = f"{path}.topologySpreadConstraints[{i}]", constraint.get("topologyKey") or ""
        if key in _NODE_LABELS:
            found.append(f"{here}.topologyKey: {key} is {_NODE_LABELS[key]}")
        if constraint.get("labelSelector") is None:
            found.append(f"{here}.labelSelector: a null labelSelector results in matching no pod")
    return found


def _volumes(path: str, spec: Object) -> list[str]:
    found: list[str] = []
    for i, volume in enumerate(spec.get("volumes") or ()):
        here = f"{path}.volumes[{i}]"
        for field, (shown, text) in _VOLUMES.items():
            if volume.get(field) is not None:
                found.append(f"{here}.{shown}: {text}")
        if template := (volume.get("ephemeral") or {}).get("volumeClaimTemplate"):
            found += warn_claim_spec(f"{here}.ephemeral.volumeClaimTemplate.spec", template.get("spec") or {})
    for volume in spec.get("volumes") or ():
        found += _overlaps(volume)
    return found


def _overlaps(volume: Object) -> list[str]:
    sources: list[tuple[str, list[tuple[str, str]]]] = []
    for field, shown in (("configMap", "ConfigMap"), ("secret", "Secret"), ("downwardAPI", "DownwardAPI")):
        if source := volume.get(field):
            name = source.get("secretName") if field == "secret" else source.get("name")
            title = shown if field == "downwardAPI" else f'{shown} "{name}"'
            sources.append((title, [(item.get("path") or "", "") for item in source.get("items") or ()]))
    if projected := volume.get("projected"):
        sources.append(("Projected", _projected_paths(projected)))
    found = [
        f'volume "{volume.get("name")}" (Projected) has no sources provided'
        for source in (volume.get("projected") or {}).get("sources") or ()
        if not source
    ]
    for title, paths in sources:
        seen: list[tuple[str, str]] = []
        for path, origin in paths:
            path = path.rstrip("/")
            for other in seen:
                if path and other[0] and _nested(path, other[0]):
                    overlap = f"{_shown(path, origin)} with {_shown(*other)}"
                    found.append(f'volume "{volume.get("name")}" ({title}): overlapping paths: {overlap}')
            seen.append((path, origin))
    return found


def _projected_paths(projected: Object) -> list[tuple[str, str]]:
    paths: list[tuple[str, str]] = []
    for source in projected.get("sources") or ():
        for field, shown in (
            ("configMap", "ConfigMap"),
            ("secret", "Secret"),
            ("downwardAPI", "DownwardAPI"),
        ):
            if given := source.get(field):
                title = shown if field == "downwardAPI" else f'{shown} "{given.get("name")}"'
                paths += [(item.get("path") or "", title) for item in given.get("items") or ()]
        if token := source.get("serviceAccountToken"):
            paths.append((token.get("path") or "", "ServiceAccountToken"))
    return paths


def _nested(a: str, b: str) -> bool:
    return f"{a}/".startswith(f"{b}/") or f"{b}/".startswith(f"{a}/")


def _shown(path: str, origin: str) -> str:
    return f'"{path}" ({origin})' if origin else f'"{path}"'


def _duplicates(path: str, items: list[Object], key: str) -> list[str]:
    found: list[str] = []
    seen: set[str] = set()
    for i, item in enumerate(items):
        value = item.get(key) or ""
        if value in seen:
            found.append(f'{path}[{i}].{key}: duplicate {key} "{value}"')
        seen.add(value)
    return found


def _fractional_bytes(path: str, container: Object) -> list[str]:
    found: list[str] = []
    resources = container.get("resources") or {}
    for name in ("memory", "ephemeral-storage"):
        for kind in ("limits", "requests"):
            size = (resources.get(kind) or {}).get(name)
            if size is not None and not quantities.is_whole(size):
                where = f"{path}.resources.{kind}[{name}]"
                found.append(f'{where}: fractional byte value "{size}" is invalid, must be an integer')
    return found


def _hidden_env(path: str, variables: list[Object]) -> list[str]:
    found: list[str] = []
    seen: set[str] = set()
    for i, variable in enumerate(variables):
        name, value = variable.get("name") or "", variable.get("value") or ""
        reference = f"$({name})"
        if name in seen and (variable.get("valueFrom") or value == reference or reference not in value):
            text = f'hides previous definition of "{name}", which may be dropped when using apply'
            found.append(f"{path}[{i}]: {text}")
        seen.add(name)
    return found


def _ports(path: str, spec: Object) -> list[str]:
    found: list[str] = []
    seen: dict[tuple[int, str], list[tuple[str, Object]]] = {}
    named: dict[str, str] = {}
    by_name: list[str] = []
    for here, container in containers_with_paths(path, spec):
        for i, port in enumerate(container.get("ports") or ()):
            where = f"{here}.ports[{i}]"
            others = seen.setdefault((port.get("containerPort") or 0, port.get("protocol") or ""), [])
            found += [f"{where}: {text}" for text in (_clash(port, *other) for other in others) if text]
            others.append((where, port))
            if name := port.get("name"):
                if first := named.get(name):
                    text = f"services and probes that select ports by name will use {first}"
                    by_name.append(f'{where}: duplicate port name "{name}" with {first}, {text}')
                named.setdefault(name, where)
    return found + by_name


def _clash(port: Object, other_path: str, other: Object) -> str:
    (ip, number), (other_ip, other_number) = (
        (p.get("hostIP") or "", p.get("hostPort") or 0) for p in (port, other)
    )
    if (ip, number) == (other_ip, other_number):
        return f"duplicate port definition with {other_path}"
    if not number or not other_number:
        return f"overlapping port definition with {other_path}"
    if number == other_number and bool(ip) != bool(other_ip):
        return f"dangerously ambiguous port definition with {other_path}"
    return ""


def _pod_affinity(path: str, affinity: Object) -> list[str]:
    found: list[str] = []
    text = "a null labelSelector results in matching no pod"
    for kind in ("podAffinity", "podAntiAffinity"):
        pods = affinity.get(kind) or {}
        for i, term in enumerate(pods.get(_REQUIRED) or ()):
            if term.get("labelSelector") is None:
                found.append(f"{path}.{kind}.{_REQUIRED}[{i}].labelSelector: {text}")
        for i, weighted in enumerate(pods.get(_PREFERRED) or ()):
            if (weighted.get("podAffinityTerm") or {}).get("labelSelector") is None:
                found.append(f"{path}.{kind}.{_PREFERRED}[{i}].podAffinityTerm.labelSelector: {text}")
    return found
