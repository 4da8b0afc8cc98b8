"""How much work a rule can be at worst, estimated before it ever runs.

A definition whose rules could take too long is refused, so the figures must be upstream's: every expression
costs what it costs there after macros have been written out as loops, strings cost a tenth of their length,
and the length of a value is the most that the schema allows at the path by which the rule reaches it. A value
that no path leads to is of unknown size, which is as good as infinite.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from podium.schema import cel_sizes
from podium.schema import cel_syntax as syntax
from podium.schema.cel_types import DYN, Type
from podium.schema.crdschema import Structural

INFINITE = 2**64 - 1
_TEXT, _REGEX = 0.1, 0.25
_NAME_REGEX = 128
Path = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Place:
    """The value that `self` is: its schema, and whether it is a whole object."""

    schema: Structural
    is_resource: bool


def worst_cost(tree: syntax.Node, types: Mapping[syntax.Node, Type], place: Place) -> int:
    """The most that an expression can cost."""
    return _Estimate(types, place).cost(tree)


def _add(*costs: int) -> int:
    return min(sum(costs), INFINITE)


def _times(count: int, cost: int) -> int:
    return min(count * cost, INFINITE)


def _by(size: int, factor: float) -> int:
    return min(math.ceil(float(size) * factor), INFINITE)


@dataclass(slots=True)
class _Estimate:
    """One walk over an expression; children come first, so that paths and sizes are known above them."""

    types: Mapping[syntax.Node, Type]
    place: Place
    paths: dict[syntax.Node, Path] = field(default_factory=dict)
    sizes: dict[syntax.Node, int] = field(default_factory=dict)
    scope: dict[str, Path] = field(default_factory=dict)  # loop variables

    def cost(self, node: syntax.Node) -> int:
        if isinstance(node, syntax.Literal):
            return 0
        if isinstance(node, syntax.Ident):
            self.paths[node] = self.scope.get(node.name, (node.name,))
            return 1
        if isinstance(node, syntax.Select):
            return self._select(node)
        if isinstance(node, syntax.ListLiteral):
            return _add(10, *(self.cost(item) for item, _ in node.items))
        if isinstance(node, syntax.MapLiteral):
            return _add(30, *(self.cost(part) for key, value, _ in node.entries for part in (key, value)))
        if isinstance(node, syntax.Macro):
            return self._macro(node)
        assert isinstance(node, syntax.Call)
        return self._call(node)

    def size(self, node: syntax.Node) -> int:
        """The most elements that the value of an expression can have."""
        if node in self.sizes:
            return self.sizes[node]
        if isinstance(node, syntax.Literal):
            return len(node.value) if isinstance(node.value, str | bytes) else 1
        if isinstance(node, syntax.ListLiteral):
            return len(node.items)
        if isinstance(node, syntax.MapLiteral):
            return len(node.entries)
        found = self.size_at(self.paths.get(node, ()))
        if found is not None:
            return found
        return 1 if _is_scalar(self.type_of(node)) else INFINITE

    def size_at(self, path: Path) -> int | None:
        """The most elements that the schema allows at a path that starts with a variable."""
        # The first step is the variable; where there is none, upstream drops a real step all the same.
        return cel_sizes.size_at(self.place.schema, self.place.is_resource, path[1:]) if path else None

    def type_of(self, node: syntax.Node) -> Type:
        """The type that the checker found."""
        return self.types.get(node, DYN)

    def _select(self, node: syntax.Select) -> int:
        below = self.cost(node.operand)
        if node.test:
            return below
        if node.optional:
            return _add(below, 1)
        self.paths[node] = (*self.paths.get(node.operand, ()), node.field)
        return _add(below, 1 if self.type_of(node.operand).kind in ("map", "object", "param") else 0)

    def _call(self, node: syntax.Call) -> int:
        target = self.cost(node.target) if node.target is not None and not self.is_name(node) else 0
        arguments = [self.cost(argument) for argument in node.args]
        if node.function in ("_&&_", "_||_"):
            return _add(*arguments)
        if node.function == "_?_:_":
            self.sizes[node] = max(self.size(node.args[1]), self.size(node.args[2]))
            return _add(arguments[0], max(arguments[1], arguments[2]))
        if node.function == "dyn":
            self.sizes[node] = self.size(node.args[0])
        if node.function == "_[_]":
            container = node.args[0]
            step = "@values" if self.type_of(container).kind == "map" else "@items"
            self.paths[node] = (*self.paths.get(container, ()), step)
        estimate = _FUNCTIONS.get(node.function)
        own = estimate(self, node) if estimate is not None else None
        return _add(target, *arguments, 1 if own is None else own)

    def is_name(self, node: syntax.Call) -> bool:
        """Whether what stands before the dot is part of the function's name, as in `sets.contains`."""
        return node.target is not None and node.target not in self.types

    def _macro(self, node: syntax.Macro) -> int:
        ranged = self.cost(node.range)
        outer = dict(self.scope)
        if node.name in ("optMap", "optFlatMap"):
            # Written out: the optional is asked, read and bound, and the result is wrapped again.
            self.scope[node.variables[0]] = self.paths.get(node.range, ())
            body = self.cost(node.args[0])
            self.scope = outer
            return _add(2 * ranged, body, 13 if node.name == "optMap" else 12)
        is_list = self.type_of(node.range).kind == "list"
        path = self.paths.get(node.range, ())
        steps = ["@indices", "@items"] if is_list else ["@keys", "@values"]
        if len(node.variables) == 1:
            steps = [steps[1] if is_list else steps[0]]
        for name, step in zip(node.variables, steps, strict=True):
            self.scope[name] = (*path, step)
        bodies = [self.cost(argument) for argument in node.args]
        self.scope = outer
        once, per_turn = _LOOP_COSTS[node.name]
        count = self.size(node.range)
        self.sizes[node] = 1 if node.name in _TESTS else count
        return _add(ranged, once, _times(count, _add(per_turn, *bodies)))


