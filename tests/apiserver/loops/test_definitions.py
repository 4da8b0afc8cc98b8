"""What the status of a CustomResourceDefinition should be, given the others of its group."""

from __future__ import annotations

from typing import Any

import pytest

from podium.apiserver.loops.definitions import decide

Object = dict[str, Any]

NOW, EARLIER = "2024-01-02T00:00:00Z", "2024-01-01T00:00:00Z"


def definition(kind: str, *, group: str = "example.com", **names: Any) -> Object:
    """A definition that nobody has looked at."""
    own = {"plural": f"{kind.lower()}s", "singular": kind.lower(), "kind": kind, "listKind": f"{kind}List"}
    versions = [{"name": "v1", "storage": True, "served": True}]
    return {"spec": {"group": group, "names": own | names, "versions": versions}, "status": {}}


def decided(crd: Object, *others: Object) -> Object:
    """The definition with the status it should have."""
    return {**crd, "status": decide(crd, others, NOW)}


def conditions(crd: Object) -> dict[str, tuple[str, str, str]]:
    return {c["type"]: (c["status"], c["reason"], c["message"]) for c in crd["status"]["conditions"]}


def test_names_that_nobody_has_are_accepted() -> None:
    crd = decided(definition("Cup", shortNames=["c"]))
    assert crd["status"]["acceptedNames"] == crd["spec"]["names"]
    assert crd["status"]["storedVersions"] == ["v1"]
    assert conditions(crd)["Established"][0] == "True"


@pytest.mark.parametrize(
    ("names", "reason", "message"),
    [
        ({"singular": "cup"}, "SingularConflict", '"cup" is already in use'),
        ({"kind": "Cup"}, "KindConflict", '"Cup" is already in use'),
        ({"listKind": "CupList"}, "ListKindConflict", '"CupList" is already in use'),
        ({"shortNames": ["x", "c"]}, "ShortNamesConflict", '"c" is already in use'),
        (
            {"shortNames": ["c", "cup"]},
            "ShortNamesConflict",
            '["c" is already in use, "cup" is already in use]',
        ),
        ({"singular": "cup", "kind": "Cup"}, "KindConflict", '"Cup" is already in use'),
    ],
)
def test_names_that_another_has_are_not(names: Object, reason: str, message: str) -> None:
    cup = decided(definition("Cup", shortNames=["c"]))
    mug = decided(definition("Mug", **names) if "kind" not in names else _renamed("Mug", names), cup)
    assert conditions(mug)["NamesAccepted"] == ("False", reason, message)
    assert conditions(mug)["Established"] == ("False", "NotAccepted", "not all names are accepted")
    assert mug["status"]["acceptedNames"]["plural"] == "mugs"


def _renamed(kind: str, names: Object) -> Object:
    crd = definition(kind)
    crd["spec"]["names"] |= names
    return crd


def test_names_of_another_group_do_not_matter() -> None:
    cup = decided(definition("Cup"))
    assert conditions(decided(definition("Cup", group="other.com"), cup))["Established"][0] == "True"


def test_an_established_definition_stays_so_with_the_names_it_has() -> None:
    cup, mug = decided(definition("Cup", shortNames=["c"])), decided(definition("Mug", shortNames=["m"]))
    mug["spec"]["names"]["shortNames"] = ["c"]
    again = decided(mug, cup)
    assert conditions(again)["NamesAccepted"][:2] == ("False", "ShortNamesConflict")
    assert conditions(again)["Established"][0] == "True"
    assert again["status"]["acceptedNames"]["shortNames"] == ["m"]


def test_what_holds_on_keeps_its_time() -> None:
    first = definition("Cup")
    first["status"] = decide(first, (), EARLIER)
    assert decide(first, (), NOW) == first["status"]
