"""Jobs and CronJobs."""

from __future__ import annotations

import re
from typing import ClassVar

from podium.api import names
from podium.api.conditions import is_true
from podium.api.kinds import Object
from podium.apiserver.kinds import metadata
from podium.apiserver.kinds.base import KindStrategy
from podium.apiserver.kinds.checks import (
    IMMUTABLE,
    go_order,
    immutable,
    not_negative_fields,
    restore,
    same,
    unsupported,
)
from podium.apiserver.kinds.jobpolicies import (
    index_problem,
    shown_failure_policy,
    shown_success_policy,
    validate_failure_policy,
    validate_managed_by,
    validate_success_policy,
)
from podium.apiserver.kinds.podtemplate import default_template, validate_template
from podium.apiserver.kinds.podwarnings import name_warning, warn_pod
from podium.apiserver.kinds.workloads import MISMATCH, template_labels
from podium.schema import fielderrors as errors
from podium.schema.fielderrors import FieldError
from podium.text import cron

_NAME_LABELS = ("job-name", "batch.kubernetes.io/job-name")
_UID_LABELS = ("controller-uid", "batch.kubernetes.io/controller-uid")
_MANY = 100_000
_TRACKING = (
    "In Indexed Jobs with a number of completions higher than 10^5 and a parallelism higher than 10^4, "
    "Kubernetes might not be able to track completedIndexes when a big number of indexes fail"
)


class JobStrategy(KindStrategy):
    generation_fields = ("spec",)
    empty_status: ClassVar[Object | None] = {}

    def default(self, obj: Object) -> None:
        spec = obj.setdefault("spec", {})
        if spec.get("completions") is None and spec.get("parallelism") is None:
            spec["completions"] = 1
        per_index = spec.get("backoffLimitPerIndex") is not None
        replacement = "Failed" if spec.get("podFailurePolicy") is not None else "TerminatingOrFailed"
        for field, value in (
            ("parallelism", 1),
            ("backoffLimit", 2**31 - 1 if per_index else 6),
            ("completionMode", "NonIndexed"),
            ("suspend", False),
            ("podReplacementPolicy", replacement),
            ("manualSelector", False),
        ):
            if spec.get(field) is None:
                spec[field] = value
        meta = obj.setdefault("metadata", {})
        if (labels := template_labels(spec)) and not meta.get("labels"):
            # The same dict, as upstream: what `prepare_create` adds to the template shows here too.
            meta["labels"] = labels
        _default_job_template(spec)

    def prepare_create(self, obj: Object) -> None:
        super().prepare_create(obj)
        spec = obj.setdefault("spec", {})
        if not spec.get("manualSelector"):
            _generate_selector(obj, spec)

    def validate_create(self, obj: Object) -> list[FieldError]:
        found = super().validate_create(obj)
        labels, generated = (obj.get("metadata") or {}).get("labels"), template_labels(obj.get("spec") or {})
        if labels == generated and labels is not generated:
            # Upstream copies generated labels only after validation, so it does not complain of them twice.
            return [e for e in found if e.path != "metadata.labels"]
        return found

    def validate(self, obj: Object, old: Object | None) -> list[FieldError]:
        spec, meta = obj.get("spec") or {}, obj.get("metadata") or {}
        found = _generated_selector(obj, old) + validate_job_spec("spec", spec)
        selector = spec.get("selector")
        if selector is None:
            found.append(errors.required("spec.selector"))
        problems = metadata.validate_selector("spec.selector", selector)
        found += problems
        labels = template_labels(spec)
        if not problems and not metadata.selector_matches(selector, labels or {}):
            found.append(errors.invalid("spec.template.metadata.labels", go_order(labels), MISMATCH))
        completions = spec.get("completions") or 0
        if spec.get("completionMode") == "Indexed" and completions > 0:
            name = meta.get("name") or ""
            host = f"{name}-{completions - 1}"
            if names.dns_label(host):
                text = f"will not able to create pod with invalid DNS label: {host}"
                found.append(errors.invalid("metadata.name", name, text))
        return found

    def validate_change(self, new: Object, old: Object) -> list[FieldError]:
        spec, before = new.get("spec") or {}, old.get("spec") or {}
        found = _completions_change(spec, before)
        found += immutable("spec.selector", spec.get("selector"), before.get("selector"))
        found += _template_change(spec, old)
        for field in ("completionMode", "backoffLimitPerIndex", "managedBy"):
            found += immutable(f"spec.{field}", spec.get(field), before.get(field))
        shown = {"podFailurePolicy": shown_failure_policy, "successPolicy": shown_success_policy}
        for field, show in shown.items():
            if not same(spec.get(field), before.get(field)):
                found.append(errors.invalid(f"spec.{field}", show(spec.get(field)), IMMUTABLE))
        return found

    def validate_status_change(self, new: Object, old: Object) -> list[FieldError]:
        return _status_problems(new, old)

    def warnings(self, obj: Object, old: Object | None) -> list[str]:
        spec = obj.get("spec") or {}
        if old is not None:
            return [] if spec == (old.get("spec") or {}) else warn_job_spec("spec", spec)
        name = (obj.get("metadata") or {}).get("name") or ""
        return name_warning(name, "Pod names and hostnames") + warn_job_spec("spec", spec)


