"""Selecting objects by their labels and fields."""

from __future__ import annotations

from collections.abc import Iterator
from urllib.parse import quote

import pytest

from behaviour.collection import Collection, Object, config_map, deployment, done, pod
from behaviour.support import refusal
from behaviour.widgets import Widgets
from harness.plain import Answer, Plain
from harness.plane import ControlPlane, create_namespace

LABELS: dict[str, dict[str, str]] = {
    "db": {"app": "db", "size": "5"},
    "none": {},
    "web": {"app": "web", "tier": "front", "size": "10"},
    "web-empty": {"app": "web", "tier": ""},
    "word": {"size": "big", "example.com/owner": "me"},
}


@pytest.fixture(scope="module")
def home(control_plane: ControlPlane) -> Iterator[str]:
    """A namespace for the objects that the tests of this module only read."""
    plain = Plain(control_plane.kubeconfig)
    name = create_namespace(plain, "selectors")
    yield name
    plain.request("DELETE", f"/api/v1/namespaces/{name}")


@pytest.fixture(scope="module")
def labelled(control_plane: ControlPlane, home: str) -> Collection:
    """ConfigMaps with the labels of the table above."""
    config_maps = Collection(Plain(control_plane.kubeconfig), f"/api/v1/namespaces/{home}/configmaps")
    for name, labels in LABELS.items():
        done(config_maps.create(config_map(name, labels=labels)))
    return config_maps


@pytest.fixture(scope="module")
def two_pods(control_plane: ControlPlane, home: str) -> Collection:
    """A Pod on a node and one without."""
    pods = Collection(Plain(control_plane.kubeconfig), f"/api/v1/namespaces/{home}/pods")
    done(pods.create(pod("bound", nodeName="there", schedulerName="nobody")))
    done(pods.create(pod("free", restartPolicy="Never", schedulerName="other")))
    return pods


@pytest.fixture(scope="module")
def three_widgets(control_plane: ControlPlane, home: str, widget_kind: Widgets) -> Collection:
    """Custom resources with and without the fields that can be selected."""
    widgets = widget_kind.collection(Plain(control_plane.kubeconfig), home)
    done(widgets.create(widget_kind.widget("one", spec={"color": "red", "size": 1})))
    done(widgets.create(widget_kind.widget("two", spec={"color": "blue", "size": 2})))
    done(widgets.create(widget_kind.widget("three", spec={})))
    return widgets


def select(collection: Collection, kind: str, selector: str) -> Answer:
    """The answer to a list with a selector."""
    return collection.plain.request("GET", f"{collection.path}?{kind}Selector={quote(selector)}")


def selected(collection: Collection, kind: str, selector: str) -> list[str]:
    """The names of what is selected, without what every namespace has."""
    items: list[Object] = done(select(collection, kind, selector))["items"]
    found = [item["metadata"]["name"] for item in items]
    return [name for name in found if name not in ("kube-root-ca.crt", "default")]


@pytest.mark.parametrize(
    ("selector", "expected"),
    [
        ("app=web", ["web", "web-empty"]),
        ("app==web", ["web", "web-empty"]),
        (" app = web ", ["web", "web-empty"]),
        ("app=web,tier=front", ["web"]),
        ("app!=web", ["db", "none", "word"]),
        ("app", ["db", "web", "web-empty"]),
        ("!app", ["none", "word"]),
        ("tier=", ["web-empty"]),
        ("tier!=", ["db", "none", "web", "word"]),
        ("app in (db,web)", ["db", "web", "web-empty"]),
        ("app in (db, other)", ["db"]),
        ("tier in (,front)", ["web", "web-empty"]),
        ("tier in ()", ["web-empty"]),
        ("app notin (web)", ["db", "none", "word"]),
        ("app notin (db,web)", ["none", "word"]),
        ("size>5", ["web"]),
        ("size<10", ["db"]),
        ("size>4,size<10", ["db"]),
        ("example.com/owner=me", ["word"]),
        ("app=nothing", []),
        ("", sorted(LABELS)),
    ],
)
def test_a_label_selector_chooses_as_kubernetes_does(
    labelled: Collection, selector: str, expected: list[str]
) -> None:
    assert selected(labelled, "label", selector) == expected


