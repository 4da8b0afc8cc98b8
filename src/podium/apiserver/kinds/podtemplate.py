"""The Pod spec: its defaults, and its validation for Pods and for the templates of all workloads."""

from __future__ import annotations

from collections.abc import Iterator

from podium.api import names
from podium.api.kinds import Object
from podium.apiserver.kinds import addresses, metadata, quantities, security
from podium.apiserver.kinds.affinity import (
    validate_affinity,
    validate_tolerations,
    validate_topology_spread,
)
from podium.apiserver.kinds.checks import each, unsupported
from podium.apiserver.kinds.containers import (
    PodContext,
    default_container,
    validate_containers,
    validate_ephemeral_containers,
    validate_init_containers,
)
from podium.apiserver.kinds.resources import (
    default_resource_list,
    is_huge_page,
    validate_pod_level_name,
    validate_requirements,
)
from podium.apiserver.kinds.volumes import default_volume, validate_volumes
from podium.schema import fielderrors as errors
from podium.schema.fielderrors import FieldError

_DNS_POLICIES = ("ClusterFirstWithHostNet", "ClusterFirst", "Default", "None")
_RESTART_POLICIES = ("Always", "OnFailure", "Never")
_PREEMPTION = ("PreemptLowerPriority", "Never")
_MIRROR = "kubernetes.io/config.mirror"
_DELETION_COST = "controller.kubernetes.io/pod-deletion-cost"


def default_template(template: Object) -> None:
    """Fill in the Pod template of a workload, in place."""
    default_spec(template.setdefault("spec", {}))


def default_spec(spec: Object) -> None:
    """Fill in what Pods and Pod templates share, in place."""
    for field, value in (("dnsPolicy", "ClusterFirst"), ("restartPolicy", "Always")):
        if not spec.get(field):
            spec[field] = value
    if spec.get("securityContext") is None:
        spec["securityContext"] = {}
    if spec.get("terminationGracePeriodSeconds") is None:
        spec["terminationGracePeriodSeconds"] = 30
    if not spec.get("schedulerName"):
        spec["schedulerName"] = "default-scheduler"
    for volume in spec.get("volumes") or ():
        default_volume(volume)
    for container in all_containers(spec):
        default_container(container)
    if spec.get("serviceAccountName"):
        spec["serviceAccount"] = spec["serviceAccountName"]
    elif spec.get("serviceAccount"):
        spec["serviceAccountName"] = spec["serviceAccount"]
    default_resource_list(spec.get("overhead"))
    if resources := spec.get("resources"):
        default_resource_list(resources.get("limits"))
        default_resource_list(resources.get("requests"))


def all_containers(spec: Object) -> Iterator[Object]:
    for field in ("containers", "initContainers", "ephemeralContainers"):
        yield from spec.get(field) or ()


def containers_with_paths(path: str, spec: Object) -> Iterator[tuple[str, Object]]:
    """Every container with its path, in the order in which advice is given."""
    for field in ("initContainers", "containers", "ephemeralContainers"):
        for i, container in enumerate(spec.get(field) or ()):
            yield f"{path}.{field}[{i}]", container


def validate_template(path: str, template: Object) -> list[FieldError]:
    """What is wrong with the Pod template of a workload."""
    meta, spec = template.get("metadata") or {}, template.get("spec") or {}
    annotations = meta.get("annotations") or {}
    found = metadata.validate_labels(f"{path}.labels", meta.get("labels") or {})
    found += metadata.validate_annotations(f"{path}.annotations", annotations)
    found += validate_pod_annotations(f"{path}.annotations", annotations, spec)
    found += validate_spec(f"{path}.spec", spec)
    if spec.get("ephemeralContainers"):
        text = "ephemeral containers not allowed in pod template"
        found.append(errors.forbidden(f"{path}.spec.ephemeralContainers", text))
    return found


def validate_pod_annotations(path: str, annotations: dict[str, str], spec: Object) -> list[FieldError]:
    """Annotations that mean something for Pods."""
    if not annotations:
        return []
    found: list[FieldError] = []
    if (mirror := annotations.get(_MIRROR)) is not None and not spec.get("nodeName"):
        text = "must set spec.nodeName if mirror pod annotation is set"
        found.append(errors.invalid(f"{path}[{_MIRROR}]", mirror, text))
    if (cost := annotations.get(_DELETION_COST)) is not None and not _is_int32(cost):
        found.append(errors.invalid(f"{path}[{_DELETION_COST}]", cost, "must be a 32bit integer"))
    containers = [c.get("name") or "" for c in all_containers(spec)]
    return found + security.validate_annotations(path, annotations, containers)


