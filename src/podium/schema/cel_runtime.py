"""What checked CEL expressions are made of at run time: field access, calls, logic and loops as closures.

Each function here takes the closures of an expression's parts and returns the closure of the whole. Logic is
CEL's: an error on one side of `||` does not matter when the other side is true, and the same holds for the
elements of `all` and `exists`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

from podium.schema import cel_values as values
from podium.schema.cel_functions import Overload
from podium.schema.cel_types import DYN, Type, list_of, map_of, unescape
from podium.schema.cel_values import NONE, CelError, Optional, OverBudget

Frame = list[Any]
Run = Callable[[Frame], Any]
OVER = "operation cancelled: actual cost limit exceeded"
NO_OVERLOAD = "no such overload"


def never(frame: Frame) -> Any:
    """Stands in for an expression with a fault, so that checking can go on."""
    raise AssertionError(frame)


def selection(run: Run, key: str, shown: str, is_object: bool) -> Run:
    """`operand.key`; a null field of an object counts as absent."""

    def select(frame: Frame) -> Any:
        operand = run(frame)
        if type(operand) is not dict:
            raise CelError(NO_OVERLOAD)
        value = operand.get(key)
        if value is None and (is_object or key not in operand):
            raise CelError(f"no such key: {shown}")
        return value

    return select


def presence(run: Run, key: str, is_object: bool) -> Run:
    """`has(operand.key)`."""

    def has(frame: Frame) -> bool:
        operand = run(frame)
        if type(operand) is not dict:
            raise CelError(NO_OVERLOAD)
        return operand.get(key) is not None if is_object else key in operand

    return has


def _find(operand: Any, key: Any, is_object: bool) -> Optional:
    if type(operand) is Optional:
        if not operand.has_value:
            return NONE
        operand = operand.inner
    if type(operand) is dict:
        if key in operand and not (is_object and operand[key] is None):
            return Optional(True, operand[key])
        return NONE
    if type(operand) is list and type(key) is int:
        return Optional(True, operand[key]) if 0 <= key < len(operand) else NONE
    raise CelError(NO_OVERLOAD)


def optional_selection(run: Run, key: str, is_object: bool) -> Run:
    """`operand.?key`, and `.key` of an optional."""
    return lambda frame: _find(run(frame), key, is_object)


def optional_presence(run: Run, key: str, is_object: bool) -> Run:
    """`has(operand.?key)`."""
    return lambda frame: bool(_find(run(frame), key, is_object).has_value)


def truth(value: Any) -> bool:
    """A value that must be a bool."""
    if value is True or value is False:
        return bool(value)
    raise CelError(NO_OVERLOAD)


def chain(runs: list[Run], decides: bool) -> Run:
    """`||` (decided by true) and `&&` (decided by false) of any number of terms."""

    def run(frame: Frame) -> bool:
        return _decided(runs, frame, decides)

    return run


def _decided(runs: Iterable[Run], frame: Frame, decides: bool) -> bool:
    """Whether one of several gave the deciding value; only if none did do their errors count."""
    error: CelError | None = None
    for term in runs:
        try:
            value = term(frame)
        except OverBudget:
            raise
        except CelError as caught:
            error = error or caught
            continue
        if value is decides:
            return bool(value)
        if value is not (not decides):
            error = error or CelError(NO_OVERLOAD)
    if error is not None:
        raise error
    return not decides


def invocation(overloads: list[Overload], runs: list[Run], is_certain: bool) -> Run:
    """A call of the overload that fits; the values decide where the types could not."""
    if is_certain:
        return _direct(overloads[0], runs)

    known: dict[tuple[Any, ...], Overload] = {}

    def run(frame: Frame) -> Any:
        arguments = [argument(frame) for argument in runs]
        kinds = tuple(a.type_name if type(a) is values.Opaque else type(a) for a in arguments)
        overload = known.get(kinds)
        if overload is None:
            overload = known[kinds] = _fitting(overloads, arguments)
        return _charged(overload, frame, arguments)

    return run


def _fitting(overloads: list[Overload], arguments: list[Any]) -> Overload:
    for overload in overloads:
        if all(is_a(p, a) for p, a in zip(overload.params, arguments, strict=True)):
            return overload
    raise CelError(NO_OVERLOAD)


def _charged(overload: Overload, frame: Frame, arguments: list[Any]) -> Any:
    if overload.weight is not None:
        frame[0] -= overload.weight(*arguments)
        if frame[0] < 0:
            raise OverBudget(OVER)
    return overload.implementation(*arguments)


def _direct(overload: Overload, runs: list[Run]) -> Run:
    implementation = overload.implementation
    if overload.weight is not None:
        return lambda frame: _charged(overload, frame, [run(frame) for run in runs])
    if len(runs) == 1:
        (first,) = runs
        return lambda frame: implementation(first(frame))
    if len(runs) == 2:
        left, right = runs
        return lambda frame: implementation(left(frame), right(frame))
    return lambda frame: implementation(*[run(frame) for run in runs])


_KINDS: dict[str, tuple[type, ...]] = {
    "bool": (bool,),
    "int": (int,),
    "uint": (values.UInt,),
    "double": (float,),
    "string": (str,),
    "bytes": (bytes,),
    "null_type": (type(None),),
    "list": (list,),
    "map": (dict,),
    "timestamp": (values.Timestamp,),
    "duration": (values.Duration,),
    "optional": (Optional,),
    "type": (values.TypeValue,),
}


def is_a(wanted: Type, value: Any) -> bool:
    """Whether a value is of a type; what is inside lists and maps is not looked at."""
    if wanted.kind in ("dyn", "param"):
        return True
    if wanted.kind == "opaque":
        return type(value) is values.Opaque and value.type_name == wanted.name
    return type(value) in _KINDS.get(wanted.kind, ())


Turns = Callable[[Frame], Iterator[tuple[Any, Any]]]


def turns(run_range: Run, slots: list[int], per_turn: int) -> Turns:
    """The turns of a loop: binds its variables, charges its work, and yields (key or index, value)."""
    first = slots[0]
    second = slots[1] if len(slots) == 2 else None

    def iterate(frame: Frame) -> Iterator[tuple[Any, Any]]:
        ranged = run_range(frame)
        if type(ranged) is dict:
            pairs: Any = list(ranged.items())
        elif type(ranged) is list:
            pairs = enumerate(ranged)
        else:
            raise CelError(NO_OVERLOAD)
        is_list = type(ranged) is list
        for key, value in pairs:
            frame[0] -= per_turn
            if frame[0] < 0:
                raise OverBudget(OVER)
            if second is None:
                frame[first] = value if is_list else key
            else:
                frame[first], frame[second] = key, value
            yield key, value

    return iterate


def _quantifier(decides: bool) -> Callable[[Turns, list[Run]], Run]:
    def build(each: Turns, runs: list[Run]) -> Run:
        predicate = runs[0]

        def run(frame: Frame) -> bool:
            return _decided((predicate for _ in each(frame)), frame, decides)

        return run

    return build


def _exists_one(each: Turns, runs: list[Run]) -> Run:
    return lambda frame: sum(truth(runs[0](frame)) for _ in each(frame)) == 1


def _filter(each: Turns, runs: list[Run]) -> Run:
    def run(frame: Frame) -> list[Any]:
        kept = []
        for key, value in each(frame):
            if truth(runs[0](frame)):
                kept.append((key, value))
        return _kept(kept, frame)

    return run


def _kept(pairs: list[tuple[Any, Any]], frame: Frame) -> list[Any]:
    frame[0] -= len(pairs)
    return [value if type(key) is int else key for key, value in pairs]


def _list_of_results(each: Turns, runs: list[Run]) -> Run:
    *test, body = runs

    def run(frame: Frame) -> list[Any]:
        return [body(frame) for _ in each(frame) if not test or truth(test[0](frame))]

    return run


def _map_of_results(each: Turns, runs: list[Run]) -> Run:
    *test, body = runs

    def run(frame: Frame) -> dict[Any, Any]:
        return {key: body(frame) for key, _ in each(frame) if not test or truth(test[0](frame))}

    return run


def _map_of_entries(each: Turns, runs: list[Run]) -> Run:
    *test, body = runs

    def run(frame: Frame) -> dict[Any, Any]:
        made: dict[Any, Any] = {}
        for _ in each(frame):
            if test and not truth(test[0](frame)):
                continue
            for key, value in body(frame).items():
                if key in made:
                    raise CelError(f"insert failed: key {key} already exists")
                made[key] = value
        return made

    return run


def _sort_by(each: Turns, runs: list[Run]) -> Run:
    def run(frame: Frame) -> list[Any]:
        keyed = [(runs[0](frame), value) for _, value in each(frame)]
        return [value for _, value in sorted(keyed, key=lambda pair: pair[0])]

    return run


LOOPS: dict[str, Callable[[Turns, list[Run]], Run]] = {
    "all": _quantifier(False),
    "exists": _quantifier(True),
    "exists_one": _exists_one,
    "existsOne": _exists_one,
    "filter": _filter,
    "map": _list_of_results,
    "transformList": _list_of_results,
    "transformMap": _map_of_results,
    "transformMapEntry": _map_of_entries,
    "sortBy": _sort_by,
}
PREDICATES = frozenset({"all", "exists", "exists_one", "existsOne", "filter"})


def loop_type(name: str, ranged: Type, body: Type) -> Type:
    """The type of a loop's result."""
    if name in ("map", "transformList"):
        return list_of(body)
    if name == "filter":
        return list_of(ranged.params[0]) if ranged.params else list_of(DYN)
    if name == "sortBy":
        return ranged
    if name == "transformMap":
        return map_of(Type("int") if ranged.kind == "list" else (ranged.params or (DYN,))[0], body)
    return body if name == "transformMapEntry" else Type("bool")