LONG = "x" * 64
UNABLE = "unable to parse requirement: "
INTEGER_RULE = "for 'Gt', 'Lt' operators, the value must be an integer"
NAME = "'([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]'"
KEY_RULE = (
    "must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric "
    f"character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is {NAME})"
)


@pytest.mark.parametrize(
    ("selector", "message"),
    [
        ("=b", "found '=', expected: !, identifier, or 'end of string'"),
        (",", "found ',', expected: !, identifier, or 'end of string'"),
        ("a=b c", "found 'c', expected: ',' or 'end of string'"),
        ("!a=b", "found '=', expected: ',' or 'end of string'"),
        ("a=b,", "found '', expected: identifier after ','"),
        ("a=b,,c=d", "found ',', expected: identifier after ','"),
        ("!", f"{UNABLE}found '', expected: identifier"),
        ("a=!b", f"{UNABLE}found '!', expected: identifier"),
        ("a b", f"{UNABLE}found 'b', expected: in, notin, =, ==, !=, gt, lt"),
        ("a in", f"{UNABLE}found '' expected: '('"),
        ("a in b", f"{UNABLE}found 'b' expected: '('"),
        ("a in (", f"{UNABLE}found '', expected: ',', ')' or identifier"),
        ("a in (b", f"{UNABLE}found '', expected: ',' or ')'"),
        ("a in (b c)", f"{UNABLE}found 'c', expected: ',' or ')'"),
        ("a in (b,=", f"{UNABLE}found '=', expected: ',', or identifier"),
        ("a>x", f'{UNABLE}values[0]: Invalid value: "x": {INTEGER_RULE}'),
        ("-a=b", f'{UNABLE}<nil>: Invalid value: "-a": name part {KEY_RULE}'),
        ("/a=b", f'{UNABLE}<nil>: Invalid value: "/a": prefix part must be non-empty'),
        (f"{LONG}=b", f'{UNABLE}<nil>: Invalid value: "{LONG}": name part must be no more than 63 bytes'),
        (f"a={LONG}", f'{UNABLE}values[0][a]: Invalid value: "{LONG}": must be no more than 63 bytes'),
    ],
)
def test_a_label_selector_that_cannot_be_read_is_a_bad_request(
    plain: Plain, selector: str, message: str
) -> None:
    everywhere = Collection(plain, "/api/v1/configmaps")
    assert refusal(select(everywhere, "label", selector)) == (400, "BadRequest", message)


@pytest.mark.parametrize(
    ("selector", "expected"),
    [
        ("metadata.name=web", ["web"]),
        ("metadata.name==web", ["web"]),
        ("metadata.name!=web", ["db", "none", "web-empty", "word"]),
        ("metadata.name=web,metadata.name=db", []),
        ("metadata.namespace=nowhere", []),
        ("metadata.name=web,", ["web"]),
        ("", sorted(LABELS)),
    ],
)
def test_every_kind_can_be_selected_by_name_and_namespace(
    labelled: Collection, selector: str, expected: list[str]
) -> None:
    assert selected(labelled, "field", selector) == expected


@pytest.mark.parametrize(
    ("path", "selector", "message"),
    [
        ("/api/v1/pods", "spec.nothing=x", "field label not supported: spec.nothing"),
        ("/api/v1/secrets", "spec.nothing=x", "field label not supported: spec.nothing"),
        ("/api/v1/nodes", "metadata.uid=x", "field label not supported: metadata.uid"),
        ("/apis/batch/v1/jobs", "spec.nothing=x", 'field label "spec.nothing" not supported for Job'),
        (
            "/api/v1/configmaps",
            "data=x",
            '"data" is not a known field selector: only "metadata.name", "metadata.namespace"',
        ),
        (
            "/apis/apps/v1/replicasets",
            "status.replicas=1",
            '"status.replicas" is not a known field selector: only "metadata.name", "metadata.namespace"',
        ),
        ("/api/v1/configmaps", "name", "invalid selector: 'name'; can't understand 'name'"),
        (
            "/api/v1/configmaps",
            "metadata.name>a",
            "invalid selector: 'metadata.name>a'; can't understand 'metadata.name>a'",
        ),
    ],
)
def test_a_field_selector_that_is_not_supported_is_a_bad_request(
    plain: Plain, path: str, selector: str, message: str
) -> None:
    assert refusal(select(Collection(plain, path), "field", selector)) == (400, "BadRequest", message)


