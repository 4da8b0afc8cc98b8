"""Deployments, ReplicaSets, StatefulSets, DaemonSets and their revisions."""

from __future__ import annotations

from typing import Any, ClassVar

from podium.api import names
from podium.api.kinds import Object
from podium.apiserver.kinds import metadata
from podium.apiserver.kinds.base import KindStrategy
from podium.apiserver.kinds.checks import (
    at_most_100_percent,
    each,
    go_order,
    immutable,
    int_or_percent,
    int_or_percent_value,
    not_negative,
    not_negative_fields,
    restore,
    same,
    unsupported,
)
from podium.apiserver.kinds.podtemplate import default_template, validate_pod_annotations
from podium.apiserver.kinds.podwarnings import name_warning, warn_pod
from podium.apiserver.kinds.pvcspec import default_claim_spec, validate_claim_spec, warn_claim_spec
from podium.apiserver.kinds.workloads import (
    collisions_not_fewer,
    counts_within_total,
    selector_is_broken,
    validate_long_running,
    validate_match,
    validate_restart_and_deadline,
    validate_selector,
)
from podium.schema import fielderrors as errors
from podium.schema.fielderrors import FieldError

_POD_NAMES = "Pod names and hostnames"
_STATEFUL_SET_FORBIDDEN = (
    "updates to statefulset spec for fields other than 'replicas', 'ordinals', 'template', 'updateStrategy', "
    "'revisionHistoryLimit', 'persistentVolumeClaimRetentionPolicy' and 'minReadySeconds' are forbidden"
)
_STATEFUL_SET_MUTABLE = (
    "replicas",
    "template",
    "updateStrategy",
    "minReadySeconds",
    "ordinals",
    "revisionHistoryLimit",
    "persistentVolumeClaimRetentionPolicy",
)


class _Workload(KindStrategy):
    generation_fields: tuple[str, ...] = ("spec",)
    empty_status: ClassVar[Object | None] = {}

    def warnings(self, obj: Object, old: Object | None) -> list[str]:
        template = (obj.get("spec") or {}).get("template") or {}
        if old is not None and (obj.get("spec") or {}) == (old.get("spec") or {}):
            return []
        return warn_pod("spec.template", template)

    @staticmethod
    def _name_warning(obj: Object, old: Object | None) -> list[str]:
        return name_warning((obj.get("metadata") or {}).get("name") or "", _POD_NAMES) if old is None else []


class DeploymentStrategy(_Workload):
    # Annotations count because they are copied to the ReplicaSets.
    generation_fields = ("spec", "metadata.annotations")

    def default(self, obj: Object) -> None:
        spec = obj.setdefault("spec", {})
        if spec.get("replicas") is None:
            spec["replicas"] = 1
        strategy = spec.setdefault("strategy", {})
        if not strategy.get("type"):
            strategy["type"] = "RollingUpdate"
        if strategy["type"] == "RollingUpdate":
            rolling = strategy.get("rollingUpdate")
            rolling = strategy["rollingUpdate"] = rolling if rolling is not None else {}
            for field in ("maxUnavailable", "maxSurge"):
                if rolling.get(field) is None:
                    rolling[field] = "25%"
        for field, value in (("revisionHistoryLimit", 10), ("progressDeadlineSeconds", 600)):
            if spec.get(field) is None:
                spec[field] = value
        default_template(spec.setdefault("template", {}))

    def validate(self, obj: Object, old: Object | None) -> list[FieldError]:
        spec = obj.get("spec") or {}
        found = not_negative("spec.replicas", spec.get("replicas")) + validate_selector(spec, "deployment")
        if selector_is_broken(spec):
            found.append(
                errors.invalid("spec.selector", go_order(spec["selector"]), "invalid label selector")
            )
        else:
            found += validate_match(spec) + validate_long_running(spec, "ReplicaSet")
        found += _deployment_strategy(spec.get("strategy") or {})
        found += not_negative_fields("spec", spec, ("minReadySeconds", "revisionHistoryLimit"))
        deadline = spec.get("progressDeadlineSeconds")
        if deadline is not None:
            found += not_negative("spec.progressDeadlineSeconds", deadline)
            if deadline <= (spec.get("minReadySeconds") or 0):
                text = "must be greater than minReadySeconds"
                found.append(errors.invalid("spec.progressDeadlineSeconds", deadline, text))
        return found

    def validate_change(self, new: Object, old: Object) -> list[FieldError]:
        return immutable("spec.selector", _selector(new), _selector(old))

    def prepare_status(self, new: Object, old: Object) -> None:
        super().prepare_status(new, old)
        restore(new.setdefault("metadata", {}), old.get("metadata") or {}, "labels")

    def validate_status_change(self, new: Object, old: Object) -> list[FieldError]:
        status = new.get("status") or {}
        counts = ("updatedReplicas", "readyReplicas", "availableReplicas")
        others = (
            "observedGeneration",
            "replicas",
            "unavailableReplicas",
            "terminatingReplicas",
            "collisionCount",
        )
        found = not_negative_fields("status", status, (*others, *counts)) + counts_within_total(
            status, counts
        )
        return found + collisions_not_fewer(status, old.get("status") or {})

    def warnings(self, obj: Object, old: Object | None) -> list[str]:
        return self._name_warning(obj, old) + super().warnings(obj, old)