class CronJobStrategy(KindStrategy):
    generation_fields = ("spec",)
    empty_status: ClassVar[Object | None] = {}

    def default(self, obj: Object) -> None:
        spec = obj.setdefault("spec", {})
        if not spec.get("concurrencyPolicy"):
            spec["concurrencyPolicy"] = "Allow"
        for field, value in (
            ("suspend", False),
            ("successfulJobsHistoryLimit", 3),
            ("failedJobsHistoryLimit", 1),
        ):
            if spec.get(field) is None:
                spec[field] = value
        _default_job_template(spec.setdefault("jobTemplate", {}).setdefault("spec", {}))

    def validate(self, obj: Object, old: Object | None) -> list[FieldError]:
        spec, name = obj.get("spec") or {}, (obj.get("metadata") or {}).get("name") or ""
        before = (old or {}).get("spec")
        found = _schedule(spec, before)
        found += not_negative_fields("spec", spec, ("startingDeadlineSeconds",))
        if before is None or before.get("timeZone") != spec.get("timeZone"):
            found += _time_zone("spec.timeZone", spec.get("timeZone"))
        policies = ("Allow", "Forbid", "Replace")
        policy = spec.get("concurrencyPolicy") or ""
        if not policy:
            found.append(errors.required("spec.concurrencyPolicy"))
        elif policy not in policies:
            found.append(unsupported("spec.concurrencyPolicy", policy, policies))
        found += _job_template("spec.jobTemplate.spec", (spec.get("jobTemplate") or {}).get("spec") or {})
        found += not_negative_fields("spec", spec, ("successfulJobsHistoryLimit", "failedJobsHistoryLimit"))
        if old is None and len(name) > 52:
            found.append(errors.invalid("metadata.name", name, "must be no more than 52 characters"))
        return found

    def warnings(self, obj: Object, old: Object | None) -> list[str]:
        spec, path = obj.get("spec") or {}, "spec.jobTemplate.spec"
        job = (spec.get("jobTemplate") or {}).get("spec") or {}
        if old is None:
            name = (obj.get("metadata") or {}).get("name") or ""
            return name_warning(name, "Pod names and hostnames") + warn_job_spec(path, job)
        found = [] if spec == (old.get("spec") or {}) else warn_job_spec(path, job)
        if "TZ" in (spec.get("schedule") or ""):
            more = "https://kubernetes.io/docs/concepts/workloads/controllers/cron-jobs/ for more details"
            found.append(f"cannot use TZ or CRON_TZ in spec.spec.schedule, use timeZone instead, see {more}")
        return found


