"""Containers of every sort: defaults, and validation of everything but what only a whole Pod can tell."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field

from podium.api import names
from podium.api.kinds import Object
from podium.apiserver.kinds.checks import NOT_NEGATIVE, each, one_of, port_or_name, unsupported
from podium.apiserver.kinds.images import PULL_POLICIES, pull_policy
from podium.apiserver.kinds.resources import default_resource_list, validate_requirements
from podium.apiserver.kinds.security import validate_container_context
from podium.apiserver.kinds.volumes import (
    ENV_FIELDS,
    local_path,
    no_backsteps,
    validate_field_ref,
    validate_resource_ref,
)
from podium.schema import fielderrors as errors
from podium.schema.fielderrors import FieldError

PROTOCOLS = ("SCTP", "TCP", "UDP")
_PROBES = ("livenessProbe", "readinessProbe", "startupProbe")
_HANDLERS = ("exec", "httpGet", "tcpSocket", "grpc", "sleep")
_PROBE_DEFAULTS = {"timeoutSeconds": 1, "periodSeconds": 10, "successThreshold": 1, "failureThreshold": 3}
_ENV_SOURCES = ("fieldRef", "resourceFieldRef", "configMapKeyRef", "secretKeyRef", "fileKeyRef")
_ONE_AT_A_TIME = "may not have more than one field specified at a time"
_EPHEMERAL_FIELDS = frozenset(
    {
        *(
            "name",
            "image",
            "command",
            "args",
            "workingDir",
            "envFrom",
            "env",
            "volumeMounts",
            "volumeDevices",
        ),
        *(
            "terminationMessagePath",
            "terminationMessagePolicy",
            "imagePullPolicy",
            "securityContext",
            "stdin",
        ),
        *("stdinOnce", "tty", "targetContainerName"),
    }
)


@dataclass(frozen=True, slots=True)
class PodContext:
    """What a container's checks need to know of the Pod around it."""

    volumes: dict[str, Object] = field(default_factory=dict)
    claims: Collection[str] = ()
    grace_seconds: int | None = None
    restart_policy: str = ""
    host_users: bool = True


def default_container(container: Object) -> None:
    """Fill in one container, in place."""
    if not container.get("imagePullPolicy"):
        container["imagePullPolicy"] = pull_policy(container.get("image") or "")
    if not container.get("terminationMessagePath"):
        container["terminationMessagePath"] = "/dev/termination-log"
    if not container.get("terminationMessagePolicy"):
        container["terminationMessagePolicy"] = "File"
    for port in container.get("ports") or ():
        if not port.get("protocol"):
            port["protocol"] = "TCP"
    for variable in container.get("env") or ():
        if source := variable.get("valueFrom"):
            if (ref := source.get("fieldRef")) is not None and not ref.get("apiVersion"):
                ref["apiVersion"] = "v1"
            if (ref := source.get("fileKeyRef")) is not None:
                ref.setdefault("optional", False)
    if resources := container.get("resources"):
        default_resource_list(resources.get("limits"))
        default_resource_list(resources.get("requests"))
    for name in _PROBES:
        if (probe := container.get(name)) is not None:
            _default_probe(probe)
    for hook in ("postStart", "preStop"):
        if handler := (container.get("lifecycle") or {}).get(hook):
            _default_http(handler.get("httpGet"))


def validate_containers(path: str, containers: list[Object], pod: PodContext) -> list[FieldError]:
    """The main containers of a Pod."""
    if not containers:
        return [errors.required(path)]
    found: list[FieldError] = []
    seen: set[str] = set()
    for i, container in enumerate(containers):
        here = f"{path}[{i}]"
        found += _common(here, container, pod)
        if (name := container.get("name") or "") in seen:
            found.append(errors.duplicate(f"{here}.name", name))
        seen.add(name)
        found += _lifecycle_and_probes(here, container, pod)
        found += _restart_policy(here, container)
    return found + _host_port_conflicts(path, list(enumerate(containers)))


