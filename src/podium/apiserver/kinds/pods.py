"""Pods: what they start as, what of them may change, and how long a deleted one stays."""

from __future__ import annotations

from typing import ClassVar

from podium.api import names
from podium.api.kinds import Object
from podium.apiserver.kinds import addresses, quantities
from podium.apiserver.kinds.affinity import validate_tolerations
from podium.apiserver.kinds.base import KindStrategy
from podium.apiserver.kinds.checks import annotations_of, difference, each, immutable, restore, same
from podium.apiserver.kinds.containers import validate_image_text
from podium.apiserver.kinds.podtemplate import (
    all_containers,
    default_host_ports,
    default_pod_level_resources,
    default_spec,
    validate_pod_annotations,
    validate_spec,
)
from podium.apiserver.kinds.podwarnings import name_warning, warn_pod
from podium.apiserver.strategy import Check, Hook
from podium.schema import fielderrors as errors
from podium.schema.fielderrors import Cause, FieldError

_UPDATABLE = (
    "`spec.containers[*].image`,`spec.initContainers[*].image`,`spec.activeDeadlineSeconds`,"
    "`spec.tolerations` (only additions to existing tolerations),`spec.terminationGracePeriodSeconds` "
    "(allow it to be set to 1 if it was previously negative)"
)
_MIRROR = "kubernetes.io/config.mirror"
_APPARMOR = "container.apparmor.security.beta.kubernetes.io/"


class PodStrategy(KindStrategy):
    generation_fields = ("spec",)
    graceful = True
    empty_status: ClassVar[Object | None] = {"phase": "Pending"}

    def default(self, obj: Object) -> None:
        spec = obj.setdefault("spec", {})
        default_spec(spec)
        if spec["terminationGracePeriodSeconds"] < 0:
            spec["terminationGracePeriodSeconds"] = 1
        for field in ("containers", "initContainers"):
            for container in spec.get(field) or ():
                _default_requests(container)
        default_pod_level_resources(spec)
        _align_pod_ips(obj.get("status") or {})
        if spec.get("enableServiceLinks") is None:
            spec["enableServiceLinks"] = True
        if spec.get("hostNetwork"):
            default_host_ports(spec)

    def prepare_create(self, obj: Object) -> None:
        obj["status"] = {"phase": "Pending", "qosClass": qos_class(obj.get("spec") or {})}
        if (obj.get("spec") or {}).get("schedulingGates"):
            obj["status"]["conditions"] = [_gated_condition()]
        _apply_label_keys(obj)

    def validate(self, obj: Object, old: Object | None) -> list[FieldError]:
        spec, meta = obj.get("spec") or {}, obj.get("metadata") or {}
        found = validate_pod_annotations("metadata.annotations", annotations_of(obj), spec)
        found += validate_spec("spec", spec, meta.get("name") or "", is_pod=True)
        if not spec.get("serviceAccountName"):
            found += _token_without_account(spec)
        for field in ("containers", "initContainers"):
            for i, container in enumerate(spec.get(field) or ()):
                found += validate_image_text(f"spec.{field}[{i}]", container)
        return found if old is not None else found + self._only_on_create(spec)

    def validate_change(self, new: Object, old: Object) -> list[FieldError]:
        found = _annotation_changes(annotations_of(new), annotations_of(old))
        return found + _spec_changes(new.get("spec") or {}, old.get("spec") or {})

    def prepare_status(self, new: Object, old: Object) -> None:
        restore(new, old, "spec")
        meta, before = new.setdefault("metadata", {}), old.get("metadata") or {}
        restore(meta, before, "ownerReferences")
        # An update can never take a deletion back, nor ask for one.
        restore(meta, before, "deletionTimestamp")
        status, previous = new.setdefault("status", {}), old.get("status") or {}
        for field in ("qosClass", "observedGeneration"):
            if not status.get(field) and previous.get(field):
                status[field] = previous[field]
        _keep_observed_generations(status, previous)

    def validate_status_change(self, new: Object, old: Object) -> list[FieldError]:
        found = _annotation_changes(annotations_of(new), annotations_of(old))
        found += validate_pod_annotations("metadata.annotations", annotations_of(new), new.get("spec") or {})
        return found + _status_problems(new, old)

    def warnings(self, obj: Object, old: Object | None) -> list[str]:
        if old is not None:
            return []
        name = (obj.get("metadata") or {}).get("name") or ""
        return name_warning(name, "the Pod's hostname") + warn_pod("", obj)

    def grace_seconds(self, obj: Object, asked: int | None) -> int:
        spec = obj.get("spec") or {}
        if not spec.get("nodeName") or (obj.get("status") or {}).get("phase") in ("Failed", "Succeeded"):
            return 0
        period = asked if asked is not None else spec.get("terminationGracePeriodSeconds") or 0
        return 1 if period < 0 else period

    def hooks(self, subresource: str) -> tuple[Hook, Check]:
        if subresource == "ephemeralcontainers":
            return self.prepare_ephemeral_containers, self.validate_ephemeral_containers
        return super().hooks(subresource)

    def prepare_ephemeral_containers(self, new: Object, old: Object) -> None:
        """Keep only what a write to the `ephemeralcontainers` subresource may change, in place."""
        added = (new.get("spec") or {}).get("ephemeralContainers")
        for field in ("spec", "status", "metadata"):
            restore(new, old, field)
        new["spec"] = dict(new.get("spec") or {})
        if added:
            new["spec"]["ephemeralContainers"] = added
        else:
            new["spec"].pop("ephemeralContainers", None)

    def validate_ephemeral_containers(self, new: Object, old: Object) -> list[FieldError]:
        """What is wrong with a write to the `ephemeralcontainers` subresource."""
        found = self._changed_metadata(new, old) + self.validate(new, old)
        if _MIRROR in annotations_of(old):
            return [errors.forbidden("[]", "static pods do not support ephemeral containers")]
        path = "spec.ephemeralContainers"
        after = {c.get("name"): c for c in (new.get("spec") or {}).get("ephemeralContainers") or ()}
        for before in (old.get("spec") or {}).get("ephemeralContainers") or ():
            name = before.get("name")
            if name not in after:
                text = f'existing ephemeral containers "{name}" may not be removed\n'
                found.append(errors.forbidden(path, text))
            elif not same(before, after[name]):
                text = f'existing ephemeral containers "{name}" may not be changed'
                found.append(errors.forbidden(path, f"{text}\n{difference(before, after[name])}"))
        return found

    @staticmethod
    def _only_on_create(spec: Object) -> list[FieldError]:
        found: list[FieldError] = []
        if spec.get("ephemeralContainers"):
            found.append(errors.forbidden("spec.ephemeralContainers", "cannot be set on create"))
        if spec.get("nodeName") and spec.get("schedulingGates"):
            text = "cannot be set until all schedulingGates have been cleared"
            found.append(errors.forbidden("spec.nodeName", text))
        return found


