"""What a bundle needs from others: the entries of `metadata/dependencies.yaml`, and their constraints.

A constraint is a CEL expression over the properties of a candidate. It is plain CEL, without what Kubernetes
adds, and with one function more, `semver_compare`; `compile_constraint` makes it ready to be evaluated.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from typing import Any

from podium.bundle.annotations import as_text, folded
from podium.bundle.model import Typed
from podium.schema import cel_functions, cel_types
from podium.schema.cel_compile import CompileError, Program, compile_expression
from podium.schema.cel_values import CelError
from podium.text.ranges import Range
from podium.text.semver import Version, compare

GVK, PACKAGE, LABEL, CONSTRAINT = "olm.gvk", "olm.package", "olm.label", "olm.constraint"


def problems(dependency: Typed) -> list[str]:
    """What is wrong with one dependency, in words; nothing if it is well-formed."""
    check = {GVK: _gvk, PACKAGE: _package, LABEL: _label, CONSTRAINT: _constraint}.get(dependency.type)
    if check is None:
        return [f"couldn't parse dependency of type {dependency.type!r}: the type is unknown"]
    if dependency.value is not None and not isinstance(dependency.value, dict):
        return [f"couldn't parse dependency of type {dependency.type}: its value is no mapping"]
    try:
        return list(check(dependency.value or {}))
    except _Unreadable as error:
        return [f"couldn't parse dependency of type {dependency.type}: {error}"]


class _Unreadable(ValueError):
    """A field of the value that is not text."""


def _field(value: dict[str, Any], name: str) -> str:
    found = folded(value, name)
    if found is not None and not isinstance(found, str):
        raise _Unreadable(f"{name} must be text, not {as_text(found) or type(found).__name__}")
    return found or ""


def _gvk(value: dict[str, Any]) -> Iterator[str]:
    for key in [name for name in ("group", "version", "kind") if not _field(value, name)]:
        yield f"API {key.capitalize()} is empty"


def _package(value: dict[str, Any]) -> Iterator[str]:
    name, version = _field(value, "packageName"), _field(value, "version")
    if not name:
        yield "Package name is empty"
    if not version:
        yield "Package version is empty"
        return
    try:
        Range.parse(version)
    except ValueError as error:
        yield f"Invalid semver format version: {version!r} is no range of versions ({error})"


def _label(value: dict[str, Any]) -> Iterator[str]:
    if not _field(value, "label"):
        yield "Label information is missing"


def _constraint(value: dict[str, Any]) -> Iterator[str]:
    _field(value, "failureMessage")
    cel = folded(value, "cel")
    if cel is None:
        yield "The CEL field is missing"
        return
    if not isinstance(cel, dict):
        raise _Unreadable("cel must be a mapping with a rule")
    rule = _field(cel, "rule")
    if not rule:
        yield "The CEL expression is missing"
        return
    try:
        compile_constraint(rule)
    except ValueError as error:
        yield f"Invalid CEL expression: {error}"


def compile_constraint(rule: str) -> Program:
    """A constraint's rule, ready to be evaluated with `properties`; ValueError if it is none."""
    try:
        program = compile_expression(rule, _variables(), _functions())
    except CompileError as error:
        raise ValueError(str(error)) from None
    except RecursionError:
        raise ValueError("the expression is nested too deeply") from None
    if program.type != cel_types.BOOL:
        raise ValueError("cel expressions must have type Bool")
    return program


@cache
def _variables() -> dict[str, cel_types.Type]:
    return {"properties": cel_types.list_of(cel_types.map_of(cel_types.STRING, cel_types.DYN))}


@cache
def _functions() -> dict[str, tuple[cel_functions.Overload, ...]]:
    compared = cel_functions.Overload(
        (cel_types.DYN, cel_types.DYN), cel_types.INT, is_member=False, implementation=_semver_compare
    )
    return {**cel_functions.standard_functions(), "semver_compare": (compared,)}


def _semver_compare(left: Any, right: Any) -> int:
    versions = []
    for value in (left, right):
        try:
            versions.append(Version.parse_tolerant(value if isinstance(value, str) else str(value)))
        except ValueError:
            raise CelError(f"unable to parse '{value}' to semver format") from None
    return compare(*versions)