def validate_init_containers(
    path: str, containers: list[Object], main: list[Object], pod: PodContext
) -> list[FieldError]:
    """Init containers; those that restart always are sidecars and may have probes."""
    found: list[FieldError] = []
    seen = {c.get("name") or "" for c in main}
    for i, container in enumerate(containers):
        here, name = f"{path}[{i}]", container.get("name") or ""
        found += _common(here, container, pod) + _restart_policy(here, container)
        if name in seen:
            found.append(errors.duplicate(f"{here}.name", name))
        elif name:
            seen.add(name)
        found += _host_port_conflicts(path, [(0, container)])
        if container.get("restartPolicy") == "Always":
            found += _lifecycle_and_probes(here, container, pod)
            continue
        for part in ("lifecycle", *_PROBES):
            if container.get(part) is not None:
                text = "may not be set for init containers without restartPolicy=Always"
                found.append(errors.forbidden(f"{here}.{part}", text))
        for j, policy in enumerate(container.get("resizePolicy") or ()):
            if policy.get("restartPolicy") == "RestartContainer":
                text = "must not be set to 'RestartContainer' for non-sidecar initContainers"
                where = f"{here}.resizePolicy[{j}].restartPolicy"
                found.append(errors.invalid(where, "RestartContainer", text))
    return found


def validate_ephemeral_containers(
    path: str, containers: list[Object], others: list[Object], pod: PodContext
) -> list[FieldError]:
    """Containers added to a running Pod, which may have less than the others."""
    found: list[FieldError] = []
    targets = {c.get("name") or "" for c in others}
    seen = set(targets)
    for i, container in enumerate(containers):
        here, name = f"{path}[{i}]", container.get("name") or ""
        found += _common(here, container, pod) + validate_image_text(here, container)
        if name in seen:
            found.append(errors.duplicate(f"{here}.name", name))
        seen.add(name)
        target = container.get("targetContainerName")
        if target and target not in targets:
            found.append(errors.not_found(f"{here}.targetContainerName", target))
        for part, value in container.items():
            if part not in _EPHEMERAL_FIELDS and value not in (None, [], {}):
                found.append(errors.forbidden(f"{here}.{part}", "cannot be set for an Ephemeral Container"))
        for j, mount in enumerate(container.get("volumeMounts") or ()):
            for part in ("subPath", "subPathExpr"):
                if mount.get(part):
                    where = f"{here}.volumeMounts[{j}].{part}"
                    found.append(errors.forbidden(where, "cannot be set for an Ephemeral Container"))
    return found


def validate_image_text(path: str, container: Object) -> list[FieldError]:
    """What Pods ask of an image, and templates do not."""
    image = container.get("image") or ""
    if image.strip() == image:
        return []
    return [errors.invalid(f"{path}.image", image, "must not have leading or trailing whitespace")]


def _default_probe(probe: Object) -> None:
    for name, value in _PROBE_DEFAULTS.items():
        if not probe.get(name):
            probe[name] = value
    _default_http(probe.get("httpGet"))
    if (grpc := probe.get("grpc")) is not None and grpc.get("service") is None:
        grpc["service"] = ""


def _default_http(action: Object | None) -> None:
    if action is not None:
        action["path"] = action.get("path") or "/"
        action["scheme"] = action.get("scheme") or "HTTP"


def _common(path: str, container: Object, pod: PodContext) -> list[FieldError]:
    name = container.get("name") or ""
    found = each(f"{path}.name", name, names.dns_label(name)) if name else [errors.required(f"{path}.name")]
    if not container.get("image"):
        found.append(errors.required(f"{path}.image"))
    policies = ("File", "FallbackToLogsOnError")
    found += one_of(f"{path}.terminationMessagePolicy", container.get("terminationMessagePolicy"), policies)
    if ports := container.get("ports"):
        found += _ports(f"{path}.ports", ports)
    if env := container.get("env"):
        found += _env(f"{path}.env", env)
    if env_from := container.get("envFrom"):
        found += _env_from(f"{path}.envFrom", env_from)
    found += _mounts(path, container, pod)
    found += one_of(f"{path}.imagePullPolicy", container.get("imagePullPolicy"), PULL_POLICIES)
    found += validate_requirements(f"{path}.resources", container.get("resources") or {}, pod.claims)
    found += _resize(f"{path}.resizePolicy", container.get("resizePolicy") or [], pod)
    return found + validate_container_context(
        f"{path}.securityContext", container.get("securityContext"), pod.host_users
    )


def _ports(path: str, ports: list[Object]) -> list[FieldError]:
    found: list[FieldError] = []
    seen: set[str] = set()
    for i, port in enumerate(ports):
        here, name = f"{path}[{i}]", port.get("name") or ""
        if name:
            problems = names.port_name(name)
            found += each(f"{here}.name", name, problems)
            if not problems and name in seen:
                found.append(errors.duplicate(f"{here}.name", name))
            seen.add(name)
        number, host = port.get("containerPort") or 0, port.get("hostPort") or 0
        if not number:
            found.append(errors.required(f"{here}.containerPort"))
        else:
            found += each(f"{here}.containerPort", number, names.port_number(number))
        if host:
            found += each(f"{here}.hostPort", host, names.port_number(host))
        found += one_of(f"{here}.protocol", port.get("protocol"), PROTOCOLS)
    return found


