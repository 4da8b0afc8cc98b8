"""Upstream's own tables for strategic merge patch, read from the Go module cache."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from conformance.goliterals import Composite, module_directory, read_value, variable
from podium.schema import govalues
from podium.schema.shape import SCALAR, UNTYPED, Merge, Shape
from podium.schema.strategic import StrategicPatchError, strategic_merge
from podium.schema.strategicdiff import PatchConflictError, create_three_way, create_two_way

pytestmark = pytest.mark.real

GO_MOD = Path(__file__).parents[2] / "conformance" / "go" / "kubernetes"
Object = dict[str, Any]


class Upstream:
    """The tables of one package's test file."""

    def __init__(self) -> None:
        directory = module_directory("k8s.io/apimachinery", GO_MOD) / "pkg" / "util" / "strategicpatch"
        self.source = (directory / "patch_test.go").read_text()
        document = json.loads((directory / "testdata" / "swagger-merge-item-v3.json").read_text())
        self.schemas = document["components"]["schemas"]
        self.shape = self._shape({"$ref": "#/components/schemas/mergeItem"})

    def _shape(self, schema: Object) -> Shape:
        strategies = frozenset(filter(None, schema.get("x-kubernetes-patch-strategy", "").split(",")))
        merge_key = schema.get("x-kubernetes-patch-merge-key")
        target = schema["allOf"][0] if "allOf" in schema else schema
        if "$ref" in target:
            target = self.schemas[target["$ref"].rpartition("/")[2]]
        if target.get("type") == "array":
            items = target.get("items", {})
            return Shape(
                Merge.ATOMIC,
                items=lambda: self._shape(items),
                patch_merge_key=merge_key,
                patch_strategies=strategies,
            )
        if "properties" in target:
            properties = target["properties"]
            return Shape(
                Merge.OBJECT,
                field=lambda name: self._shape(properties[name]) if name in properties else None,
                # `mergeItemPtr` is declared as one object and used as a list.
                items=lambda: self._shape(schema),
                patch_merge_key=merge_key,
                patch_strategies=strategies,
            )
        if target.get("type") == "object":
            return Shape(Merge.OBJECT, field=lambda _: UNTYPED, patch_strategies=strategies)
        return SCALAR

    def sorted_lists(self, value: Object, shape: Shape) -> Object:
        """Merging lists sorted by their key, as upstream sorts both sides of its YAML tables."""
        out: Object = {}
        for key, item in value.items():
            if key == "$retainKeys" or key.startswith("$deleteFromPrimitiveList"):
                item = sorted(item, key=govalues.show)
            elif not key.startswith("$"):
                child = shape.field(key) or UNTYPED
                if isinstance(item, dict):
                    item = self.sorted_lists(item, child)
                elif isinstance(item, list) and "merge" in child.patch_strategies:
                    item = self._sorted_list(item, child)
            out[key] = item
        return out

    def _sorted_list(self, items: list[Any], child: Shape) -> list[Any]:
        if all(isinstance(item, dict) for item in items):
            inner = [self.sorted_lists(item, child.items()) for item in items]
            return sorted(inner, key=lambda item: govalues.show(item.get(child.patch_merge_key)))
        distinct = list({(type(item), item): item for item in items}.values())
        return sorted(distinct, key=govalues.show)

    def yaml_cases(self, name: str) -> list[Object]:
        cases = yaml.safe_load(variable(self.source, name))["testCases"]
        fields = ("original", "modified", "current", "twoWay", "threeWay", "result", "twoWayResult")
        return [
            {
                "description": case["description"],
                **{
                    field: self.sorted_lists(case[field], self.shape)
                    for field in fields
                    if case.get(field) is not None
                },
            }
            for case in cases
        ]

    def raw_cases(self, name: str) -> list[Object]:
        cases = []
        for made in variable(self.source, name).items:
            data = made.fields["StrategicMergePatchRawTestCaseData"].fields
            case = {"description": made.fields["Description"], "error": data.get("ExpectedError", "")}
            for field, text in data.items():
                if field != "ExpectedError":
                    case[field[0].lower() + field[1:]] = yaml.safe_load(text) or {}
            cases.append(case)
        return cases

    def inline_cases(self, test: str) -> dict[str, Composite]:
        """The `map[string]struct{...}` that a test function starts with."""
        body = self.source.index(f"func {test}(")
        opening = re.compile(r"^\t}{$", re.MULTILINE).search(self.source, body)
        assert opening
        table: Composite = read_value(self.source, opening.end() - 1)
        return table.fields


