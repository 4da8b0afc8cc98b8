"""The CRDs of public operators: each is valid, its rules compile, and its examples are judged.

What the real server says about the same data is `test_crd_corpus_differential`; this needs no server.
"""

from __future__ import annotations

import copy
from collections import Counter
from collections.abc import Iterator

import pytest

from conformance.crd_corpus import Object, bundles
from podium.schema import cel, crd, structural
from podium.schema.structural import Structural

pytestmark = pytest.mark.real


def definitions() -> Iterator[Object]:
    for bundle in bundles():
        for definition in bundle.definitions:
            if definition["apiVersion"] == "apiextensions.k8s.io/v1":
                yield definition


def schemas() -> Iterator[tuple[Object, str, Structural]]:
    for definition in definitions():
        for version in definition["spec"]["versions"]:
            yield definition, version["name"], structural.parse(version["schema"]["openAPIV3Schema"])


def test_every_definition_is_valid() -> None:
    checked = 0
    for definition in definitions():
        made = copy.deepcopy(definition)
        crd.default_crd(made)
        assert [str(e) for e in crd.validate_crd(made)] == [], definition["metadata"]["name"]
        checked += 1
    assert checked > 100


def test_every_rule_compiles() -> None:
    def count(node: cel.Rules) -> int:
        assert not [rule.error for rule in node.own if rule.error]
        below = [*node.properties.values(), node.items, node.additional]
        return len(node.own) + sum(count(sub) for sub in below if sub is not None)

    compiled = [cel.compile_rules(schema) for _, _, schema in schemas()]
    assert sum(count(rules) for rules in compiled if rules is not None) > 0


def test_every_example_is_accepted_or_told_why(capsys: pytest.CaptureFixture[str]) -> None:
    known = {(d["spec"]["group"], v, d["spec"]["names"]["kind"]): s for d, v, s in schemas()}
    verdicts: Counter[str] = Counter()
    for bundle in bundles():
        for example in bundle.examples:
            group, _, version = example["apiVersion"].partition("/")
            schema = known.get((group, version, example["kind"]))
            if schema is None:
                verdicts["of another version"] += 1
                continue
            value = copy.deepcopy(example)
            structural.prune(value, schema)
            structural.default(value, schema)
            found = cel.validate(value, schema)
            assert all(str(e) for e in found)
            verdicts["rejected" if found else "accepted"] += 1
    with capsys.disabled():
        print(f"\nexamples of the corpus: {dict(verdicts)}")
    assert verdicts["accepted"] > verdicts["rejected"] > 0
