"""PersistentVolumes and the claims on them."""

from __future__ import annotations

import posixpath
from typing import ClassVar

from podium.api import names
from podium.api.kinds import Object
from podium.apiserver.kinds import quantities
from podium.apiserver.kinds.affinity import validate_node_selector
from podium.apiserver.kinds.base import KindStrategy
from podium.apiserver.kinds.checks import (
    annotations_of,
    difference,
    each,
    go_order,
    immutable,
    restore,
    same,
    unsupported,
)
from podium.apiserver.kinds.podwarnings import warn_node_term
from podium.apiserver.kinds.pvcspec import (
    VOLUME_MODES,
    default_claim_spec,
    validate_access_modes,
    validate_claim_spec,
    warn_claim_spec,
)
from podium.apiserver.kinds.resources import default_resource_list, positive_quantity, validate_basic
from podium.apiserver.kinds.volumes import (
    Check,
    csi_driver_name,
    default_legacy_source,
    host_path,
    nfs,
    no_backsteps,
    validate_sources,
)
from podium.schema import fielderrors as errors
from podium.schema.fielderrors import FieldError

_CLASS_ANNOTATION = "volume.beta.kubernetes.io/storage-class"
_CLASS_DEPRECATED = 'deprecated since v1.8; use "storageClassName" attribute instead'
_MOUNT_ANNOTATION = "volume.beta.kubernetes.io/mount-options"
_MOUNT_DEPRECATED = 'deprecated since v1.31; use "mountOptions" attribute instead'
_RECYCLE = (
    "The Recycle reclaim policy is deprecated. Instead, the recommended approach is to use dynamic "
    "provisioning."
)
_CLAIM_IMMUTABLE = (
    "spec is immutable after creation except resources.requests and volumeAttributesClassName for bound "
    "claims"
)
_RESIZE_STATES = (
    "ControllerResizeInProgress",
    "ControllerResizeInfeasible",
    "NodeResizeInProgress",
    "NodeResizeInfeasible",
    "NodeResizePending",
)


class PersistentVolumeStrategy(KindStrategy):
    namespaced = False
    empty_status: ClassVar[Object | None] = {"phase": "Pending"}

    def default(self, obj: Object) -> None:
        spec = obj.setdefault("spec", {})
        status = obj.get("status")
        if status is None:
            status = obj["status"] = {}
        if not status.get("phase"):
            status["phase"] = "Pending"
        if not spec.get("persistentVolumeReclaimPolicy"):
            spec["persistentVolumeReclaimPolicy"] = "Retain"
        if spec.get("volumeMode") is None:
            spec["volumeMode"] = "Filesystem"
        if (path := spec.get("hostPath")) is not None:
            path.setdefault("type", "")
        default_legacy_source(spec)
        default_resource_list(spec.get("capacity"))

    def prepare_create(self, obj: Object) -> None:
        obj["status"] = {"phase": "Pending"}
        if created := (obj.get("metadata") or {}).get("creationTimestamp"):
            obj["status"]["lastPhaseTransitionTime"] = created

    def prepare_status(self, new: Object, old: Object) -> None:
        super().prepare_status(new, old)
        status, before = new.setdefault("status", {}), old.get("status") or {}
        if status.get("phase") == before.get("phase") and not status.get("lastPhaseTransitionTime"):
            restore(status, before, "lastPhaseTransitionTime")

    def validate(self, obj: Object, old: Object | None) -> list[FieldError]:
        found = validate_volume_spec("spec", obj.get("spec") or {})
        if _MOUNT_ANNOTATION in annotations_of(obj) and not _MOUNTABLE & (obj.get("spec") or {}).keys():
            text = "may not specify mount options for this volume type"
            found.append(errors.forbidden(f"metadata.annotations.{_MOUNT_ANNOTATION}", text))
        return found

    def validate_change(self, new: Object, old: Object) -> list[FieldError]:
        spec, before = new.get("spec") or {}, old.get("spec") or {}
        found: list[FieldError] = []
        source, old_source = _source(spec), _source(before)
        expand = "controllerExpandSecretRef"
        if expand in (source.get("csi") or {}) and expand not in (old_source.get("csi") or {expand: None}):
            source = {**source, "csi": {k: v for k, v in source["csi"].items() if k != expand}}
        if not same(source, old_source):
            text = "spec.persistentvolumesource is immutable after creation"
            diff = difference(old_source, source)
            found.append(errors.forbidden("spec.persistentvolumesource", f"{text}\n{diff}"))
        found += immutable("volumeMode", spec.get("volumeMode"), before.get("volumeMode"))
        if before.get("nodeAffinity") is not None:
            found += immutable("nodeAffinity", spec.get("nodeAffinity"), before["nodeAffinity"])
        if (
            before.get("volumeAttributesClassName") is not None
            and spec.get("volumeAttributesClassName") is None
        ):
            text = "update from non-nil value to nil is forbidden"
            found.append(errors.forbidden("spec.volumeAttributesClassName", text))
        return found

    def warnings(self, obj: Object, old: Object | None) -> list[str]:
        spec, annotations, found = obj.get("spec") or {}, annotations_of(obj), []
        for key, text in ((_CLASS_ANNOTATION, _CLASS_DEPRECATED), (_MOUNT_ANNOTATION, _MOUNT_DEPRECATED)):
            if key in annotations:
                found.append(f"metadata.annotations[{key}]: {text}")
        if spec.get("persistentVolumeReclaimPolicy") == "Recycle":
            found.append(f"spec.persistentVolumeReclaimPolicy: {_RECYCLE}")
        required = (spec.get("nodeAffinity") or {}).get("required") or {}
        for i, term in enumerate(required.get("nodeSelectorTerms") or ()):
            found += warn_node_term(f"spec.nodeAffinity.required.nodeSelectorTerms[{i}]", term)
        return found


