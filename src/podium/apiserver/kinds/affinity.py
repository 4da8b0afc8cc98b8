"""Where a Pod may run: node and Pod affinity, tolerations, topology spread."""

from __future__ import annotations

from podium.api import names
from podium.api.kinds import Object
from podium.apiserver.kinds import metadata
from podium.apiserver.kinds.checks import each, one_of, unsupported
from podium.schema import fielderrors as errors
from podium.schema.fielderrors import FieldError

_REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
_PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"
TAINT_EFFECTS = ("NoSchedule", "PreferNoSchedule", "NoExecute")
_WEIGHT = "must be in the range 1-100"


def validate_affinity(path: str, affinity: Object | None) -> list[FieldError]:
    """All three kinds of affinity."""
    if not affinity:
        return []
    found: list[FieldError] = []
    if node := affinity.get("nodeAffinity"):
        here = f"{path}.nodeAffinity"
        if (selector := node.get(_REQUIRED)) is not None:
            found += validate_node_selector(f"{here}.{_REQUIRED}", selector)
        for i, term in enumerate(node.get(_PREFERRED) or ()):
            found += _weight(f"{here}.{_PREFERRED}[{i}].weight", term.get("weight") or 0)
            preference = term.get("preference") or {}
            found += _node_term(f"{here}.{_PREFERRED}[{i}].preference", preference, check_values=False)
    for field in ("podAffinity", "podAntiAffinity"):
        if pods := affinity.get(field):
            found += _pod_affinity(f"{path}.{field}", pods)
    return found


def validate_node_selector(path: str, selector: Object) -> list[FieldError]:
    terms = selector.get("nodeSelectorTerms") or []
    if not terms:
        return [errors.required(f"{path}.nodeSelectorTerms", "must have at least one node selector term")]
    return [e for i, term in enumerate(terms) for e in _node_term(f"{path}.nodeSelectorTerms[{i}]", term)]


def validate_tolerations(path: str, tolerations: list[Object]) -> list[FieldError]:
    found: list[FieldError] = []
    for i, toleration in enumerate(tolerations):
        found += _toleration(f"{path}[{i}]", toleration)
    return found


def validate_taint_effect(path: str, effect: str) -> list[FieldError]:
    return [] if effect in TAINT_EFFECTS else [unsupported(path, effect, TAINT_EFFECTS)]


def validate_topology_spread(path: str, constraints: list[Object]) -> list[FieldError]:
    found: list[FieldError] = []
    for i, constraint in enumerate(constraints):
        found += _spread(f"{path}[{i}]", constraint, constraints[i + 1 :])
    return found


def _toleration(path: str, toleration: Object) -> list[FieldError]:
    key, operator = toleration.get("key") or "", toleration.get("operator") or ""
    value, effect = toleration.get("value") or "", toleration.get("effect") or ""
    found = each(f"{path}.key", key, names.qualified_name(key)) if key else []
    if not key and operator != "Exists":
        text = 'operator must be Exists when `key` is empty, which means "match all values and all keys"'
        found.append(errors.invalid(f"{path}.operator", operator, text))
    if toleration.get("tolerationSeconds") is not None and effect != "NoExecute":
        text = "effect must be 'NoExecute' when `tolerationSeconds` is set"
        found.append(errors.invalid(f"{path}.effect", effect, text))
    match operator:
        case "" | "Equal":
            if problems := names.label_value(value):
                found.append(errors.invalid(f"{path}.operator", value, ";".join(problems)))
        case "Exists":
            if value:
                text = "value must be empty when `operator` is 'Exists'"
                found.append(errors.invalid(f"{path}.operator", value, text))
        case "Lt" | "Gt":
            found.append(unsupported(f"{path}.operator", operator, ("Equal", "Exists", "Lt", "Gt")))
        case _:
            found.append(unsupported(f"{path}.operator", operator, ("Equal", "Exists")))
    return found + (validate_taint_effect(f"{path}.effect", effect) if effect else [])


def _node_term(path: str, term: Object, *, check_values: bool = True) -> list[FieldError]:
    found: list[FieldError] = []
    for i, expression in enumerate(term.get("matchExpressions") or ()):
        found += _node_expression(f"{path}.matchExpressions[{i}]", expression, check_values)
    for i, field in enumerate(term.get("matchFields") or ()):
        found += _node_field(f"{path}.matchFields[{i}]", field)
    return found


def _node_expression(path: str, expression: Object, check_values: bool) -> list[FieldError]:
    found: list[FieldError] = []
    values = expression.get("values") or []
    operator = expression.get("operator") or ""
    if operator not in ("Gt", "Lt"):
        found += metadata.operator_problems(path, operator, values)
    elif len(values) != 1:
        text = "must be specified single value when `operator` is 'Lt' or 'Gt'"
        found.append(errors.required(f"{path}.values", text))
    key = expression.get("key") or ""
    found += each(f"{path}.key", key, names.qualified_name(key))
    if check_values:
        for i, value in enumerate(values):
            found += each(f"{path}.values[{i}]", value, names.label_value(value))
    return found


