"""Storage classes, CSI drivers and what they report, volume attachments."""

from __future__ import annotations

from typing import ClassVar

from podium.api import names
from podium.api.kinds import Object
from podium.apiserver.kinds import metadata
from podium.apiserver.kinds.base import KindStrategy
from podium.apiserver.kinds.checks import IMMUTABLE, each, immutable, not_negative, same, unsupported
from podium.apiserver.kinds.persistentvolumes import validate_volume_spec
from podium.apiserver.kinds.resources import not_negative_quantity
from podium.apiserver.kinds.volumes import csi_driver_name
from podium.schema import fielderrors as errors
from podium.schema.fielderrors import FieldError

_PARAMETERS_SIZE = 256 * 1024
_GROUP_POLICIES = ("File", "None", "ReadWriteOnceWithFSType")
_ONE_SOURCE = "must specify exactly one of inlineVolumeSpec and persistentVolumeName"


class StorageClassStrategy(KindStrategy):
    namespaced = False

    def default(self, obj: Object) -> None:
        if obj.get("reclaimPolicy") is None:
            obj["reclaimPolicy"] = "Delete"
        if obj.get("volumeBindingMode") is None:
            obj["volumeBindingMode"] = "Immediate"

    def validate(self, obj: Object, old: Object | None) -> list[FieldError]:
        found = _provisioner("provisioner", obj.get("provisioner") or "")
        found += _parameters(obj.get("parameters") or {})
        policy, mode = obj.get("reclaimPolicy"), obj.get("volumeBindingMode")
        if policy and policy not in ("Delete", "Retain"):
            found.append(unsupported("reclaimPolicy", policy, ("Delete", "Retain")))
        modes = ("Immediate", "WaitForFirstConsumer")
        if mode not in modes:
            found.append(unsupported("volumeBindingMode", mode, modes))
        return found + _topologies(obj.get("allowedTopologies") or [])

    def validate_change(self, new: Object, old: Object) -> list[FieldError]:
        found = immutable("parameters", new.get("parameters"), old.get("parameters"))
        for field in ("provisioner", "reclaimPolicy", "volumeBindingMode"):
            found += immutable(field, new.get(field), old.get(field))
        return found


class VolumeAttributesClassStrategy(KindStrategy):
    namespaced = False

    def validate(self, obj: Object, old: Object | None) -> list[FieldError]:
        parameters = obj.get("parameters") or {}
        found = _provisioner("driverName", obj.get("driverName") or "") + _parameters(parameters)
        if not parameters:
            found.append(errors.required("parameters", "must contain at least one key/value pair"))
        return found

    def validate_change(self, new: Object, old: Object) -> list[FieldError]:
        return [
            errors.forbidden(field, f"updates to {field} are forbidden.")
            for field in ("driverName", "parameters")
            if new.get(field) != old.get(field)
        ]


class CSIDriverStrategy(KindStrategy):
    namespaced = False
    unconditional_update = False

    def default(self, obj: Object) -> None:
        spec = obj.setdefault("spec", {})
        for field, value in (
            ("attachRequired", True),
            ("podInfoOnMount", False),
            ("storageCapacity", False),
            ("fsGroupPolicy", "ReadWriteOnceWithFSType"),
            ("requiresRepublish", False),
            ("seLinuxMount", False),
        ):
            if spec.get(field) is None:
                spec[field] = value
        if not spec.get("volumeLifecycleModes"):
            spec["volumeLifecycleModes"] = ["Persistent"]

    def validate(self, obj: Object, old: Object | None) -> list[FieldError]:
        spec = obj.get("spec") or {}
        found: list[FieldError] = []
        if (policy := spec.get("fsGroupPolicy")) not in _GROUP_POLICIES:
            found.append(unsupported("spec.fsGroupPolicy", policy, _GROUP_POLICIES))
        found += _token_requests(spec.get("tokenRequests") or [])
        for mode in spec.get("volumeLifecycleModes") or ():
            if mode not in ("Persistent", "Ephemeral"):
                found.append(unsupported("spec.volumeLifecycleModes", mode, ("Persistent", "Ephemeral")))
        period = spec.get("nodeAllocatableUpdatePeriodSeconds")
        if period is not None and period < 10:
            text = "must be greater than or equal to 10 seconds"
            found.append(errors.invalid("spec.nodeAllocatableUpdatePeriodSeconds", period, text))
        secrets = spec.get("serviceAccountTokenInSecrets")
        if secrets is not None and not spec.get("tokenRequests"):
            text = "serviceAccountTokenInSecrets is set but no tokenRequests are specified"
            found.append(errors.invalid("spec.serviceAccountTokenInSecrets", secrets, text))
        return found

    def validate_change(self, new: Object, old: Object) -> list[FieldError]:
        spec, before = new.get("spec") or {}, old.get("spec") or {}
        found = immutable("spec.attachedRequired", spec.get("attachRequired"), before.get("attachRequired"))
        modes = "volumeLifecycleModes"
        return found + immutable(f"spec.{modes}", spec.get(modes), before.get(modes))