class PersistentVolumeClaimStrategy(KindStrategy):
    empty_status: ClassVar[Object | None] = {}

    def default(self, obj: Object) -> None:
        status = obj.get("status")
        if status is None:
            status = obj["status"] = {}
        if not status.get("phase"):
            status["phase"] = "Pending"
        default_claim_spec(obj.setdefault("spec", {}))

    def prepare_create(self, obj: Object) -> None:
        # Upstream clears the phase and defaults it again when it reads the object back.
        obj["status"] = {"phase": "Pending"}
        _align_data_sources(obj.get("spec") or {})

    def prepare_update(self, new: Object, old: Object) -> None:
        super().prepare_update(new, old)
        _align_data_sources(new.get("spec") or {})

    def validate(self, obj: Object, old: Object | None) -> list[FieldError]:
        return validate_claim_spec("spec", obj.get("spec") or {})

    def validate_change(self, new: Object, old: Object) -> list[FieldError]:
        spec, before = new.get("spec") or {}, old.get("spec") or {}
        bound = (new.get("status") or {}).get("phase") == "Bound"
        found = _class_annotation_change(new, old)
        munged, expected = _with_allowed_changes_undone(new, old, bound=bound)
        if not same(munged, expected):
            diff = difference(expected, munged)
            found.append(errors.forbidden("spec", f"{_CLAIM_IMMUTABLE}\n{diff}"))
        size, old_size = _storage(spec), _storage(before)
        capacity = ((old.get("status") or {}).get("capacity") or {}).get("storage") or "0"
        if quantities.nano(size) < quantities.nano(old_size) and quantities.nano(size) <= quantities.nano(
            capacity
        ):
            text = "field can not be less than status.capacity"
            found.append(errors.forbidden("spec.resources.requests.storage", text))
        return found + immutable("volumeMode", spec.get("volumeMode"), before.get("volumeMode"))

    def validate_status_change(self, new: Object, old: Object) -> list[FieldError]:
        status = new.get("status") or {}
        found: list[FieldError] = []
        for name, amount in (status.get("capacity") or {}).items():
            found += validate_basic(f"status.capacity[{name}]", amount)
        for key, state in (status.get("allocatedResourceStatuses") or {}).items():
            if state not in _RESIZE_STATES:
                found.append(unsupported("status.allocatedResourceStatuses", key, sorted(_RESIZE_STATES)))
        return found

    def warnings(self, obj: Object, old: Object | None) -> list[str]:
        found = []
        if _CLASS_ANNOTATION in annotations_of(obj):
            found.append(f"metadata.annotations[{_CLASS_ANNOTATION}]: {_CLASS_DEPRECATED}")
        return found + warn_claim_spec("spec", obj.get("spec") or {})


