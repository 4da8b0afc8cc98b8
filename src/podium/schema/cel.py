"""The rules of a schema (`x-kubernetes-validations`): compiled with the CRD, evaluated with every write.

`compile_rules` builds a tree that follows the schema and holds programs only where rules are; it is kept as
long as the schema is. `validate` is the whole judgement on an object: schema first, and the rules only if
that found nothing that would make them stumble. Rules that speak of `oldSelf` run on updates, where an old
value can be told to be the same thing: fields of objects, entries of maps, items of lists with keys.

Every evaluation has a budget of work, and so has every object. A rule that exceeds it ends with an error.
"""

from __future__ import annotations

import weakref
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from podium.schema.crdschema import Rule, Structural
from podium.schema.fielderrors import (
    Cause,
    FieldError,
    duplicate,
    forbidden,
    invalid,
    invalid_whole,
    required,
)
from podium.schema.ratcheting import item_key, items_by_key, unchanged
from podium.schema.schemavalidation import validate as validate_schema

if TYPE_CHECKING:
    from podium.schema.cel_compile import Program
    from podium.schema.cel_types import Converter, Type

PER_RULE_BUDGET = 1_000_000
PER_OBJECT_BUDGET = 10_000_000
_LONGEST_MESSAGE = 5 * 1024
_BLOCKING = {Cause.NOT_SUPPORTED, Cause.REQUIRED, Cause.TOO_LONG, Cause.TOO_MANY, Cause.TYPE_INVALID}
_NOT_CHECKED = (
    "some validation rules were not checked because the object was invalid; "
    "correct the existing errors to complete validation"
)
_OUT_OF_BUDGET = (
    "validation failed due to running out of cost budget, no further validation rules will be run"
)


@dataclass(frozen=True, slots=True)
class CompiledRule:
    """One rule; a rule that does not compile has an error and no program."""

    rule: Rule
    program: Program | None = None
    error: str = ""
    message: Program | None = None
    message_error: str = ""
    field_path: str = ""

    @property
    def uses_old_self(self) -> bool:
        """Whether this is a transition rule."""
        return self.program is not None and "oldSelf" in self.program.uses


@dataclass(frozen=True, slots=True)
class Rules:
    """The rules at one place of a schema, and below it."""

    schema: Structural
    own: tuple[CompiledRule, ...]
    convert: Converter | None
    properties: Mapping[str, Rules]
    items: Rules | None
    additional: Rules | None


def validate(obj: dict[str, Any], schema: Structural, old: dict[str, Any] | None = None) -> list[FieldError]:
    """Return everything that is wrong with a custom resource, its rules included."""
    return [*(errors := validate_schema(obj, schema, old)), *rule_errors(obj, schema, old, errors)]


def rule_errors(
    obj: dict[str, Any],
    schema: Structural,
    old: dict[str, Any] | None = None,
    errors: list[FieldError] | None = None,
) -> list[FieldError]:
    """Return what the rules object to; `errors` are the faults already found, some of which stop the "
    "rules."""
    if not schema.has_rules:
        return []
    if errors and any(error.cause in _BLOCKING for error in errors):
        return [invalid("<nil>", None, _NOT_CHECKED)]
    rules = compile_rules(schema)
    if rules is None:
        return []
    run = _Run()
    run.visit(rules, obj, old, "", _Link(schema, obj, old) if old is not None else None, None)
    return run.errors


_compiled: weakref.WeakKeyDictionary[Structural, Rules] = weakref.WeakKeyDictionary()


def compile_rules(schema: Structural, is_resource: bool = True) -> Rules | None:
    """The compiled rules of a schema, or None if it has none."""
    if not schema.has_rules:
        return None
    rules = _compiled.get(schema)
    if rules is None or not is_resource:
        from podium.schema import cel_types

        rules = _compile(schema, cel_types.declare(schema, is_resource), is_resource)
        if rules is not None and is_resource:
            _compiled[schema] = rules
    return rules


