"""The volumes of a Pod: defaults and validation of each source.

Sources that Kubernetes no longer mounts are checked for their required fields only; the table says which.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from podium.api import names
from podium.api.kinds import Object
from podium.apiserver.kinds import metadata, quantities
from podium.apiserver.kinds.checks import each, one_of
from podium.apiserver.kinds.images import PULL_POLICIES, pull_policy
from podium.apiserver.kinds.pvcspec import default_claim_spec, validate_claim_spec
from podium.schema import fielderrors as errors
from podium.schema.fielderrors import FieldError

Check = Callable[[str, Object], list[FieldError]]

_MODE_MSG = "must be a number between 0 and 0777 (octal), both inclusive"
_MORE_THAN_ONE = "may not specify more than 1 volume type"
_HOST_PATH_TYPES = (
    "",
    "BlockDevice",
    "CharDevice",
    "Directory",
    "DirectoryOrCreate",
    "File",
    "FileOrCreate",
    "Socket",
)
_EVERY_MODE = 0o644

VOLUME_FIELDS = frozenset(
    ("metadata.annotations", "metadata.labels", "metadata.name", "metadata.namespace", "metadata.uid")
)
ENV_FIELDS = frozenset(
    {
        *("metadata.name", "metadata.namespace", "metadata.uid", "spec.nodeName", "spec.serviceAccountName"),
        *("status.hostIP", "status.hostIPs", "status.podIP", "status.podIPs"),
    }
)
_KNOWN_FIELDS = ENV_FIELDS | VOLUME_FIELDS | {"spec.restartPolicy", "status.phase", "spec.schedulerName"}
_RESOURCE_FIELDS = tuple(
    f"{kind}.{name}" for kind in ("limits", "requests") for name in ("cpu", "ephemeral-storage", "memory")
)
_BYTES = "1, 1k, 1M, 1G, 1T, 1P, 1E, 1Ki, 1Mi, 1Gi, 1Ti, 1Pi, 1Ei"


def default_volume(volume: Object) -> None:
    """Fill in one volume of a Pod, in place."""
    if len(volume) <= 1 and not any(source in volume for source in _SOURCES):
        volume["emptyDir"] = {}
        return
    for source in ("secret", "configMap", "downwardAPI", "projected"):
        if (found := volume.get(source)) is not None:
            found.setdefault("defaultMode", _EVERY_MODE)
    if (host_path := volume.get("hostPath")) is not None:
        host_path.setdefault("type", "")
    if (image := volume.get("image")) is not None and not image.get("pullPolicy"):
        image["pullPolicy"] = pull_policy(image.get("reference") or "")
    for item in (volume.get("downwardAPI") or {}).get("items") or ():
        _default_field_ref(item)
    for source in (volume.get("projected") or {}).get("sources") or ():
        if (token := source.get("serviceAccountToken")) is not None:
            token.setdefault("expirationSeconds", 3600)
        for item in (source.get("downwardAPI") or {}).get("items") or ():
            _default_field_ref(item)
    if template := (volume.get("ephemeral") or {}).get("volumeClaimTemplate"):
        default_claim_spec(template.setdefault("spec", {}))
    default_legacy_source(volume)


def default_legacy_source(source: Object) -> None:
    """Defaults of sources that Pods and PersistentVolumes share, in place."""
    for name, defaults in _LEGACY_DEFAULTS.items():
        if (found := source.get(name)) is not None:
            for key, value in defaults.items():
                if found.get(key) in (None, ""):
                    found[key] = value


def validate_volumes(
    path: str, volumes: list[Object], pod_name: str, *, is_pod: bool
) -> tuple[dict[str, Object], list[FieldError]]:
    """The usable volumes by name, and what is wrong with the others."""
    found: list[FieldError] = []
    usable: dict[str, Object] = {}
    created = {f"{pod_name}-{v.get('name')}" for v in volumes if v.get("ephemeral")} if pod_name else set()
    for i, volume in enumerate(volumes):
        here, name = f"{path}[{i}]", volume.get("name") or ""
        problems = _source(here, volume, pod_name, is_pod)
        problems += (
            each(f"{here}.name", name, names.dns_label(name)) if name else [errors.required(f"{here}.name")]
        )
        if name in usable:
            problems.append(errors.duplicate(f"{here}.name", name))
        if not problems:
            usable[name] = volume
        found += problems
        claim = (volume.get("persistentVolumeClaim") or {}).get("claimName")
        if claim in created:
            text = "must not reference a PVC that gets created for an ephemeral volume"
            found.append(errors.invalid(f"{here}.persistentVolumeClaim.claimName", claim, text))
    return usable, found


def validate_sources(path: str, holder: Object, checks: dict[str, Check]) -> list[FieldError]:
    """Exactly one source, and that one right; `checks` is in the order in which they are looked at."""
    found: list[FieldError] = []
    first = True
    for name, check in checks.items():
        if (source := holder.get(name)) is None:
            continue
        if first:
            found += check(f"{path}.{_ERROR_PATHS.get(name, name)}", source)
        elif name != "emptyDir":
            found.append(errors.forbidden(f"{path}.{name}", _MORE_THAN_ONE))
        first = False
    return [errors.required(path, "must specify a volume type")] if first else found


def no_backsteps(path: str, target: str) -> list[FieldError]:
    return [errors.invalid(path, target, "must not contain '..'")] if ".." in target.split("/") else []


def local_path(path: str, target: str) -> list[FieldError]:
    """A relative path that stays below where it starts."""
    found = [errors.invalid(path, target, "must be a relative path")] if target.startswith("/") else []
    return found + no_backsteps(path, target)


def validate_field_ref(path: str, ref: Object, supported: frozenset[str]) -> list[FieldError]:
    """A downward API field, as an environment variable or a file."""
    field = ref.get("fieldPath") or ""
    if not ref.get("apiVersion"):
        return [errors.required(f"{path}.apiVersion")]
    if not field:
        return [errors.required(f"{path}.fieldPath")]
    if subscript := re.fullmatch(r"(.*)\['(.*)'\]", field):
        base, key = subscript.groups()
        if base == "metadata.annotations":
            return each(path, key.lower(), names.qualified_name(key.lower()))
        if base == "metadata.labels":
            return each(path, key, names.qualified_name(key))
        text = f"error converting fieldPath: field label does not support subscript: {field}"
        return [errors.invalid(f"{path}.fieldPath", field, text)]
    if ref["apiVersion"] != "v1":
        text = f"error converting fieldPath: unsupported pod version: {ref['apiVersion']}"
        return [errors.invalid(f"{path}.fieldPath", field, text)]
    if field not in _KNOWN_FIELDS:
        text = f"error converting fieldPath: field label not supported: {field}"
        return [errors.invalid(f"{path}.fieldPath", field, text)]
    if field not in supported:
        return [errors.not_supported(f"{path}.fieldPath", field, supported)]
    return []


def validate_resource_ref(path: str, ref: Object, *, for_volume: bool) -> list[FieldError]:
    """A container's limit or request, as an environment variable or a file."""
    resource = ref.get("resource") or ""
    found: list[FieldError] = []
    if for_volume and not ref.get("containerName"):
        found.append(errors.required(f"{path}.containerName"))
    elif not resource:
        found.append(errors.required(f"{path}.resource"))
    elif resource not in _RESOURCE_FIELDS and not resource.startswith(
        ("limits.hugepages-", "requests.hugepages-")
    ):
        found.append(errors.not_supported(f"{path}.resource", resource, _RESOURCE_FIELDS))
    return found + _divisor(f"{path}.divisor", resource, ref.get("divisor") or "0")