def _host_port_conflicts(path: str, containers: list[tuple[int, Object]]) -> list[FieldError]:
    found: list[FieldError] = []
    seen: set[str] = set()
    for i, container in containers:
        for j, port in enumerate(container.get("ports") or ()):
            if not port.get("hostPort"):
                continue
            key = f"{port.get('protocol') or ''}/{port.get('hostIP') or ''}/{port['hostPort']}"
            if key in seen:
                found.append(errors.duplicate(f"{path}[{i}].ports[{j}].hostPort", key))
            seen.add(key)
    return found


def _env(path: str, variables: list[Object]) -> list[FieldError]:
    found: list[FieldError] = []
    for i, variable in enumerate(variables):
        here, name = f"{path}[{i}]", variable.get("name") or ""
        found += (
            each(f"{here}.name", name, names.env_name(name)) if name else [errors.required(f"{here}.name")]
        )
        if (source := variable.get("valueFrom")) is not None:
            found += _env_source(f"{here}.valueFrom", source, variable.get("value") or "")
    return found


def _env_source(path: str, source: Object, value: str) -> list[FieldError]:
    given = [kind for kind in _ENV_SOURCES if source.get(kind) is not None]
    found: list[FieldError] = []
    for kind in given:
        here, ref = f"{path}.{kind}", source[kind]
        match kind:
            case "fieldRef":
                found += validate_field_ref(here, ref, ENV_FIELDS)
            case "resourceFieldRef":
                found += validate_resource_ref(here, ref, for_volume=False)
            case "fileKeyRef":
                found += _file_key(here, ref)
            case _:
                found += _key_ref(here, ref)
    if not given:
        listed = ", ".join(f"`{kind}`" for kind in _ENV_SOURCES[:-1])
        found.append(errors.invalid(path, "", f"must specify one of: {listed} or `{_ENV_SOURCES[-1]}`"))
    elif value:
        found.append(errors.invalid(path, "", "may not be specified when `value` is not empty"))
    elif len(given) > 1:
        found.append(errors.invalid(path, "", _ONE_AT_A_TIME))
    return found


def _key_ref(path: str, ref: Object) -> list[FieldError]:
    name, key = ref.get("name") or "", ref.get("key") or ""
    found = each(f"{path}.name", name, names.dns_subdomain(name))
    return found + (
        each(f"{path}.key", key, names.config_key(key)) if key else [errors.required(f"{path}.key")]
    )


def _file_key(path: str, ref: Object) -> list[FieldError]:
    key, volume, target = ref.get("key") or "", ref.get("volumeName") or "", ref.get("path") or ""
    found = each(f"{path}.key", key, names.env_name(key)) if key else [errors.required(f"{path}.key")]
    where = f"{path}.volumeName"
    found += each(where, volume, names.dns_label(volume)) if volume else [errors.required(where)]
    return found + (no_backsteps(f"{path}.path", target) if target else [errors.required(f"{path}.path")])


def _env_from(path: str, sources: list[Object]) -> list[FieldError]:
    found: list[FieldError] = []
    for i, source in enumerate(sources):
        here = f"{path}[{i}]"
        if prefix := source.get("prefix"):
            found += each(f"{here}.prefix", prefix, names.env_name(prefix))
        given = [kind for kind in ("configMapRef", "secretRef") if source.get(kind) is not None]
        for kind in given:
            name, where = source[kind].get("name") or "", f"{here}.{kind}.name"
            found += each(where, name, names.dns_subdomain(name, True)) if name else [errors.required(where)]
        if not given:
            found.append(errors.invalid(path, "", "must specify one of: `configMapRef` or `secretRef`"))
        elif len(given) > 1:
            found.append(errors.invalid(path, "", _ONE_AT_A_TIME))
    return found