def _compile(schema: Structural, type_: Type | None, is_resource: bool) -> Rules | None:
    from podium.schema import cel_types

    if not schema.has_rules or type_ is None:
        return None
    properties: dict[str, Rules] = {}
    for name, sub in schema.properties.items():
        escaped = cel_types.escape(name)
        # A field that rules cannot name can still have rules of its own.
        sub_type = type_.fields.get(escaped) if escaped is not None else cel_types.declare(sub, sub.embedded)
        if (compiled := _compile(sub, sub_type, sub.embedded)) is not None:
            properties[name] = compiled
    inner = type_.params[-1] if type_.params else None
    items = _compile(schema.items, inner, schema.items.embedded) if schema.items is not None else None
    additional = schema.additional
    return Rules(
        schema,
        (compile_at(schema, is_resource) or ()) if schema.rules else (),
        cel_types.converter(schema),
        properties,
        items,
        _compile(additional, inner, additional.embedded) if additional is not None else None,
    )


def compile_at(schema: Structural, is_resource: bool) -> tuple[CompiledRule, ...] | None:
    """Compile the rules that stand at a schema itself; None if rules cannot see its values."""
    from podium.schema import cel_types

    type_ = cel_types.declare(schema, is_resource)
    return None if type_ is None else tuple(_compile_rule(schema, rule, type_) for rule in schema.rules)


def worst_costs(compiled: CompiledRule, schema: Structural, is_resource: bool) -> tuple[int, int]:
    """The most that a rule and its message can cost, for one value of the schema that they stand at."""
    from podium.schema import cel_types
    from podium.schema.cel_compile import checked
    from podium.schema.cel_cost import Place, worst_cost

    type_ = cel_types.declare(schema, is_resource)
    if compiled.program is None or type_ is None:
        return 0, 0
    rule, place = compiled.rule, Place(schema, is_resource)
    old = cel_types.optional_of(type_) if rule.optional_old_self else type_
    texts = [rule.rule, *([rule.message_expression] if compiled.message is not None else [])]
    costs = [worst_cost(*checked(text, {"self": type_, "oldSelf": old}), place) for text in texts]
    return costs[0], costs[1] if len(costs) > 1 else 0


def default_errors(value: Any, schema: Structural, path: str) -> list[FieldError]:
    """What the rules of a schema say about a default of it."""
    rules = compile_rules(schema, is_resource=False)
    if rules is None:
        return []
    run = _Run()
    run.visit(rules, value, value, path, None, None)
    if not run.errors:
        run.visit(rules, value, None, path, None, None)
    return run.errors


def _compile_rule(schema: Structural, rule: Rule, type_: Type) -> CompiledRule:
    from podium.schema.cel_compile import CompileError, compile_expression
    from podium.schema.cel_types import optional_of
    from podium.schema.fieldpaths import PathError, resolve

    variables = {"self": type_, "oldSelf": optional_of(type_) if rule.optional_old_self else type_}
    try:
        program = compile_expression(rule.rule, variables)
    except CompileError as error:
        return CompiledRule(rule, error=f"compilation failed: {error}")
    if program.type.kind != "bool":
        return CompiledRule(rule, error="cel expression must evaluate to a bool")
    message, message_error = None, ""
    if rule.message_expression:
        try:
            message = compile_expression(rule.message_expression, variables)
            if message.type.kind != "string":
                message, message_error = None, "messageExpression must evaluate to a string"
        except CompileError as error:
            message_error = f"messageExpression compilation failed: {error}"
    try:
        field_path = resolve(rule.field_path, schema)[0] if rule.field_path else ""
    except PathError:
        field_path = ""
    return CompiledRule(rule, program, "", message, message_error, field_path)


@dataclass(slots=True)
class _Link:
    """A value, its schema, and the old value that it came from."""

    schema: Structural
    value: Any
    old: Any
    _same: bool | None = None

    def is_same(self) -> bool:
        if self._same is None:
            self._same = unchanged(self.schema, self.value, self.old)
        return self._same

    def key(self, name: str, schema: Structural) -> _Link | None:
        if type(self.old) is dict and name in self.old:
            return _Link(schema, self.value[name], self.old[name])
        return None