def _divisor(path: str, resource: str, divisor: str) -> list[FieldError]:
    kind = resource.partition(".")[2]
    if quantities.nano(divisor) == 0 or not kind:
        return []
    if kind == "cpu":
        wrong, text = (
            divisor not in ("1m", "1"),
            "only divisor's values 1m and 1 are supported with the cpu resource",
        )
    else:
        words = {"memory": "memory", "ephemeral-storage": "local ephemeral storage"}
        word = words.get(kind) or ("hugepages" if kind.startswith("hugepages-") else None)
        if word is None:
            return []
        wrong = divisor not in _BYTES.split(", ")
        text = f"only divisor's values {_BYTES} are supported with the {word} resource"
    return [errors.invalid(path, resource, text)] if wrong else []


def _default_field_ref(item: Object) -> None:
    if (ref := item.get("fieldRef")) is not None and not ref.get("apiVersion"):
        ref["apiVersion"] = "v1"


def _source(path: str, volume: Object, pod_name: str, is_pod: bool) -> list[FieldError]:
    found = validate_sources(path, volume, _SOURCES)
    name = volume.get("name")
    if is_pod and (image := volume.get("image")) is not None and not image.get("reference"):
        found.append(errors.required(f"{path}.image.reference"))
    if volume.get("ephemeral") is not None and pod_name and name:
        claim = f"{pod_name}-{name}"
        found += each(f"{path}.name", name, [f'PVC name "{claim}": {m}' for m in names.dns_subdomain(claim)])
    return found


def _mode(path: str, mode: int | None) -> list[FieldError]:
    return [errors.invalid(path, mode, _MODE_MSG)] if mode is not None and not 0 <= mode <= 0o777 else []


def _needs(*fields: str) -> Check:
    def check(path: str, source: Object) -> list[FieldError]:
        return [errors.required(f"{path}.{field}") for field in fields if not source.get(field)]

    return check


