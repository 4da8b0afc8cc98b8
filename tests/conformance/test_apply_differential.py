"""The pure functions of server-side apply against a real kube-apiserver, request by request.

Every step of every case goes to the server; what the server had before and has after is then explained by
the pure functions. Times are left out of the comparison, and so is what registries add after ownership is
settled.
"""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator
from urllib.parse import quote

import pytest

from harness.plain import Answer, Plain
from harness.real import RealControlPlane
from podium.schema import managedfields, patches
from schema.apply_cases import (
    CASES,
    CONFIG_MAP,
    DEPLOYMENT,
    SERVICE,
    WIDGET,
    WIDGET_CRD,
    Case,
    Object,
    Step,
    arguments_for,
    assert_outcome,
)

pytestmark = pytest.mark.real

NAMESPACE = "default"


@pytest.fixture(scope="module")
def server() -> Iterator[Plain]:
    with RealControlPlane(controller_manager=False) as plane:
        plain = Plain(plane.kubeconfig)
        crds = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
        assert plain.request("POST", crds, WIDGET_CRD).status == 201
        while plain.request("GET", WIDGET.path(NAMESPACE)).status != 200:
            pass
        yield plain


def send(server: Plain, case: Case, name: str, step: Step, live: Object | None) -> tuple[Answer, Object]:
    """Make the step's request; also the configuration that was applied."""
    body = {
        "apiVersion": case.resource.api_version,
        "kind": case.resource.kind,
        **step.body,
        "metadata": {"name": name, **step.body.get("metadata", {})},
    }
    path = case.resource.path(NAMESPACE, "" if step.verb == "create" else name)
    path += f"/{step.subresource}" if step.subresource else ""
    path += f"?fieldManager={quote(step.manager)}"
    if step.verb == "create":
        return server.request("POST", path, body), body
    if step.verb == "update":
        assert live
        return server.request("PUT", path, patches.merge_patch(live, step.body)), body
    if step.verb == "patch":
        kind = {"Content-Type": "application/merge-patch+json"}
        return server.request("PATCH", path, step.body, headers=kind), body
    kind = {"Content-Type": "application/apply-patch+yaml"}
    path += f"&force={str(step.force).lower()}"
    return server.request("PATCH", path, body, headers=kind), body


def timeless(entries: list[Object]) -> list[Object]:
    out = [{key: value for key, value in entry.items() if key != "time"} for entry in entries]
    return sorted(out, key=lambda entry: json.dumps({**entry, "fieldsV1": None}, sort_keys=True))


def settled(obj: Object, case: Case, live: Object | None) -> Object:
    """The object as it was when ownership was settled: before the registry allocated addresses."""
    obj = copy.deepcopy(obj)
    obj["metadata"].pop("managedFields", None)
    if case.resource is SERVICE and live is None:
        for field in ("clusterIP", "clusterIPs", "ipFamilies", "ipFamilyPolicy"):
            obj["spec"].pop(field, None)
    if case.resource is DEPLOYMENT and live is None:
        obj["metadata"].get("annotations", {}).pop("deployment.kubernetes.io/revision", None)
    return obj


def is_stored_as_merged(case: Case, step: Step) -> bool:
    """Whether no default and no strategy changes what an apply merged."""
    plain = case.resource in (CONFIG_MAP, WIDGET) and not step.subresource
    return plain and "ports" not in step.body.get("spec", {})


def explain(case: Case, step: Step, live: Object | None, body: Object, answer: Answer) -> None:
    arguments = arguments_for(case, step)
    if answer.status == 409:
        with pytest.raises(managedfields.ApplyConflictError) as caught:
            managedfields.apply(live, body, force=step.force, **arguments)
        assert answer.json()["message"] == str(caught.value)
        causes = answer.json()["details"]["causes"]  # upstream lists managers in no order
        assert sorted(causes, key=str) == sorted((item.cause for item in caught.value.conflicts), key=str)
        return
    if step.verb == "apply":
        applied = managedfields.apply(live, body, force=step.force, **arguments)
        assert answer.status in (200, 201), answer.body
        entries = applied.managed_fields
        if is_stored_as_merged(case, step):
            for part in ("data", "spec"):  # no defaults here, so the merged content is what is stored
                assert answer.json().get(part) == applied.obj.get(part)
    else:
        assert answer.status in (200, 201), answer.body
        new = settled(answer.json(), case, live)
        if "managedFields" in step.body.get("metadata", {}):
            new["metadata"]["managedFields"] = step.body["metadata"]["managedFields"]
        entries = managedfields.update(live, new, **arguments)
    stored = answer.json()["metadata"].get("managedFields", [])
    assert timeless(entries) == timeless(stored)
    assert [("time" in entry) for entry in entries] == [("time" in entry) for entry in stored]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_every_step_is_explained(server: Plain, case: Case) -> None:
    name = f"case-{CASES.index(case)}"
    live: Object | None = None
    for step in case.steps:
        answer, body = send(server, case, name, step, live)
        if step.conflict:
            assert answer.status == 409
            assert answer.json()["message"] == step.conflict
        explain(case, step, live, body, answer)
        if answer.status in (200, 201):
            live = answer.json()
    assert live
    assert_outcome(case, live)