def build_map(runs: list[tuple[Run, Run, bool]], frame: Frame) -> dict[Any, Any]:
    """A map literal's value."""
    made: dict[Any, Any] = {}
    for run_key, run_value, optional in runs:
        key, value = run_key(frame), run_value(frame)
        if type(key) not in (str, int, bool, values.UInt):
            raise CelError(f"unsupported key type: {values.type_name(key)}")
        if not optional:
            made[key] = value
        elif type(value) is Optional and value.has_value:
            made[key] = value.inner
    return made


def present(value: Any) -> tuple[Any, ...]:
    """An optional list item: itself, or nothing."""
    if type(value) is not Optional:
        raise CelError(NO_OVERLOAD)
    return (value.inner,) if value.has_value else ()


Equality = Callable[[Any, Any], bool]


def equality(type_: Type) -> Equality:
    """How values of a type compare: lists of type set and map do so without regard to order."""
    schema = type_.schema
    if schema is None or not schema.has_lists:
        return values.equal
    if type_.kind == "list":
        return _list_equality(type_)
    if type_.kind == "map":
        inner = equality(type_.params[1])
        return lambda a, b: (
            type(a) is type(b) is dict
            and len(a) == len(b)
            and all(k in b and inner(v, b[k]) for k, v in a.items())
        )
    fields = {unescape(name): equality(field) for name, field in type_.fields.items()}
    return lambda a, b: (
        type(a) is type(b) is dict
        and len(a) == len(b)
        and all(k in b and fields.get(k, values.equal)(v, b[k]) for k, v in a.items())
    )


def _list_equality(type_: Type) -> Equality:
    schema, item = type_.schema, equality(type_.params[0])
    assert schema is not None
    if schema.list_type not in ("set", "map"):
        return lambda a, b: type(a) is type(b) is list and len(a) == len(b) and all(map(item, a, b))

    def key(value: Any) -> Any:
        if schema.list_type == "map" and type(value) is dict:
            return tuple((type(value.get(k)), value.get(k)) for k in schema.map_keys)
        return (type(value), value)

    def compare(a: Any, b: Any) -> bool:
        if type(a) is not list or type(b) is not list or len(a) != len(b):
            return False
        try:
            held = {key(value): value for value in b}
            return all((k := key(value)) in held and item(value, held[k]) for value in a)
        except TypeError:  # items that cannot be keys: objects in a set
            return all(any(item(x, y) for y in b) for x in a)

    return compare