class ReplicaSetStrategy(_Workload):
    empty_status: ClassVar[Object | None] = {"replicas": 0}

    def default(self, obj: Object) -> None:
        spec = obj.setdefault("spec", {})
        if spec.get("replicas") is None:
            spec["replicas"] = 1
        if "template" in spec:
            default_template(spec["template"])

    def validate(self, obj: Object, old: Object | None) -> list[FieldError]:
        spec = obj.get("spec") or {}
        found = not_negative_fields("spec", spec, ("replicas", "minReadySeconds"))
        found += validate_selector(spec, "deployment")
        if selector_is_broken(spec):
            return [
                *found,
                errors.invalid("spec.selector", go_order(spec["selector"]), "invalid label selector"),
            ]
        return found + validate_match(spec) + validate_long_running(spec, "ReplicaSet")

    def validate_change(self, new: Object, old: Object) -> list[FieldError]:
        return immutable("spec.selector", _selector(new), _selector(old))

    def validate_status_change(self, new: Object, old: Object) -> list[FieldError]:
        status = new.get("status") or {}
        counts = ("fullyLabeledReplicas", "readyReplicas", "availableReplicas")
        others = ("replicas", "observedGeneration", "terminatingReplicas")
        return not_negative_fields("status", status, (*others, *counts)) + counts_within_total(status, counts)

    def warnings(self, obj: Object, old: Object | None) -> list[str]:
        return self._name_warning(obj, old) + super().warnings(obj, old)


