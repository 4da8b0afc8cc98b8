"""Security contexts of Pods and containers."""

from __future__ import annotations

import re

from podium.api import names
from podium.api.kinds import Object
from podium.apiserver.kinds.checks import each, unsupported
from podium.apiserver.kinds.volumes import local_path
from podium.schema import fielderrors as errors
from podium.schema.fielderrors import FieldError

_PROFILES = ("Localhost", "RuntimeDefault", "Unconfined")
_SYSCTL_SEGMENT = "[a-z0-9]([-_a-z0-9]*[a-z0-9])?"
_SYSCTL = rf"^({_SYSCTL_SEGMENT}[\./])*{_SYSCTL_SEGMENT}$"
_IPC_SYSCTLS = ("kernel.shm", "kernel.msg", "fs.mqueue.")
_APPARMOR_PREFIX = "container.apparmor.security.beta.kubernetes.io/"


def validate_pod_context(path: str, spec: Object) -> list[FieldError]:
    """The security context of a whole Pod; host namespaces stand beside it in the spec."""
    context = spec.get("securityContext") or {}
    if not context:
        return []
    found = _ids(path, context, ("fsGroup", "runAsUser", "runAsGroup"))
    for i, group in enumerate(context.get("supplementalGroups") or ()):
        found += each(f"{path}.supplementalGroups[{i}]", group, names.user_or_group_id(group))
    found += _sysctls(f"{path}.sysctls", context.get("sysctls") or [], spec)
    for field, supported in (
        ("fsGroupChangePolicy", ("Always", "OnRootMismatch")),
        ("supplementalGroupsPolicy", ("Merge", "Strict")),
        ("seLinuxChangePolicy", ("MountOption", "Recursive")),
    ):
        if (value := context.get(field)) is not None and value not in supported:
            found.append(unsupported(f"{path}.{field}", value, supported))
    return found + _profiles(path, context)


def validate_container_context(path: str, context: Object | None, host_users: bool) -> list[FieldError]:
    """The security context of one container."""
    if not context:
        return []
    found = _ids(path, context, ("runAsUser", "runAsGroup"))
    if (mount := context.get("procMount")) is not None:
        if mount not in ("Default", "Unmasked"):
            found.append(unsupported(f"{path}.procMount", mount, ("Default", "Unmasked")))
        if host_users and mount == "Unmasked":
            text = "`hostUsers` must be false to use `Unmasked`"
            found.append(errors.invalid(f"{path}.procMount", mount, text))
    if context.get("allowPrivilegeEscalation") is False:
        shown = _internal_form(context)
        if context.get("privileged"):
            text = "cannot set `allowPrivilegeEscalation` to false and `privileged` to true"
            found.append(errors.invalid(path, shown, text))
        if "CAP_SYS_ADMIN" in ((context.get("capabilities") or {}).get("add") or ()):
            text = "cannot set `allowPrivilegeEscalation` to false and `capabilities.Add` CAP_SYS_ADMIN"
            found.append(errors.invalid(path, shown, text))
    return found + _profiles(path, context)


def validate_annotations(path: str, annotations: dict[str, str], containers: list[str]) -> list[FieldError]:
    """Seccomp and AppArmor annotations, from before these were fields."""
    found: list[FieldError] = []
    for key, value in annotations.items():
        if key == "seccomp.security.alpha.kubernetes.io/pod" or key.startswith(
            "container.seccomp.security.alpha.kubernetes.io/"
        ):
            found += _seccomp_annotation(f"{path}[{key}]", value)
        elif key.startswith(_APPARMOR_PREFIX):
            container = key.removeprefix(_APPARMOR_PREFIX)
            if container not in containers:
                found.append(errors.invalid(f"{path}[{key}]", container, "container not found"))
            if value not in ("", "runtime/default", "unconfined") and not value.startswith("localhost/"):
                found.append(
                    errors.invalid(f"{path}[{key}]", value, f'invalid AppArmor profile name: "{value}"')
                )
    return found


def _seccomp_annotation(path: str, value: str) -> list[FieldError]:
    if value in ("runtime/default", "docker/default", "unconfined"):
        return []
    if value.startswith("localhost/"):
        return local_path(path, value.removeprefix("localhost/"))
    return [errors.invalid(path, value, "must be a valid seccomp profile")]