# What a loop costs besides its range: once, and in each turn besides the expressions in it.
_LOOP_COSTS: dict[str, tuple[int, int]] = {
    "all": (1, 3),
    "exists": (1, 4),
    "exists_one": (2, 2),
    "existsOne": (2, 2),
    "filter": (11, 13),
    "map": (11, 12),
    "transformList": (11, 12),
    "transformMap": (31, 3),
    "transformMapEntry": (31, 2),
    "sortBy": (11, 12),
}
_TESTS = frozenset({"all", "exists", "exists_one", "existsOne"})
_Function = Callable[[_Estimate, syntax.Call], int | None]


def _is_scalar(type_: Type) -> bool:
    if type_.kind == "optional":
        return _is_scalar(type_.params[0])
    return type_.kind in ("bool", "int", "uint", "double", "duration", "timestamp")


def _may_be_text(type_: Type) -> bool:
    return type_.kind in ("string", "bytes", "dyn", "param")


def _comparison(estimate: _Estimate, node: syntax.Call) -> int | None:
    left, right = (estimate.type_of(argument) for argument in node.args)
    if node.function not in ("_==_", "_!=_") and not (_may_be_text(left) and _may_be_text(right)):
        return None
    if node.function == "_==_" and left == right and left.kind == "opaque":
        return 1
    return _by(min(estimate.size(argument) for argument in node.args), _TEXT)


def _sum(estimate: _Estimate, node: syntax.Call) -> int | None:
    kinds = {estimate.type_of(argument).kind for argument in node.args}
    if not kinds & {"string", "bytes", "list"}:
        return None
    total = estimate.sizes[node] = _add(*(estimate.size(argument) for argument in node.args))
    return 1 if "list" in kinds else _by(total, _TEXT)


def _membership(estimate: _Estimate, node: syntax.Call) -> int | None:
    container = node.args[1]
    return estimate.size(container) if estimate.type_of(container).kind != "map" else None


def _affix(estimate: _Estimate, node: syntax.Call) -> int:
    return _by(estimate.size(node.args[0]), _TEXT)


def _contains(estimate: _Estimate, node: syntax.Call) -> int | None:
    if node.target is None or estimate.is_name(node):
        return _sets(estimate, node)
    return _times(_by(estimate.size(node.target), _TEXT), _by(estimate.size(node.args[0]), _TEXT))


def _sets(estimate: _Estimate, node: syntax.Call) -> int:
    product = _times(estimate.size(node.args[0]), estimate.size(node.args[1]))
    return _add(_times(product, 2 if node.function == "equivalent" else 1), 1)


def _search(estimate: _Estimate, node: syntax.Call) -> int | None:
    if node.target is None:
        return None
    length = estimate.size(node.target)
    if node.function != "matches":
        estimate.sizes[node] = length
    return _times(_by(_add(length, 1), _TEXT), _by(estimate.size(node.args[0]), _REGEX))


def _whole_text(estimate: _Estimate, node: syntax.Call) -> int | None:
    """A function that reads its target once and answers a text of that length."""
    if node.target is None:
        return None
    size = estimate.sizes[node] = estimate.size(node.target)
    return _by(size, _TEXT)