class StatefulSetStrategy(_Workload):
    empty_status: ClassVar[Object | None] = {"replicas": 0, "availableReplicas": 0}

    def name_problems(self, name: str, prefix: bool) -> Any:
        return names.dns_label(name, prefix)

    def default(self, obj: Object) -> None:
        spec = obj.setdefault("spec", {})
        if not spec.get("podManagementPolicy"):
            spec["podManagementPolicy"] = "OrderedReady"
        strategy = spec.setdefault("updateStrategy", {})
        if not strategy.get("type"):
            strategy["type"] = "RollingUpdate"
            if strategy.get("rollingUpdate") is None:
                strategy["rollingUpdate"] = {}
        rolling = strategy.get("rollingUpdate")
        if strategy["type"] == "RollingUpdate" and rolling is not None:
            rolling.setdefault("partition", 0)
        retention = spec.get("persistentVolumeClaimRetentionPolicy")
        if retention is None:
            retention = spec["persistentVolumeClaimRetentionPolicy"] = {}
        for field in ("whenDeleted", "whenScaled"):
            if not retention.get(field):
                retention[field] = "Retain"
        for field, value in (("replicas", 1), ("revisionHistoryLimit", 10)):
            if spec.get(field) is None:
                spec[field] = value
        default_template(spec.setdefault("template", {}))
        for claim in spec.get("volumeClaimTemplates") or ():
            claim.setdefault("apiVersion", "v1")
            claim.setdefault("kind", "PersistentVolumeClaim")
            default_claim_spec(claim.setdefault("spec", {}))
            claim.setdefault("status", {}).setdefault("phase", "Pending")

    def prepare_create(self, obj: Object) -> None:
        super().prepare_create(obj)
        rolling = ((obj.get("spec") or {}).get("updateStrategy") or {}).get("rollingUpdate") or {}
        rolling.pop("maxUnavailable", None)  # not available without a feature gate

    def validate(self, obj: Object, old: Object | None) -> list[FieldError]:
        spec = obj.get("spec") or {}
        found = _stateful_set_policies(spec)
        if old is None:
            for i, claim in enumerate(spec.get("volumeClaimTemplates") or ()):
                found += validate_claim_spec(f"spec.volumeClaimTemplates[{i}].spec", claim.get("spec") or {})
        found += not_negative_fields("spec", spec, ("replicas", "minReadySeconds"))
        start = (spec.get("ordinals") or {}).get("start")
        found += not_negative("spec.ordinals.start", start)
        if old is None and (service := spec.get("serviceName")):
            found += each("spec.serviceName", service, names.dns_label(service))
        found += validate_selector(spec, "statefulset")
        if selector_is_broken(spec):
            found.append(errors.invalid("spec.selector", go_order(spec["selector"]), ""))
            return found + validate_restart_and_deadline(spec, "StatefulSet")
        template = _with_claims_as_volumes(spec)
        found += validate_match(spec) + validate_long_running(spec, "StatefulSet", template=template)
        return found + _template_metadata_again(spec)

    def validate_change(self, new: Object, old: Object) -> list[FieldError]:
        spec, before = dict(new.get("spec") or {}), old.get("spec") or {}
        for field in _STATEFUL_SET_MUTABLE:
            restore(spec, before, field)
        return [] if same(spec, before) else [errors.forbidden("spec", _STATEFUL_SET_FORBIDDEN)]

    def validate_status_change(self, new: Object, old: Object) -> list[FieldError]:
        status = new.get("status") or {}
        counts = ("readyReplicas", "currentReplicas", "updatedReplicas", "availableReplicas")
        found = not_negative_fields(
            "status", status, ("replicas", *counts, "observedGeneration", "collisionCount")
        )
        found += counts_within_total(status, counts, "cannot be greater than status.readyReplicas")
        return found + collisions_not_fewer(status, old.get("status") or {})

    def warnings(self, obj: Object, old: Object | None) -> list[str]:
        spec = obj.get("spec") or {}
        found = super().warnings(obj, old)
        for i, claim in enumerate(spec.get("volumeClaimTemplates") or ()):
            where = f"spec.volumeClaimTemplates[{i}]" + (".Spec" if old is not None else "")
            found += warn_claim_spec(where, claim.get("spec") or {})
        if (spec.get("revisionHistoryLimit") or 0) < 0:
            text = "a negative value retains all historical revisions; a value >= 0 is recommended"
            found.append(f"spec.revisionHistoryLimit: {text}")
        return found


class DaemonSetStrategy(_Workload):
    empty_status: ClassVar[Object | None] = {
        "currentNumberScheduled": 0,
        "numberMisscheduled": 0,
        "desiredNumberScheduled": 0,
        "numberReady": 0,
    }

    def default(self, obj: Object) -> None:
        spec = obj.setdefault("spec", {})
        strategy = spec.setdefault("updateStrategy", {})
        if not strategy.get("type"):
            strategy["type"] = "RollingUpdate"
        if strategy["type"] == "RollingUpdate":
            rolling = strategy.get("rollingUpdate")
            rolling = strategy["rollingUpdate"] = rolling if rolling is not None else {}
            for field, value in (("maxUnavailable", 1), ("maxSurge", 0)):
                if rolling.get(field) is None:
                    rolling[field] = value
        if spec.get("revisionHistoryLimit") is None:
            spec["revisionHistoryLimit"] = 10
        default_template(spec.setdefault("template", {}))

    def prepare_create(self, obj: Object) -> None:
        super().prepare_create(obj)
        # The old template generation lives on as an annotation that every v1 client sees.
        _set_template_generation(obj, 1)

    def prepare_update(self, new: Object, old: Object) -> None:
        super().prepare_update(new, old)
        before = _template_generation(old)
        changed = not same((new.get("spec") or {}).get("template"), (old.get("spec") or {}).get("template"))
        _set_template_generation(new, before + 1 if changed else before)

    def validate(self, obj: Object, old: Object | None) -> list[FieldError]:
        spec = obj.get("spec") or {}
        selector = spec.get("selector")
        found = metadata.validate_selector("spec.selector", selector)
        if not found:
            found += validate_match(spec, empty_matches=False)
        if selector is not None and metadata.selector_is_empty(selector):
            found.append(errors.invalid("spec.selector", selector, "empty selector is invalid for daemonset"))
        found += validate_long_running(spec, "DaemonSet")
        found += not_negative_fields("spec", spec, ("minReadySeconds",))
        found += _daemon_set_strategy(spec.get("updateStrategy") or {})
        return found + not_negative_fields("spec", spec, ("revisionHistoryLimit",))

    def validate_change(self, new: Object, old: Object) -> list[FieldError]:
        return immutable("spec.selector", _selector(new), _selector(old))

    def validate_status_change(self, new: Object, old: Object) -> list[FieldError]:
        status = new.get("status") or {}
        counts = (
            *(self.empty_status or ()),
            "observedGeneration",
            "updatedNumberScheduled",
            "numberAvailable",
        )
        found = not_negative_fields("status", status, (*counts, "numberUnavailable", "collisionCount"))
        return found + collisions_not_fewer(status, old.get("status") or {})


