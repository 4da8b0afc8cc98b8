"""Discovery: what the server says it serves, its health, its version and its OpenAPI documents."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from behaviour.support import eventually, refusal
from behaviour.widgets import Widgets
from harness.plain import Plain
from podium.schema import facts

AGGREGATED = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
NO_SUCH_PATH = (404, "NotFound", "the server could not find the requested resource")
NOT_ALLOWED = (405, "MethodNotAllowed", "the server does not allow this method on the requested resource")
ALL_VERBS = {"create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"}


def entries(plain: Plain, path: str) -> dict[str, dict[str, Any]]:
    """The resources of a group version by name."""
    return {entry["name"]: entry for entry in plain.request("GET", path).json()["resources"]}


def test_the_core_group_is_listed_by_version(plain: Plain) -> None:
    listed = plain.request("GET", "/api").json()
    assert (listed["kind"], listed["versions"]) == ("APIVersions", ["v1"])


def test_groups_come_in_the_order_clients_try_them_with_preferred_versions(plain: Plain) -> None:
    listed = plain.request("GET", "/apis").json()
    groups = {group["name"]: group for group in listed["groups"]}
    assert (listed["kind"], listed["apiVersion"]) == ("APIGroupList", "v1")
    expected = ["apiregistration.k8s.io", "apps", "events.k8s.io", "authentication.k8s.io"]
    assert list(groups)[:4] == expected
    assert groups["autoscaling"]["preferredVersion"]["groupVersion"] == "autoscaling/v2"
    assert [v["version"] for v in groups["autoscaling"]["versions"]] == ["v2", "v1"]


def test_one_group_can_be_asked_for(plain: Plain) -> None:
    group = plain.request("GET", "/apis/apps").json()
    version = {"groupVersion": "apps/v1", "version": "v1"}
    head = {"kind": "APIGroup", "apiVersion": "v1", "name": "apps"}
    assert group == {**head, "versions": [version], "preferredVersion": version}


def served() -> Iterator[Any]:
    """Every group version of the table of facts, with what it says about its resources."""
    found: dict[str, list[facts.ResourceFact]] = {}
    for fact in facts.load().resources:
        path = f"/apis/{fact.group}/{fact.version}" if fact.group else f"/api/{fact.version}"
        found.setdefault(path, []).append(fact)
    for path, rows in found.items():
        yield pytest.param(path, rows, id=path)


@pytest.mark.parametrize(("path", "rows"), list(served()))
def test_a_version_lists_its_resources_with_names_verbs_and_subresources(
    plain: Plain, path: str, rows: list[facts.ResourceFact]
) -> None:
    listed = entries(plain, path)
    expected = {fact.plural: fact for fact in rows}
    subresources = {f"{fact.plural}/{sub.name}" for fact in rows for sub in fact.subresources}
    assert listed.keys() == expected.keys() | subresources
    for name, fact in expected.items():
        entry = listed[name]
        assert (entry["kind"], entry["singularName"]) == (fact.kind, fact.singular)
        assert entry["namespaced"] is fact.namespaced
        assert set(entry["verbs"]) == set(fact.verbs)
        assert set(entry.get("shortNames", ())) == set(fact.short_names)
        assert set(entry.get("categories", ())) == set(fact.categories)


def test_a_subresource_of_another_group_says_so(plain: Plain) -> None:
    scale = entries(plain, "/apis/apps/v1")["deployments/scale"]
    assert (scale["group"], scale["version"], scale["kind"]) == ("autoscaling", "v1", "Scale")
    assert set(scale["verbs"]) == {"get", "patch", "update"}
    eviction = entries(plain, "/api/v1")["pods/eviction"]
    assert (eviction["group"], eviction["kind"], eviction["verbs"]) == ("policy", "Eviction", ["create"])


def test_a_custom_resource_is_discovered_like_a_built_in_one(plain: Plain, widget_kind: Widgets) -> None:
    listed = entries(plain, f"/apis/{widget_kind.api_version}")
    widgets = listed["widgets"]
    assert set(listed) == {"widgets", "widgets/status", "widgets/scale"}
    assert (widgets["kind"], widgets["singularName"], widgets["shortNames"]) == ("Widget", "widget", ["wd"])
    assert (widgets["categories"], set(widgets["verbs"])) == (["toys"], ALL_VERBS)
    names = [group["name"] for group in plain.request("GET", "/apis").json()["groups"]]
    assert widget_kind.group in names


@pytest.mark.parametrize("path", ["/api", "/apis"])
def test_aggregated_discovery_says_the_same_in_one_document(plain: Plain, path: str) -> None:
    answer = plain.request("GET", path, headers={"Accept": AGGREGATED})
    assert answer.headers["Content-Type"] == AGGREGATED
    document = answer.json()
    assert (document["kind"], document["apiVersion"]) == ("APIGroupDiscoveryList", "apidiscovery.k8s.io/v2")
    for group in document["items"]:
        for version in group["versions"]:
            name = group["metadata"].get("name", "")
            plainly = entries(plain, f"/apis/{name}/{version['version']}" if name else "/api/v1")
            together = {entry["resource"]: entry for entry in version["resources"]}
            assert version["freshness"] == "Current"
            assert together.keys() == {entry for entry in plainly if "/" not in entry}
            for resource, entry in together.items():
                assert_same_entry(entry, resource, plainly)


def assert_same_entry(entry: dict[str, Any], resource: str, plainly: dict[str, dict[str, Any]]) -> None:
    single = plainly[resource]
    assert entry["responseKind"]["kind"] == single["kind"]
    assert entry["scope"] == ("Namespaced" if single["namespaced"] else "Cluster")
    assert entry["singularResource"] == single["singularName"]
    assert set(entry["verbs"]) == set(single["verbs"])
    assert set(entry.get("shortNames", ())) == set(single.get("shortNames", ()))
    assert set(entry.get("categories", ())) == set(single.get("categories", ()))
    subresources = {f"{resource}/{sub['subresource']}": sub for sub in entry.get("subresources", ())}
    assert subresources.keys() == {name for name in plainly if name.startswith(f"{resource}/")}
    for name, sub in subresources.items():
        assert sub["responseKind"]["kind"] == plainly[name]["kind"]
        assert set(sub["verbs"]) == set(plainly[name]["verbs"])


@pytest.mark.parametrize(
    ("accept", "kind"),
    [
        (f"{AGGREGATED},application/json", "APIGroupDiscoveryList"),
        (f"application/json,{AGGREGATED}", "APIGroupDiscoveryList"),
        (f"{AGGREGATED.replace('v=v2', 'v=v9')},application/json", "APIGroupList"),
        ("application/json", "APIGroupList"),
        ("*/*", "APIGroupList"),
    ],
)
def test_aggregated_discovery_is_for_those_who_ask_for_it(plain: Plain, accept: str, kind: str) -> None:
    assert plain.request("GET", "/apis", headers={"Accept": accept}).json()["kind"] == kind


def test_an_unknown_version_of_aggregated_discovery_is_not_acceptable(plain: Plain) -> None:
    answer = plain.request("GET", "/apis", headers={"Accept": AGGREGATED.replace("v=v2", "v=v9")})
    assert refusal(answer)[:2] == (406, "NotAcceptable")


@pytest.mark.parametrize("path", ["/api", "/apis"])
def test_aggregated_discovery_that_has_not_changed_is_not_sent_again(plain: Plain, path: str) -> None:
    first = plain.request("GET", path, headers={"Accept": AGGREGATED})
    seen = {"Accept": AGGREGATED, "If-None-Match": first.headers["ETag"]}
    again = plain.request("GET", path, headers=seen)
    assert (again.status, again.body) == (304, b"")
    assert again.headers["ETag"] == first.headers["ETag"]
    assert first.headers["Cache-Control"] == again.headers["Cache-Control"] == "public"
    assert first.headers["Vary"] == "Accept"


@pytest.mark.parametrize(
    "path",
    [
        "/api/v2",
        "/api/v1/nothings",
        "/apis/apps/v7",
        "/apis/apps/v7/deployments",
        "/apis/apps/v1/nothings",
        "/apis/apps/v1/namespaces/default/deployments/web/nothing",
        "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews/name",
    ],
)
def test_an_unknown_path_in_a_built_in_group_is_a_status(plain: Plain, path: str) -> None:
    answer = plain.request("GET", path)
    assert refusal(answer) == NO_SUCH_PATH
    assert answer.json()["details"] == {}


@pytest.mark.parametrize(
    "path",
    [
        "/apis/nothing.example.com",
        "/apis/nothing.example.com/v1",
        "/apis/nothing.example.com/v1/things",
        "/no",
    ],
)
def test_an_unknown_path_outside_the_built_in_groups_is_plain_text(plain: Plain, path: str) -> None:
    answer = plain.request("GET", path)
    assert (answer.status, answer.body) == (404, b"404 page not found\n")
    assert answer.headers["Content-Type"] == "text/plain; charset=utf-8"


@pytest.mark.parametrize("path", ["v9", "v9/widgets", "v1/nothings"])
def test_an_unknown_path_in_a_custom_group_is_plain_text(
    plain: Plain, widget_kind: Widgets, path: str
) -> None:
    answer = plain.request("GET", f"/apis/{widget_kind.group}/{path}")
    assert (answer.status, answer.body) == (404, b"404 page not found\n")


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("PUT", "/api/v1/namespaces/default/configmaps"),
        ("PATCH", "/api/v1/namespaces/default/configmaps"),
        ("POST", "/api/v1/namespaces/default/configmaps/one"),
        ("OPTIONS", "/api/v1/namespaces/default/configmaps"),
        ("BREW", "/api/v1/namespaces/default/configmaps"),
        ("GET", "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"),
        ("DELETE", "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"),
        ("DELETE", "/version"),
        ("POST", "/api"),
    ],
)
def test_a_method_that_a_path_does_not_know_is_refused(plain: Plain, method: str, path: str) -> None:
    headers = {"Content-Type": "application/merge-patch+json"} if method == "PATCH" else None
    assert refusal(plain.request(method, path, {}, headers=headers)) == NOT_ALLOWED


@pytest.mark.parametrize("path", ["/api/v1/namespaces", "/api/v1/namespaces/default", "/version", "/api"])
def test_head_is_not_a_method_of_built_in_resources(plain: Plain, path: str) -> None:
    assert plain.request("HEAD", path).status == 405


@pytest.mark.parametrize("path", ["/healthz", "/livez", "/readyz", "/livez/ping", "/healthz/etcd"])
def test_a_healthy_server_says_ok(plain: Plain, path: str) -> None:
    answer = plain.request("GET", path)
    assert (answer.status, answer.body) == (200, b"ok")
    assert answer.headers["Content-Type"] == "text/plain; charset=utf-8"
    assert plain.request("HEAD", path).status == 200


@pytest.mark.parametrize("probe", ["healthz", "livez", "readyz"])
def test_a_health_probe_lists_its_checks_when_asked(plain: Plain, probe: str) -> None:
    lines = plain.request("GET", f"/{probe}?verbose").body.decode().splitlines()
    assert "[+]ping ok" in lines
    assert lines[-1] == f"{probe} check passed"


def test_an_unknown_health_check_is_not_found(plain: Plain) -> None:
    assert plain.request("GET", "/livez/nothing").status == 404


def test_the_version_is_the_kubernetes_version(plain: Plain) -> None:
    version = plain.request("GET", "/version").json()
    assert (version["major"], version["minor"]) == ("1", "36")
    assert (version["emulationMajor"], version["emulationMinor"]) == ("1", "36")
    assert version["gitVersion"].startswith("v1.36.4")


def test_the_root_lists_paths(plain: Plain) -> None:
    paths = set(plain.request("GET", "/").json()["paths"])
    assert {"/api", "/api/v1", "/apis", "/apis/apps/v1", "/healthz", "/openapi/v3", "/version"} <= paths


def test_the_openapi_index_has_a_document_for_every_version(plain: Plain, widget_kind: Widgets) -> None:
    custom = f"apis/{widget_kind.api_version}"
    paths = eventually(lambda: _index_with(plain, custom))
    groups = plain.request("GET", "/apis").json()["groups"]
    versions = {f"apis/{version['groupVersion']}" for group in groups for version in group["versions"]}
    assert "api/v1" in paths
    # Another test's group may be gone by now, or not be here yet; built-in ones never are.
    assert {path for path in versions if path.endswith((".k8s.io/v1", "apps/v1", "batch/v1"))} <= paths.keys()
    assert paths["api/v1"]["serverRelativeURL"].startswith("/openapi/v3/api/v1?hash=")


def _index_with(plain: Plain, path: str) -> dict[str, Any] | None:
    """The index of documents, once it has this one."""
    paths: dict[str, Any] = plain.request("GET", "/openapi/v3").json()["paths"]
    return paths if path in paths else None


def test_an_openapi_document_may_be_kept_under_its_hash(plain: Plain) -> None:
    url = plain.request("GET", "/openapi/v3").json()["paths"]["apis/batch/v1"]["serverRelativeURL"]
    answer = plain.request("GET", url)
    assert answer.headers["Cache-Control"] == "public, immutable"
    again = plain.request("GET", url, headers={"If-None-Match": answer.headers["ETag"]})
    assert (again.status, again.body) == (304, b"")
    moved = plain.request("GET", "/openapi/v3/apis/batch/v1?hash=0123")
    assert (moved.status, moved.headers["Location"]) == (301, url)


def test_openapi_says_which_kind_a_schema_is_and_how_lists_merge(plain: Plain) -> None:
    document = plain.request("GET", "/openapi/v3/apis/apps/v1").json()
    schemas = document["components"]["schemas"]
    kind = {"group": "apps", "kind": "Deployment", "version": "v1"}
    assert schemas["io.k8s.api.apps.v1.Deployment"]["x-kubernetes-group-version-kind"] == [kind]
    containers = schemas["io.k8s.api.core.v1.PodSpec"]["properties"]["containers"]
    assert containers["x-kubernetes-list-map-keys"] == ["name"]
    assert containers["x-kubernetes-patch-merge-key"] == "name"
    assert containers["x-kubernetes-patch-strategy"] == "merge"
    assert schemas["io.k8s.api.apps.v1.DeploymentSpec"]["required"] == ["selector", "template"]


def test_openapi_paths_tell_clients_what_a_write_understands(plain: Plain) -> None:
    paths = plain.request("GET", "/openapi/v3/apis/apps/v1").json()["paths"]
    collection = paths["/apis/apps/v1/namespaces/{namespace}/deployments"]
    single = paths["/apis/apps/v1/namespaces/{namespace}/deployments/{name}"]
    assert {p["name"] for p in collection["post"]["parameters"]} == {
        "dryRun",
        "fieldManager",
        "fieldValidation",
    }
    assert {"dryRun", "fieldValidation", "force"} <= {p["name"] for p in single["patch"]["parameters"]}
    assert collection["post"]["x-kubernetes-action"] == "post"
    assert collection["post"]["x-kubernetes-group-version-kind"]["kind"] == "Deployment"
    assert "application/apply-patch+yaml" in single["patch"]["requestBody"]["content"]


def test_openapi_holds_the_schema_of_a_custom_resource(plain: Plain, widget_kind: Widgets) -> None:
    eventually(lambda: _index_with(plain, f"apis/{widget_kind.api_version}"))
    document = plain.request("GET", f"/openapi/v3/apis/{widget_kind.api_version}").json()
    kind = {"group": widget_kind.group, "kind": "Widget", "version": "v1"}
    found = [
        schema
        for schema in document["components"]["schemas"].values()
        if schema.get("x-kubernetes-group-version-kind") == [kind]
    ]
    assert len(found) == 1
    assert found[0]["properties"]["spec"]["properties"]["size"] == {"type": "integer"}


def test_an_unknown_openapi_document_is_not_found(plain: Plain) -> None:
    assert plain.request("GET", "/openapi/v3/apis/nothing.example.com/v1").status == 404