@pytest.fixture(scope="module")
def upstream() -> Upstream:
    return Upstream()


def check_two_way(case: Object, shape: Shape) -> None:
    original, modified = case.get("original", {}), case.get("modified", {})
    patch = create_two_way(original, modified, shape)
    assert patch == case.get("twoWay", {}), case["description"]
    assert strategic_merge(original, patch, shape) == case.get("twoWayResult", modified), case["description"]


def check_three_way(case: Object, shape: Shape) -> None:
    original, modified, current = (case.get(name, {}) for name in ("original", "modified", "current"))
    description = case["description"]
    try:
        create_three_way(original, modified, current, shape, overwrite=False)
        assert "conflict" not in description
    except PatchConflictError:
        assert "conflict" in description
        if not case.get("result"):
            return
    patch = create_three_way(original, modified, current, shape)
    assert patch == case.get("threeWay", {}), description
    assert strategic_merge(current, patch, shape) == case["result"], description


def test_patches_made_from_the_yaml_table_are_upstreams(upstream: Upstream) -> None:
    cases = upstream.yaml_cases("createStrategicMergePatchTestCaseData")
    assert len(cases) == 22
    for case in cases:
        check_two_way(case, upstream.shape)
        check_three_way(case, upstream.shape)


@pytest.mark.parametrize(
    ("table", "count"), [("strategicMergePatchRawTestCases", 94), ("replaceRawExtensionPatchTestCases", 2)]
)
def test_patches_made_from_the_raw_tables_are_upstreams(upstream: Upstream, table: str, count: int) -> None:
    cases = upstream.raw_cases(table)
    assert len(cases) == count
    for case in cases:
        check_two_way(case, upstream.shape)
        check_three_way(case, upstream.shape)


def test_patches_written_by_hand_apply_as_upstream_applies_them(upstream: Upstream) -> None:
    cases = upstream.yaml_cases("customStrategicMergePatchTestCaseData")
    cases += upstream.raw_cases("customStrategicMergePatchRawTestCases")
    assert len(cases) == 28
    for case in cases:
        original, patch = case.get("original", {}), case.get("twoWay", {})
        if case.get("error"):
            with pytest.raises(StrategicPatchError, match=case["error"]):
                strategic_merge(original, patch, upstream.shape)
        else:
            assert strategic_merge(original, patch, upstream.shape) == case["modified"], case["description"]


def test_numbers_keep_their_type(upstream: Upstream) -> None:
    shape = Shape(Merge.OBJECT, field=lambda _: SCALAR)
    cases = upstream.inline_cases("TestNumberConversion")
    assert len(cases) == 7
    for case in cases.values():
        old, new, patch, result = (
            json.loads(case.fields[name]) for name in ("Old", "New", "ExpectedPatch", "ExpectedResult")
        )
        assert create_two_way(old, new, shape) == patch
        assert strategic_merge(old, patch, shape) == result


def test_unknown_fields_are_patched_only_where_that_is_safe(upstream: Upstream) -> None:
    cases = upstream.inline_cases("TestUnknownField")
    assert len(cases) == 15
    for name, made in cases.items():
        case = made.fields
        old, new, live = (json.loads(case[key]) for key in ("Original", "Modified", "Current"))
        if (
            "ExpectedTwoWay" not in case
        ):  # some cases may fail or succeed, depending on how types are declared
            error = case["ExpectedTwoWayErr"]
            with pytest.raises(StrategicPatchError, match=error):
                create_two_way(old, new, upstream.shape)
            with pytest.raises(StrategicPatchError, match=error):
                create_three_way(old, new, live, upstream.shape, overwrite=False)
            continue
        two_way = create_two_way(old, new, upstream.shape)
        three_way = create_three_way(old, new, live, upstream.shape, overwrite=False)
        assert two_way == json.loads(case["ExpectedTwoWay"]), name
        assert three_way == json.loads(case["ExpectedThreeWay"]), name
        assert strategic_merge(old, two_way, upstream.shape) == json.loads(case["ExpectedTwoWayResult"])
        assert strategic_merge(live, three_way, upstream.shape) == json.loads(case["ExpectedThreeWayResult"])
