"""Rows of volumes, claims, and what provides and attaches them."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from podium.api.kinds import Object
from podium.apiserver.tables.printer import (
    AGE,
    NAME,
    NONE,
    UNSET,
    Printer,
    age,
    column,
    flag,
    number,
    wide,
)

_ACCESS_MODES = {
    "ReadWriteOnce": "RWO",
    "ReadOnlyMany": "ROX",
    "ReadWriteMany": "RWX",
    "ReadWriteOncePod": "RWOP",
}
_CLASS = "volume.beta.kubernetes.io/storage-class"  # older than the field, and it still wins
_DEFAULT_CLASS = (
    "storageclass.kubernetes.io/is-default-class",
    "storageclass.beta.kubernetes.io/is-default-class",
)


def _access_modes(modes: list[str] | None) -> str:
    return ",".join([short for mode, short in _ACCESS_MODES.items() if mode in modes]) if modes else ""


def _storage_class(obj: Object) -> str:
    annotations = obj["metadata"].get("annotations") or {}
    if _CLASS in annotations:
        return str(annotations[_CLASS])
    return (obj.get("spec") or {}).get("storageClassName") or ""


def _phase(obj: Object) -> str:
    if obj["metadata"].get("deletionTimestamp"):
        return "Terminating"
    return (obj.get("status") or {}).get("phase", "")  # type: ignore[no-any-return]


def _or_unset(spec: Object, field: str) -> str:
    return UNSET if spec.get(field) is None else spec[field]


def _volume_cells(obj: Object, now: datetime) -> list[Any]:
    spec, claim = obj.get("spec") or {}, (obj.get("spec") or {}).get("claimRef")
    return [
        obj["metadata"].get("name", ""),
        (spec.get("capacity") or {}).get("storage", "0"),
        _access_modes(spec.get("accessModes")),
        spec.get("persistentVolumeReclaimPolicy", ""),
        _phase(obj),
        "" if claim is None else f"{claim.get('namespace', '')}/{claim.get('name', '')}",
        _storage_class(obj),
        _or_unset(spec, "volumeAttributesClassName"),
        (obj.get("status") or {}).get("reason", ""),
        age(obj, now),
        _or_unset(spec, "volumeMode"),
    ]


def _claim_cells(obj: Object, now: datetime) -> list[Any]:
    spec, status = obj.get("spec") or {}, obj.get("status") or {}
    bound = bool(spec.get("volumeName"))
    return [
        obj["metadata"].get("name", ""),
        _phase(obj),
        spec.get("volumeName", ""),
        (status.get("capacity") or {}).get("storage", "0") if bound else "",
        _access_modes(status.get("accessModes")) if bound else "",
        _storage_class(obj),
        _or_unset(spec, "volumeAttributesClassName"),
        age(obj, now),
        _or_unset(spec, "volumeMode"),
    ]


def _storage_class_cells(obj: Object, now: datetime) -> list[Any]:
    annotations, name = obj["metadata"].get("annotations") or {}, obj["metadata"].get("name", "")
    return [
        f"{name} (default)" if any(annotations.get(key) == "true" for key in _DEFAULT_CLASS) else name,
        obj.get("provisioner", ""),
        obj.get("reclaimPolicy", "Delete"),
        obj.get("volumeBindingMode", "Immediate"),
        bool(obj.get("allowVolumeExpansion")),
        age(obj, now),
    ]


def _attributes_class_cells(obj: Object, now: datetime) -> list[Any]:
    return [obj["metadata"].get("name", ""), obj.get("driverName", ""), age(obj, now)]


def _attachment_cells(obj: Object, now: datetime) -> list[Any]:
    spec = obj.get("spec") or {}
    return [
        obj["metadata"].get("name", ""),
        spec.get("attacher", ""),
        (spec.get("source") or {}).get("persistentVolumeName") or "",
        spec.get("nodeName", ""),
        bool((obj.get("status") or {}).get("attached")),
        age(obj, now),
    ]


def _csi_node_cells(obj: Object, now: datetime) -> list[Any]:
    return [obj["metadata"].get("name", ""), len((obj.get("spec") or {}).get("drivers") or ()), age(obj, now)]


def _csi_driver_cells(obj: Object, now: datetime) -> list[Any]:
    spec = obj.get("spec") or {}
    tokens = spec.get("tokenRequests")
    return [
        obj["metadata"].get("name", ""),
        spec.get("attachRequired") is not False,
        bool(spec.get("podInfoOnMount")),
        bool(spec.get("storageCapacity")),
        UNSET if tokens is None else ",".join([token.get("audience", "") for token in tokens]),
        bool(spec.get("requiresRepublish")),
        ",".join(spec.get("volumeLifecycleModes") or ()) or NONE,
        age(obj, now),
    ]


_VOLUME = Printer(
    (
        NAME,
        column("Capacity", "Size of the volume"),
        column("Access Modes", "Ways in which the volume can be mounted"),
        column("Reclaim Policy", "What happens to the volume when its claim goes"),
        column("Status", "Whether the volume is available, bound or released"),
        column("Claim", "Claim that the volume is bound to"),
        column("StorageClass", "StorageClass of the volume"),
        column("VolumeAttributesClass", "VolumeAttributesClass of the volume"),
        column("Reason", "Why the volume is in a failed state"),
        AGE,
        wide("VolumeMode", "Whether the volume has a file system or is a raw device"),
    ),
    _volume_cells,
)

_CLAIM = Printer(
    (
        NAME,
        column("Status", "Whether the claim is pending, bound or lost"),
        column("Volume", "Volume that the claim is bound to"),
        column("Capacity", "Size of that volume"),
        column("Access Modes", "Ways in which that volume can be mounted"),
        column("StorageClass", "StorageClass that the claim asks for"),
        column("VolumeAttributesClass", "VolumeAttributesClass that the claim asks for"),
        AGE,
        wide("VolumeMode", "Whether the volume has a file system or is a raw device"),
    ),
    _claim_cells,
)

_STORAGE_CLASS = Printer(
    (
        NAME,
        column("Provisioner", "Who makes volumes of the class"),
        column("ReclaimPolicy", "What happens to a volume when its claim goes"),
        column("VolumeBindingMode", "When volumes are made and bound"),
        column("AllowVolumeExpansion", "Whether volumes can grow"),
        AGE,
    ),
    _storage_class_cells,
)

_ATTACHMENT = Printer(
    (
        NAME,
        column("Attacher", "Driver that attaches the volume", format_="name"),
        column("PV", "Volume to attach"),
        column("Node", "Node to attach it to"),
        flag("Attached", "Whether it is attached"),
        AGE,
    ),
    _attachment_cells,
)

_CSI_DRIVER = Printer(
    (
        NAME,
        flag("AttachRequired", "Whether volumes have to be attached before they are mounted"),
        flag("PodInfoOnMount", "Whether the driver is told about the Pod it mounts for"),
        flag("StorageCapacity", "Whether the scheduler considers the capacity that the driver reports"),
        column("TokenRequests", "Audiences of the service account tokens that the driver gets"),
        flag("RequiresRepublish", "Whether the driver is called again while a volume is mounted"),
        column("Modes", "Kinds of volumes that the driver supports"),
        AGE,
    ),
    _csi_driver_cells,
)

PRINTERS = {
    ("", "persistentvolumes"): _VOLUME,
    ("", "persistentvolumeclaims"): _CLAIM,
    ("storage.k8s.io", "storageclasses"): _STORAGE_CLASS,
    ("storage.k8s.io", "volumeattributesclasses"): Printer(
        (NAME, column("DriverName", "Driver that understands the attributes"), AGE), _attributes_class_cells
    ),
    ("storage.k8s.io", "volumeattachments"): _ATTACHMENT,
    ("storage.k8s.io", "csinodes"): Printer(
        (NAME, number("Drivers", "Drivers on the node"), AGE), _csi_node_cells
    ),
    ("storage.k8s.io", "csidrivers"): _CSI_DRIVER,
}
