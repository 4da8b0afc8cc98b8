"""Events, which exist in an older (core) and a newer (events.k8s.io) form of the same object.

Errors name the fields of the older form in both, as upstream does.
"""

from __future__ import annotations

from typing import Any

from podium.api import names
from podium.api.kinds import Object
from podium.apiserver.kinds import metadata
from podium.apiserver.kinds.checks import IMMUTABLE, each
from podium.apiserver.strategy import Strategy
from podium.schema import fielderrors as errors
from podium.schema.fielderrors import FieldError

# field of the newer form -> field of the older form
_OLD_NAMES = {
    "regarding": "involvedObject",
    "note": "message",
    "deprecatedSource": "source",
    "deprecatedFirstTimestamp": "firstTimestamp",
    "deprecatedLastTimestamp": "lastTimestamp",
    "deprecatedCount": "count",
}
_FROZEN = (
    *("involvedObject", "reason", "message", "source", "firstTimestamp", "lastTimestamp", "count", "type"),
    *("eventTime", "action", "related", "reportingController", "reportingInstance"),
)


class EventStrategy(Strategy):
    create_on_update = True

    def validate_create(self, obj: Object) -> list[FieldError]:
        event = _older_form(obj)
        found = _validate(event, obj)
        if not _is_newer(obj):
            return found or metadata.validate(obj, True, names.path_segment, standard_finalizers=False)
        found += metadata.validate(obj, True, names.dns_subdomain)
        return found + _series(event) + _newer_rules(event)

    def validate_update(self, new: Object, old: Object) -> list[FieldError]:
        event, before = _older_form(new), _older_form(old)
        found = metadata.validate(new, True, names.path_segment, standard_finalizers=False)
        found += metadata.validate_update(new, old) + _validate(event, new)
        if not _is_newer(new):
            return found
        if event.get("series") != before.get("series"):
            found += _series(event)
        for field in _FROZEN:
            if event.get(field) != before.get(field):
                found.append(errors.invalid(field, _shown(field, event.get(field)), IMMUTABLE))
        return found


def _is_newer(obj: Object) -> bool:
    return str(obj.get("apiVersion") or "").startswith("events.k8s.io/")


def _older_form(obj: Object) -> Object:
    if not _is_newer(obj):
        reporter = {"reportingController": obj.get("reportingComponent")}
        return {**obj, **reporter}
    return {_OLD_NAMES.get(field, field): value for field, value in obj.items()}


def _validate(event: Object, obj: Object) -> list[FieldError]:
    namespace = (event.get("metadata") or {}).get("namespace") or ""
    about = (event.get("involvedObject") or {}).get("namespace") or ""
    found: list[FieldError] = []
    mismatch = errors.invalid("involvedObject.namespace", about, "does not match event.namespace")
    if not event.get("eventTime"):
        if namespace != about if about else namespace not in ("", "default"):
            found.append(mismatch)
    else:
        if not about and namespace not in ("default", "kube-system"):
            found.append(mismatch)
        found += _reporter(event, "reportingController" if _is_newer(obj) else "reportingComponent")
    return found + each("namespace", namespace, names.dns_subdomain(namespace))


def _reporter(event: Object, controller_field: str) -> list[FieldError]:
    controller = event.get("reportingController") or ""
    found = [] if controller else [errors.required(controller_field)]
    found += each(controller_field, controller, names.qualified_name(controller))
    for field in ("reportingInstance", "action", "reason"):
        value = event.get(field) or ""
        if not value:
            found.append(errors.required(field))
        if len(value) > 128:
            found.append(errors.invalid(field, "", "can have at most 128 characters"))
    if len(event.get("message") or "") > 1024:
        found.append(errors.invalid("message", "", "can have at most 1024 characters"))
    return found


def _series(event: Object) -> list[FieldError]:
    series = event.get("series")
    if series is None:
        return []
    found = []
    if (series.get("count") or 0) < 2:
        found.append(errors.invalid("series.count", "", "should be at least 2"))
    if not series.get("lastObservedTime"):
        found.append(errors.required("series.lastObservedTime"))
    return found


def _newer_rules(event: Object) -> list[FieldError]:
    found: list[FieldError] = []
    if not event.get("eventTime"):
        found.append(errors.required("eventTime"))
    if (kind := event.get("type") or "") not in ("Normal", "Warning"):
        found.append(errors.invalid("type", "", f"has invalid value: {kind}"))
    unset = ("firstTimestamp", "lastTimestamp", "count")
    found += [errors.invalid(field, "", "needs to be unset") for field in unset if event.get(field)]
    source = event.get("source") or {}
    if source.get("component") or source.get("host"):
        found.append(errors.invalid("source", "", "needs to be unset"))
    return found


def _shown(field: str, value: Any) -> Any:
    # Upstream shows its internal structs here, and empty texts rather than nothing.
    if field in ("involvedObject", "related") and value is not None:
        names_ = ("Kind", "Namespace", "Name", "UID", "APIVersion", "ResourceVersion", "FieldPath")
        keys = ("kind", "namespace", "name", "uid", "apiVersion", "resourceVersion", "fieldPath")
        return {name: value.get(key) or "" for name, key in zip(names_, keys, strict=True)}
    texts = ("reason", "message", "type", "action", "reportingController", "reportingInstance")
    return value or "" if field in texts else value
