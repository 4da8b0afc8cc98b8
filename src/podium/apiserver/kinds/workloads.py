"""What the workloads have in common: a selector that must match a Pod template, and counts in status."""

from __future__ import annotations

from collections.abc import Iterable

from podium.api.kinds import Object
from podium.apiserver.kinds import metadata
from podium.apiserver.kinds.checks import go_order, unsupported
from podium.apiserver.kinds.podtemplate import validate_template
from podium.schema import fielderrors as errors
from podium.schema.fielderrors import FieldError

MISMATCH = "`selector` does not match template `labels`"


def template_labels(spec: Object) -> dict[str, str] | None:
    labels: dict[str, str] | None = ((spec.get("template") or {}).get("metadata") or {}).get("labels")
    return labels


def validate_selector(spec: Object, word: str) -> list[FieldError]:
    """A workload's selector: present, right, and not empty."""
    selector = spec.get("selector")
    if selector is None:
        return [errors.required("spec.selector")]
    found = metadata.validate_selector("spec.selector", selector)
    if metadata.selector_is_empty(selector):
        found.append(
            errors.invalid("spec.selector", go_order(selector), f"empty selector is invalid for {word}")
        )
    return found


def selector_is_broken(spec: Object) -> bool:
    """Whether the selector is so wrong that nothing can be matched against it."""
    return bool(metadata.validate_selector("spec.selector", spec.get("selector")))


def validate_match(spec: Object, *, empty_matches: bool = True) -> list[FieldError]:
    """The selector picks the template's labels."""
    selector, labels = spec.get("selector"), template_labels(spec)
    if empty_matches and selector is not None and metadata.selector_is_empty(selector):
        return []
    if metadata.selector_matches(selector, labels or {}):
        return []
    return [errors.invalid("spec.template.metadata.labels", go_order(labels), MISMATCH)]


def validate_long_running(spec: Object, word: str, *, template: Object | None = None) -> list[FieldError]:
    """A template whose Pods are kept running: they restart always and have no deadline."""
    found = validate_template(
        "spec.template", template if template is not None else spec.get("template") or {}
    )
    return found + validate_restart_and_deadline(spec, word)


def validate_restart_and_deadline(spec: Object, word: str) -> list[FieldError]:
    pod = (spec.get("template") or {}).get("spec") or {}
    found: list[FieldError] = []
    if (policy := pod.get("restartPolicy") or "") != "Always":
        found.append(unsupported("spec.template.spec.restartPolicy", policy, ("Always",)))
    if pod.get("activeDeadlineSeconds") is not None:
        text = f"activeDeadlineSeconds in {word} is not Supported"
        found.append(errors.forbidden("spec.template.spec.activeDeadlineSeconds", text))
    return found


def counts_within_total(
    status: Object, fields: Iterable[str], ready_text: str = "cannot be greater than readyReplicas"
) -> list[FieldError]:
    """Parts of `status.replicas` are not more than the whole."""
    total = status.get("replicas") or 0
    found = [
        errors.invalid(f"status.{field}", status[field], "cannot be greater than status.replicas")
        for field in fields
        if (status.get(field) or 0) > total
    ]
    if (available := status.get("availableReplicas") or 0) > (status.get("readyReplicas") or 0):
        found.append(errors.invalid("status.availableReplicas", available, ready_text))
    return found


def collisions_not_fewer(new: Object, old: Object) -> list[FieldError]:
    before, after = old.get("collisionCount"), new.get("collisionCount")
    if before is None or (after is not None and after >= before):
        return []
    return [errors.invalid("status.collisionCount", after or 0, "cannot be decremented")]
