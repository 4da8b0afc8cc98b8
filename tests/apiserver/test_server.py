from __future__ import annotations

import asyncio
import socket
import time
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest
from multidict import CIMultiDict, MultiDict

from podium.apiserver.endpoints import Answer
from podium.apiserver.gateway import Incoming
from podium.apiserver.server import Server, Settings
from podium.apiserver.store import Change, decode, encode

Object = dict[str, Any]


@pytest.fixture
async def server(tmp_path: Path) -> AsyncIterator[Server]:
    async with Server(Settings(tmp_path)) as server:
        yield server


async def ask(
    server: Server,
    method: str,
    target: str,
    body: Object | bytes | None = None,
    *,
    slowly: asyncio.Event | None = None,
) -> Answer:
    """One request as administrator, through everything but the sockets; `slowly`: the body waits for it."""
    path, _, query = target.partition("?")

    async def read_body() -> bytes:
        if slowly is not None:
            await slowly.wait()
        return body if isinstance(body, bytes) else encode(body) if body is not None else b""

    headers = CIMultiDict({"Authorization": f"Bearer {server.admin_token}"})
    pairs = MultiDict(part.partition("=")[::2] for part in query.split("&") if part)
    answer = await server.gateway.answer(Incoming(method, path, pairs, headers, read_body))
    assert isinstance(answer, Answer)
    return answer


async def until(probe: Any) -> None:
    async with asyncio.timeout(10):
        while not await probe():  # noqa: ASYNC110 - what is waited for happens in the server
            await asyncio.sleep(0.01)


DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"


def definition(plural: str, group: str, scope: str = "Namespaced") -> Object:
    schema = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{plural}.{group}"},
        "spec": {
            "group": group,
            "scope": scope,
            "names": {"plural": plural, "kind": plural.capitalize()},
            "versions": [
                {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}
            ],
        },
    }


async def define(server: Server, made: Object) -> str:
    """Create a definition; answers where its objects are once it is served."""
    answer = await ask(server, "POST", DEFINITIONS, made)
    assert answer.code == 201, answer.body
    spec = made["spec"]
    path = f"/apis/{spec['group']}/v1/{spec['names']['plural']}"

    async def served() -> bool:
        return (await ask(server, "GET", path)).code == 200

    await until(served)
    return path


async def test_a_start_that_fails_leaves_the_data_to_the_next(tmp_path: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        with pytest.raises(OSError, match="in use"):
            async with Server(Settings(tmp_path, port=taken.getsockname()[1])):
                pass
    async with Server(Settings(tmp_path)) as server:
        assert (await ask(server, "GET", "/api/v1/namespaces/default")).code == 200


async def test_an_object_whose_definition_goes_while_its_body_is_on_its_way_is_not_stored(
    server: Server,
) -> None:
    path = await define(server, definition("ghosts", "example.com"))
    arrives = asyncio.Event()
    ghost = {"apiVersion": "example.com/v1", "kind": "Ghosts", "metadata": {"name": "g"}}
    where = path.replace("/v1/", "/v1/namespaces/default/")
    late = asyncio.create_task(ask(server, "POST", where, ghost, slowly=arrives))
    await asyncio.sleep(0)
    await ask(server, "DELETE", f"{DEFINITIONS}/ghosts.example.com")

    async def gone() -> bool:
        return (await ask(server, "GET", f"{DEFINITIONS}/ghosts.example.com")).code == 404

    await until(gone)
    arrives.set()
    assert (await late).code == 404
    assert "example.com/ghosts" not in server.store.tables
    await define(server, definition("ghosts", "example.com"))
    assert decode((await ask(server, "GET", path)).body)["items"] == []


async def test_a_definition_cannot_take_the_place_of_a_built_in_kind(server: Server) -> None:
    made = definition("clusterroles", "rbac.authorization.k8s.io", "Cluster")
    made["metadata"]["annotations"] = {"api-approved.kubernetes.io": "unapproved, for a test"}
    assert (await ask(server, "POST", DEFINITIONS, made)).code == 201
    name = f"{DEFINITIONS}/{made['metadata']['name']}"

    async def established() -> bool:
        return b'"Established"' in (await ask(server, "GET", name)).body

    async def gone() -> bool:
        return (await ask(server, "GET", name)).code == 404

    await until(established)
    role = "/apis/rbac.authorization.k8s.io/v1/clusterroles/cluster-admin"
    assert decode((await ask(server, "GET", role)).body)["kind"] == "ClusterRole"
    await ask(server, "DELETE", name)
    await until(gone)
    assert decode((await ask(server, "GET", role)).body)["kind"] == "ClusterRole"


async def test_what_only_looks_like_a_deletion_does_not_hold_up_a_namespace(server: Server) -> None:
    namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "odd"}}
    assert (await ask(server, "POST", "/api/v1/namespaces", namespace)).code == 201
    odd = {"metadata": {"name": "odd"}, "data": {"deletionTimestamp": "never"}}
    assert (await ask(server, "POST", "/api/v1/namespaces/odd/configmaps", odd)).code == 201
    await ask(server, "DELETE", "/api/v1/namespaces/odd")

    async def gone() -> bool:
        return (await ask(server, "GET", "/api/v1/namespaces/odd")).code == 404

    await until(gone)