class CSINodeStrategy(KindStrategy):
    namespaced = False
    unconditional_update = False

    def validate(self, obj: Object, old: Object | None) -> list[FieldError]:
        found: list[FieldError] = []
        seen: set[str] = set()
        for i, driver in enumerate((obj.get("spec") or {}).get("drivers") or ()):
            here, name, node = f"spec.drivers[{i}]", driver.get("name") or "", driver.get("nodeID") or ""
            found += csi_driver_name(f"{here}.name", name)
            if not node:
                found.append(errors.required(f"{here}.nodeID"))
            if len(node) > 256:
                found.append(errors.invalid(f"{here}.nodeID", node, "must be 256 characters or less"))
            found += not_negative(f"{here}.allocatable.count", (driver.get("allocatable") or {}).get("count"))
            if name in seen:
                found.append(errors.duplicate(f"{here}.name", name))
            seen.add(name)
            keys = driver.get("topologyKeys") or []
            for j, key in enumerate(keys):
                if not key:
                    found.append(errors.required(here))
                if key in keys[:j]:
                    found.append(errors.duplicate(here, key))
                found += each(here, key, names.qualified_name(key))
        return found

    def validate_change(self, new: Object, old: Object) -> list[FieldError]:
        found: list[FieldError] = []
        before = {d.get("name"): d for d in (old.get("spec") or {}).get("drivers") or ()}
        for driver in (new.get("spec") or {}).get("drivers") or ():
            earlier = before.get(driver.get("name"))
            fields = ("nodeID", "topologyKeys")
            if earlier is not None and any(not same(driver.get(f), earlier.get(f)) for f in fields):
                shown = {"Name": driver.get("name"), "NodeID": driver.get("nodeID") or ""}
                shown |= {"TopologyKeys": driver.get("topologyKeys"), "Allocatable": None}
                found.append(errors.invalid("spec.drivers", shown, IMMUTABLE))
        return found


class CSIStorageCapacityStrategy(KindStrategy):
    unconditional_update = False

    def validate(self, obj: Object, old: Object | None) -> list[FieldError]:
        name, capacity = obj.get("storageClassName") or "", obj.get("capacity")
        found = metadata.validate_selector("nodeTopology", obj.get("nodeTopology"))
        found += each("storageClassName", name, names.dns_subdomain(name))
        return found + (not_negative_quantity("capacity", capacity) if capacity is not None else [])

    def validate_change(self, new: Object, old: Object) -> list[FieldError]:
        fields = ("nodeTopology", "storageClassName")
        return [e for field in fields for e in immutable(field, new.get(field), old.get(field))]