def validate_job_spec(path: str, spec: Object) -> list[FieldError]:
    """What Jobs and the templates of CronJobs have in common."""
    numbers = (
        "parallelism",
        "completions",
        "activeDeadlineSeconds",
        "backoffLimit",
        "ttlSecondsAfterFinished",
    )
    found = not_negative_fields(path, spec, (*numbers, "backoffLimitPerIndex", "maxFailedIndexes"))
    if spec.get("maxFailedIndexes") is not None and spec.get("backoffLimitPerIndex") is None:
        found.append(errors.required(f"{path}.backoffLimitPerIndex", "when maxFailedIndexes is specified"))
    if (manager := spec.get("managedBy")) is not None:
        found += validate_managed_by(f"{path}.managedBy", manager)
    found += _completion_mode(path, spec)
    if spec.get("podFailurePolicy") is not None:
        found += validate_failure_policy(f"{path}.podFailurePolicy", spec)
    if spec.get("successPolicy") is not None:
        found += validate_success_policy(f"{path}.successPolicy", spec)
    found += _replacement_policy(f"{path}.podReplacementPolicy", spec)
    found += validate_template(f"{path}.template", spec.get("template") or {})
    return found + _restart_policy(f"{path}.template.spec.restartPolicy", spec)


def warn_job_spec(path: str, spec: Object) -> list[str]:
    found = []
    many = (spec.get("completions") or 0) > _MANY and (spec.get("parallelism") or 0) > 10_000
    if spec.get("completionMode") == "Indexed" and many:
        found.append(f"{path}: {_TRACKING}")
    return found + warn_pod(f"{path}.template", spec.get("template") or {})


def _default_job_template(spec: Object) -> None:
    default_template(spec.setdefault("template", {}))
    for rule in (spec.get("podFailurePolicy") or {}).get("rules") or ():
        for pattern in rule.get("onPodConditions") or ():
            if not pattern.get("status"):
                pattern["status"] = "True"


def _generate_selector(obj: Object, spec: Object) -> None:
    meta = obj.get("metadata") or {}
    template_meta = spec.setdefault("template", {}).setdefault("metadata", {})
    labels = template_meta["labels"] = template_meta.get("labels") or {}
    for key in _NAME_LABELS:
        labels.setdefault(key, meta.get("name") or "")
    for key in _UID_LABELS:
        labels.setdefault(key, meta.get("uid") or "")
    if not meta.get("labels"):
        meta["labels"] = dict(labels)
    selector = spec["selector"] = dict(spec.get("selector") or {})
    selector["matchLabels"] = {_UID_LABELS[1]: meta.get("uid") or "", **(selector.get("matchLabels") or {})}


def _generated_selector(obj: Object, old: Object | None) -> list[FieldError]:
    spec, meta = obj.get("spec") or {}, obj.get("metadata") or {}
    selector = spec.get("selector")
    if spec.get("manualSelector") or selector is None:
        return []
    path, labels = "spec.template.metadata.labels", template_labels(spec)
    prefixed = True
    if old is not None:
        before = template_labels(old.get("spec") or {}) or {}
        prefixed = _NAME_LABELS[1] in before and _UID_LABELS[1] in before
    found: list[FieldError] = []
    if not meta.get("uid"):
        found.append(errors.required("metadata.uid"))
    expected = {_UID_LABELS[0]: meta.get("uid") or "", _NAME_LABELS[0]: meta.get("name") or ""}
    if prefixed:
        expected |= {_UID_LABELS[1]: meta.get("uid") or "", _NAME_LABELS[1]: meta.get("name") or ""}
    for key, value in expected.items():
        if key not in (labels or {}):
            found.append(errors.required(f"{path}[{key}]", f"must be '{value}'"))
        elif (labels or {})[key] != value:
            found.append(errors.invalid(f"{path}[{key}]", go_order(labels), f"must be '{value}'"))
    if not metadata.validate_selector("", selector) and not metadata.selector_matches(selector, expected):
        found.append(errors.invalid("spec.selector", go_order(selector), "`selector` not auto-generated"))
    return found