class _Run:
    """One object's evaluation: the work that is left, and the faults found."""

    def __init__(self) -> None:
        self.budget = PER_OBJECT_BUDGET
        self.errors: list[FieldError] = []

    def visit(
        self, rules: Rules, value: Any, old: Any, path: str, link: _Link | None, above: _Link | None
    ) -> None:
        """Judge a value and what is in it. `above` is the nearest ancestor with an old value."""
        if value is None or self.budget < 0:
            return
        if rules.own:
            self._evaluate(rules, value, old, path, link or above)
        if type(value) is dict:
            old_map = old if type(old) is dict else {}
            for key, child in value.items():
                if (sub := rules.properties.get(key)) is not None:
                    where = f"{path}.{key}" if path else key
                elif rules.additional is not None and key not in rules.schema.properties:
                    sub, where = rules.additional, f"{path}[{key}]"
                else:
                    continue
                below = link.key(key, sub.schema) if link is not None else None
                self.visit(sub, child, old_map.get(key), where, below, link or above)
        elif type(value) is list and rules.items is not None:
            old_items = items_by_key(rules.schema, old)
            for index, item in enumerate(value):
                was = old_items.get(item_key(rules.schema, item)) if old_items else None
                below = _Link(rules.items.schema, item, was) if link is not None and was is not None else None
                self.visit(rules.items, item, was, f"{path}[{index}]", below, link or above)

    def _evaluate(self, rules: Rules, value: Any, old: Any, path: str, link: _Link | None) -> None:
        convert = rules.convert
        own = convert(value) if convert is not None else value
        was = convert(old) if convert is not None and old is not None else old
        for compiled in rules.own:
            if self.budget < 0:
                return
            if not compiled.rule.rule.strip():
                continue
            if compiled.program is None:
                text = f"rule compile error: {compiled.error}"
                self.errors.append(invalid(path or "<nil>", rules.schema.type, text))
                continue
            if compiled.uses_old_self and old is None and not compiled.rule.optional_old_self:
                continue
            self._evaluate_rule(compiled, rules.schema, value, own, was, path or "<nil>", link)

    def _evaluate_rule(
        self,
        compiled: CompiledRule,
        schema: Structural,
        value: Any,
        own: Any,
        old: Any,
        path: str,
        link: _Link | None,
    ) -> None:
        from podium.schema.cel_values import NONE, CelError, Optional, OverBudget

        assert compiled.program is not None
        rule = compiled.rule
        if rule.optional_old_self:
            old = NONE if old is None else Optional(True, old)
        arguments = {"self": own, "oldSelf": old}
        shown = rule.message.strip() or rule.rule.strip()
        try:
            if self._run(compiled.program, arguments) is True:
                return
        except OverBudget as error:
            stop = "no further validation rules will be run due to call cost exceeds limit for rule"
            text = f"'{error}': {stop}: {shown}"
            self.errors.append(invalid(path, schema.type, text if self.budget >= 0 else _OUT_OF_BUDGET))
            self.budget = -1
            return
        except CelError as error:
            text = f"{error} evaluating rule: {shown}"
            if str(error).startswith("no such overload"):
                text = (
                    f"'{error}': call arguments did not match a supported operator, function or macro "
                    f"signature "
                    f"for rule: {shown}"
                )
            self.errors.append(invalid(path, schema.type, text))
            return
        if not compiled.uses_old_self and link is not None and link.is_same():
            return  # nothing changed here: a rule that came later does not lock the object
        detail = self._message(compiled, arguments) or rule.message.strip() or f"failed rule: {shown}"
        if compiled.field_path:
            path = compiled.field_path.lstrip(".") if path == "<nil>" else f"{path}{compiled.field_path}"
        self.errors.append(_failure(rule, schema, value, path, detail))

    def _run(self, program: Program, arguments: Mapping[str, Any]) -> Any:
        allowed = min(PER_RULE_BUDGET, self.budget)
        from podium.schema.cel_values import OverBudget

        try:
            value, left = program.run(arguments, allowed)
        except OverBudget:
            if allowed < PER_RULE_BUDGET:
                self.budget = -1
            raise
        self.budget -= allowed - left
        return value

    def _message(self, compiled: CompiledRule, arguments: Mapping[str, Any]) -> str:
        """The text of a rule's messageExpression, or nothing where it is unfit to be shown."""
        from podium.schema.cel_values import CelError

        if compiled.message is None:
            return ""
        try:
            text = str(self._run(compiled.message, arguments)).strip()
        except CelError:
            return ""
        return "" if "\n" in text or len(text.encode()) > _LONGEST_MESSAGE else text


def _failure(rule: Rule, schema: Structural, value: Any, path: str, detail: str) -> FieldError:
    if rule.reason == "FieldValueForbidden":
        return forbidden(path, detail)
    if rule.reason == "FieldValueRequired":
        return required(path, detail)
    if rule.reason == "FieldValueDuplicate":
        return duplicate(path, value)
    if schema.type in ("object", "array"):
        return invalid_whole(path, detail)
    return invalid(path, value, detail)