def _mounts(path: str, container: Object, pod: PodContext) -> list[FieldError]:
    mounts, devices = container.get("volumeMounts") or [], container.get("volumeDevices") or []
    if not mounts and not devices:
        return []
    privileged = bool((container.get("securityContext") or {}).get("privileged"))
    device_paths = {d.get("name") or "": d.get("devicePath") or "" for d in devices}
    mount_paths = {m.get("name") or "": m.get("mountPath") or "" for m in mounts}
    found: list[FieldError] = []
    seen: set[str] = set()
    for i, mount in enumerate(mounts):
        here, name, target = (
            f"{path}.volumeMounts[{i}]",
            mount.get("name") or "",
            mount.get("mountPath") or "",
        )
        if not name:
            found.append(errors.required(f"{here}.name"))
        if name not in pod.volumes:
            found.append(errors.not_found(f"{here}.name", name))
        if not target:
            found.append(errors.required(f"{here}.mountPath"))
        if target in seen:
            found.append(errors.invalid(f"{here}.mountPath", target, "must be unique"))
        seen.add(target)
        if name in device_paths:
            found.append(errors.invalid(f"{here}.name", name, "must not already exist in volumeDevices"))
        if target in device_paths.values():
            text = "must not already exist as a path in volumeDevices"
            found.append(errors.invalid(f"{here}.mountPath", target, text))
        found += _mount_options(f"{path}.volumeMounts", here, mount, privileged)
    return found + _devices(f"{path}.volumeDevices", devices, mount_paths, pod)


def _mount_options(path: str, here: str, mount: Object, privileged: bool) -> list[FieldError]:
    # Upstream leaves the index out of these paths.
    found: list[FieldError] = []
    sub, expression = mount.get("subPath") or "", mount.get("subPathExpr") or ""
    if sub:
        found += local_path(f"{path}.subPath", sub)
    if expression:
        if sub:
            text = "subPathExpr and subPath are mutually exclusive"
            found.append(errors.invalid(f"{here}.subPathExpr", expression, text))
        found += local_path(f"{path}.subPathExpr", expression)
    if (propagation := mount.get("mountPropagation")) is not None:
        where, modes = f"{path}.mountPropagation", ("Bidirectional", "HostToContainer", "None")
        if propagation not in modes:
            found.append(unsupported(where, propagation, modes))
        if propagation == "Bidirectional" and not privileged:
            text = "Bidirectional mount propagation is available only to privileged containers"
            found.append(errors.forbidden(where, text))
    match mount.get("recursiveReadOnly"):
        case None | "Disabled":
            pass
        case "Enabled" | "IfPossible":
            where = f"{path}.recursiveReadOnly"
            if not mount.get("readOnly"):
                found.append(errors.forbidden(where, "may only be specified when readOnly is true"))
            if mount.get("mountPropagation") not in (None, "None"):
                text = "may only be specified when mountPropagation is None or not specified"
                found.append(errors.forbidden(where, text))
        case other:
            found.append(
                unsupported(f"{path}.recursiveReadOnly", other, ("Disabled", "Enabled", "IfPossible"))
            )
    return found


def _devices(path: str, devices: list[Object], mounts: dict[str, str], pod: PodContext) -> list[FieldError]:
    found: list[FieldError] = []
    seen_names: set[str] = set()
    seen_paths: set[str] = set()
    for i, device in enumerate(devices):
        here, name, target = f"{path}[{i}]", device.get("name") or "", device.get("devicePath") or ""
        volume = pod.volumes.get(name)
        if not name:
            found.append(errors.required(f"{here}.name"))
        if name in seen_names:
            found.append(errors.invalid(f"{here}.name", name, "must be unique"))
        if volume is None:
            found.append(errors.not_found(f"{here}.name", name))
        elif volume.get("persistentVolumeClaim") is None and volume.get("ephemeral") is None:
            text = "can only use volume source type of PersistentVolumeClaim or Ephemeral for block mode"
            found.append(errors.invalid(f"{here}.name", name, text))
        if not target:
            found.append(errors.required(f"{here}.devicePath"))
        if target in seen_paths:
            found.append(errors.invalid(f"{here}.devicePath", target, "must be unique"))
        if no_backsteps("", target):
            found.append(errors.invalid(f"{here}.devicePath", target, "can not contain backsteps ('..')"))
        else:
            seen_paths.add(target)
        if name in mounts:
            found.append(errors.invalid(f"{here}.name", name, "must not already exist in volumeMounts"))
        if target in mounts.values():
            text = "must not already exist as a path in volumeMounts"
            found.append(errors.invalid(f"{here}.devicePath", target, text))
        if name:
            seen_names.add(name)
    return found


def _resize(path: str, policies: list[Object], pod: PodContext) -> list[FieldError]:
    found: list[FieldError] = []
    seen: set[str] = set()
    for i, policy in enumerate(policies):
        resource, restart = policy.get("resourceName") or "", policy.get("restartPolicy") or ""
        if resource in seen:
            found.append(errors.duplicate(f"{path}[{i}]", resource))
        seen.add(resource)
        found += one_of(path, resource, ("cpu", "memory")) + one_of(
            path, restart, ("NotRequired", "RestartContainer")
        )
        if pod.restart_policy == "Never" and restart != "NotRequired":
            text = "must be 'NotRequired' when pod `restartPolicy` is 'Never'"
            found.append(errors.invalid(path, restart, text))
    return found


