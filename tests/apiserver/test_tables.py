"""What `kubectl get` shows: statuses, ages, and the columns of built-in and custom kinds.

That every kind's row is the real server's is shown by `conformance/test_tables_differential.py`; here are
the rules that people rely on, and that hold without it.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.plain import Plain
from podium.apiserver import builtin, customresources, tables
from podium.apiserver.registry import Resource
from podium.apiserver.tables.printer import human_duration

Object = dict[str, Any]
NOW = datetime(2026, 1, 31, 12, 0, 0, 500_000, tzinfo=UTC)
RESOURCES = {(r.group, r.version, r.plural): r for r in builtin.resources() if "list" in r.verbs}
PODS = RESOURCES["", "v1", "pods"]


def ago(**passed: float) -> str:
    return (NOW - timedelta(**passed)).strftime("%Y-%m-%dT%H:%M:%SZ")


def made(resource: Resource, **fields: Any) -> Object:
    metadata = {"name": "x", "creationTimestamp": ago(minutes=5), **fields.pop("metadata", {})}
    return {"apiVersion": resource.api_version, "kind": resource.kind, "metadata": metadata, **fields}


def row(group: str, version: str, plural: str, **fields: Any) -> dict[str, Any]:
    """The cells of an object by the names of their columns."""
    resource = RESOURCES[group, version, plural]
    names = [column["name"] for column in tables.columns(resource)]
    return dict(zip(names, tables.cells(resource, made(resource, **fields), NOW), strict=True))


# --- ages -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (-2, "<invalid>"),
        (-1.9, "0s"),
        (0, "0s"),
        (59.9, "59s"),
        (119, "119s"),
        (120, "2m"),
        (121, "2m1s"),
        (599, "9m59s"),
        (600, "10m"),
        (3 * 3600 - 1, "179m"),
        (3 * 3600, "3h"),
        (3 * 3600 + 60, "3h1m"),
        (8 * 3600, "8h"),
        (48 * 3600 - 1, "47h"),
        (48 * 3600, "2d"),
        (49 * 3600, "2d1h"),
        (8 * 86400, "8d"),
        (729 * 86400, "729d"),
        (730 * 86400, "2y"),
        (731 * 86400, "2y1d"),
        (8 * 365 * 86400, "8y"),
        (3000 * 86400, "8y"),
    ],
)
def test_an_age_has_two_or_three_figures(seconds: float, text: str) -> None:
    assert human_duration(seconds) == text


@given(st.floats(min_value=-1, max_value=10**10), st.floats(min_value=-1, max_value=10**10))
def test_an_older_object_never_looks_younger(one: float, other: float) -> None:
    units = {"s": 1, "m": 60, "h": 3600, "d": 86400, "y": 365 * 86400}

    def value(text: str) -> int:
        total, digits = 0, ""
        for character in text:
            if character in units:
                total, digits = total + int(digits) * units[character], ""
            else:
                digits += character
        return total

    younger, older = sorted((one, other))
    assert value(human_duration(younger)) <= value(human_duration(older))


def test_an_object_without_a_creation_time_has_an_unknown_age() -> None:
    assert row("", "v1", "configmaps", metadata={"creationTimestamp": None})["Age"] == "<unknown>"


# --- columns --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("resource", RESOURCES.values(), ids=lambda r: f"{r.api_version}/{r.plural}")
def test_an_object_that_says_nothing_has_a_cell_for_every_column(resource: Resource) -> None:
    # A bookmark of a watch is such an object.
    columns, cells = tables.columns(resource), tables.cells(resource, {"metadata": {}}, NOW)
    surplus = 1 if resource.plural == "ipaddresses" else 0  # as the real server has it
    assert len(cells) == len(columns) + surplus
    assert all(set(c) == {"name", "type", "format", "description", "priority"} for c in columns)
    assert [c["format"] for c in columns if c["name"] == "Name"] in (["name"], [])


@pytest.mark.parametrize(
    ("group", "plural"),
    [
        ("", "limitranges"),
        ("rbac.authorization.k8s.io", "roles"),
        ("rbac.authorization.k8s.io", "clusterroles"),
        ("storage.k8s.io", "csistoragecapacities"),
        ("apiextensions.k8s.io", "customresourcedefinitions"),
    ],
)
def test_a_kind_without_a_printer_shows_when_it_was_created(group: str, plural: str) -> None:
    assert row(group, "v1", plural) == {"Name": "x", "Created At": ago(minutes=5)}


# --- pods -----------------------------------------------------------------------------------------------


def container(
    name: str, *, restarts: int = 0, ended: str = "", ready: bool = False, **state: Object
) -> Object:
    last = {"terminated": {"exitCode": 1, "finishedAt": ended}} if ended else {}
    return {"name": name, "ready": ready, "restartCount": restarts, "state": state, "lastState": last}


RUNNING: Object = {"startedAt": "2026-01-01T00:00:00Z"}
DONE: Object = {"exitCode": 0, "reason": "Completed"}
READY = [{"type": "Ready", "status": "True"}]


@pytest.mark.parametrize(
    ("status", "shown", "ready"),
    [
        ({"phase": "Pending"}, "Pending", "0/2"),
        ({"phase": "Failed", "reason": "Evicted"}, "Evicted", "0/2"),
        (
            {"phase": "Pending", "conditions": [{"type": "PodScheduled", "reason": "SchedulingGated"}]},
            "SchedulingGated",
            "0/2",
        ),
        (
            {"phase": "Running", "containerStatuses": [container("a", ready=True, running=RUNNING)] * 2},
            "Running",
            "2/2",
        ),
        (
            {
                "phase": "Running",
                "containerStatuses": [
                    container("a", waiting={"reason": "CrashLoopBackOff"}),
                    container("b", waiting={"reason": "ErrImagePull"}),
                ],
            },
            "CrashLoopBackOff",
            "0/2",
        ),
        (
            {
                "phase": "Running",
                "conditions": READY,
                "containerStatuses": [
                    container("a", terminated=DONE),
                    container("b", ready=True, running=RUNNING),
                ],
            },
            "Running",
            "1/2",
        ),
        (
            {
                "phase": "Running",
                "containerStatuses": [
                    container("a", terminated=DONE),
                    container("b", ready=True, running=RUNNING),
                ],
            },
            "NotReady",
            "1/2",
        ),
        (
            {
                "phase": "Failed",
                "containerStatuses": [
                    container("a", terminated=DONE),
                    container("b", terminated={"exitCode": 137, "signal": 9}),
                ],
            },
            "Signal:9",
            "0/2",
        ),
        (
            {"phase": "Failed", "containerStatuses": [container("a", terminated={"exitCode": 2})]},
            "ExitCode:2",
            "0/2",
        ),
    ],
)
def test_the_status_of_a_pod_tells_what_keeps_it_from_running(status: Object, shown: str, ready: str) -> None:
    cells = row("", "v1", "pods", spec={"containers": [{"name": "a"}, {"name": "b"}]}, status=status)
    assert (cells["Status"], cells["Ready"]) == (shown, ready)


@pytest.mark.parametrize(
    ("first", "shown"),
    [
        ({"running": RUNNING}, "Init:0/2"),
        ({"waiting": {"reason": "PodInitializing"}}, "Init:0/2"),
        ({"waiting": {"reason": "ErrImagePull"}}, "Init:ErrImagePull"),
        ({"terminated": {"exitCode": 1, "reason": "Error"}}, "Init:Error"),
        ({"terminated": {"exitCode": 1}}, "Init:ExitCode:1"),
        ({"terminated": {"exitCode": 1, "signal": 6}}, "Init:Signal:6"),
        ({"terminated": DONE}, "Init:1/2"),
    ],
)
def test_a_pod_that_initializes_shows_the_init_container_it_waits_for(first: Object, shown: str) -> None:
    statuses = [container("i", **first), container("j", waiting={})]
    spec = {"initContainers": [{"name": "i"}, {"name": "j"}], "containers": [{"name": "a"}]}
    cells = row("", "v1", "pods", spec=spec, status={"phase": "Pending", "initContainerStatuses": statuses})
    assert (cells["Status"], cells["Ready"]) == (shown, "0/1")


def test_sidecars_count_as_containers_and_other_init_containers_are_forgotten_once_done() -> None:
    spec = {
        "initContainers": [{"name": "sidecar", "restartPolicy": "Always"}, {"name": "setup"}],
        "containers": [{"name": "a"}],
    }
    sidecar = container("sidecar", restarts=2, ended=ago(hours=5), ready=True, running=RUNNING)
    status = {
        "phase": "Running",
        "initContainerStatuses": [
            sidecar | {"started": True},
            container("setup", restarts=9, terminated=DONE),
        ],
        "containerStatuses": [container("a", restarts=1, ended=ago(hours=6), ready=True, running=RUNNING)],
    }
    cells = row("", "v1", "pods", spec=spec, status=status)
    assert (cells["Ready"], cells["Status"], cells["Restarts"]) == ("2/2", "Running", "3 (5h ago)")


@pytest.mark.parametrize(
    ("status", "shown"),
    [
        ({"phase": "Running"}, "Terminating"),
        ({"phase": "Running", "reason": "NodeLost"}, "Unknown"),
        ({"phase": "Succeeded"}, "Succeeded"),
    ],
)
def test_a_pod_that_is_deleted_shows_so_unless_it_is_over(status: Object, shown: str) -> None:
    cells = row("", "v1", "pods", metadata={"deletionTimestamp": ago(seconds=3)}, status=status)
    assert cells["Status"] == shown


def test_a_pod_that_is_over_is_marked_as_completed() -> None:
    (condition,) = tables.row_conditions(PODS, made(PODS, status={"phase": "Failed"}))
    assert (condition["type"], condition["status"], condition["reason"]) == ("Completed", "True", "Failed")
    assert tables.row_conditions(PODS, made(PODS, status={"phase": "Running"})) == []


def test_wide_output_of_a_pod_tells_where_it_is() -> None:
    spec = {"nodeName": "n1", "readinessGates": [{"conditionType": "a"}, {"conditionType": "b"}]}
    status = {"podIPs": [{"ip": "10.0.0.1"}], "conditions": [{"type": "a", "status": "True"}]}
    cells = row("", "v1", "pods", spec=spec, status=status)
    wide = {c["name"] for c in tables.columns(PODS) if c["priority"] == 1}
    assert {name: cells[name] for name in wide} == {
        "IP": "10.0.0.1",
        "Node": "n1",
        "Nominated Node": "<none>",
        "Readiness Gates": "1/2",
    }


# --- other kinds ----------------------------------------------------------------------------------------

TEMPLATE = {"spec": {"containers": [{"name": "a", "image": "x:1"}, {"name": "b", "image": "y:2"}]}}


@pytest.mark.parametrize(
    ("kind", "fields", "shown"),
    [
        (
            ("apps", "v1", "deployments"),
            {
                "spec": {
                    "replicas": 3,
                    "selector": {"matchLabels": {"b": "1", "a": "2"}},
                    "template": TEMPLATE,
                },
                "status": {"readyReplicas": 2, "updatedReplicas": 1, "availableReplicas": 2},
            },
            {"Ready": "2/3", "Up-to-date": 1, "Available": 2, "Images": "x:1,y:2", "Selector": "a=2,b=1"},
        ),
        (
            ("apps", "v1", "replicasets"),
            {"spec": {"selector": {"matchExpressions": [{"key": "a", "operator": "In", "values": ["z"]}]}}},
            {"Desired": 0, "Selector": "a in (z)"},
        ),
        (
            ("batch", "v1", "jobs"),
            {"spec": {"completions": 2}, "status": {"startTime": ago(hours=2), "succeeded": 1}},
            {"Status": "Running", "Completions": "1/2", "Duration": "120m"},
        ),
        (
            ("batch", "v1", "cronjobs"),
            {"spec": {"schedule": "@daily", "suspend": False}, "status": {"active": [{}]}},
            {"Suspend": "False", "Timezone": "<none>", "Active": 1, "Last Schedule": "<none>"},
        ),
        (
            ("", "v1", "services"),
            {
                "spec": {
                    "type": "LoadBalancer",
                    "clusterIPs": ["10.0.0.1"],
                    "ports": [{"port": 80, "nodePort": 30080, "protocol": "TCP"}],
                },
                "status": {"loadBalancer": {"ingress": [{"ip": "192.0.2.9"}, {"hostname": "a.example.com"}]}},
            },
            {"Cluster-IP": "10.0.0.1", "External-IP": "192.0.2.9,a.example.com", "Port(s)": "80:30080/TCP"},
        ),
        (
            ("", "v1", "services"),
            {"spec": {"type": "LoadBalancer"}},
            {"External-IP": "<pending>", "Port(s)": "<none>"},
        ),
        (
            ("", "v1", "nodes"),
            {
                "metadata": {
                    "labels": {"node-role.kubernetes.io/worker": "", "node-role.kubernetes.io/gpu": ""}
                },
                "spec": {"unschedulable": True},
                "status": {"conditions": READY},
            },
            {"Status": "Ready,SchedulingDisabled", "Roles": "gpu,worker", "Internal-IP": "<none>"},
        ),
        (
            ("", "v1", "persistentvolumeclaims"),
            {
                "spec": {"volumeName": "v"},
                "status": {
                    "phase": "Bound",
                    "capacity": {"storage": "5Gi"},
                    "accessModes": ["ReadWriteMany", "ReadWriteOnce"],
                },
            },
            {
                "Status": "Bound",
                "Volume": "v",
                "Capacity": "5Gi",
                "Access Modes": "RWO,RWX",
                "VolumeMode": "<unset>",
            },
        ),
        (
            ("", "v1", "events"),
            {
                "involvedObject": {"kind": "Pod", "name": "p"},
                "eventTime": "2026-01-31T11:58:00.250000Z",
                "message": " m\n",
            },
            {"Last Seen": "2m", "Object": "pod/p", "Message": "m", "Count": 1, "Source": ""},
        ),
        (
            ("events.k8s.io", "v1", "events"),
            {
                "regarding": {"kind": "Pod", "name": "p"},
                "note": "n",
                "series": {"count": 4, "lastObservedTime": ago(seconds=9)},
            },
            {"Last Seen": "9s", "Object": "pod/p", "Message": "n", "Count": 4},
        ),
        (
            ("autoscaling", "v2", "horizontalpodautoscalers"),
            {
                "spec": {
                    "metrics": [
                        {
                            "type": "Resource",
                            "resource": {"name": "cpu", "target": {"averageUtilization": 80}},
                        }
                    ]
                    * 3
                }
            },
            {"Targets": "cpu: <unknown>/80%, cpu: <unknown>/80% + 1 more..."},
        ),
        (
            ("discovery.k8s.io", "v1", "endpointslices"),
            {"ports": [{"port": 80}], "endpoints": [{"addresses": [f"10.0.0.{n}"]} for n in range(5)]},
            {"Ports": "80", "Endpoints": "10.0.0.0,10.0.0.1,10.0.0.2 + 2 more..."},
        ),
        (
            ("apiregistration.k8s.io", "v1", "apiservices"),
            {
                "spec": {"service": {"namespace": "n", "name": "s"}},
                "status": {"conditions": [{"type": "Available", "status": "False", "reason": "Gone"}]},
            },
            {"Service": "n/s", "Available": "False (Gone)"},
        ),
    ],
)
def test_a_row_sums_up_its_object(kind: tuple[str, str, str], fields: Object, shown: Object) -> None:
    cells = row(*kind, **fields)
    assert {name: cells[name] for name in shown} == shown


# --- custom resources -----------------------------------------------------------------------------------


def custom(*columns: Object) -> Resource:
    version: Object = {
        "name": "v1",
        "served": True,
        "storage": True,
        "additionalPrinterColumns": list(columns),
    }
    names = {"plural": "stacks", "kind": "Stack"}
    spec = {"group": "example.com", "scope": "Cluster", "names": names, "versions": [version]}
    (resource,) = customresources.resources({"metadata": {}, "spec": spec}, changed_at=1)
    return resource


STACK: Object = {
    "metadata": {"name": "s", "creationTimestamp": ago(days=3)},
    "spec": {
        "replicas": 3,
        "ratio": 2.5,
        "on": True,
        "due": ago(hours=-1),
        "nothing": None,
        "list": ["<a>", 1],
    },
    "status": {"conditions": [{"type": "Ready", "status": "False", "since": ago(minutes=20)}]},
}


@pytest.mark.parametrize(
    ("type_", "path", "cell"),
    [
        ("string", '.status.conditions[?(@.type=="Ready")].status', "False"),
        ("date", '.status.conditions[?(@.type=="Ready")].since', "20m"),
        ("string", ".spec.replicas", "3"),
        ("string", ".spec.ratio", "2.5"),
        ("string", ".spec.on", "true"),
        ("string", ".spec.nothing", "<no value>"),
        ("string", ".spec.list", r'["\u003ca\u003e",1]'),
        ("string", ".spec.missing", None),
        ("string", ".spec.list[9]", None),
        ("integer", ".spec.replicas", 3),
        ("integer", ".spec.ratio", 2),
        ("integer", ".spec.on", None),
        ("integer", ".metadata.name", None),
        ("number", ".spec.ratio", 2.5),
        ("boolean", ".spec.on", True),
        ("boolean", ".spec.replicas", None),
        ("date", ".metadata.creationTimestamp", "3d"),
        ("date", ".spec.due", "<invalid>"),
        ("date", ".metadata.name", "<invalid>"),
        ("date", ".spec.replicas", None),
    ],
)
def test_a_declared_column_shows_what_its_path_finds_if_the_type_fits(
    type_: str, path: str, cell: Any
) -> None:
    resource = custom({"name": "C", "type": type_, "jsonPath": path})
    assert tables.cells(resource, STACK, NOW) == ["s", cell]


def test_columns_are_those_of_the_definition_after_the_name() -> None:
    resource = custom(
        {
            "name": "Ready",
            "type": "string",
            "jsonPath": ".status.ready",
            "description": "Is it?",
            "priority": 1,
        },
        {"name": "Size", "type": "integer", "jsonPath": ".spec.size", "format": "int32"},
    )
    name, ready, size = tables.columns(resource)
    assert (name["name"], name["format"]) == ("Name", "name")
    assert ready == {"name": "Ready", "type": "string", "format": "", "description": "Is it?", "priority": 1}
    assert size["format"] == "int32"
    assert size["description"] == "Custom resource definition column (in JSONPath format): .spec.size"


def test_a_definition_without_columns_shows_the_age() -> None:
    assert [c["name"] for c in tables.columns(custom())] == ["Name", "Age"]
    assert tables.cells(custom(), STACK, NOW) == ["s", "3d"]


def test_a_column_that_cannot_be_read_ends_the_table() -> None:
    columns = [{"name": p, "type": "string", "jsonPath": p} for p in (".spec.on", ".spec[x]", ".spec.ratio")]
    assert [c["name"] for c in tables.columns(custom(*columns))] == ["Name", ".spec.on"]
    assert tables.cells(custom(*columns), STACK, NOW) == ["s", "true"]


# --- on a server ----------------------------------------------------------------------------------------


def test_a_server_answers_tables(plain: Plain, namespace: str) -> None:
    path = f"/api/v1/namespaces/{namespace}/configmaps"
    body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c"}, "data": {"a": "1", "b": "2"}}
    assert plain.request("POST", path, body).status == 201
    headers = {"Accept": "application/json;as=Table;v=v1;g=meta.k8s.io,application/json"}
    table = plain.request("GET", f"{path}/c", headers=headers).json()
    assert [column["name"] for column in table["columnDefinitions"]] == ["Name", "Data", "Age"]
    (only,) = table["rows"]
    assert only["cells"][:2] == ["c", 2]
    assert only["object"]["kind"] == "PartialObjectMetadata"