def _disk(field: str) -> Check:
    def check(path: str, source: Object) -> list[FieldError]:
        found = _needs(field)(path, source)
        partition = source.get("partition") or 0
        if not 0 <= partition <= 255:
            found.append(errors.invalid(f"{path}.partition", partition, names.between(1, 255)))
        return found

    return check


def _empty_dir(path: str, source: Object) -> list[FieldError]:
    limit = source.get("sizeLimit")
    if limit is not None and quantities.nano(limit) < 0:
        return [errors.forbidden(f"{path}.sizeLimit", "SizeLimit field must be a valid resource quantity")]
    return []


def host_path(path: str, source: Object) -> list[FieldError]:
    target = source.get("path") or ""
    if not target:
        return [errors.required(f"{path}.path")]
    found = no_backsteps(f"{path}.path", target)
    if (kind := source.get("type")) is not None and kind not in _HOST_PATH_TYPES:
        found.append(errors.not_supported(f"{path}.type", kind, _HOST_PATH_TYPES))
    return found


def _git_repo(path: str, source: Object) -> list[FieldError]:
    return _needs("repository")(path, source) + local_path(f"{path}.directory", source.get("directory") or "")


def nfs(path: str, source: Object) -> list[FieldError]:
    found = _needs("server", "path")(path, source)
    target = source.get("path") or ""
    if not target.startswith("/"):
        found.append(errors.invalid(f"{path}.path", target, "must be an absolute path"))
    return found


def csi_driver_name(path: str, driver: str) -> list[FieldError]:
    if not driver:
        return [errors.required(path)]
    found = [errors.too_long(path, 63)] if len(driver) > 63 else []
    return found + each(path, driver, names.dns_subdomain(driver.lower()))


def _csi(path: str, source: Object) -> list[FieldError]:
    found = csi_driver_name(f"{path}.driver", source.get("driver") or "")
    if (ref := source.get("nodePublishSecretRef")) is not None:
        if name := ref.get("name"):
            found += each(f"{path}.name", name, names.dns_subdomain(name))
        else:
            found.append(errors.required(f"{path}.nodePublishSecretRef.name"))
    return found


def _items(path: str, items: list[Object]) -> list[FieldError]:
    found: list[FieldError] = []
    for i, item in enumerate(items):
        here, target = f"{path}[{i}]", item.get("path") or ""
        found += _needs("key", "path")(here, item)
        found += _file_path(f"{here}.path", target) + _mode(f"{here}.mode", item.get("mode"))
    return found


def _file_path(path: str, target: str) -> list[FieldError]:
    found = local_path(path, target)
    if target.startswith("..") and not target.startswith("../"):
        found.append(errors.invalid(path, target, "must not start with '..'"))
    return found


def _secret(path: str, source: Object) -> list[FieldError]:
    found = _needs("secretName")(path, source) + _mode(f"{path}.defaultMode", source.get("defaultMode"))
    return found + _items(f"{path}.items", source.get("items") or [])


def _config_map(path: str, source: Object) -> list[FieldError]:
    found = _needs("name")(path, source) + _mode(f"{path}.defaultMode", source.get("defaultMode"))
    return found + _items(f"{path}.items", source.get("items") or [])


def _downward_file(path: str, item: Object) -> list[FieldError]:
    found = _needs("path")(path, item) + _file_path(f"{path}.path", item.get("path") or "")
    field, resource = item.get("fieldRef"), item.get("resourceFieldRef")
    if field is not None:
        found += validate_field_ref(f"{path}.fieldRef", field, VOLUME_FIELDS)
        if resource is not None:
            text = "fieldRef and resourceFieldRef can not be specified simultaneously"
            found.append(errors.invalid(path, "resource", text))
    elif resource is not None:
        found += validate_resource_ref(f"{path}.resourceFieldRef", resource, for_volume=True)
    else:
        found.append(errors.required(path, "one of fieldRef and resourceFieldRef is required"))
    return found + _mode(f"{path}.mode", item.get("mode"))


def _downward_api(path: str, source: Object) -> list[FieldError]:
    found = _mode(f"{path}.defaultMode", source.get("defaultMode"))
    for item in source.get("items") or ():
        found += _downward_file(path, item)
    return found


def _projected(path: str, volume: Object) -> list[FieldError]:
    found = _mode(f"{path}.defaultMode", volume.get("defaultMode"))
    paths: set[str] = set()
    for i, source in enumerate(volume.get("sources") or ()):
        here = f"{path}.sources[{i}]"
        kinds = [kind for kind in _PROJECTIONS if source.get(kind) is not None]
        for kind in kinds:
            found += _PROJECTIONS[kind](f"{here}.{kind}", path, source[kind])
            for item in source[kind].get("items") or ():
                if (target := item.get("path")) in paths:
                    shown = target if kind == "downwardAPI" else source[kind].get("name")
                    found.append(errors.invalid(path, shown, "conflicting duplicate paths"))
                elif target:
                    paths.add(target)
        if len(kinds) > 1:
            found.append(errors.forbidden(here, f"{_MORE_THAN_ONE} per source"))
    return found