def qos_class(spec: Object) -> str:
    """How a Pod is treated when a node runs short: from its requests and limits for cpu and memory."""
    requests: dict[str, int] = {}
    limits: dict[str, int] = {}
    every_container_limited = True
    if spec.get("resources") is not None:
        holders = [spec]
    else:
        holders = [*(spec.get("containers") or ()), *(spec.get("initContainers") or ())]
    for holder in holders:
        resources = holder.get("resources") or {}
        _add_compute(requests, resources.get("requests") or {})
        if _add_compute(limits, resources.get("limits") or {}) != {"cpu", "memory"}:
            every_container_limited = False
    if not requests and not limits:
        return "BestEffort"
    return "Guaranteed" if every_container_limited and requests == limits else "Burstable"


def _add_compute(total: dict[str, int], listed: Object) -> set[str]:
    positive = {
        n: quantities.nano(listed[n])
        for n in ("cpu", "memory")
        if n in listed and quantities.nano(listed[n]) > 0
    }
    for name, amount in positive.items():
        total[name] = total.get(name, 0) + amount
    return set(positive)


def _default_requests(container: Object) -> None:
    resources = container.get("resources") or {}
    if limits := resources.get("limits"):
        requests = resources.setdefault("requests", {})
        for name, amount in limits.items():
            requests.setdefault(name, amount)


def _align_pod_ips(status: Object) -> None:
    """The older field for one address wins over the newer one for both families; in place."""
    ip, listed = status.get("podIP"), status.get("podIPs") or []
    if ip and (not listed or listed[0].get("ip") != ip):
        status["podIPs"] = [{"ip": ip}]
    elif listed and not ip and listed[0].get("ip"):
        status["podIP"] = listed[0]["ip"]


def _gated_condition() -> Object:
    return {
        "lastProbeTime": None,
        "lastTransitionTime": None,
        "message": "Scheduling is blocked due to non-empty scheduling gates",
        "reason": "SchedulingGated",
        "status": "False",
        "type": "PodScheduled",
    }


def _apply_label_keys(pod: Object) -> None:
    """Spread and affinity terms that name label keys get the Pod's own values for them, in place."""
    spec, labels = pod.get("spec") or {}, (pod.get("metadata") or {}).get("labels") or {}
    holders = list(spec.get("topologySpreadConstraints") or ())
    for kind in ("podAffinity", "podAntiAffinity"):
        affinity = (spec.get("affinity") or {}).get(kind) or {}
        holders += affinity.get("requiredDuringSchedulingIgnoredDuringExecution") or ()
        weighted = affinity.get("preferredDuringSchedulingIgnoredDuringExecution") or ()
        holders += [w.setdefault("podAffinityTerm", {}) for w in weighted]
    for holder in holders:
        selector = holder.get("labelSelector")
        if selector is None:
            continue
        for field, operator in (("matchLabelKeys", "In"), ("mismatchLabelKeys", "NotIn")):
            for key in holder.get(field) or ():
                if key in labels:
                    expression = {"key": key, "operator": operator, "values": [labels[key]]}
                    selector.setdefault("matchExpressions", []).append(expression)