def validate_spec(path: str, spec: Object, pod_name: str = "", *, is_pod: bool = False) -> list[FieldError]:
    """What is wrong with a Pod spec; `pod_name` and `is_pod` where it is not a template."""
    grace = spec.get("terminationGracePeriodSeconds")
    found = [errors.required(f"{path}.terminationGracePeriodSeconds")] if grace is None else []
    volumes, problems = validate_volumes(
        f"{path}.volumes", spec.get("volumes") or [], pod_name, is_pod=is_pod
    )
    found += problems
    claims = spec.get("resourceClaims") or []
    found += _claims(f"{path}.resourceClaims", claims) if claims else []
    pod = PodContext(
        volumes=volumes,
        claims=[c["name"] for c in claims if c.get("name")],
        grace_seconds=grace,
        restart_policy=spec.get("restartPolicy") or "",
        host_users=spec.get("hostUsers") is not False,
    )
    main, init = spec.get("containers") or [], spec.get("initContainers") or []
    found += validate_containers(f"{path}.containers", main, pod)
    if init:
        found += validate_init_containers(f"{path}.initContainers", init, main, pod)
    if ephemeral := spec.get("ephemeralContainers"):
        found += validate_ephemeral_containers(f"{path}.ephemeralContainers", ephemeral, main + init, pod)
    if (resources := spec.get("resources")) is not None:
        found += _pod_resources(f"{path}.resources", resources, spec)
    found += _host_network(path, spec, is_pod) if spec.get("hostNetwork") else []
    found += _policies(path, spec)
    found += metadata.validate_labels(f"{path}.nodeSelector", spec.get("nodeSelector") or {})
    found += security.validate_pod_context(f"{path}.securityContext", spec)
    if spec.get("shareProcessNamespace") and spec.get("hostPID"):
        text = "ShareProcessNamespace and HostPID cannot both be enabled"
        found.append(errors.invalid(f"{path}.securityContext.shareProcessNamespace", True, text))
    found += validate_affinity(f"{path}.affinity", spec.get("affinity"))
    found += _dns(f"{path}.dnsConfig", spec)
    return found + _scheduling(path, spec) + _names(path, spec) + _rest(path, spec)


def _policies(path: str, spec: Object) -> list[FieldError]:
    found: list[FieldError] = []
    for field, supported in (("restartPolicy", _RESTART_POLICIES), ("dnsPolicy", _DNS_POLICIES)):
        value = spec.get(field) or ""
        if not value:
            found.append(errors.required(f"{path}.{field}"))
        elif value not in supported:
            found.append(unsupported(f"{path}.{field}", value, supported))
    if (policy := spec.get("preemptionPolicy")) is not None and policy not in _PREEMPTION:
        found.append(unsupported(f"{path}.preemptionPolicy", policy, _PREEMPTION))
    return found


def _scheduling(path: str, spec: Object) -> list[FieldError]:
    found: list[FieldError] = []
    for i, gate in enumerate(spec.get("readinessGates") or ()):
        kind = gate.get("conditionType") or ""
        found += each(f"{path}.readinessGates[{i}].conditionType", kind, names.qualified_name(kind))
    seen: set[str] = set()
    for i, gate in enumerate(spec.get("schedulingGates") or ()):
        name, here = gate.get("name") or "", f"{path}.schedulingGates[{i}]"
        found += each(here, name, names.qualified_name(name))
        if name in seen:
            found.append(errors.duplicate(here, name))
        seen.add(name)
    if constraints := spec.get("topologySpreadConstraints"):
        found += validate_topology_spread(f"{path}.topologySpreadConstraints", constraints)
    if tolerations := spec.get("tolerations"):
        found += validate_tolerations(f"{path}.tolerations", tolerations)
    return found


def _names(path: str, spec: Object) -> list[FieldError]:
    found: list[FieldError] = []
    for field, rule in (
        ("serviceAccountName", names.dns_subdomain),
        ("nodeName", names.dns_subdomain),
        ("hostname", names.dns_label),
        ("subdomain", names.dns_label),
        ("priorityClassName", names.dns_subdomain),
    ):
        if value := spec.get(field):
            found += each(f"{path}.{field}", value, rule(value))
    if (runtime := spec.get("runtimeClassName")) is not None:
        found += each(f"{path}.runtimeClassName", runtime, names.dns_subdomain(runtime))
    if (override := spec.get("hostnameOverride")) is not None:
        found += _hostname_override(f"{path}.hostnameOverride", override, spec)
    return found