def _completion_mode(path: str, spec: Object) -> list[FieldError]:
    mode, completions = spec.get("completionMode"), spec.get("completions")
    failed, parallelism = spec.get("maxFailedIndexes"), spec.get("parallelism") or 0
    found: list[FieldError] = []
    if mode is not None and mode not in ("NonIndexed", "Indexed"):
        found.append(unsupported(f"{path}.completionMode", mode, ("NonIndexed", "Indexed")))
    if mode in (None, "NonIndexed"):
        found += [
            errors.invalid(f"{path}.{field}", spec[field], "requires indexed completion mode")
            for field in ("backoffLimitPerIndex", "maxFailedIndexes")
            if spec.get(field) is not None
        ]
    if mode != "Indexed":
        return found
    if completions is None:
        found.append(errors.required(f"{path}.completions", "when completion mode is Indexed"))
    if parallelism > _MANY:
        text = f"must be less than or equal to {_MANY} when completion mode is Indexed"
        found.append(errors.invalid(f"{path}.parallelism", parallelism, text))
    if failed is not None:
        if completions is not None and failed > completions:
            text = "must be less than or equal to completions"
            found.append(errors.invalid(f"{path}.maxFailedIndexes", failed, text))
        if failed > _MANY:
            text = f"must be less than or equal to {_MANY}"
            found.append(errors.invalid(f"{path}.maxFailedIndexes", failed, text))
    if (completions or 0) > _MANY and spec.get("backoffLimitPerIndex") is not None:
        text = f"when completions are above {_MANY} and used with backoff limit per index"
        if failed is None:
            needed = f"must be specified when completions is above {_MANY}"
            found.append(errors.required(f"{path}.maxFailedIndexes", needed))
        for field, value in (("parallelism", parallelism), ("maxFailedIndexes", failed or 0)):
            if value > 10_000:
                found.append(
                    errors.invalid(f"{path}.{field}", value, f"must be less than or equal to 10000 {text}")
                )
    return found


def _replacement_policy(path: str, spec: Object) -> list[FieldError]:
    policy = spec.get("podReplacementPolicy")
    allowed = ("Failed",) if spec.get("podFailurePolicy") is not None else ("Failed", "TerminatingOrFailed")
    return [] if policy is None or policy in allowed else [unsupported(path, policy, allowed)]


def _restart_policy(path: str, spec: Object) -> list[FieldError]:
    policy = ((spec.get("template") or {}).get("spec") or {}).get("restartPolicy") or ""
    if policy in ("", "Always"):
        return [errors.required(path, 'valid values: "OnFailure", "Never"')]
    if policy not in ("OnFailure", "Never"):
        return [unsupported(path, policy, ("OnFailure", "Never"))]
    if spec.get("podFailurePolicy") is not None and policy != "Never":
        return [errors.invalid(path, policy, 'only "Never" is supported when podFailurePolicy is specified')]
    return []


def _completions_change(spec: Object, before: Object) -> list[FieldError]:
    new, old = spec.get("completions"), before.get("completions")
    if spec.get("completionMode") != "Indexed":
        return immutable("spec.completions", new, old)
    if new == old or new is None or new == spec.get("parallelism"):
        return []
    return [errors.invalid("spec.completions", new, "can only be modified in tandem with spec.parallelism")]


def _template_change(spec: Object, old: Object) -> list[FieldError]:
    """The template of a Job that is not running yet may still be steered and sized."""
    before, status = old.get("spec") or {}, old.get("status") or {}
    template, previous = spec.get("template") or {}, before.get("template") or {}
    suspended = bool(before.get("suspend"))
    idle = (
        suspended and not status.get("active") and (not status.get("startTime") or is_true(old, "Suspended"))
    )
    if not idle:
        return (
            []
            if same(template, previous)
            else [errors.invalid("spec.template", _shown(template), "field is immutable")]
        )
    pod, old_pod = dict(template.get("spec") or {}), dict(previous.get("spec") or {})
    for field in ("nodeSelector", "tolerations", "schedulingGates"):
        restore(old_pod, pod, field)
    affinity, old_affinity = pod.get("affinity") or {}, dict(old_pod.get("affinity") or {})
    restore(old_affinity, affinity, "nodeAffinity")
    if old_affinity or affinity:
        old_pod["affinity"] = old_affinity
    else:
        old_pod.pop("affinity", None)
    for field in ("containers", "initContainers"):
        after, earlier = pod.get(field) or [], old_pod.get(field) or []
        if [c.get("name") for c in after] == [c.get("name") for c in earlier]:
            old_pod[field] = [_with(b, "resources", a) for a, b in zip(after, earlier, strict=True)]
    if same(pod, old_pod):
        return []
    return [errors.invalid("spec.template.spec", _shown(pod), "field is immutable")]


