"""Namespaces and Nodes."""

from __future__ import annotations

from typing import Any, ClassVar

from podium.api import names
from podium.api.kinds import Object
from podium.apiserver.kinds import addresses, metadata
from podium.apiserver.kinds.affinity import validate_taint_effect
from podium.apiserver.kinds.base import KindStrategy
from podium.apiserver.kinds.checks import each, restore
from podium.apiserver.kinds.resources import default_resource_list, validate_quantity
from podium.apiserver.strategy import Check, Hook
from podium.schema import fielderrors as errors
from podium.schema.fielderrors import Cause, FieldError


class NamespaceStrategy(KindStrategy):
    namespaced = False
    empty_status: ClassVar[Object | None] = {"phase": "Active"}

    def name_problems(self, name: str, prefix: bool) -> Any:
        return names.dns_label(name, prefix)

    def default(self, obj: Object) -> None:
        meta = obj.setdefault("metadata", {})
        if name := meta.get("name"):
            if meta.get("labels") is None:
                meta["labels"] = {}
            meta["labels"]["kubernetes.io/metadata.name"] = name
        status = obj.get("status")
        if status is None:
            status = obj["status"] = {}
        if not status.get("phase"):
            status["phase"] = "Active"

    def prepare_create(self, obj: Object) -> None:
        super().prepare_create(obj)
        self.default(obj)  # the name may have been generated since
        spec = obj.setdefault("spec", {})
        finalizers = spec.get("finalizers") or []
        if "kubernetes" not in finalizers:
            spec["finalizers"] = [*finalizers, "kubernetes"]

    def prepare_update(self, new: Object, old: Object) -> None:
        super().prepare_update(new, old)
        restore(new.setdefault("spec", {}), old.get("spec") or {}, "finalizers")

    def validate(self, obj: Object, old: Object | None) -> list[FieldError]:
        return _finalizers("spec.finalizers", obj, indexed=False)

    def validate_status_change(self, new: Object, old: Object) -> list[FieldError]:
        phase = (new.get("status") or {}).get("phase") or ""
        deleted = bool((new.get("metadata") or {}).get("deletionTimestamp"))
        wanted, state = ("Terminating", "not empty") if deleted else ("Active", "empty")
        if phase == wanted:
            return []
        text = f"may only be '{wanted}' if `deletionTimestamp` is {state}"
        return [errors.invalid("status.Phase", phase, text)]

    def holds(self, obj: Object) -> bool:
        return bool((obj.get("spec") or {}).get("finalizers"))

    def mark_deleted(self, obj: Object) -> None:
        obj["metadata"].pop("deletionGracePeriodSeconds", None)
        obj.setdefault("status", {})["phase"] = "Terminating"

    def hooks(self, subresource: str) -> tuple[Hook, Check]:
        if subresource == "finalize":
            return self.prepare_finalize, self.validate_finalize
        return super().hooks(subresource)

    def prepare_finalize(self, new: Object, old: Object) -> None:
        """Keep only what a write to the `finalize` subresource may change, in place."""
        restore(new, old, "status")

    def validate_finalize(self, new: Object, old: Object) -> list[FieldError]:
        """What is wrong with a write to the `finalize` subresource."""
        return self._changed_metadata(new, old) + _finalizers("spec.finalizers", new, indexed=True)