def _rest(path: str, spec: Object) -> list[FieldError]:
    found: list[FieldError] = []
    if (deadline := spec.get("activeDeadlineSeconds")) is not None and not 1 <= deadline <= 2**31 - 1:
        found.append(errors.invalid(f"{path}.activeDeadlineSeconds", deadline, names.between(1, 2**31 - 1)))
    for i, alias in enumerate(spec.get("hostAliases") or ()):
        here = f"{path}.hostAliases[{i}]"
        found += addresses.validate_ip(f"{here}.ip", alias.get("ip") or "")
        for j, name in enumerate(alias.get("hostnames") or ()):
            found += each(f"{here}.hostnames[{j}]", name, names.dns_subdomain(name))
    if overhead := spec.get("overhead"):
        found += validate_requirements(f"{path}.overhead", {"limits": overhead})
    if (system := spec.get("os")) is not None:
        name = system.get("name") or ""
        if not name:
            found.append(errors.required(f"{path}.os.name"))
        elif name not in ("linux", "windows"):
            found.append(unsupported(f"{path}.os", name, ("linux", "windows")))
    if spec.get("hostUsers") is False:
        for field, shown in (("hostNetwork", "hostNetwork"), ("hostPID", "HostPID"), ("hostIPC", "HostIPC")):
            if spec.get(field):
                found.append(errors.forbidden(f"{path}.{shown}", "when `hostUsers` is false"))
    return found + _file_volumes(path, spec)


def _file_volumes(path: str, spec: Object) -> list[FieldError]:
    found: list[FieldError] = []
    volumes = {v.get("name"): v for v in spec.get("volumes") or ()}
    for here, container in containers_with_paths(path, spec):
        for i, variable in enumerate(container.get("env") or ()):
            ref = (variable.get("valueFrom") or {}).get("fileKeyRef")
            if ref is None:
                continue
            name, where = ref.get("volumeName") or "", f"{here}.env[{i}].valueFrom.fileKeyRef.volumeName"
            if name not in volumes:
                found.append(errors.not_found(where, name))
            elif volumes[name].get("emptyDir") is None:
                found.append(errors.invalid(where, name, "referenced volume must be of type emptyDir"))
    return found


def _hostname_override(path: str, name: str, spec: Object) -> list[FieldError]:
    found: list[FieldError] = []
    if spec.get("setHostnameAsFQDN"):
        found.append(errors.forbidden(path, "may not be specified when setHostnameAsFQDN is true"))
    if spec.get("hostNetwork"):
        found.append(errors.forbidden(path, "may not be specified when hostNetwork is true"))
    if len(name) > 64:
        found.append(errors.too_long(path, 64))
    return found + each(path, name, names.dns_subdomain(name))


def _claims(path: str, claims: list[Object]) -> list[FieldError]:
    found: list[FieldError] = []
    seen: set[str] = set()
    for i, claim in enumerate(claims):
        here, name = f"{path}[{i}]", claim.get("name") or ""
        if not name:
            found.append(errors.required(f"{here}.name"))
        elif name in seen:
            found.append(errors.duplicate(f"{here}.name", name))
        else:
            found += each(f"{here}.name", name, names.dns_label(name))
        seen.add(name)
        given, template = claim.get("resourceClaimName"), claim.get("resourceClaimTemplateName")
        shown = {"Name": name, "ResourceClaimName": given, "ResourceClaimTemplateName": template}
        if given is not None and template is not None:
            text = "at most one of `resourceClaimName` or `resourceClaimTemplateName` may be specified"
            found.append(errors.invalid(here, shown, text))
        if given is None and template is None:
            text = "must specify one of: `resourceClaimName`, `resourceClaimTemplateName`"
            found.append(errors.invalid(here, shown, text))
        for field, value in (("resourceClaimName", given), ("resourceClaimTemplateName", template)):
            if value is not None:
                found += each(f"{here}.{field}", value, names.dns_subdomain(value))
    return found


def _pod_resources(path: str, resources: Object, spec: Object) -> list[FieldError]:
    found: list[FieldError] = []
    if resources.get("claims"):
        found.append(errors.forbidden(f"{path}.claims", "claims may not be set for Resources at pod-level"))
    plain = {k: v for k, v in resources.items() if k != "claims"}
    found += validate_requirements(path, plain, check_name=validate_pod_level_name)
    for name, total in aggregate(spec, "requests").items():
        own = (resources.get("requests") or {}).get(name)
        if own is not None and quantities.nano(total) > quantities.nano(own):
            text = f"must be greater than or equal to aggregate container requests of {total}"
            found.append(errors.invalid(f"{path}.requests[{name}]", own, text))
    limits = resources.get("limits") or {}
    for i, container in enumerate(spec.get("containers") or ()):
        for name, limit in ((container.get("resources") or {}).get("limits") or {}).items():
            if name in limits and quantities.nano(limit) > quantities.nano(limits[name]):
                where = f"{path}.containers[{i}][{name}].limits"
                text = f"must be less than or equal to pod limits of {limits[name]}"
                found.append(errors.invalid(where, limit, text))
    return found