def _ids(path: str, context: Object, fields: tuple[str, ...]) -> list[FieldError]:
    found: list[FieldError] = []
    for field in fields:
        if (value := context.get(field)) is not None:
            found += each(f"{path}.{field}", value, names.user_or_group_id(value))
    return found


def _sysctls(path: str, sysctls: list[Object], spec: Object) -> list[FieldError]:
    found: list[FieldError] = []
    seen: set[str] = set()
    for i, sysctl in enumerate(sysctls):
        here, name = f"{path}[{i}].name", sysctl.get("name") or ""
        if not name:
            found.append(errors.required(here))
        elif len(name) > 253 or not re.fullmatch(_SYSCTL, name):
            text = f"must have at most 253 characters and match regex {_SYSCTL}"
            found.append(errors.invalid(here, name, text))
        elif name in seen:
            found.append(errors.duplicate(here, name))
        dotted = name.replace("/", ".")
        if spec.get("hostNetwork") and dotted.startswith("net."):
            found.append(errors.invalid(here, name, "may not be specified when 'hostNetwork' is true"))
        elif spec.get("hostIPC") and (dotted.startswith(_IPC_SYSCTLS) or dotted == "kernel.sem"):
            found.append(errors.invalid(here, name, "may not be specified when 'hostIPC' is true"))
        seen.add(name)
    return found


def _profiles(path: str, context: Object) -> list[FieldError]:
    found: list[FieldError] = []
    if (seccomp := context.get("seccompProfile")) is not None:
        found += _seccomp(f"{path}.seccompProfile", seccomp)
    if (apparmor := context.get("appArmorProfile")) is not None:
        found += _apparmor(f"{path}.appArmorProfile", apparmor)
    return found


def _seccomp(path: str, profile: Object) -> list[FieldError]:
    found = _profile_type(path, profile.get("type"), "type is required when seccompProfile is set")
    local = profile.get("localhostProfile")
    if profile.get("type") == "Localhost":
        if local is None:
            text = "must be set when seccomp type is Localhost"
            return [*found, errors.required(f"{path}.localhostProfile", text)]
        return found + local_path(f"{path}.localhostProfile", local)
    if local is not None:
        shown = {"Type": profile.get("type"), "LocalhostProfile": local}
        text = "can only be set when seccomp type is Localhost"
        found.append(errors.invalid(f"{path}.localhostProfile", shown, text))
    return found


def _apparmor(path: str, profile: Object) -> list[FieldError]:
    kind, local = profile.get("type"), profile.get("localhostProfile")
    here = f"{path}.localhostProfile"
    if kind == "Localhost":
        if local is None or local == "":
            return [errors.required(here, "must be set when AppArmor type is Localhost")]
        if local.strip() != local:
            return [errors.invalid(here, local, "must not be padded with whitespace")]
        return [errors.too_long(here, 4095)] if len(local) > 4095 else []
    found = _profile_type(path, kind, "type is required when appArmorProfile is set")
    if not found and local is not None:
        found.append(errors.invalid(here, local, "can only be set when AppArmor type is Localhost"))
    return found


def _profile_type(path: str, kind: str | None, missing: str) -> list[FieldError]:
    if not kind:
        return [errors.required(f"{path}.type", missing)]
    return [] if kind in _PROFILES else [unsupported(f"{path}.type", kind, _PROFILES)]


def _internal_form(context: Object) -> Object:
    # Upstream shows its internal struct here: capitalised names, every field present.
    shown: Object = {name: context.get(name[0].lower() + name[1:]) for name in _INTERNAL_FIELDS}
    shown["SELinuxOptions"] = context.get("seLinuxOptions")
    if (capabilities := context.get("capabilities")) is not None:
        shown["Capabilities"] = {"Add": capabilities.get("add"), "Drop": capabilities.get("drop")}
    return shown


_INTERNAL_FIELDS = (
    *("Capabilities", "Privileged", "SELinuxOptions", "WindowsOptions", "RunAsUser", "RunAsGroup"),
    *("RunAsNonRoot", "ReadOnlyRootFilesystem", "AllowPrivilegeEscalation", "ProcMount"),
    *("SeccompProfile", "AppArmorProfile"),
)