class NodeStrategy(KindStrategy):
    namespaced = False
    empty_status: ClassVar[Object | None] = {}

    def default(self, obj: Object) -> None:
        spec, status = obj.setdefault("spec", {}), obj.get("status") or {}
        capacity = status.get("capacity")
        default_resource_list(capacity)
        if status.get("allocatable") is None and capacity is not None:
            status["allocatable"] = dict(capacity)
        default_resource_list(status.get("allocatable"))
        # The older field for one range and the newer one for both families are kept in step.
        if spec.get("podCIDR") and (spec.get("podCIDRs") or [None])[0] != spec["podCIDR"]:
            spec["podCIDRs"] = [spec["podCIDR"]]
        elif spec.get("podCIDRs") and not spec.get("podCIDR"):
            spec["podCIDR"] = spec["podCIDRs"][0]

    def prepare_create(self, obj: Object) -> None:
        # A kubelet registers its Node together with its status.
        (obj.get("spec") or {}).pop("configSource", None)
        (obj.get("status") or {}).pop("config", None)

    def prepare_update(self, new: Object, old: Object) -> None:
        super().prepare_update(new, old)
        if not (old.get("spec") or {}).get("configSource"):
            (new.get("spec") or {}).pop("configSource", None)

    def validate(self, obj: Object, old: Object | None) -> list[FieldError]:
        spec = obj.get("spec") or {}
        found = _taints("metadata.taints", spec.get("taints") or []) + _node_resources(obj)
        ranges = spec.get("podCIDRs") or []
        for i, text in enumerate(ranges):
            found += addresses.validate_cidr(f"spec.podCIDRs[{i}]", text)
        unreadable = next((i for i, text in enumerate(ranges) if addresses.parse_network(text) is None), None)
        if len(ranges) > 1 and unreadable is not None:
            text = f"invalid CIDR[{unreadable}]: <nil> (invalid CIDR address: {ranges[unreadable]})"
            text = f"invalid PodCIDRs. failed to check with dual stack with error:{text}"
            found.append(FieldError(Cause.INTERNAL, "spec.podCIDRs", detail=text))
        families = {":" in text for text in ranges}
        if len(ranges) > 2 or len(ranges) > len(families):
            text = "may specify no more than one CIDR for each IP family"
            found.append(errors.invalid("spec.podCIDRs", ranges, text))
        return found

    def validate_change(self, new: Object, old: Object) -> list[FieldError]:
        found = _addresses(new)
        spec, before = new.get("spec") or {}, old.get("spec") or {}
        if before.get("podCIDRs") and before["podCIDRs"] != spec.get("podCIDRs"):
            text = 'node updates may not change podCIDR except from "" to valid'
            found.append(errors.forbidden("spec.podCIDRs", text))
        if before.get("providerID") and before["providerID"] != spec.get("providerID"):
            text = 'node updates may not change providerID except from "" to valid'
            found.append(errors.forbidden("spec.providerID", text))
        if (spec.get("externalID") or "") != (before.get("externalID") or ""):
            found.append(errors.forbidden("spec.externalID", "may not be updated"))
        return found

    def validate_status_change(self, new: Object, old: Object) -> list[FieldError]:
        return _node_resources(new) + _addresses(new)

    def warnings(self, obj: Object, old: Object | None) -> list[str]:
        spec, found = obj.get("spec") or {}, []
        if spec.get("configSource"):
            found.append("spec.configSource: the feature is removed")
        if spec.get("externalID"):
            found.append("spec.externalID: this field is deprecated, and is unused by Kubernetes")
        for i, text in enumerate(spec.get("podCIDRs") or ()):
            found += addresses.warn_cidr(f"spec.podCIDRs[{i}]", text)
        return found


def _finalizers(path: str, namespace: Object, *, indexed: bool) -> list[FieldError]:
    found: list[FieldError] = []
    for i, finalizer in enumerate((namespace.get("spec") or {}).get("finalizers") or ()):
        here = f"{path}[{i}]" if indexed else path
        found += each(here, finalizer, names.qualified_name(finalizer))
        found += metadata.validate_finalizer_domain(here, finalizer)
    return found


def _taints(path: str, taints: list[Object]) -> list[FieldError]:
    found: list[FieldError] = []
    seen: set[tuple[str, str]] = set()
    for i, taint in enumerate(taints):
        here, key, value = f"{path}[{i}]", taint.get("key") or "", taint.get("value") or ""
        effect = taint.get("effect") or ""
        found += each(f"{here}.key", key, names.qualified_name(key))
        if problems := names.label_value(value):
            found.append(errors.invalid(f"{here}.value", value, ";".join(problems)))
        found += (
            validate_taint_effect(f"{here}.effect", effect) if effect else [errors.required(f"{here}.effect")]
        )
        if (effect, key) in seen:
            shown = {"Key": key, "Value": value, "Effect": effect, "TimeAdded": taint.get("timeAdded")}
            text = "taints must be unique by key and effect pair"
            found.append(FieldError(Cause.DUPLICATE, here, shown, text))
        seen.add((effect, key))
    return found


def _node_resources(node: Object) -> list[FieldError]:
    status = node.get("status") or {}
    return [
        error
        for field in ("capacity", "allocatable")
        for name, amount in (status.get(field) or {}).items()
        for error in validate_quantity(f"status.{field}.{name}", name, amount)
    ]


def _addresses(node: Object) -> list[FieldError]:
    listed = (node.get("status") or {}).get("addresses") or []
    return [
        errors.duplicate(f"status.addresses[{i}]", {"Type": a.get("type"), "Address": a.get("address")})
        for i, a in enumerate(listed)
        if a in listed[:i]
    ]