def _node_field(path: str, field: Object) -> list[FieldError]:
    found: list[FieldError] = []
    values, operator, key = field.get("values") or [], field.get("operator") or "", field.get("key") or ""
    if operator not in ("In", "NotIn"):
        found.append(errors.invalid(f"{path}.operator", operator, "not a valid selector operator"))
    elif len(values) != 1:
        text = "must be only one value when `operator` is 'In' or 'NotIn' for node field selector"
        found.append(errors.required(f"{path}.values", text))
    if key != "metadata.name":
        return [*found, errors.invalid(f"{path}.key", key, "not a valid field selector key")]
    for i, value in enumerate(values):
        found += each(f"{path}.values[{i}]", value, names.dns_subdomain(value))
    return found


def _pod_affinity(path: str, affinity: Object) -> list[FieldError]:
    found: list[FieldError] = []
    for i, term in enumerate(affinity.get(_REQUIRED) or ()):
        found += _pod_term(f"{path}.{_REQUIRED}[{i}]", term)
    for i, weighted in enumerate(affinity.get(_PREFERRED) or ()):
        here = f"{path}.{_PREFERRED}[{i}]"
        found += _weight(f"{here}.weight", weighted.get("weight") or 0)
        found += _pod_term(f"{here}.podAffinityTerm", weighted.get("podAffinityTerm") or {})
    return found


def _pod_term(path: str, term: Object) -> list[FieldError]:
    found = metadata.validate_selector(f"{path}.labelSelector", term.get("labelSelector"))
    found += metadata.validate_selector(f"{path}.namespaceSelector", term.get("namespaceSelector"))
    for namespace in term.get("namespaces") or ():
        found += each(f"{path}.namespace", namespace, names.dns_label(namespace))
    found += _label_keys(path, term)
    key = term.get("topologyKey") or ""
    if not key:
        found.append(errors.required(f"{path}.topologyKey", "can not be empty"))
    return found + each(f"{path}.topologyKey", key, names.qualified_name(key))


def _label_keys(path: str, holder: Object) -> list[FieldError]:
    selector = holder.get("labelSelector")
    match, mismatch = holder.get("matchLabelKeys") or [], holder.get("mismatchLabelKeys") or []
    found: list[FieldError] = []
    for field, keys in (("matchLabelKeys", match), ("mismatchLabelKeys", mismatch)):
        if keys and selector is None:
            text = "must not be specified when labelSelector is not set"
            found.append(errors.forbidden(f"{path}.{field}", text))
        else:
            for i, key in enumerate(keys):
                found += each(f"{path}.{field}[{i}]", key, names.qualified_name(key))
    if selector is not None:
        seen = set(selector.get("matchLabels") or ())
        for expression in selector.get("matchExpressions") or ():
            key = expression.get("key") or ""
            if key in match and key in seen:
                text = "exists in both matchLabelKeys and labelSelector"
                found.append(errors.invalid(f"{path}[{match.index(key)}]", key, text))
            seen.add(key)
    for i, key in enumerate(match):
        if key in mismatch:
            text = "exists in both matchLabelKeys and mismatchLabelKeys"
            found.append(errors.invalid(f"{path}.matchLabelKeys[{i}]", key, text))
    return found


def _weight(path: str, weight: int) -> list[FieldError]:
    return [] if 1 <= weight <= 100 else [errors.invalid(path, weight, _WEIGHT)]


def _spread(path: str, constraint: Object, others: list[Object]) -> list[FieldError]:
    found: list[FieldError] = []
    skew, domains = constraint.get("maxSkew") or 0, constraint.get("minDomains")
    key, action = constraint.get("topologyKey") or "", constraint.get("whenUnsatisfiable") or ""
    if skew <= 0:
        found.append(errors.invalid(f"{path}.maxSkew", skew, "must be greater than zero"))
    if not key:
        found.append(errors.required(f"{path}.topologyKey", "can not be empty"))
    if action not in ("DoNotSchedule", "ScheduleAnyway"):
        found.append(unsupported(f"{path}.whenUnsatisfiable", action, ("DoNotSchedule", "ScheduleAnyway")))
    if any((o.get("topologyKey") or "", o.get("whenUnsatisfiable") or "") == (key, action) for o in others):
        found.append(errors.duplicate(f"{path}.{{topologyKey, whenUnsatisfiable}}", f"{{{key}, {action}}}"))
    if domains is not None:
        if domains <= 0:
            found.append(errors.invalid(f"{path}.minDomains", domains, "must be greater than zero"))
        if action != "DoNotSchedule":
            text = f"can only use minDomains if whenUnsatisfiable=DoNotSchedule, not {action}"
            found.append(errors.invalid(f"{path}.minDomains", domains, text))
    for field in ("nodeAffinityPolicy", "nodeTaintsPolicy"):
        found += one_of(f"{path}.{field}", constraint.get(field), ("Honor", "Ignore"), required=False)
    found += _label_keys(path, constraint)
    return found + metadata.validate_selector(f"{path}.labelSelector", constraint.get("labelSelector"))