@pytest.mark.parametrize(
    ("selector", "expected"),
    [
        ("spec.nodeName=there", ["bound"]),
        ("spec.nodeName=", ["free"]),
        ("spec.nodeName!=there", ["free"]),
        ("status.phase=Pending", ["bound", "free"]),
        ("status.phase!=Pending", []),
        ("spec.restartPolicy=Never", ["free"]),
        ("spec.serviceAccountName=default", ["bound", "free"]),
        ("spec.schedulerName=other", ["free"]),
        ("spec.hostNetwork=false", ["bound", "free"]),
        ("status.podIP=", ["bound", "free"]),
        ("spec.nodeName=there,metadata.name=free", []),
    ],
)
def test_pods_are_selected_by_where_and_how_they_run(
    two_pods: Collection, selector: str, expected: list[str]
) -> None:
    assert selected(two_pods, "field", selector) == expected


def test_events_are_selected_by_what_they_are_about(plain: Plain, namespace: str) -> None:
    events = Collection(plain, f"/api/v1/namespaces/{namespace}/events")
    for number, name in enumerate(("web", "db")):
        about = {"kind": "Pod", "name": name, "namespace": namespace, "uid": f"uid-{number}"}
        event = {"apiVersion": "v1", "kind": "Event", "metadata": {"name": name}, "involvedObject": about}
        done(
            events.create({**event, "reason": f"R{number}", "type": "Normal", "source": {"component": "me"}})
        )
    for selector, expected in (
        ("involvedObject.name=web", ["web"]),
        ("involvedObject.kind=Pod,involvedObject.uid=uid-1", ["db"]),
        ("involvedObject.kind=Node", []),
        ("reason=R1", ["db"]),
        ("type=Normal", ["db", "web"]),
        ("source=me", ["db", "web"]),
    ):
        assert selected(events, "field", selector) == expected, selector


def test_secrets_are_selected_by_type(plain: Plain, namespace: str) -> None:
    secrets = Collection(plain, f"/api/v1/namespaces/{namespace}/secrets")
    for name, kind in (("plain", "Opaque"), ("release", "helm.sh/release.v1")):
        done(secrets.create({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": name}, "type": kind}))
    assert selected(secrets, "field", "type=helm.sh/release.v1") == ["release"]
    assert selected(secrets, "field", "type!=helm.sh/release.v1") == ["plain"]


def test_services_and_namespaces_have_fields_of_their_own(plain: Plain, namespace: str) -> None:
    services = Collection(plain, f"/api/v1/namespaces/{namespace}/services")
    spec = {"type": "ExternalName", "externalName": "example.com"}
    done(services.create({"apiVersion": "v1", "kind": "Service", "metadata": {"name": "out"}, "spec": spec}))
    assert selected(services, "field", "spec.type=ExternalName") == ["out"]
    assert selected(services, "field", "spec.type=ClusterIP") == []
    namespaces = Collection(plain, "/api/v1/namespaces")
    assert namespace in selected(namespaces, "field", "status.phase=Active")


@pytest.mark.parametrize(
    ("selector", "expected"),
    [
        ("spec.color=red", ["one"]),
        ("spec.color!=red", ["three", "two"]),
        ("spec.size=2", ["two"]),
        ("spec.color=", ["three"]),
        ("spec.color=blue,spec.size=2", ["two"]),
        ("metadata.name=two", ["two"]),
    ],
)
def test_custom_resources_are_selected_by_the_fields_their_definition_names(
    three_widgets: Collection, selector: str, expected: list[str]
) -> None:
    assert selected(three_widgets, "field", selector) == expected


def test_a_field_that_a_definition_does_not_name_is_not_supported(widgets: Collection) -> None:
    answer = select(widgets, "field", "spec.text=x")
    assert refusal(answer) == (400, "BadRequest", "field label not supported: spec.text")


def test_label_and_field_selectors_must_both_hold(deployments: Collection) -> None:
    for name in ("one", "two"):
        made = deployment(name)
        made["metadata"]["labels"] = {"team": "a"}
        done(deployments.create(made))
    query = "labelSelector=team%3Da&fieldSelector=metadata.name%3Dtwo"
    found = done(deployments.plain.request("GET", f"{deployments.path}?{query}"))
    assert [item["metadata"]["name"] for item in found["items"]] == ["two"]