class VolumeAttachmentStrategy(KindStrategy):
    namespaced = False
    unconditional_update = False
    empty_status: ClassVar[Object | None] = {"attached": False}

    def validate(self, obj: Object, old: Object | None) -> list[FieldError]:
        spec = obj.get("spec") or {}
        node, source = spec.get("nodeName") or "", spec.get("source") or {}
        volume, inline = source.get("persistentVolumeName"), source.get("inlineVolumeSpec")
        found = csi_driver_name("spec.attacher", spec.get("attacher") or "")
        if volume is None and inline is None:
            found.append(errors.required("spec.source", _ONE_SOURCE))
        elif volume is not None and inline is not None:
            found.append(errors.forbidden("spec.source", _ONE_SOURCE))
        elif inline is not None:
            found += validate_volume_spec("spec.source.inlineVolumeSpec", inline, inline=True)
        elif not volume:
            text = "must specify non empty persistentVolumeName"
            found.append(errors.required("spec.source.persistentVolumeName", text))
        found += each("spec.nodeName", node, names.dns_subdomain(node))
        if volume is not None:
            found += each("spec.source.persistentVolumeName", volume, names.dns_subdomain(volume))
        return found

    def validate_change(self, new: Object, old: Object) -> list[FieldError]:
        spec = new.get("spec") or {}
        source = spec.get("source") or {}
        # Upstream shows its internal struct here.
        shown = {
            "Attacher": spec.get("attacher") or "",
            "Source": {
                "PersistentVolumeName": source.get("persistentVolumeName"),
                "InlineVolumeSpec": source.get("inlineVolumeSpec"),
            },
            "NodeName": spec.get("nodeName") or "",
        }
        return [] if same(spec, old.get("spec")) else [errors.invalid("spec", shown, IMMUTABLE)]


def _provisioner(path: str, name: str) -> list[FieldError]:
    if not name:
        return [errors.required(path)]
    return each(path, name.lower(), names.qualified_name(name.lower()))


def _parameters(parameters: Object) -> list[FieldError]:
    if len(parameters) > 512:
        return [errors.too_long("parameters", 512)]
    found = [errors.invalid("parameters", key, "field can not be empty.") for key in parameters if not key]
    if sum(len(k.encode()) + len(v.encode()) for k, v in parameters.items()) > _PARAMETERS_SIZE:
        found.append(errors.too_long("parameters", _PARAMETERS_SIZE))
    return found


def _topologies(terms: list[Object]) -> list[FieldError]:
    found: list[FieldError] = []
    seen: list[Object] = []
    for i, term in enumerate(terms):
        here = f"allowedTopologies[{i}].matchLabelExpressions"
        values: Object = {}
        for j, expression in enumerate(term.get("matchLabelExpressions") or ()):
            key, listed = expression.get("key") or "", expression.get("values") or []
            if not listed:
                found.append(errors.required(f"{here}[{j}].values"))
            found += [
                errors.duplicate(f"{here}[{j}].values[{k}]", v)
                for k, v in enumerate(listed)
                if v in listed[:k]
            ]
            found += each(f"{here}[{j}].key", key, names.qualified_name(key))
            if key in values:
                found.append(errors.duplicate(f"{here}[{j}].key", key))
            values[key] = set(listed)
        if not values or values in seen:  # upstream counts an empty term as its own duplicate
            found.append(errors.duplicate(here, ""))
        seen.append(values)
    return found


def _token_requests(requests: list[Object]) -> list[FieldError]:
    found: list[FieldError] = []
    seen: set[str] = set()
    for i, request in enumerate(requests):
        here, audience = f"spec.tokenRequests[{i}]", request.get("audience") or ""
        if audience in seen:
            found.append(errors.duplicate(f"{here}.audience", audience))
            continue
        seen.add(audience)
        seconds = request.get("expirationSeconds")
        if seconds is not None and seconds < 600:
            text = "may not specify a duration less than 10 minutes"
            found.append(errors.invalid(f"{here}.expirationSeconds", seconds, text))
        if seconds is not None and seconds > 2**32:
            text = "may not specify a duration larger than 2^32 seconds"
            found.append(errors.invalid(f"{here}.expirationSeconds", seconds, text))
    return found
