"""The rules in the schemas of a CRD: their form, whether they compile, and what they may cost at worst.

A rule is multiplied by how often its place can occur in one object. Each may cost only so much, and so may
all rules of a schema together: a definition must limit the lists, maps and texts that its rules go through.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from podium.schema import cel, cel_sizes, structuralrules
from podium.schema.crdschema import Structural, parse
from podium.schema.fielderrors import Cause, FieldError, forbidden, invalid, required
from podium.schema.fieldpaths import PathError, resolve

Schema = Mapping[str, Any]
_REASONS = ("FieldValueDuplicate", "FieldValueForbidden", "FieldValueInvalid", "FieldValueRequired")
_MOST_PER_RULE = 10_000_000
_MOST_PER_SCHEMA = 100_000_000
_INFINITE = 2**64 - 1
_REMEDY = (
    "(try simplifying the rule, or adding maxItems, maxProperties, and maxLength where arrays, maps, and "
    "strings are declared)"
)


def form_errors(schema: Schema, path: str) -> list[FieldError]:
    """What is wrong with rules before any is compiled."""
    found: list[FieldError] = []
    for index, rule in enumerate(schema["x-kubernetes-validations"]):
        where = f"{path}.x-kubernetes-validations[{index}]"
        text, message = rule.get("rule") or "", rule.get("message") or ""
        if not text.strip():
            found.append(required(f"{where}.rule", "rule is not specified"))
        elif message and not message.strip():
            found.append(invalid(f"{where}.message", message, "must be non-empty if specified"))
        elif _has_newline(message.strip()):
            found.append(invalid(f"{where}.message", message, "must not contain line breaks"))
        elif _has_newline(text.strip()) and not message.strip():
            found.append(
                required(f"{where}.message", "message must be specified if rule contains line breaks")
            )
        expression = rule.get("messageExpression") or ""
        if expression and not expression.strip():
            words = "messageExpression must be non-empty if specified"
            found.append(required(f"{where}.messageExpression", words))
        if rule.get("reason") is not None and rule["reason"] not in _REASONS:
            words = "supported values: " + ", ".join(f'"{reason}"' for reason in _REASONS)
            found.append(FieldError(Cause.NOT_SUPPORTED, f"{where}.reason", rule["reason"], words))
        found += _field_path_errors(schema, rule.get("fieldPath") or "", f"{where}.fieldPath")
    return found


def _has_newline(text: str) -> bool:
    return "\n" in text or "\r" in text


def _field_path_errors(schema: Schema, text: str, path: str) -> list[FieldError]:
    if not text:
        return []
    found: list[FieldError] = []
    if not text.strip():
        found.append(invalid(path, text, "must be non-empty if specified"))
    if _has_newline(text):
        found.append(invalid(path, text, "must not contain line breaks"))
    if not structuralrules.unsupported(schema):
        try:
            resolve(text, parse(schema))
        except PathError:
            found.append(invalid(path, text, "must be a valid path"))
    return found


def occurrences(above: int | None, node: Structural | None) -> int | None:
    """How often what is inside a node can occur, given how often the node can; None if there is no limit."""
    times = cel_sizes.times(node) if node is not None else None
    return None if above is None or times is None else min(above * times, _INFINITE)


class Rules:
    """Compiles the rules of one schema, and adds up what they may cost."""

    def __init__(self, *, any_cost: bool = False) -> None:
        self.errors: list[FieldError] = []
        self._any_cost = any_cost  # the schema was accepted before, so no single rule is held against it
        self._total = 0
        self._expensive: list[tuple[int, str]] = []

    def check(self, node: Structural, path: str, is_root: bool, no_old_self: str, often: int | None) -> None:
        """Judge the rules at one node; `no_old_self` is the list within which old values are not known."""
        is_resource = is_root or node.embedded
        compiled_rules = cel.compile_at(node, is_resource)
        if compiled_rules is None:
            words = (
                "internal error: failed to construct type information for x-kubernetes-validations rules: "
                "unable to convert structural schema to CEL declarations"
            )
            where = f"{path}.x-kubernetes-validations"
            self.errors.append(FieldError(Cause.INTERNAL, where, detail=words))
            return
        often = cel_sizes.most_often(node) if often is None else often
        for index, compiled in enumerate(compiled_rules):
            where = f"{path}.x-kubernetes-validations[{index}]"
            cost, message_cost = cel.worst_costs(compiled, node, is_resource)
            self._charge(f"{where}.rule", "estimated rule cost", min(cost * often, _INFINITE))
            self.errors += _compile_errors(compiled, where)
            if compiled.message is not None:
                self._charge(f"{where}.messageExpression", "estimated messageExpression cost", message_cost)
            self.errors += _old_self_errors(compiled, where, no_old_self)

    def _charge(self, where: str, what: str, cost: int) -> None:
        if cost > _MOST_PER_RULE and not self._any_cost:
            self.errors.append(forbidden(where, _excess(what, cost, _MOST_PER_RULE)))
        self._total = min(self._total + cost, _INFINITE)
        if cost >= _MOST_PER_SCHEMA // 100:
            self._expensive.append((cost, where))

    def total_errors(self, path: str) -> list[FieldError]:
        """What is wrong with all rules together, the worst of them named."""
        if self._total <= _MOST_PER_SCHEMA:
            return []
        words = "contributed to estimated rule cost total exceeding cost limit for entire OpenAPIv3 schema"
        worst = sorted(self._expensive, key=lambda each: -each[0])[:4]
        what = "x-kubernetes-validations estimated rule cost total for entire OpenAPIv3 schema"
        return [
            *(forbidden(where, words) for _, where in worst),
            forbidden(path, _excess(what, self._total, _MOST_PER_SCHEMA)),
        ]


def _excess(what: str, cost: int, limit: int) -> str:
    factor = cost / limit
    shown = f"{factor:f}x" if factor < 1.5 else f"{factor:.1f}x"
    if factor > 100:
        shown = "more than 100x"  # nobody is helped by how much more
    return f"{what} exceeds budget by factor of {shown} {_REMEDY}"


def _compile_errors(compiled: cel.CompiledRule, where: str) -> list[FieldError]:
    rule = compiled.rule
    shown = {
        "Rule": rule.rule,
        "Message": rule.message,
        "MessageExpression": rule.message_expression,
        "Reason": rule.reason,
        "FieldPath": rule.field_path,
        "OptionalOldSelf": rule.optional_old_self,
    }
    found: list[FieldError] = []
    if compiled.error:
        found.append(invalid(f"{where}.rule", shown, compiled.error))
    if compiled.message_error:
        found.append(invalid(f"{where}.messageExpression", shown, compiled.message_error))
    return found


def _old_self_errors(compiled: cel.CompiledRule, where: str, no_old_self: str) -> list[FieldError]:
    rule = compiled.rule
    if compiled.uses_old_self:
        if not no_old_self:
            return []
        portion = f"the uncorrelatable portion of the schema within {no_old_self}"
        return [invalid(f"{where}.rule", rule.rule, f"oldSelf cannot be used on {portion}")]
    if rule.optional_old_self is None:
        return []
    words = "may not be set if oldSelf is not used in rule"
    return [invalid(f"{where}.optionalOldSelf", rule.optional_old_self, words)]