def _parsing(estimate: _Estimate, node: syntax.Call) -> int | None:
    """A function that reads a text into a value; as a method it only reads a part of one."""
    if node.target is not None and not estimate.is_name(node):
        return 1
    size = estimate.size(node.args[0])
    if node.function == "url":
        estimate.sizes[node] = size
    return _by(size, 2 * _TEXT if node.function == "isCanonical" else _TEXT)


def _conversion(estimate: _Estimate, node: syntax.Call) -> int | None:
    kind = estimate.type_of(node.args[0]).kind
    if (node.function, kind) not in (("string", "bytes"), ("bytes", "string")):
        return None
    size = estimate.size(node.args[0])
    estimate.sizes[node] = size if node.function == "string" else _times(size, 4)
    return _by(size, _TEXT)


def _over_elements(estimate: _Estimate, node: syntax.Call) -> int | None:
    if node.target is None:
        return None
    type_, count = estimate.type_of(node.target), estimate.size(node.target)
    if not type_.params:
        return _by(count, _TEXT)
    each = 1
    if type_.params[0].kind in ("string", "bytes"):
        path = estimate.paths.get(node.target)
        length = estimate.size_at((*path, "@items")) if path is not None else None
        each = _add(1, _by(INFINITE if length is None else length, _TEXT))
    return _times(count, each)


def _split(estimate: _Estimate, node: syntax.Call) -> int | None:
    if node.target is None:
        return None
    size = estimate.sizes[node] = estimate.size(node.target)
    if len(node.args) > 1 and isinstance(limit := node.args[1], syntax.Literal):
        estimate.sizes[node] = limit.value if limit.value >= 0 else INFINITE
    return _by(size, 2 * _TEXT)


def _join(estimate: _Estimate, node: syntax.Call) -> int | None:
    if node.target is None:
        return None
    count, path = estimate.size(node.target), estimate.paths.get(node.target)
    length = estimate.size_at((*path, "@items")) if path is not None else None
    size = _times(count, INFINITE if length is None else length)
    if node.args:
        size = _add(size, _times(max(count - 1, 0), estimate.size(node.args[0])))
    estimate.sizes[node] = size
    return _by(size, _TEXT)


def _replace(estimate: _Estimate, node: syntax.Call) -> int | None:
    if node.target is None:
        return None
    size, new = estimate.size(node.target), estimate.size(node.args[1])
    old = node.args[0]
    shortest = estimate.size(old) if isinstance(old, syntax.Literal) else 0
    if shortest == 0:
        estimate.sizes[node] = _add(_times(_add(size, 1), new), size)
    elif new <= shortest:
        estimate.sizes[node] = size
    else:
        estimate.sizes[node] = _times(math.ceil(size / shortest), new)
    return _by(size, 2 * _TEXT)


def _network(estimate: _Estimate, node: syntax.Call) -> int:
    base = 4 if node.function == "containsIP" else 7
    is_text = estimate.type_of(node.args[0]).kind == "string"
    return _add(base, _by(estimate.size(node.args[0]), _TEXT) if is_text else 0)


def _named_format(estimate: _Estimate, node: syntax.Call) -> int:
    return _by(_by(estimate.size(node.args[0]), _TEXT), _NAME_REGEX * _REGEX)


def _format(estimate: _Estimate, node: syntax.Call) -> int | None:
    return _by(estimate.size(node.target), _TEXT) if node.target is not None else None


_FUNCTIONS: dict[str, _Function] = {
    **dict.fromkeys(("_==_", "_!=_", "_<_", "_<=_", "_>_", "_>=_"), _comparison),
    **dict.fromkeys(("startsWith", "endsWith"), _affix),
    **dict.fromkeys(("intersects", "equivalent"), _sets),
    **dict.fromkeys(("matches", "find", "findAll"), _search),
    **dict.fromkeys(("lowerAscii", "upperAscii", "substring", "trim"), _whole_text),
    **dict.fromkeys(("url", "escapeKey", "cidr", "isIP", "isCIDR", "ip", "isCanonical"), _parsing),
    **dict.fromkeys(("quantity", "isQuantity", "semver", "isSemver"), _parsing),
    **dict.fromkeys(("isSorted", "sum", "max", "min", "indexOf", "lastIndexOf"), _over_elements),
    **dict.fromkeys(("string", "bytes"), _conversion),
    **dict.fromkeys(("containsIP", "containsCIDR"), _network),
    "_+_": _sum,
    "@in": _membership,
    "contains": _contains,
    "split": _split,
    "join": _join,
    "replace": _replace,
    "validate": _named_format,
    "format": _format,
}