@pytest.mark.parametrize(
    ("method", "target", "code"),
    [
        ("GET", f"/api/v1/pods?resourceVersion={'9' * 5000}", 400),
        ("GET", f"/api/v1/namespaces/default?resourceVersion={'9' * 5000}", 500),
        ("GET", f"/api/v1/pods?resourceVersionMatch=Exact&resourceVersion={'9' * 30}", 400),
        ("GET", f"/api/v1/pods?limit={'9' * 5000}", 400),
        ("DELETE", "/api/v1/namespaces/default/pods/p?gracePeriodSeconds=--5", 400),
        ("DELETE", "/api/v1/namespaces/default/pods/p?gracePeriodSeconds=\u00b2", 400),
    ],
)
async def test_a_number_that_is_none_is_refused_and_no_bug(
    server: Server, caplog: pytest.LogCaptureFixture, method: str, target: str, code: int
) -> None:
    assert (await ask(server, method, target)).code == code
    assert caplog.records == []


def config_map(name: str, **metadata: Any) -> Object:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, **metadata}}


CONFIG_MAPS, PODS = "/api/v1/namespaces/default/configmaps", "/api/v1/namespaces/default/pods"


async def test_what_is_let_go_of_while_its_owner_dies_is_not_collected(server: Server) -> None:
    owner = decode((await ask(server, "POST", CONFIG_MAPS, config_map("owner"))).body)
    reference = {"apiVersion": "v1", "kind": "ConfigMap", "name": "owner", "uid": owner["metadata"]["uid"]}
    await ask(server, "POST", CONFIG_MAPS, config_map("owned", ownerReferences=[reference]))
    freed: list[asyncio.Future[None]] = []

    def free(change: Change) -> None:
        if change.key == "default/owner" and change.new is None:
            owned = change.table.objects["default/owned"].object
            del owned["metadata"]["ownerReferences"]
            freed.append(server.store.put(change.table, "default/owned", owned)[1])

    server.store.observe(free)
    assert (await ask(server, "DELETE", f"{CONFIG_MAPS}/owner")).code == 200
    await freed[0]
    await asyncio.sleep(0.3)  # the collector looks again within this time
    assert (await ask(server, "GET", f"{CONFIG_MAPS}/owned")).code == 200


async def test_a_pod_of_the_same_name_is_not_evicted_in_the_place_of_one_that_went(server: Server) -> None:
    async def furnished() -> bool:
        return (await ask(server, "GET", "/api/v1/namespaces/default/serviceaccounts/default")).code == 200

    await until(furnished)
    spec = {"nodeName": "n", "containers": [{"name": "c", "image": "i"}]}
    pod = {"metadata": {"name": "p", "labels": {"a": "b"}}, "spec": spec}
    assert (await ask(server, "POST", PODS, pod)).code == 201
    assert (await ask(server, "PUT", f"{PODS}/p/status", pod | {"status": {"phase": "Running"}})).code == 200
    budgets = "/apis/policy/v1/namespaces/default/poddisruptionbudgets"
    budget = {"metadata": {"name": "b"}, "spec": {"selector": {"matchLabels": {"a": "b"}}}}
    created = decode((await ask(server, "POST", budgets, budget)).body)
    allowed = created | {"status": {"disruptionsAllowed": 1, "observedGeneration": 1}}
    assert (await ask(server, "PUT", f"{budgets}/b/status", allowed)).code == 200
    made: list[asyncio.Future[None]] = []

    def replace(change: Change) -> None:
        if change.table.name == "policy/poddisruptionbudgets" and not made:
            pods = server.store.table("/pods")
            other = pods.objects["default/p"].object
            other["metadata"]["uid"] = "another"
            made.append(server.store.put(pods, "default/p", other)[1])

    server.store.observe(replace)
    eviction = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": "p"}}
    assert (await ask(server, "POST", f"{PODS}/p/eviction", eviction)).code == 404
    await made[0]
    found = decode((await ask(server, "GET", f"{PODS}/p")).body)["metadata"]
    assert (found["uid"], "deletionTimestamp" in found) == ("another", False)


def many_duplicate_keys() -> bytes:
    pairs = b",".join(b'"a%d":"b","a%d":"c"' % (number, number) for number in range(60_000))
    return b'{"metadata":{"name":"one"},"data":{%s}}' % pairs


def many_owners() -> bytes:
    owner = {"apiVersion": "v1", "kind": "X", "name": "x"}
    owners = [{**owner, "uid": str(number // 2)} for number in range(30_000)]
    return encode(config_map("one", ownerReferences=owners))


def many_managers() -> bytes:
    head = {"operation": "Update", "apiVersion": "v1", "fieldsType": "FieldsV1"}
    entries = [
        head | {"manager": f"m{number}", "fieldsV1": {"f:data": {f"f:k{number}": {}}}}
        for number in range(15_000)
    ]
    return encode(config_map("one", managedFields=entries))


@pytest.mark.parametrize("body", [many_duplicate_keys, many_owners, many_managers])
async def test_a_body_takes_time_in_proportion_to_its_size(server: Server, body: Callable[[], bytes]) -> None:
    content = body()
    began = time.process_time()
    await ask(server, "POST", CONFIG_MAPS, content)
    assert time.process_time() - began < 8  # quadratic work takes three times as long


async def test_what_was_acknowledged_while_the_server_stopped_is_there_afterwards(tmp_path: Path) -> None:
    acknowledged: set[str] = set()

    async def write(server: Server, writer: int) -> None:
        for number in range(100):
            name = f"{writer}-{number}"
            answer = await ask(server, "POST", CONFIG_MAPS, config_map(name))
            if answer.code != 201:
                assert b"the database is closed" in answer.body
                return
            acknowledged.add(name)

    async with Server(Settings(tmp_path)) as server:
        writers = [asyncio.create_task(write(server, writer)) for writer in range(8)]
        while len(acknowledged) < 20:  # noqa: ASYNC110 - in the midst of it
            await asyncio.sleep(0)
    async with asyncio.timeout(10):
        await asyncio.gather(*writers)
    async with Server(Settings(tmp_path)) as server:
        found = {stored.name for stored in server.store.table("/configmaps").scan("default/")}
    assert acknowledged <= found