def _token_without_account(spec: Object) -> list[FieldError]:
    found: list[FieldError] = []
    for i, volume in enumerate(spec.get("volumes") or ()):
        for j, source in enumerate((volume.get("projected") or {}).get("sources") or ()):
            if source.get("serviceAccountToken") is not None:
                where = f"spec.volumes[{i}].projected.sources[{j}].serviceAccountToken"
                text = "must not be specified when serviceAccountName is not set"
                found.append(errors.forbidden(where, text))
    return found


def _annotation_changes(new: dict[str, str], old: dict[str, str]) -> list[FieldError]:
    found: list[FieldError] = []
    for key in sorted(new.keys() | old.keys()):
        if new.get(key) == old.get(key) or not (key.startswith(_APPARMOR) or key == _MIRROR):
            continue
        what = "mirror pod annotation" if key == _MIRROR else "AppArmor annotations"
        verb = "remove or update" if key in old else "add"
        found.append(errors.forbidden(f"metadata.annotations[{key}]", f"may not {verb} {what}"))
    return found


def _spec_changes(new: Object, old: Object) -> list[FieldError]:
    for field in ("containers", "initContainers"):
        if len(new.get(field) or ()) != len(old.get(field) or ()):
            return [errors.forbidden(f"spec.{field}", "pod updates may not add or remove containers")]
    found, stop = _deadline_change(new.get("activeDeadlineSeconds"), old.get("activeDeadlineSeconds"))
    if stop:
        return found
    found += _toleration_changes(new.get("tolerations") or [], old.get("tolerations") or [])
    found += _gate_changes(new.get("schedulingGates") or [], old.get("schedulingGates") or [])
    if new == old:
        return found
    munged = _with_allowed_changes_undone(new, old)
    if old.get("schedulingGates"):
        found += _gated_changes(munged, new, old)
    if not same(munged, old):
        text = f"pod updates may not change fields other than {_UPDATABLE}"
        found.append(errors.forbidden("spec", f"{text}\n{difference(old, munged)}"))
    return found


def _deadline_change(new: int | None, old: int | None) -> tuple[list[FieldError], bool]:
    path = "spec.activeDeadlineSeconds"
    if new is None:
        if old is None:
            return [], False
        return [errors.invalid(path, None, "must not update from a positive integer to nil value")], False
    if not 0 <= new <= 2**31 - 1:
        return [errors.invalid(path, new, names.between(0, 2**31 - 1))], True
    if old is not None and old < new:
        return [errors.invalid(path, new, "must be less than or equal to previous value")], True
    return [], False


def _toleration_changes(new: list[Object], old: list[Object]) -> list[FieldError]:
    def identity(toleration: Object) -> Object:
        return {k: v for k, v in toleration.items() if k != "tolerationSeconds"}

    kept = [identity(t) for t in new]
    if any(identity(t) not in kept for t in old):
        text = "existing toleration can not be modified except its tolerationSeconds"
        return [errors.forbidden("spec.tolerations", text)]
    return validate_tolerations("spec.tolerations", new)


def _gate_changes(new: list[Object], old: list[Object]) -> list[FieldError]:
    known = {gate.get("name") for gate in old}
    return [
        errors.forbidden(
            f"spec.schedulingGates[{i}].name",
            f"only deletion is allowed, but found new scheduling gate '{gate.get('name')}'",
        )
        for i, gate in enumerate(new)
        if gate.get("name") not in known
    ]


def _with_allowed_changes_undone(new: Object, old: Object) -> Object:
    munged = dict(new)
    for field in ("containers", "initContainers"):
        if field in new:
            pairs = zip(new[field], old.get(field) or (), strict=True)
            munged[field] = [{**after, "image": before.get("image")} for after, before in pairs]
    for field in ("activeDeadlineSeconds", "schedulingGates", "tolerations"):
        restore(munged, old, field)
    if (old.get("terminationGracePeriodSeconds") or 0) < 0 and munged.get(
        "terminationGracePeriodSeconds"
    ) == 1:
        munged["terminationGracePeriodSeconds"] = old["terminationGracePeriodSeconds"]
    return munged