def _with(target: Object, field: str, source: Object) -> Object:
    copy = dict(target)
    restore(copy, source, field)
    return copy


def _shown(value: Object) -> Object:
    # Upstream prints its internal struct here, which no client can match on.
    return value


def _schedule(spec: Object, before: Object | None) -> list[FieldError]:
    path, schedule = "spec.schedule", spec.get("schedule") or ""
    if not schedule:
        return [errors.required(path)]
    found = []
    try:
        cron.parse(schedule)
    except cron.ScheduleError as problem:
        found.append(errors.invalid(path, schedule, str(problem)))
    if "TZ" in schedule:
        if before is None or "TZ" not in (before.get("schedule") or ""):
            text = "cannot use TZ or CRON_TZ in schedule, use timeZone field instead"
            found.append(errors.invalid(path, schedule, text))
        elif spec.get("timeZone") is not None:
            text = "cannot use both timeZone field and TZ or CRON_TZ in schedule"
            found.append(errors.invalid(path, schedule, text))
    return found


def _time_zone(path: str, zone: str | None) -> list[FieldError]:
    if zone is None:
        return []
    if not zone:
        return [errors.invalid(path, zone, "timeZone must be nil or non-empty string")]
    unknown = errors.invalid(path, zone, f"unknown time zone {zone}")
    for part in zone.split("/"):
        if part in (".", "..") or part.startswith("-") or not re.fullmatch(r"[A-Za-z.\-_0-9+]{1,14}", part):
            return [unknown]
    if zone.lower() == "local":
        text = "timeZone must be an explicit time zone as defined in https://www.iana.org/time-zones"
        found = [errors.invalid(path, zone, text)]
        return found if zone == "Local" else [*found, unknown]
    return [] if _is_known_zone(zone) else [unknown]


def _is_known_zone(zone: str) -> bool:
    from zoneinfo import ZoneInfo, available_timezones

    if zone in ("UTC", "") or not available_timezones():
        return True  # without a time zone database there is nothing to check against
    try:
        ZoneInfo(zone)
    except (ValueError, OSError, KeyError):
        return False
    return True


def _job_template(path: str, spec: Object) -> list[FieldError]:
    found = validate_job_spec(path, spec)
    if spec.get("selector") is not None:
        found.append(
            errors.invalid(
                f"{path}.selector", go_order(spec["selector"]), "`selector` will be auto-generated"
            )
        )
    if spec.get("manualSelector"):
        found.append(unsupported(f"{path}.manualSelector", True, ("nil", "false")))
    return found


