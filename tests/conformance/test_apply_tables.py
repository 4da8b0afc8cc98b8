"""Upstream's own tables for server-side apply, read from the Go module cache."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

import pytest

from conformance.goliterals import Composite, read_value, variable
from conformance.smdtables import Schema, Upstream, name_of, path_of, set_of, wrapped, yaml_object
from podium.schema import fieldset, managedfields
from podium.schema.fieldset import FieldSet
from podium.schema.managedfields import ApplyConflictError, ApplyError
from podium.schema.merging import merge
from podium.schema.shape import SCALAR, UNTYPED, Merge, Shape
from podium.schema.typedvalues import compare, extract_items, owned, reconciled, remove_items

pytestmark = pytest.mark.real

Object = dict[str, Any]
NOW = "2030-01-01T00:00:00Z"


@pytest.fixture(scope="module")
def upstream() -> Upstream:
    return Upstream()


class State:
    """One object under test, moved along by the operations of a case through the public functions."""

    def __init__(self, root: Shape, reset_fields: FieldSet | None) -> None:
        self.root = root
        self.reset_fields = reset_fields
        self.live: Object | None = None

    @property
    def shape(self) -> Shape:
        fixed = {"apiVersion": SCALAR, "kind": SCALAR, "metadata": Shape(Merge.ATOMIC)}
        return Shape(Merge.OBJECT, field=lambda name: fixed.get(name) or self.root.field(name))

    def run(self, operation: Composite) -> None:
        kind, fields = name_of(operation.type), operation.fields
        request: dict[str, Any] = {"manager": fields["Manager"], "api_version": fields["APIVersion"]}
        value = {"apiVersion": fields["APIVersion"], "kind": "Test", **(yaml_object(fields["Object"]) or {})}
        if kind == "Update":
            self.update(value, request)
        elif "Conflicts" in fields:
            expected = {
                (item.fields["Manager"], path_of(item.fields["Path"])) for item in fields["Conflicts"].items
            }
            assert self.conflicts(value, request) == expected
        elif kind == "ExtractApply":
            self.apply(self.extracted_with(value, fields["Manager"]), request, force=True)
        else:
            self.apply(value, request, force=kind == "ForceApply")

    def update(self, new: Object, request: dict[str, Any]) -> None:
        entries = managedfields.update(
            self.live, new, shape=self.shape, now=NOW, reset_fields=self.reset_fields, **request
        )
        assert entries or not self.live, "the object was not understood"
        self.live = {**new, "metadata": {"managedFields": entries}}

    def apply(self, value: Object, request: dict[str, Any], *, force: bool) -> None:
        applied = managedfields.apply(
            self.live,
            value,
            shape=self.shape,
            now=NOW,
            force=force,
            reset_fields=self.reset_fields,
            **request,
        )
        self.live = applied.obj

    def conflicts(self, value: Object, request: dict[str, Any]) -> set[tuple[str, fieldset.Path]]:
        try:
            self.apply(value, request, force=False)
        except ApplyConflictError as error:
            return {(json.loads(item.manager.partition(" using")[0]), item.path) for item in error.conflicts}
        return set()

    def extracted_with(self, value: Object, manager: str) -> Object:
        """What the manager owns of the live object, with `value` laid over it."""
        fields = self.managed().get(manager, ("", {}))[1]
        extracted = extract_items(self.content(), fieldset.leaves(fields), self.shape)
        merged: Object = merge(extracted or {}, value, self.shape)
        return merged

    def content(self) -> Object:
        fixed = ("apiVersion", "kind", "metadata")
        return {key: value for key, value in (self.live or {}).items() if key not in fixed}

    def managed(self) -> dict[str, tuple[str, FieldSet]]:
        entries = ((self.live or {}).get("metadata") or {}).get("managedFields") or []
        return {entry["manager"]: (entry["apiVersion"], entry["fieldsV1"]) for entry in entries}


def reset_fields_of(case: Composite) -> FieldSet | None:
    found = case.fields.get("IgnoredFields") or case.fields.get("IgnoreFilter")
    if found is None:
        return None
    [made] = found.fields.values()
    return set_of(made.args[0] if name_of(made.name) == "NewExcludeSetFilter" else made)


def run_case(upstream: Upstream, parser: str, case: Composite) -> None:
    state = State(upstream.shape(parser), reset_fields_of(case))
    for operation in case.fields["Ops"].items:
        if name_of(operation.type) == "ChangeParser":
            state.root = upstream.shape(name_of(operation.fields["Parser"]))
        else:
            state.run(operation)
    if case.fields.get("Object"):
        assert state.content() == (yaml_object(case.fields["Object"]) or {})
    if case.fields.get("Managed") is not None:
        assert state.managed() == {
            manager: (made.args[1], set_of(made.args[0]))
            for manager, made in case.fields["Managed"].fields.items()
        }


def test_sequences_of_writes_and_applies_end_as_upstreams(upstream: Upstream) -> None:
    ran = 0
    for table in upstream.tables():
        for name, case in table.cases.items():
            try:
                run_case(upstream, table.parser, case)
            except (AssertionError, ApplyError) as error:
                raise AssertionError(f"{table.test}/{name}: {error}") from error
            ran += 1
    assert ran == 116


def typed_cases(upstream: Upstream, file: str, name: str) -> Iterator[tuple[Shape, Composite]]:
    """The cases of a `typed` test table, each with the shape of its root type."""
    source = upstream.source(f"typed/{file}")
    for case in variable(source, name).items:
        if case.fields["rootTypeName"] == "__untyped_separable_":
            continue  # lists that merge although nothing is known of them: no Kubernetes type has these
        schema = case.fields["schema"]
        text = schema if isinstance(schema, str) else variable(source, name_of(schema))
        shape = wrapped(Schema(text).shape(case.fields["rootTypeName"]))
        [pairs] = [value for value in case.fields.values() if isinstance(value, Composite)]
        for pair in pairs.items:
            yield shape, pair


def rooted(fields: FieldSet) -> FieldSet:
    return {"f:root": fields} if fields else {}


def below_root(fields: FieldSet) -> FieldSet:
    """The set without the path element that `wrapped` adds; the root itself is not tracked."""
    return {key: node for key, node in fields.get("f:root", {}).items() if key != "."}


def root_of(text: str) -> Object:
    return {"root": yaml_object(text)}


def test_comparisons_are_upstreams_in_both_directions(upstream: Upstream) -> None:
    ran = 0
    for shape, case in typed_cases(upstream, "symdiff_test.go", "symdiffCases"):
        old, new = root_of(case.fields["lhs"]), root_of(case.fields["rhs"])
        removed, modified, added = (set_of(case.fields[name]) for name in ("removed", "modified", "added"))
        there, back = compare(old, new, shape), compare(new, old, shape)
        assert [below_root(each) for each in (there.removed, there.modified, there.added)] == [
            removed,
            modified,
            added,
        ], case
        assert [below_root(each) for each in (back.removed, back.modified, back.added)] == [
            added,
            modified,
            removed,
        ], case
        ran += 1
    assert ran == 68


def test_claimed_sets_are_upstreams(upstream: Upstream) -> None:
    ran = 0
    for shape, case in typed_cases(upstream, "toset_test.go", "fieldsetCases"):
        assert below_root(owned(root_of(case.items[0]), shape)) == set_of(case.items[1]), case
        ran += 1
    assert ran == 29


def test_merged_values_are_upstreams(upstream: Upstream) -> None:
    ran = 0
    for shape, case in typed_cases(upstream, "merge_test.go", "mergeCases"):
        left, right, out = (root_of(text) for text in case.items)
        merged = merge(left, right, shape)
        assert merged == out, case
        assert (merged is left) == (left == out)
        ran += 1
    assert ran == 64


def test_removed_and_extracted_items_are_upstreams(upstream: Upstream) -> None:
    ran = 0
    for shape, case in typed_cases(upstream, "remove_test.go", "removeCases"):
        obj, fields, without, only = case.items
        if without != "unparseable":
            value = remove_items(root_of(obj), rooted(set_of(fields)), shape)
            assert (value or {}).get("root") == yaml_object(without), case
        if only != "unparseable":
            value = extract_items(root_of(obj), rooted(set_of(fields)), shape)
            assert (value or {}).get("root") == yaml_object(only), case
        ran += 1
    assert ran == 59


def deduced_cases(upstream: Upstream, test: str) -> list[Composite]:
    body = upstream.source("typed/deduced_test.go").partition(f"func {test}(")[2]
    opening = re.search(r":= (?=\[\]\w+\{)", body)
    assert opening
    table: Composite = read_value(body, opening.end())
    assert table.items
    return table.items


def test_values_without_a_schema_are_treated_as_upstreams(upstream: Upstream) -> None:
    for case in deduced_cases(upstream, "TestMergeDeduced"):
        left, right, out = (yaml_object(text) for text in case.items)
        assert merge(left, right, UNTYPED) == out, case
    for case in deduced_cases(upstream, "TestToSetDeduced"):
        assert below_root(owned(root_of(case.items[0]), wrapped(UNTYPED))) == set_of(case.items[1]), case
    for case in deduced_cases(upstream, "TestSymdiffDeduced"):
        got = compare(root_of(case.fields["lhs"]), root_of(case.fields["rhs"]), wrapped(UNTYPED))
        expected = [set_of(case.fields[name]) for name in ("removed", "modified", "added")]
        assert [below_root(each) for each in (got.removed, got.modified, got.added)] == expected, case


def test_serialised_sets_are_upstreams_byte_for_byte(upstream: Upstream) -> None:
    source = upstream.source("fieldpath/serialize_test.go")
    goldens = read_value(source, source.index("[]string{", source.index("TestSerializeV1GoldenData")))
    assert len(goldens.items) == 3
    for text in goldens.items:
        fields = fieldset.parse(json.loads(text))
        assert json.dumps(fields, separators=(",", ":"), ensure_ascii=False) == text
    at = source.index("}{", source.index("TestDeserializeForValidNonNormalized"))
    cases = read_value(source, at + 1).items
    assert cases
    for case in cases:
        fields = fieldset.parse(json.loads(case.fields["nonNormalizedString"]))
        written = json.dumps(fields, separators=(",", ":"), ensure_ascii=False)
        assert written == case.fields["normalizedString"]


def test_sets_follow_a_type_that_became_atomic(upstream: Upstream) -> None:
    source = upstream.source("typed/reconcile_schema_test.go")
    ran = 0
    for case in variable(source, "reconcileCases").items:
        body = source.partition(f"func {case.fields['newSchema'].name}(")[2]
        text = re.search(r"`([^`]*)`", body)
        assert text
        version = case.fields["rootTypeName"]
        shape = Schema(text[1].replace("%s", version)).shape(version)
        old = set_of(case.fields["oldFields"])
        expected = case.fields.get("fixedFields")
        new = reconciled(old, shape)
        assert new == (old if expected is None else set_of(expected)), case.fields["name"]
        assert (new is old) == (expected is None)
        ran += 1
    assert ran == 7