def validate_volume_spec(path: str, spec: Object, *, inline: bool = False) -> list[FieldError]:
    """The spec of a volume; `inline` where it stands inside a VolumeAttachment."""
    found = _inline_rules(path, spec) if inline else []
    modes = spec.get("accessModes") or []
    if not modes:
        found.append(errors.required(f"{path}.accessModes"))
    found += validate_access_modes(f"{path}.accessModes", modes)
    policy = spec.get("persistentVolumeReclaimPolicy") or ""
    if not inline:
        found += _capacity(f"{path}.capacity", spec.get("capacity") or {})
        policies = ("Delete", "Recycle", "Retain")
        if policy and policy not in policies:
            found.append(unsupported(f"{path}.persistentVolumeReclaimPolicy", policy, policies))
        found += _node_affinity(f"{path}.nodeAffinity", spec)
    found += validate_sources(path, spec, _SOURCES)
    host = (spec.get("hostPath") or {}).get("path")
    if host and posixpath.normpath(host) == "/" and policy == "Recycle":
        text = "may not be 'recycle' for a hostPath mount of '/'"
        found.append(errors.forbidden(f"{path}.persistentVolumeReclaimPolicy", text))
    if (name := spec.get("storageClassName")) and not inline:
        found += each(f"{path}.storageClassName", name, names.dns_subdomain(name))
    if (mode := spec.get("volumeMode")) is not None and not inline and mode not in VOLUME_MODES:
        found.append(unsupported(f"{path}.volumeMode", mode, VOLUME_MODES))
    return found + _attributes_class(path, spec)


def _inline_rules(path: str, spec: Object) -> list[FieldError]:
    text = "may not be specified in the context of inline volumes"
    fields = ("claimRef", "capacity", "nodeAffinity", "storageClassName")
    found = [errors.forbidden(f"{path}.{field}", text) for field in fields if spec.get(field)]
    if spec.get("csi") is None:
        found.append(errors.required(f"{path}.csi", "has to be specified in the context of inline volumes"))
    return found


def _capacity(path: str, capacity: Object) -> list[FieldError]:
    found = [] if capacity else [errors.required(path)]
    if set(capacity) != {"storage"}:
        found.append(unsupported(path, go_order(capacity) or None, ("storage",)))
    for name, amount in capacity.items():
        found += validate_basic(f"{path}[{name}]", amount) + positive_quantity(f"{path}[{name}]", amount)
    return found


def _node_affinity(path: str, spec: Object) -> list[FieldError]:
    affinity = spec.get("nodeAffinity")
    found: list[FieldError] = []
    if affinity is not None:
        if affinity.get("required") is None:
            found.append(errors.required(f"{path}.required", "must specify required node constraints"))
        else:
            found += validate_node_selector(f"{path}.required", affinity["required"])
    elif next(iter(_source(spec)), None) == "local":
        found.append(errors.required(path, "Local volume requires node affinity"))
    return found


def _attributes_class(path: str, spec: Object) -> list[FieldError]:
    name = spec.get("volumeAttributesClassName")
    if name is None:
        return []
    here = f"{path}.volumeAttributesClassName"
    found = (
        each(here, name, names.dns_subdomain(name))
        if name
        else [errors.required(here, "an empty string is disallowed")]
    )
    if spec.get("csi") is None:
        found.append(
            errors.required(f"{path}.csi", "has to be specified when using volumeAttributesClassName")
        )
    return found


def _needs(*fields: str) -> Check:
    def check(path: str, source: Object) -> list[FieldError]:
        return [errors.required(f"{path}.{field}") for field in fields if not source.get(field)]

    return check


def _local(path: str, source: Object) -> list[FieldError]:
    target = source.get("path") or ""
    return no_backsteps(f"{path}.path", target) if target else [errors.required(f"{path}.path")]


def _csi(path: str, source: Object) -> list[FieldError]:
    found = csi_driver_name(f"{path}.driver", source.get("driver") or "")
    if not source.get("volumeHandle"):
        found.append(errors.required(f"{path}.volumeHandle"))
    for field in _CSI_SECRETS:
        if (ref := source.get(field)) is not None:
            found += _secret_ref(f"{path}.{field}", ref)
    return found


def _secret_ref(path: str, ref: Object) -> list[FieldError]:
    found: list[FieldError] = []
    for field, rule in (("name", names.dns_subdomain), ("namespace", names.dns_label)):
        value = ref.get(field) or ""
        found += (
            each(f"{path}.{field}", value, rule(value)) if value else [errors.required(f"{path}.{field}")]
        )
    return found