def _projected_items(path: str, volume_path: str, source: Object) -> list[FieldError]:
    return _needs("name")(path, source) + _items(f"{path}.items", source.get("items") or [])


def _projected_downward(path: str, volume_path: str, source: Object) -> list[FieldError]:
    return [e for item in source.get("items") or () for e in _downward_file(path, item)]


def _projected_token(path: str, volume_path: str, source: Object) -> list[FieldError]:
    found: list[FieldError] = []
    seconds = source.get("expirationSeconds") or 0
    if seconds < 600:
        text = "may not specify a duration less than 10 minutes"
        found.append(errors.invalid(f"{path}.expirationSeconds", seconds, text))
    if seconds > 2**32:
        text = "may not specify a duration larger than 2^32 seconds"
        found.append(errors.invalid(f"{path}.expirationSeconds", seconds, text))
    if target := source.get("path"):
        return found + _file_path(f"{volume_path}.path", target)
    return [*found, errors.required(f"{volume_path}.path")]


def _projected_other(path: str, volume_path: str, source: Object) -> list[FieldError]:
    return []


def _ephemeral(path: str, source: Object) -> list[FieldError]:
    here = f"{path}.volumeClaimTemplate"
    template = source.get("volumeClaimTemplate")
    if template is None:
        return [errors.required(here)]
    meta = template.get("metadata") or {}
    found = metadata.validate_annotations(f"{here}.metadata.annotations", meta.get("annotations") or {})
    found += metadata.validate_labels(f"{here}.metadata.labels", meta.get("labels") or {})
    for field in meta.keys() - {"annotations", "labels"}:
        if meta[field]:
            found.append(errors.forbidden(f"{here}.metadata.{field}", "cannot be set"))
    return found + validate_claim_spec(f"{here}.spec", template.get("spec") or {})


def _image(path: str, source: Object) -> list[FieldError]:
    return one_of(f"{path}.pullPolicy", source.get("pullPolicy"), PULL_POLICIES)


_PROJECTIONS: dict[str, Callable[[str, str, Object], list[FieldError]]] = {
    "secret": _projected_items,
    "configMap": _projected_items,
    "downwardAPI": _projected_downward,
    "serviceAccountToken": _projected_token,
    "clusterTrustBundle": _projected_other,
    "podCertificate": _projected_other,
}

# In the order in which a second source is noticed.
_SOURCES: dict[str, Check] = {
    "emptyDir": _empty_dir,
    "hostPath": host_path,
    "gitRepo": _git_repo,
    "gcePersistentDisk": _disk("pdName"),
    "awsElasticBlockStore": _disk("volumeID"),
    "secret": _secret,
    "nfs": nfs,
    "iscsi": _needs("targetPortal", "iqn"),
    "glusterfs": _needs("endpoints", "path"),
    "flocker": lambda path, source: [],
    "persistentVolumeClaim": _needs("claimName"),
    "rbd": _needs("monitors", "image"),
    "cinder": _needs("volumeID"),
    "cephfs": _needs("monitors"),
    "quobyte": _needs("registry", "volume"),
    "downwardAPI": _downward_api,
    "fc": lambda path, source: [],
    "flexVolume": _needs("driver"),
    "configMap": _config_map,
    "azureFile": _needs("secretName", "shareName"),
    "vsphereVolume": _needs("volumePath"),
    "photonPersistentDisk": _needs("pdID"),
    "portworxVolume": _needs("volumeID"),
    "azureDisk": _needs("diskName", "diskURI"),
    "storageos": _needs("volumeName"),
    "projected": _projected,
    "scaleIO": _needs("gateway", "system", "volumeName"),
    "csi": _csi,
    "ephemeral": _ephemeral,
    "image": _image,
}
# Where upstream's path differs from the field's name.
_ERROR_PATHS = {"gcePersistentDisk": "persistentDisk", "flexVolume": "flexVolume"}

_LEGACY_DEFAULTS: dict[str, Object] = {
    "iscsi": {"iscsiInterface": "default"},
    "rbd": {"pool": "rbd", "user": "admin", "keyring": "/etc/ceph/keyring"},
    "azureDisk": {"cachingMode": "ReadWrite", "fsType": "ext4", "readOnly": False, "kind": "Shared"},
    "scaleIO": {"storageMode": "ThinProvisioned", "fsType": "xfs"},
}
