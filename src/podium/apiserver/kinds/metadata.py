"""What every object's metadata must satisfy, and the label selectors that point at it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from podium.api import names
from podium.api.kinds import Object
from podium.apiserver.kinds.checks import each, immutable
from podium.schema import fielderrors as errors
from podium.schema.fielderrors import FieldError

_ANNOTATIONS_LIMIT = 256 * 1024
_STANDARD_FINALIZERS = ("kubernetes", "orphan", "foregroundDeletion")


def validate(
    obj: Object, namespaced: bool | None, name_rule: names.NameRule, *, standard_finalizers: bool = True
) -> list[FieldError]:
    """What is wrong with the metadata of an object, whether it is new or changed.

    `namespaced` is None where nobody knows; then the namespace is not looked at. `standard_finalizers`
    also asks that a finalizer is a well-known one or carries a domain, as most kinds do.
    """
    meta = obj.get("metadata") or {}
    found = _name(meta, name_rule)
    if namespaced is not None:
        found += _namespace(meta.get("namespace") or "", namespaced)
    if (generation := meta.get("generation")) and generation < 0:
        found.append(errors.invalid("metadata.generation", generation, "must be greater than or equal to 0"))
    if labels := meta.get("labels"):
        found += validate_labels("metadata.labels", labels)
    if annotations := meta.get("annotations"):
        found += validate_annotations("metadata.annotations", annotations)
    if owners := meta.get("ownerReferences"):
        found += _owners(owners)
    if finalizers := meta.get("finalizers"):
        found += _finalizers(finalizers, standard_finalizers)
    return found


def validate_update(new: Object, old: Object) -> list[FieldError]:
    """What an update changed in the metadata that it may not change."""
    meta, before = new.get("metadata") or {}, old.get("metadata") or {}
    found: list[FieldError] = []
    if before.get("deletionTimestamp"):
        added = sorted(set(meta.get("finalizers") or ()) - set(before.get("finalizers") or ()))
        if added:
            shown = ", ".join(f'"{f}"' for f in added)
            text = "no new finalizers can be added if the object is being deleted, found new finalizers"
            found.append(errors.forbidden("metadata.finalizers", f"{text} []string{{{shown}}}"))
    if not meta.get("resourceVersion"):
        found.append(errors.invalid("metadata.resourceVersion", "", "must be specified for an update"))
    if (meta.get("generation") or 0) < (before.get("generation") or 0):
        found.append(
            errors.invalid("metadata.generation", meta.get("generation") or 0, "must not be decremented")
        )
    for field in ("name", "namespace", "uid"):
        found += immutable(f"metadata.{field}", meta.get(field) or "", before.get(field) or "")
    for field in ("creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds"):
        found += immutable(f"metadata.{field}", meta.get(field), before.get(field))
    return found


def validate_labels(path: str, labels: Mapping[str, str]) -> list[FieldError]:
    found: list[FieldError] = []
    for key, value in labels.items():
        found += each(path, key, names.qualified_name(key))
        found += each(path, value, names.label_value(value))
    return found


def validate_annotations(path: str, annotations: Mapping[str, str]) -> list[FieldError]:
    found: list[FieldError] = []
    size = 0
    for key, value in annotations.items():
        found += each(path, key, names.qualified_name(key.lower()))
        size += len(key.encode()) + len(value.encode())
    if size > _ANNOTATIONS_LIMIT:
        found.append(errors.too_long(path, _ANNOTATIONS_LIMIT))
    return found


def validate_selector(path: str, selector: Object | None) -> list[FieldError]:
    """A LabelSelector: its labels, and its expressions one by one."""
    if not selector:
        return []
    found = validate_labels(f"{path}.matchLabels", selector.get("matchLabels") or {})
    for i, expression in enumerate(selector.get("matchExpressions") or ()):
        found += _expression(f"{path}.matchExpressions[{i}]", expression)
    return found


def selector_matches(selector: Object | None, labels: Mapping[str, str]) -> bool:
    """Whether a valid LabelSelector picks an object with these labels; an absent selector picks nothing."""
    if selector is None:
        return False
    if any(labels.get(key) != value for key, value in (selector.get("matchLabels") or {}).items()):
        return False
    return all(_holds(expression, labels) for expression in selector.get("matchExpressions") or ())


def selector_is_empty(selector: Object) -> bool:
    return not selector.get("matchLabels") and not selector.get("matchExpressions")


def _holds(expression: Object, labels: Mapping[str, str]) -> bool:
    key, values = expression["key"], expression.get("values") or ()
    match expression["operator"]:
        case "In":
            return key in labels and labels[key] in values
        case "NotIn":
            return labels.get(key) not in values
        case "Exists":
            return key in labels
        case _:
            return key not in labels


def operator_problems(path: str, operator: str, values: Sequence[str]) -> list[FieldError]:
    """What is wrong with the operator of a requirement, or with how many values it has."""
    match operator:
        case "In" | "NotIn" if not values:
            text = "must be specified when `operator` is 'In' or 'NotIn'"
            return [errors.required(f"{path}.values", text)]
        case "Exists" | "DoesNotExist" if values:
            text = "may not be specified when `operator` is 'Exists' or 'DoesNotExist'"
            return [errors.forbidden(f"{path}.values", text)]
        case "In" | "NotIn" | "Exists" | "DoesNotExist":
            return []
    return [errors.invalid(f"{path}.operator", operator, "not a valid selector operator")]


def _expression(path: str, expression: Object) -> list[FieldError]:
    values = expression.get("values") or ()
    found = operator_problems(path, expression.get("operator") or "", values)
    key = expression.get("key") or ""
    found += each(f"{path}.key", key, names.qualified_name(key))
    for i, value in enumerate(values):
        found += each(f"{path}.values[{i}]", value, names.label_value(value))
    return found


def _name(meta: Object, rule: names.NameRule) -> list[FieldError]:
    found: list[FieldError] = []
    if prefix := meta.get("generateName"):
        found += each("metadata.generateName", prefix, rule(prefix, True))
    if name := meta.get("name"):
        found += each("metadata.name", name, rule(name, False))
    else:
        found.append(errors.required("metadata.name", "name or generateName is required"))
    return found


def _namespace(namespace: str, namespaced: bool) -> list[FieldError]:
    if not namespaced:
        return [errors.forbidden("metadata.namespace", "not allowed on this type")] if namespace else []
    if not namespace:
        return [errors.required("metadata.namespace")]
    return each("metadata.namespace", namespace, names.dns_label(namespace))


def _owners(owners: list[Object]) -> list[FieldError]:
    path = "metadata.ownerReferences"
    found: list[FieldError] = []
    controller = ""
    for owner in owners:
        version = owner.get("apiVersion") or ""
        if not version.rpartition("/")[2]:
            found.append(errors.invalid(f"{path}.apiVersion", version, "version must not be empty"))
        missing = [field for field in ("kind", "name", "uid") if not owner.get(field)]
        found += [errors.invalid(f"{path}.{field}", "", "must not be empty") for field in missing]
        if (version, owner.get("kind")) == ("v1", "Event"):
            found.append(
                errors.invalid(path, _shown(owner), "/v1, Kind=Event is disallowed from being an owner")
            )
        if owner.get("controller"):
            this = f"{owner.get('kind') or ''}/{owner.get('name') or ''}"
            if controller:
                text = 'Only one reference can have Controller set to true. Found "true" in references for'
                found.append(
                    errors.invalid(path, list(map(_shown, owners)), f"{text} {controller} and {this}")
                )
            controller = controller or this
    return found


def _shown(owner: Object) -> Object:
    fields = ("apiVersion", "kind", "name", "uid", "controller", "blockOwnerDeletion")
    return {field: owner[field] for field in fields if field in owner}


def _finalizers(finalizers: list[str], standard: bool) -> list[FieldError]:
    path = "metadata.finalizers"
    found: list[FieldError] = []
    for finalizer in finalizers:
        found += each(path, finalizer, names.qualified_name(finalizer))
    if "orphan" in finalizers and "foregroundDeletion" in finalizers:
        text = "finalizer orphan and foregroundDeletion cannot be both set"
        found.append(errors.invalid(path, finalizers, text))
    if standard:
        for i, finalizer in enumerate(finalizers):
            found += validate_finalizer_domain(f"{path}[{i}]", finalizer)
    return found


def validate_finalizer_domain(path: str, finalizer: str) -> list[FieldError]:
    """A finalizer without a domain must be one of those that Kubernetes itself knows."""
    if "/" in finalizer or finalizer in _STANDARD_FINALIZERS:
        return []
    text = "name is neither a standard finalizer name nor is it fully qualified"
    return [errors.invalid(path, finalizer, text)]