def _gated_changes(munged: Object, new: Object, old: Object) -> list[FieldError]:
    """A Pod that nobody may schedule yet may be narrowed: more node selectors, never fewer."""
    found: list[FieldError] = []
    selector, before = new.get("nodeSelector") or {}, old.get("nodeSelector") or {}
    if selector != before:
        if any(selector.get(key) != value for key, value in before.items()):
            text = "only additions are allowed to spec.nodeSelector (no mutations or deletions)"
            found.append(errors.invalid("spec.nodeSelector", selector, text))
        restore(munged, old, "nodeSelector")
    affinity, previous = dict(munged.get("affinity") or {}), old.get("affinity") or {}
    if affinity.get("nodeAffinity") != previous.get("nodeAffinity"):
        restore(affinity, previous, "nodeAffinity")
        munged["affinity"] = affinity
        if not affinity and "affinity" not in old:
            munged.pop("affinity")
    return found


def _keep_observed_generations(status: Object, previous: Object) -> None:
    known: dict[str, list[int]] = {}
    for condition in previous.get("conditions") or ():
        known.setdefault(condition.get("type") or "", []).append(condition.get("observedGeneration") or 0)
    for condition in status.get("conditions") or ():
        queue = known.get(condition.get("type") or "") or [0]
        generation = queue.pop(0)
        if not condition.get("observedGeneration") and generation:
            condition["observedGeneration"] = generation


def _status_problems(new: Object, old: Object) -> list[FieldError]:
    status, before = new.get("status") or {}, old.get("status") or {}
    found: list[FieldError] = []
    for i, condition in enumerate(status.get("conditions") or ()):
        kind, here = condition.get("type") or "", f"status.conditions[{i}]"
        if (condition.get("observedGeneration") or 0) < 0:
            text = "must be a non-negative integer"
            found.append(errors.invalid(f"{here}.observedGeneration", condition["observedGeneration"], text))
        if kind not in ("PodScheduled", "Ready", "Initialized"):
            found += each(f"{here}.Type", kind, names.qualified_name(kind))
    nominated = status.get("nominatedNodeName") or ""
    if nominated and nominated != (before.get("nominatedNodeName") or ""):
        found += each("status.nominatedNodeName", nominated, names.dns_subdomain(nominated))
        if (old.get("spec") or {}).get("nodeName"):
            text = "may not be set on pods that are already bound to a node"
            found.append(errors.forbidden("status.nominatedNodeName", text))
    found += immutable("status.qosClass", status.get("qosClass") or "", before.get("qosClass") or "")
    found += _restarts(status, before, new.get("spec") or {})
    return found + _ips(status, before, "podIPs") + _ips(status, before, "hostIPs")


def _restarts(status: Object, before: Object, spec: Object) -> list[FieldError]:
    """A container that ended and does not restart stays ended."""
    if spec.get("restartPolicy") == "Always":
        return []
    rules = {c.get("name"): c.get("restartPolicy") for c in all_containers(spec)}
    after = {c.get("name"): (i, c) for i, c in enumerate(status.get("containerStatuses") or ())}
    found: list[FieldError] = []
    for old in before.get("containerStatuses") or ():
        ended = (old.get("state") or {}).get("terminated")
        policy = rules.get(old.get("name")) or spec.get("restartPolicy")
        if not ended or policy == "Always" or (policy == "OnFailure" and ended.get("exitCode")):
            continue
        i, new = after.get(old.get("name"), (0, None))
        if new is not None and (new.get("state") or {}).get("terminated") is None:
            where = f"status.containerStatuses[{i}].state"
            found.append(errors.forbidden(where, "may not be transitioned to non-terminated state"))
    return found


def _ips(status: Object, before: Object, field: str) -> list[FieldError]:
    listed = [item.get("ip") or "" for item in status.get(field) or ()]
    known = [item.get("ip") or "" for item in before.get(field) or ()]
    found: list[FieldError] = []
    if field == "hostIPs" and listed and listed[0] != (status.get("hostIP") or ""):
        found.append(errors.invalid("status.hostIPs[0].ip", listed[0], "must be equal to `hostIP`"))
    for i, ip in enumerate(listed):
        found += addresses.validate_ip(f"status.{field}[{i}]", ip, known)
    unreadable = next((i for i, ip in enumerate(listed) if addresses.parse(ip) is None), None)
    if len(listed) > 1 and unreadable is not None:
        text = f"failed to check for dual stack with error:invalid IP[{unreadable}]: {listed[unreadable]}"
        found.append(FieldError(Cause.INTERNAL, f"status.{field}", detail=text))
    if len(listed) > 2 or (len(listed) == 2 and addresses.is_v6(listed[0]) == addresses.is_v6(listed[1])):
        shown = [{"IP": ip} for ip in listed]
        found.append(
            errors.invalid(f"status.{field}", shown, "may specify no more than one IP for each IP family")
        )
    return found