def _status_problems(new: Object, old: Object) -> list[FieldError]:
    status, before, spec = new.get("status") or {}, old.get("status") or {}, new.get("spec") or {}
    found = not_negative_fields("status", status, ("active", "succeeded", "failed", "ready", "terminating"))
    found += _condition_problems(new, old)
    complete, failed = is_true(new, "Complete"), is_true(new, "Failed")
    finished = complete or failed
    just_finished = finished and not (is_true(old, "Complete") or is_true(old, "Failed"))
    completion, start = status.get("completionTime"), status.get("startTime")
    if completion and not complete and completion != before.get("completionTime"):
        text = "cannot set completionTime when there is no Complete=True condition"
        found.append(errors.invalid("status.completionTime", completion, text))
    if complete and not completion:
        found.append(errors.required("status.completionTime", "completionTime is required for Complete jobs"))
    if completion and before.get("completionTime") not in (None, completion):
        found.append(errors.invalid("status.completionTime", completion, "field is immutable"))
    if just_finished:
        if status.get("active"):
            found.append(
                errors.invalid("status.active", status["active"], "active>0 is invalid for finished job")
            )
        if not start and not (spec.get("suspend") and spec.get("completions") == 0):
            found.append(errors.required("status.startTime", "startTime is required for finished job"))
        if status.get("terminating"):
            text = "terminating>0 is invalid for finished job"
            found.append(errors.invalid("status.terminating", status["terminating"], text))
    if (ready := status.get("ready") or 0) > (status.get("active") or 0):
        found.append(errors.invalid("status.ready", ready, "cannot set more ready pods than active"))
    for counter in ("failed", "succeeded"):
        elastic = spec.get("completionMode") == "Indexed" and spec.get("completions") == spec.get(
            "parallelism"
        )
        fewer = (status.get(counter) or 0) < (before.get(counter) or 0)
        if fewer and not (counter == "succeeded" and elastic):
            text = f"cannot decrease the {counter} counter"
            found.append(errors.invalid(f"status.{counter}", status.get(counter) or 0, text))
    if before.get("startTime") not in (None, start) and not spec.get("suspend") and not _resuming(new, old):
        text = "field is immutable for unsuspended job once set"
        found.append(errors.invalid("status.startTime", start, text))
    return found + _index_problems(status, before, spec)


def _resuming(new: Object, old: Object) -> bool:
    return is_true(old, "Suspended") and not is_true(new, "Suspended")


def _condition_problems(new: Object, old: Object) -> list[FieldError]:
    complete, failed = is_true(new, "Complete"), is_true(new, "Failed")
    met, target = is_true(new, "SuccessCriteriaMet"), is_true(new, "FailureTarget")
    newly_failed = failed and not is_true(old, "Failed")
    newly_complete = complete and not is_true(old, "Complete")
    texts = [
        text
        for applies, text in (
            (complete and failed, "cannot set Complete=True and Failed=true conditions"),
            (complete and target, "cannot set Complete=True and FailureTarget=true conditions"),
            (
                newly_failed and not target,
                "cannot set Failed=True condition without the FailureTarget=true condition",
            ),
            (
                newly_complete and not met,
                "cannot set Complete=True condition without the SuccessCriteriaMet=true condition",
            ),
            (met and failed, "cannot set SuccessCriteriaMet=True and Failed=true conditions"),
            (met and target, "cannot set SuccessCriteriaMet=True and FailureTarget=true conditions"),
        )
        if applies
    ]
    texts += [
        f"cannot disable the terminal {kind}=True condition"
        for kind in ("Failed", "Complete", "FailureTarget")
        if is_true(old, kind) and not is_true(new, kind)
    ]
    if is_true(old, "SuccessCriteriaMet") and not met:
        texts.append("cannot disable the SuccessCriteriaMet=True condition")
    return [errors.invalid_whole("status.conditions", text) for text in texts]


def _index_problems(status: Object, before: Object, spec: Object) -> list[FieldError]:
    found: list[FieldError] = []
    done, completions = status.get("completedIndexes") or "", spec.get("completions")
    if done != (before.get("completedIndexes") or ""):
        if completions is not None and (problem := index_problem(done, completions)):
            text = f"error parsing completedIndexes: {problem}"
            found.append(errors.invalid("status.completedIndexes", done, text))
        if done and spec.get("completionMode") != "Indexed":
            text = "cannot set non-empty completedIndexes when non-indexed completion mode"
            found.append(errors.invalid("status.completedIndexes", done, text))
    failed = status.get("failedIndexes")
    if (
        failed is not None
        and failed != before.get("failedIndexes")
        and spec.get("backoffLimitPerIndex") is None
    ):
        text = "cannot set non-null failedIndexes when backoffLimitPerIndex is null"
        found.append(errors.invalid("status.failedIndexes", failed, text))
    return found