class ControllerRevisionStrategy(KindStrategy):
    def validate(self, obj: Object, old: Object | None) -> list[FieldError]:
        found = not_negative("revision", obj.get("revision"))
        if old is not None:
            return found
        data = obj.get("data")
        if data is None:
            found.append(errors.required("data", "data is mandatory"))
        elif not isinstance(data, dict):
            found.append(errors.required("data", "data must be a valid JSON object"))
        return found

    def validate_change(self, new: Object, old: Object) -> list[FieldError]:
        return immutable("data", new.get("data"), old.get("data"))


def _selector(obj: Object) -> Any:
    return (obj.get("spec") or {}).get("selector")


def _deployment_strategy(strategy: Object) -> list[FieldError]:
    path, kind, rolling = "spec.strategy", strategy.get("type") or "", strategy.get("rollingUpdate")
    if kind == "Recreate":
        text = "may not be specified when strategy `type` is 'Recreate'"
        return [errors.forbidden(f"{path}.rollingUpdate", text)] if rolling is not None else []
    if kind != "RollingUpdate":
        shown = {"Type": kind, "RollingUpdate": _internal_rolling(rolling)}
        return [unsupported(path, shown, ("Recreate", "RollingUpdate"))]
    rolling = rolling or {}
    found: list[FieldError] = []
    for field in ("maxUnavailable", "maxSurge"):
        found += int_or_percent(f"{path}.rollingUpdate.{field}", rolling.get(field))
    unavailable = rolling.get("maxUnavailable")
    if not int_or_percent_value(unavailable) and not int_or_percent_value(rolling.get("maxSurge")):
        text = "may not be 0 when `maxSurge` is 0"
        found.append(errors.invalid(f"{path}.rollingUpdate.maxUnavailable", unavailable, text))
    return found + at_most_100_percent(f"{path}.rollingUpdate.maxUnavailable", unavailable)


def _internal_rolling(rolling: Object | None) -> Object | None:
    if rolling is None:
        return None
    return {"MaxUnavailable": rolling.get("maxUnavailable", 0), "MaxSurge": rolling.get("maxSurge", 0)}


def _daemon_set_strategy(strategy: Object) -> list[FieldError]:
    path, kind = "spec.updateStrategy", strategy.get("type") or ""
    if kind == "OnDelete":
        return []
    if kind != "RollingUpdate":
        shown = {"Type": kind, "RollingUpdate": _internal_rolling(strategy.get("rollingUpdate"))}
        return [unsupported(path, shown, ("RollingUpdate", "OnDelete"))]
    rolling = strategy.get("rollingUpdate") or {}
    unavailable, surge = rolling.get("maxUnavailable"), rolling.get("maxSurge")
    both = (("maxUnavailable", unavailable), ("maxSurge", surge))
    found = [e for field, value in both for e in int_or_percent(f"{path}.rollingUpdate.{field}", value)]
    found += [e for field, value in both for e in at_most_100_percent(f"{path}.rollingUpdate.{field}", value)]
    if int_or_percent_value(unavailable) and int_or_percent_value(surge):
        text = "may not be set when maxUnavailable is non-zero"
        found.append(errors.invalid(f"{path}.rollingUpdate.maxSurge", surge, text))
    elif not int_or_percent_value(unavailable) and not int_or_percent_value(surge):
        text = "cannot be 0 when maxSurge is 0"
        found.append(errors.required(f"{path}.rollingUpdate.maxUnavailable", text))
    return found