_CSI_SECRETS = (
    "controllerPublishSecretRef",
    "controllerExpandSecretRef",
    "nodePublishSecretRef",
    "nodeExpandSecretRef",
)
_SOURCES: dict[str, Check] = {
    "hostPath": host_path,
    "gcePersistentDisk": _needs("pdName"),
    "awsElasticBlockStore": _needs("volumeID"),
    "glusterfs": _needs("endpoints", "path"),
    "flocker": lambda path, source: [],
    "nfs": nfs,
    "rbd": _needs("monitors", "image"),
    "quobyte": _needs("registry", "volume"),
    "cephfs": _needs("monitors"),
    "iscsi": _needs("targetPortal", "iqn"),
    "cinder": _needs("volumeID"),
    "fc": lambda path, source: [],
    "flexVolume": _needs("driver"),
    "azureFile": _needs("secretName", "shareName"),
    "vsphereVolume": _needs("volumePath"),
    "photonPersistentDisk": _needs("pdID"),
    "portworxVolume": _needs("volumeID"),
    "azureDisk": _needs("diskName", "diskURI"),
    "scaleIO": _needs("gateway", "system", "volumeName"),
    "local": _local,
    "storageos": _needs("volumeName"),
    "csi": _csi,
}
_MOUNTABLE = {
    *("gcePersistentDisk", "awsElasticBlockStore", "glusterfs", "nfs", "rbd", "quobyte", "iscsi", "cinder"),
    *("cephfs", "azureFile", "vsphereVolume", "azureDisk", "photonPersistentDisk"),
}


def _source(spec: Object) -> Object:
    return {field: spec[field] for field in _SOURCES if spec.get(field) is not None}


def _storage(spec: Object) -> str:
    size: str = ((spec.get("resources") or {}).get("requests") or {}).get("storage") or "0"
    return size


def _align_data_sources(spec: Object) -> None:
    """The older and the newer field for where a volume's content comes from say the same; in place."""
    source, ref = spec.get("dataSource"), spec.get("dataSourceRef")
    if (
        source is not None
        and not (
            (source.get("kind") == "PersistentVolumeClaim" and not source.get("apiGroup"))
            or (
                source.get("kind") == "VolumeSnapshot" and source.get("apiGroup") == "snapshot.storage.k8s.io"
            )
        )
        and ref is None
    ):
        # Anything else in the older field was always ignored.
        spec.pop("dataSource")
        source = None
    keys = ("apiGroup", "kind", "name")
    if source is not None and ref is None:
        spec["dataSourceRef"] = {key: source[key] for key in keys if key in source}
    elif ref is not None and source is None and not ref.get("namespace"):
        spec["dataSource"] = {key: ref[key] for key in keys if key in ref}


def _class_annotation_change(new: Object, old: Object) -> list[FieldError]:
    after, before = annotations_of(new).get(_CLASS_ANNOTATION), annotations_of(old).get(_CLASS_ANNOTATION)
    if (after or "") == (before or "") or _moved_to_field(new, old):
        return []
    where = f"metadata.annotations.{_CLASS_ANNOTATION}"
    return [errors.invalid(where, after or "", "field is immutable")]


def _moved_to_field(new: Object, old: Object) -> bool:
    before = annotations_of(old).get(_CLASS_ANNOTATION)
    unset = (old.get("spec") or {}).get("storageClassName") is None
    kept = annotations_of(new).get(_CLASS_ANNOTATION) in (None, before)
    return before is not None and unset and (new.get("spec") or {}).get("storageClassName") == before and kept


def _with_allowed_changes_undone(new: Object, old: Object, *, bound: bool) -> tuple[Object, Object]:
    spec, before = dict(new.get("spec") or {}), dict(old.get("spec") or {})
    if not before.get("volumeName"):
        restore(before, spec, "volumeName")
    annotation = annotations_of(old).get(_CLASS_ANNOTATION)
    given = spec.get("storageClassName")
    if before.get("storageClassName") is None and given is not None and annotation in (None, given):
        spec.pop("storageClassName")
    if bound:
        restore(spec, before, "volumeAttributesClassName")
        resources = dict(spec.get("resources") or {})
        if resources.get("requests"):
            resources["requests"] = {**resources["requests"], "storage": _storage(before)}
            spec["resources"] = resources
    return spec, before
