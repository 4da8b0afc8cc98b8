"""The Common Expression Language: from syntax tree to a checked program.

One pass gives every expression its type and a Python closure that computes it. A closure takes a frame, a
list whose first slot is the work that is left and whose others are variables; no name is looked up at run
time. Work is charged per expression at the start and once per turn of a loop, and by size for what reads or
builds strings and lists, in the units of the real server; a program that runs out ends with `OverBudget`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from podium.schema import cel_runtime as runtime
from podium.schema import cel_syntax as syntax
from podium.schema import cel_values as values
from podium.schema.cel_functions import Overload, functions, literal_fault
from podium.schema.cel_runtime import Frame, Run
from podium.schema.cel_types import (
    BOOL,
    DYN,
    INT,
    Type,
    assignable,
    list_of,
    map_of,
    optional_of,
    parse_type,
    substitute,
    unescape,
)  # fmt: skip
from podium.schema.cel_values import NONE, CelError, Optional, OverBudget

Code = tuple[Type, Run]


class CompileError(ValueError):
    """The expression has faults; the message shows each with its place, as the real server shows it."""


@dataclass(frozen=True, slots=True)
class Program:
    """A checked expression."""

    type: Type
    uses: frozenset[str]  # the variables it refers to
    _run: Run
    _cost: int
    _variables: tuple[str, ...]
    _locals: int

    def run(self, arguments: Mapping[str, Any], budget: int) -> tuple[Any, int]:
        """Evaluate with variables bound; answers the value and the work that is left of the budget."""
        frame: Frame = [budget - self._cost, *(arguments.get(name) for name in self._variables)]
        frame.extend([None] * self._locals)
        if frame[0] < 0:
            raise OverBudget(runtime.OVER)
        try:
            value = self._run(frame)
        except RecursionError:
            raise OverBudget(runtime.OVER) from None
        except (TypeError, ValueError, AttributeError, ArithmeticError, LookupError):
            raise CelError(runtime.NO_OVERLOAD) from None  # a dynamic value that no function was made for
        return value, frame[0]


def compile_expression(
    text: str, variables: Mapping[str, Type], known: Mapping[str, tuple[Overload, ...]] | None = None
) -> Program:
    """Check an expression against the types of its variables; `known` are its functions, if not the usual."""
    try:
        tree = syntax.parse(text)
    except syntax.CelSyntaxError as error:
        raise CompileError(_display(text, error.issues)) from None
    compiler = _Compiler(variables, known)
    type_, run = compiler.visit(tree)
    if compiler.issues:
        raise CompileError(_display(text, compiler.issues))
    return Program(
        type_,
        frozenset(compiler.uses),
        run,
        compiler.cost,
        tuple(variables),
        compiler.slots - len(variables) - 1,
    )


def checked(text: str, variables: Mapping[str, Type]) -> tuple[syntax.Node, Mapping[syntax.Node, Type]]:
    """The tree of an expression that compiles, with the type of each part; what is no value has none."""
    tree = syntax.parse(text)
    compiler = _Compiler(variables)
    compiler.visit(tree)
    return tree, compiler.types


def _display(text: str, issues: list[tuple[int, str]]) -> str:
    lines = text.split("\n")
    shown: list[str] = []
    for offset, message in sorted(issues, key=lambda issue: issue[0]):
        line = text.count("\n", 0, offset)
        column = offset - (text.rfind("\n", 0, offset) + 1)
        source = lines[line].replace("\t", " ")
        marks = "".join("\uff0e" if ord(c) > 127 else "." for c in source[:column])
        mark = "\uff3e" if ord(source[column : column + 1] or ".") > 127 else "^"
        shown.append(f"ERROR: <input>:{line + 1}:{column + 1}: {message}\n | {source}\n | {marks}{mark}")
    return "\n".join(shown)


_TYPE_NAMES = ("bool", "int", "uint", "double", "string", "bytes", "list", "map", "null_type", "type")


class _Compiler:
    def __init__(
        self, variables: Mapping[str, Type], known: Mapping[str, tuple[Overload, ...]] | None = None
    ) -> None:
        self.known = functions() if known is None else known
        self.scope: dict[str, tuple[int, Type]] = {
            name: (slot, type_) for slot, (name, type_) in enumerate(variables.items(), start=1)
        }
        self.variables = variables
        self.slots = len(variables) + 1
        self.cost = 0
        self.issues: list[tuple[int, str]] = []
        self.uses: set[str] = set()
        self.types: dict[syntax.Node, Type] = {}
        self.mixed_lists = False

    def visit(self, node: syntax.Node) -> Code:
        self.cost += 1
        visitor: Callable[[Any], Code] = _VISITORS[type(node)].__get__(self)
        code = visitor(node)
        self.types[node] = code[0]
        return code

    def _issue(self, at: int, message: str) -> Code:
        self.issues.append((at, message))
        return DYN, runtime.never

    def literal(self, node: syntax.Literal) -> Code:
        self.cost -= 1
        value = values.UInt(node.value) if node.kind == "uint" else node.value
        return parse_type(node.kind), lambda frame: value

    def ident(self, node: syntax.Ident) -> Code:
        if node.name in self.scope:
            slot, type_ = self.scope[node.name]
            if node.name in self.variables:
                self.uses.add(node.name)  # even where a loop variable hides it, as the real server does
            return type_, lambda frame: frame[slot]
        if node.name in _TYPE_NAMES:
            value = values.TypeValue(node.name)
            return Type("type", (parse_type(node.name),)), lambda frame: value
        return self._issue(node.at, f"undeclared reference to '{node.name}' (in container '')")

    def select(self, node: syntax.Select) -> Code:
        operand, run = self.visit(node.operand)
        is_optional = operand.kind == "optional"
        target = operand.params[0] if is_optional else operand
        result, key = self._field_type(node, target)
        if is_optional or node.optional:
            if node.test:
                return BOOL, runtime.optional_presence(run, key, target.kind == "object")
            result = result if result.kind == "optional" and is_optional else optional_of(result)
            return result, runtime.optional_selection(run, key, target.kind == "object")
        if node.test:
            self.cost -= 1
            return BOOL, runtime.presence(run, key, target.kind == "object")
        return result, runtime.selection(run, key, node.field, target.kind == "object")

    def _field_type(self, node: syntax.Select, target: Type) -> tuple[Type, str]:
        if target.kind == "object":
            if node.field in target.fields:
                return target.fields[node.field], unescape(node.field)
            self._issue(node.at, f"undefined field '{node.field}'")
        elif target.kind == "map":
            return target.params[1], node.field
        elif target.kind != "dyn":
            self._issue(node.at, f"type '{target}' does not support field selection")
        return DYN, node.field

    def list_literal(self, node: syntax.ListLiteral) -> Code:
        self.cost += 10
        mixed, self.mixed_lists = self.mixed_lists, False
        runs: list[tuple[Run, bool]] = []
        item: Type | None = None
        for expression, optional in node.items:
            type_, run = self.visit(expression)
            type_ = self._unwrapped(expression, type_, optional)
            item = DYN if mixed else self._join(expression, item, type_)
            runs.append((run, optional))
        if any(optional for _, optional in runs):
            return list_of(item or DYN), lambda frame: [
                value
                for run, optional in runs
                for value in (runtime.present(run(frame)) if optional else (run(frame),))
            ]
        plain = [run for run, _ in runs]
        return list_of(item or DYN), lambda frame: [run(frame) for run in plain]

    def map_literal(self, node: syntax.MapLiteral) -> Code:
        self.cost += 30
        runs: list[tuple[Run, Run, bool]] = []
        key_type: Type | None = None
        value_type: Type | None = None
        for key, value, optional in node.entries:
            type_, run_key = self.visit(key)
            key_type = self._join(key, key_type, type_)
            type_, run_value = self.visit(value)
            value_type = self._join(value, value_type, self._unwrapped(value, type_, optional))
            runs.append((run_key, run_value, optional))
        return map_of(key_type or DYN, value_type or DYN), lambda frame: runtime.build_map(runs, frame)

    def _unwrapped(self, node: syntax.Node, type_: Type, optional: bool) -> Type:
        if not optional or type_.kind == "dyn":
            return type_
        if type_.kind != "optional":
            self._issue(node.at, f"expected type '{optional_of(type_)}' but found '{type_}'")
            return type_
        return type_.params[0]

    def _join(self, node: syntax.Node, previous: Type | None, current: Type) -> Type:
        if previous is None or previous.kind == "dyn":
            return current if previous is None else previous
        if assignable(previous, current, {}):
            return previous
        if assignable(current, previous, {}):
            return current
        self._issue(node.at, f"expected type '{previous}' but found '{current}'")
        return previous

    def call(self, node: syntax.Call) -> Code:
        if node.function in ("_&&_", "_||_"):
            return self._logical(node)
        if node.function == "_?_:_":
            return self._conditional(node)
        known = self.known
        if node.target is not None:
            name = _qualified(node.target)
            if name and f"{name}.{node.function}" in known and name.split(".")[0] not in self.scope:
                return self._resolve(node, f"{name}.{node.function}", known, None)
        if node.target is None and node.function in ("_==_", "_!=_"):
            return self._equality(node)
        return self._resolve(node, node.function, known, node.target)

    def _resolve(
        self,
        node: syntax.Call,
        name: str,
        known: Mapping[str, tuple[Overload, ...]],
        target: syntax.Node | None,
    ) -> Code:
        self.mixed_lists = name == "format"  # only here may a list literal mix types
        codes = [
            self.visit(argument) for argument in ([target, *node.args] if target is not None else node.args)
        ]
        if name not in known:
            return self._issue(node.at, f"undeclared reference to '{name}' (in container '')")
        types = [type_ for type_, _ in codes]
        chosen: list[tuple[Overload, Type]] = []
        for overload in known[name]:
            if overload.is_member == (target is not None) and len(overload.params) == len(types):
                bound: dict[str, Type] = {}
                if all(
                    assignable(wanted, actual, bound)
                    for wanted, actual in zip(overload.params, types, strict=True)
                ):
                    chosen.append((overload, substitute(overload.result, bound)))
        if not chosen:
            return self._no_overload(node.at, name, types, target is not None)
        if fault := literal_fault(name, node.args):
            self._issue(node.args[0].at, fault)
        result = chosen[0][1] if all(t == chosen[0][1] for _, t in chosen) else DYN
        is_certain = len(chosen) == 1 and all(
            t.kind != "dyn" or p.kind in ("dyn", "param")
            for t, p in zip(types, chosen[0][0].params, strict=True)
        )
        return result, runtime.invocation([o for o, _ in chosen], [run for _, run in codes], is_certain)

    def _no_overload(self, at: int, name: str, types: list[Type], is_member: bool) -> Code:
        shown = [str(t) for t in types]
        signature = f"{shown[0]}.({', '.join(shown[1:])})" if is_member else f"({', '.join(shown)})"
        return self._issue(at, f"found no matching overload for '{name}' applied to '{signature}'")

    def _equality(self, node: syntax.Call) -> Code:
        (left, run_left), (right, run_right) = (self.visit(argument) for argument in node.args)
        bound: dict[str, Type] = {}
        same = Type("param", name="A")
        if not (assignable(same, left, bound) and assignable(same, right, bound)):
            return self._no_overload(node.at, node.function, [left, right], False)
        compare = runtime.equality(left if left.kind != "dyn" else right)
        wanted = node.function == "_==_"

        def run(frame: Frame) -> bool:
            a, b = run_left(frame), run_right(frame)
            if type(a) in (list, dict):
                frame[0] -= min(values.deep_size(a), values.deep_size(b))
                if frame[0] < 0:
                    raise OverBudget(runtime.OVER)
            elif type(a) is str:
                frame[0] -= len(a) // 10
            return compare(a, b) is wanted

        return BOOL, run

    def _logical(self, node: syntax.Call) -> Code:
        runs: list[Run] = []
        for argument in node.args:
            type_, run = self.visit(argument)
            if type_.kind not in ("bool", "dyn"):
                self._issue(argument.at, f"expected type 'bool' but found '{type_}'")
            runs.append(run)
        return BOOL, runtime.chain(runs, node.function == "_||_")

    def _conditional(self, node: syntax.Call) -> Code:
        (condition, test), (yes, run_yes), (no, run_no) = (self.visit(argument) for argument in node.args)
        bound: dict[str, Type] = {}
        branch = Type("param", name="A")
        fits = (
            assignable(BOOL, condition, {})
            and assignable(branch, yes, bound)
            and assignable(branch, no, bound)
        )
        if not fits:
            return self._no_overload(node.at, node.function, [condition, yes, no], False)

        def run(frame: Frame) -> Any:
            return run_yes(frame) if runtime.truth(test(frame)) else run_no(frame)

        return bound["A"] if yes.kind != "dyn" and no.kind != "dyn" else DYN, run

    def macro(self, node: syntax.Macro) -> Code:
        ranged, run_range = self.visit(node.range)
        if node.name in ("optMap", "optFlatMap"):
            return self._opt_map(node, ranged, run_range)
        types = self._loop_types(node, ranged)
        outer = dict(self.scope)
        slots = [self._bind(name, type_) for name, type_ in zip(node.variables, types, strict=True)]
        before, self.cost = self.cost, 0
        codes = [self.visit(argument) for argument in node.args]
        per_turn, self.cost = self.cost + 1, before
        self.scope = outer
        if node.name == "sortBy" and ranged.kind == "map":
            self._issue(node.at, f"expected type 'list' but found '{ranged}'")
        result = runtime.loop_type(node.name, ranged, codes[-1][0])
        is_test = len(codes) == 2 or node.name in runtime.PREDICATES
        if is_test and codes[0][0].kind not in ("bool", "dyn"):
            self._not_a_test(node, codes[0][0], INT if node.name.startswith("exists") else result)
        turns = runtime.turns(run_range, slots, per_turn)
        return result, runtime.LOOPS[node.name](turns, [run for _, run in codes])

    def _not_a_test(self, node: syntax.Macro, found: Type, result: Type) -> None:
        # Other implementations expand macros first, and their words show what to.
        if node.name in ("all", "exists"):
            self._issue(node.args[0].at, f"expected type 'bool' but found '{found}'")
        else:
            self._no_overload(node.at, "_?_:_", [found, result, result], False)

    def _loop_types(self, node: syntax.Macro, ranged: Type) -> tuple[Type, ...]:
        if ranged.kind == "list":
            types: tuple[Type, ...] = (INT, ranged.params[0])
        elif ranged.kind == "map":
            types = (ranged.params[0], ranged.params[1])
        else:
            if ranged.kind != "dyn":
                self._issue(
                    node.range.at,
                    f"expression of type '{ranged}' cannot be range of a comprehension "
                    "(must be list, map, or dynamic)",
                )
            types = (DYN, DYN)
        if len(node.variables) == 2:
            return types
        return (types[1],) if ranged.kind == "list" else (types[0],)

    def _opt_map(self, node: syntax.Macro, ranged: Type, run_range: Run) -> Code:
        if ranged.kind not in ("optional", "dyn"):
            return self._no_overload(node.at, node.name, [ranged], True)
        outer = dict(self.scope)
        slot = self._bind(node.variables[0], ranged.params[0] if ranged.params else DYN)
        type_, run_body = self.visit(node.args[0])
        self.scope = outer
        is_flat = node.name == "optFlatMap"

        def run(frame: Frame) -> Any:
            value = run_range(frame)
            if type(value) is not Optional:
                raise CelError("no such overload")
            if not value.has_value:
                return NONE
            frame[slot] = value.inner
            return run_body(frame) if is_flat else Optional(True, run_body(frame))

        return type_ if is_flat else optional_of(type_), run

    def _bind(self, name: str, type_: Type) -> int:
        slot = self.slots
        self.slots += 1
        self.scope[name] = (slot, type_)
        return slot


_VISITORS: dict[type, Callable[[Any, Any], Code]] = {
    syntax.Literal: _Compiler.literal,
    syntax.Ident: _Compiler.ident,
    syntax.Select: _Compiler.select,
    syntax.Call: _Compiler.call,
    syntax.ListLiteral: _Compiler.list_literal,
    syntax.MapLiteral: _Compiler.map_literal,
    syntax.Macro: _Compiler.macro,
}


def _qualified(node: syntax.Node) -> str:
    """`a.b.c` as a name, or nothing if the expression is none."""
    if isinstance(node, syntax.Ident):
        return node.name
    if isinstance(node, syntax.Select) and not node.test and not node.optional:
        prefix = _qualified(node.operand)
        return f"{prefix}.{node.field}" if prefix else ""
    return ""