def _stateful_set_policies(spec: Object) -> list[FieldError]:
    found: list[FieldError] = []
    management = spec.get("podManagementPolicy") or ""
    if not management:
        found.append(errors.required("spec.podManagementPolicy"))
    elif management not in ("OrderedReady", "Parallel"):
        text = "must be 'OrderedReady' or 'Parallel'"
        found.append(errors.invalid("spec.podManagementPolicy", management, text))
    strategy = spec.get("updateStrategy") or {}
    kind, rolling = strategy.get("type") or "", strategy.get("rollingUpdate")
    match kind:
        case "":
            found.append(errors.required("spec.updateStrategy"))
        case "OnDelete":
            if rolling is not None:
                shown = {
                    "Partition": rolling.get("partition") or 0,
                    "MaxUnavailable": rolling.get("maxUnavailable"),
                }
                text = "only allowed for updateStrategy 'RollingUpdate'"
                found.append(errors.invalid("spec.updateStrategy.rollingUpdate", shown, text))
        case "RollingUpdate":
            partition = (rolling or {}).get("partition")
            found += not_negative("spec.updateStrategy.rollingUpdate.partition", partition)
        case _:
            rolled = rolling and {"Partition": rolling.get("partition") or 0, "MaxUnavailable": None}
            shown = {"Type": kind, "RollingUpdate": rolled}
            text = "must be 'RollingUpdate' or 'OnDelete'"
            found.append(errors.invalid("spec.updateStrategy", shown, text))
    retention = spec.get("persistentVolumeClaimRetentionPolicy") or {}
    for field in ("whenDeleted", "whenScaled"):
        if (value := retention.get(field) or "") not in ("Retain", "Delete"):
            where = f"spec.persistentVolumeClaimRetentionPolicy.{field}"
            found.append(unsupported(where, value, ("Retain", "Delete")))
    return found


def _with_claims_as_volumes(spec: Object) -> Object:
    """The template as its Pods will look: claims are volumes, host names are set by the controller."""
    template: Object = spec.get("template") or {}
    pod, claims = template.get("spec") or {}, spec.get("volumeClaimTemplates") or []
    if not (claims or pod.get("subdomain") or pod.get("hostname")):
        return template
    named = {(c.get("metadata") or {}).get("name") or "": c for c in claims}
    volumes: list[Object] = [{"name": name, "persistentVolumeClaim": {"claimName": name}} for name in named]
    volumes += [v for v in pod.get("volumes") or () if v.get("name") not in named]
    return {**template, "spec": {**pod, "volumes": volumes, "subdomain": "", "hostname": ""}}


def _template_metadata_again(spec: Object) -> list[FieldError]:
    # Upstream checks the template's metadata twice for StatefulSets, so the causes stand twice.
    template = spec.get("template") or {}
    meta = template.get("metadata") or {}
    annotations = meta.get("annotations") or {}
    found = metadata.validate_labels("spec.template.labels", meta.get("labels") or {})
    found += metadata.validate_annotations("spec.template.annotations", annotations)
    return found + validate_pod_annotations(
        "spec.template.annotations", annotations, template.get("spec") or {}
    )


def _template_generation(obj: Object) -> int:
    text = ((obj.get("metadata") or {}).get("annotations") or {}).get(_TEMPLATE_GENERATION, "")
    return int(text) if text.isdigit() else 1


def _set_template_generation(obj: Object, generation: int) -> None:
    meta = obj.setdefault("metadata", {})
    meta["annotations"] = {**(meta.get("annotations") or {}), _TEMPLATE_GENERATION: str(generation)}


_TEMPLATE_GENERATION = "deprecated.daemonset.template.generation"