def _restart_policy(path: str, container: Object) -> list[FieldError]:
    policy, rules = container.get("restartPolicy"), container.get("restartPolicyRules") or []
    found: list[FieldError] = []
    if policy is None:
        if not rules:
            return []
        text = "must specify restartPolicy when restart rules are used"
        found.append(errors.required(f"{path}.restartPolicy", text))
    elif policy not in ("Always", "Never", "OnFailure"):
        found.append(unsupported(f"{path}.restartPolicy", policy, ("Always", "Never", "OnFailure")))
    if len(rules) > 20:
        found.append(errors.too_many(f"{path}.restartPolicyRules", len(rules), 20))
    for i, rule in enumerate(rules):
        here, action = f"{path}.restartPolicyRules[{i}]", rule.get("action") or ""
        if action not in ("Restart", "RestartAllContainers"):
            found.append(unsupported(f"{here}.action", action, ("Restart", "RestartAllContainers")))
        codes = rule.get("exitCodes")
        if codes is None:
            found.append(errors.required(f"{here}.exitCodes", "must be specified"))
            continue
        if (operator := codes.get("operator") or "") not in ("In", "NotIn"):
            found.append(unsupported(f"{here}.exitCodes.operator", operator, ("In", "NotIn")))
        if len(values := codes.get("values") or []) > 255:
            found.append(errors.too_many(f"{here}.exitCodes.values", len(values), 255))
    return found


def _lifecycle_and_probes(path: str, container: Object, pod: PodContext) -> list[FieldError]:
    found: list[FieldError] = []
    if lifecycle := container.get("lifecycle"):
        for hook in ("postStart", "preStop"):
            if (handler := lifecycle.get(hook)) is not None:
                found += _handler(f"{path}.lifecycle.{hook}", handler, pod)
    for name in _PROBES:
        if (probe := container.get(name)) is not None:
            found += _probe(f"{path}.{name}", name, probe, pod)
    return found


def _probe(path: str, name: str, probe: Object, pod: PodContext) -> list[FieldError]:
    found = _handler(path, probe, pod)
    for number in ("initialDelaySeconds", *_PROBE_DEFAULTS):
        if (value := probe.get(number) or 0) < 0:
            found.append(errors.invalid(f"{path}.{number}", value, NOT_NEGATIVE))
    grace = probe.get("terminationGracePeriodSeconds")
    where = f"{path}.terminationGracePeriodSeconds"
    if grace is not None and grace <= 0:
        found.append(errors.invalid(where, grace, "must be greater than 0"))
    if name == "readinessProbe":
        if grace is not None:
            found.append(errors.invalid(where, grace, "must not be set for readinessProbes"))
    elif probe.get("successThreshold") != 1:
        found.append(
            errors.invalid(f"{path}.successThreshold", probe.get("successThreshold") or 0, "must be 1")
        )
    return found


def _handler(path: str, handler: Object, pod: PodContext) -> list[FieldError]:
    given = [kind for kind in _HANDLERS if handler.get(kind) is not None]
    if not given:
        return [errors.required(path, "must specify a handler type")]
    first, *others = given
    found = _action(f"{path}.{first}", first, handler[first], pod)
    return found + [
        errors.forbidden(f"{path}.{kind}", "may not specify more than 1 handler type") for kind in others
    ]


def _action(path: str, kind: str, action: Object, pod: PodContext) -> list[FieldError]:
    match kind:
        case "exec":
            return [] if action.get("command") else [errors.required(f"{path}.command")]
        case "httpGet":
            found = [] if action.get("path") else [errors.required(f"{path}.path")]
            found += port_or_name(f"{path}.port", action.get("port"))
            if (scheme := action.get("scheme") or "") not in ("HTTP", "HTTPS"):
                found.append(unsupported(f"{path}.scheme", scheme, ("HTTP", "HTTPS")))
            for header in action.get("httpHeaders") or ():
                name = header.get("name") or ""
                found += each(f"{path}.httpHeaders", name, names.http_header(name))
            return found
        case "sleep":
            seconds, grace = action.get("seconds") or 0, pod.grace_seconds
            if grace is not None and not 0 <= seconds <= grace:
                text = f"must be non-negative and less than terminationGracePeriodSeconds ({grace})"
                return [errors.invalid(path, seconds, text)]
            return []
        case _:
            return port_or_name(f"{path}.port", action.get("port"))