def aggregate(spec: Object, kind: str) -> dict[str, str]:
    """What a Pod's containers ask for together: all main ones at once, or the hungriest init one."""
    total: dict[str, int] = {}
    binary: dict[str, bool] = {}
    sidecars: dict[str, int] = {}
    peak: dict[str, int] = {}

    def amounts(container: Object) -> dict[str, int]:
        listed: dict[str, str] = (container.get("resources") or {}).get(kind) or {}
        for name, text in listed.items():
            binary.setdefault(name, quantities.is_binary(text))
        return {name: quantities.nano(text) for name, text in listed.items()}

    for container in spec.get("containers") or ():
        for name, amount in amounts(container).items():
            total[name] = total.get(name, 0) + amount
    for container in spec.get("initContainers") or ():
        own = amounts(container)
        if container.get("restartPolicy") == "Always":
            for name, amount in own.items():
                sidecars[name] = sidecars.get(name, 0) + amount
            own = sidecars
        else:
            own = {name: amount + sidecars.get(name, 0) for name, amount in own.items()}
        for name, amount in own.items():
            peak[name] = max(peak.get(name, 0), amount)
    for name, amount in sidecars.items():
        total[name] = total.get(name, 0) + amount
    for name, amount in peak.items():
        total[name] = max(total.get(name, 0), amount)
    return {name: quantities.write(amount, binary=binary[name]) for name, amount in total.items()}


def default_pod_level_resources(spec: Object) -> None:
    """Requests of the whole Pod follow from its containers, or from its own limits; in place."""
    resources = spec.get("resources")
    if not resources or not (resources.get("limits") or resources.get("requests")):
        return
    pages = {n: a for n, a in aggregate(spec, "limits").items() if is_huge_page(n)}
    own = {n: a for n, a in pages.items() if n not in (resources.get("requests") or {})}
    limits = own | (resources.get("limits") or {})
    if not limits:
        return
    resources["limits"] = limits
    requests = dict(resources.get("requests") or {})
    for name, amount in aggregate(spec, "requests").items():
        if name in ("cpu", "memory"):
            requests.setdefault(name, amount)
    for name, amount in limits.items():
        if name in ("cpu", "memory") or is_huge_page(name):
            requests.setdefault(name, amount)
    if requests:
        resources["requests"] = requests


def default_host_ports(spec: Object) -> None:
    """On the host's network a container's port is the host's port; in place, for Pods only."""
    for field in ("containers", "initContainers"):
        for container in spec.get(field) or ():
            for port in container.get("ports") or ():
                if not port.get("hostPort"):
                    port["hostPort"] = port.get("containerPort") or 0


def _host_network(path: str, spec: Object, is_pod: bool) -> list[FieldError]:
    found: list[FieldError] = []
    for i, container in enumerate(spec.get("containers") or ()):
        for j, port in enumerate(container.get("ports") or ()):
            host, own = port.get("hostPort") or 0, port.get("containerPort") or 0
            if (is_pod or host) and host != own:
                text = "must match `containerPort` when `hostNetwork` is true"
                found.append(errors.invalid(f"{path}.containers[{i}].ports[{j}].hostPort", host, text))
    return found


def _dns(path: str, spec: Object) -> list[FieldError]:
    config = spec.get("dnsConfig")
    if spec.get("dnsPolicy") == "None":
        if config is None:
            return [errors.required(path, "must provide `dnsConfig` when `dnsPolicy` is None")]
        if not config.get("nameservers"):
            text = "must provide at least one DNS nameserver when `dnsPolicy` is None"
            return [errors.required(f"{path}.nameservers", text)]
    if not config:
        return []
    found: list[FieldError] = []
    servers, searches = config.get("nameservers") or [], config.get("searches") or []
    if len(servers) > 3:
        found.append(errors.invalid(f"{path}.nameservers", servers, "must not have more than 3 nameservers"))
    for i, server in enumerate(servers):
        found += addresses.validate_ip(f"{path}.nameservers[{i}]", server)
    if len(searches) > 32:
        found.append(errors.invalid(f"{path}.searches", searches, "must not have more than 32 search paths"))
    if len(" ".join(searches)) > 2048:
        text = "must not have more than 2048 characters (including spaces) in the search list"
        found.append(errors.invalid(f"{path}.searches", searches, text))
    for i, search in enumerate(searches):
        if search != ".":
            search = search.removesuffix(".")
            found += each(f"{path}.searches[{i}]", search, names.loose_subdomain(search))
    for i, option in enumerate(config.get("options") or ()):
        if not option.get("name"):
            found.append(errors.required(f"{path}.options[{i}]", "must not be empty"))
    return found


def _is_int32(text: str) -> bool:
    digits = text.removeprefix("-")
    if not digits.isascii() or not digits.isdigit() or (text[0] == "0" and text != "0"):
        return False
    return -(2**31) <= int(text) < 2**31
