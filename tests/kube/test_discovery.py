from __future__ import annotations

import asyncio
from typing import Any

import msgspec
import pytest

from kube.stub import CONFIG_MAP, CORE, DEPLOYMENT, GROUPS, StillClock, aggregated, group, resource
from podium.api.kinds import GVK
from podium.kube import errors
from podium.kube.discovery import Discovery

FOO = GVK("example.com", "v1", "Foo")


class Documents:
    """Answers discovery requests from a table, and counts them."""

    def __init__(self, documents: dict[str, Any]) -> None:
        self.documents = documents
        self.asked: list[tuple[str, str]] = []
        self.began = asyncio.Event()
        self.gate: asyncio.Event | None = None

    async def __call__(self, path: str, accept: str) -> bytes:
        self.asked.append((path, accept))
        self.began.set()
        # Decided before waiting: the answer is as old as the question.
        found = self.documents.get(path)
        if self.gate is not None:
            await self.gate.wait()
        if isinstance(found, Exception):
            raise found
        if found is None:
            raise errors.from_answer(404, b"404 page not found\n", what=f"GET {path}")
        return found if isinstance(found, bytes) else msgspec.json.encode(found)


@pytest.fixture
def documents() -> Documents:
    return Documents({"/api": CORE, "/apis": GROUPS})


@pytest.fixture
def discovery(documents: Documents, clock: StillClock) -> Discovery:
    return Discovery(documents, clock)


def with_foo() -> dict[str, Any]:
    return aggregated(*GROUPS["items"], group("example.com", ("v1", [resource("foos", "Foo")])))


PLAIN: dict[str, Any] = {
    "/api": {"kind": "APIVersions", "versions": ["v1"]},
    "/apis": {
        "kind": "APIGroupList",
        "groups": [
            {
                "name": "apps",
                "versions": [{"groupVersion": "apps/v1beta1"}, {"groupVersion": "apps/v1"}],
                "preferredVersion": {"groupVersion": "apps/v1"},
            },
            {"name": "down.example.com", "versions": [{"groupVersion": "down.example.com/v1"}]},
        ],
    },
    "/api/v1": {
        "resources": [
            {
                "name": "configmaps",
                "kind": "ConfigMap",
                "namespaced": True,
                "singularName": "",
                "verbs": ["get"],
            },
        ]
    },
    "/apis/apps/v1": {
        "resources": [
            {"name": "deployments/scale", "kind": "Scale", "namespaced": True},
            {"name": "deployments", "kind": "Deployment", "namespaced": True, "shortNames": ["deploy"]},
            {"name": "deployments/status", "kind": "Deployment", "namespaced": True},
        ]
    },
    "/apis/apps/v1beta1": {"resources": [{"name": "deployments", "kind": "Deployment", "namespaced": True}]},
    "/apis/down.example.com/v1": errors.from_answer(503, b"no endpoints", what="GET"),
}


async def test_aggregated_discovery_takes_two_requests_for_everything(
    discovery: Discovery, documents: Documents
) -> None:
    found = await discovery.resource(DEPLOYMENT)
    assert found.path("team", "web", "status") == "/apis/apps/v1/namespaces/team/deployments/web/status"
    assert found.subresources == ("scale", "status")
    assert (await discovery.resource(CONFIG_MAP)).path() == "/api/v1/configmaps"
    assert [path for path, _ in documents.asked] == ["/api", "/apis"]
    assert (
        "v=v2;as=APIGroupDiscoveryList,application/json;g=apidiscovery.k8s.io;v=v2beta1"
        in documents.asked[0][1]
    )


async def test_a_server_without_the_aggregated_form_is_asked_group_by_group(clock: StillClock) -> None:
    discovery = Discovery(Documents(PLAIN), clock)
    found = await discovery.find("deploy")
    assert (found.version, found.subresources) == ("v1", ("scale", "status"))
    assert (await discovery.find("configmap")).kind == "ConfigMap"
    assert [r.version for r in await discovery.resources() if r.kind == "Deployment"] == ["v1", "v1beta1"]


async def test_a_group_whose_server_is_down_does_not_hide_the_others(clock: StillClock) -> None:
    discovery = Discovery(Documents(PLAIN), clock)
    assert await discovery.resource(DEPLOYMENT)
    assert list(await discovery.failures()) == ["down.example.com/v1"]
    with pytest.raises(
        errors.NoMatch, match=r"could not say what it serves in down\.example\.com/v1: .*no endpoints"
    ):
        await discovery.resource(GVK("down.example.com", "v1", "Thing"))


async def test_a_stale_group_is_a_failure_and_not_an_empty_one(clock: StillClock) -> None:
    stale = {"metadata": {"name": "metrics.k8s.io"}, "versions": [{"version": "v1", "freshness": "Stale"}]}
    discovery = Discovery(Documents({"/api": CORE, "/apis": aggregated(stale)}), clock)
    assert await discovery.resource(CONFIG_MAP)
    assert list(await discovery.failures()) == ["metrics.k8s.io/v1"]


async def test_a_kind_that_is_not_known_is_looked_up_once_more(
    discovery: Discovery, documents: Documents
) -> None:
    await discovery.resource(CONFIG_MAP)
    documents.documents["/apis"] = with_foo()
    assert (await discovery.resource(FOO)).plural == "foos"
    assert len(documents.asked) == 4
    with pytest.raises(errors.NoMatch, match="serves no kind Bar in v1"):
        await discovery.resource(GVK("", "v1", "Bar"))
    assert len(documents.asked) == 6


async def test_a_first_look_up_that_finds_nothing_does_not_ask_twice(
    discovery: Discovery, documents: Documents
) -> None:
    with pytest.raises(errors.NoMatch):
        await discovery.resource(FOO)
    assert len(documents.asked) == 2


async def test_what_is_known_is_forgotten_after_a_while(
    discovery: Discovery, documents: Documents, clock: StillClock
) -> None:
    await discovery.resources()
    clock.now += 299
    await discovery.resources()
    assert len(documents.asked) == 2
    clock.now += 2
    await discovery.resources()
    assert len(documents.asked) == 4


async def test_look_ups_at_the_same_time_share_one_round(discovery: Discovery, documents: Documents) -> None:
    documents.gate = asyncio.Event()
    waiting = [asyncio.create_task(discovery.resource(CONFIG_MAP)) for _ in range(10)]
    await asyncio.sleep(0)
    waiting[0].cancel()
    await asyncio.sleep(0)
    documents.gate.set()
    results = await asyncio.gather(*waiting, return_exceptions=True)
    assert isinstance(results[0], asyncio.CancelledError)
    assert {result.plural for result in results[1:] if not isinstance(result, BaseException)} == {
        "configmaps"
    }
    assert len(documents.asked) == 2


async def test_a_round_that_was_overtaken_by_invalidate_is_not_kept(
    discovery: Discovery, documents: Documents
) -> None:
    documents.gate = asyncio.Event()
    early = asyncio.create_task(discovery.resources())
    await documents.began.wait()
    discovery.invalidate()
    documents.documents["/apis"] = with_foo()
    late = asyncio.create_task(discovery.resource(FOO))
    await asyncio.sleep(0)
    documents.gate.set()
    assert FOO not in [found.gvk for found in await early]
    assert (await late).gvk == FOO
    assert (await discovery.resource(FOO)).gvk == FOO
    assert len(documents.asked) == 4


async def test_closing_gives_up_a_round_under_way(discovery: Discovery, documents: Documents) -> None:
    documents.gate = asyncio.Event()
    waiting = asyncio.create_task(discovery.resources())
    await documents.began.wait()
    await discovery.close()
    with pytest.raises(asyncio.CancelledError):
        await waiting


async def test_a_failed_round_is_not_remembered(discovery: Discovery, documents: Documents) -> None:
    documents.documents["/apis"] = errors.ConnectionFailed("refused", sent=False)
    with pytest.raises(errors.ConnectionFailed):
        await discovery.resources()
    documents.documents["/apis"] = GROUPS
    assert await discovery.resource(DEPLOYMENT)


@pytest.mark.parametrize(
    "body", [b"<html>", b"[]", b'{"items": 7}', b'{"kind": "APIGroupDiscoveryList", "items": [1]}']
)
async def test_a_server_that_is_none_is_said_to_be_so(clock: StillClock, body: bytes) -> None:
    discovery = Discovery(Documents({"/api": body, "/apis": GROUPS}), clock)
    with pytest.raises(errors.ProtocolError, match="GET /api: the answer is not a discovery document"):
        await discovery.resources()


CLUSTER = {
    "/api": aggregated(
        group("", ("v1", [resource("pods", "Pod", short="po"), resource("events", "Event", short="ev")]))
    ),
    "/apis": aggregated(
        group("apps", ("v1", [resource("deployments", "Deployment", short="deploy")])),
        group(
            "autoscaling",
            ("v2", [resource("horizontalpodautoscalers", "HorizontalPodAutoscaler", short="hpa")]),
            ("v1", [resource("horizontalpodautoscalers", "HorizontalPodAutoscaler", short="hpa")]),
        ),
        group("events.k8s.io", ("v1", [resource("events", "Event", short="ev")])),
        group("metrics.k8s.io", ("v1beta1", [resource("pods", "PodMetrics")])),
        group("cert-manager.io", ("v1", [resource("certificates", "Certificate", short="cert po")])),
        group("v1.example.com", ("v1", [resource("things", "Thing")])),
    ),
}


@pytest.mark.parametrize(
    ("argument", "expected"),
    [
        ("pods", "v1 Pod"),
        ("pod", "v1 Pod"),
        ("Pod", "v1 Pod"),
        ("po", "v1 Pod"),
        ("pods.v1", "v1 Pod"),
        ("pods.metrics.k8s.io", "metrics.k8s.io/v1beta1 PodMetrics"),
        ("podmetrics", "metrics.k8s.io/v1beta1 PodMetrics"),
        ("pods.v1beta1.metrics.k8s.io", "metrics.k8s.io/v1beta1 PodMetrics"),
        ("pods.metrics", "metrics.k8s.io/v1beta1 PodMetrics"),
        ("deploy", "apps/v1 Deployment"),
        ("deployments.apps", "apps/v1 Deployment"),
        ("deployments.v1.apps", "apps/v1 Deployment"),
        ("Deployment.v1.apps", "apps/v1 Deployment"),
        ("deploy.apps", "apps/v1 Deployment"),
        ("hpa", "autoscaling/v2 HorizontalPodAutoscaler"),
        ("hpa.v1.autoscaling", "autoscaling/v1 HorizontalPodAutoscaler"),
        ("events", "v1 Event"),
        ("events.events.k8s.io", "events.k8s.io/v1 Event"),
        ("certificates.cert-manager", "cert-manager.io/v1 Certificate"),
        ("things.v1.example.com", "v1.example.com/v1 Thing"),
    ],
)
async def test_a_resource_is_found_as_kubectl_finds_it(
    clock: StillClock, argument: str, expected: str
) -> None:
    assert str((await Discovery(Documents(CLUSTER), clock).find(argument)).gvk) == expected


@pytest.mark.parametrize(
    "argument", ["", "nonsense", "pods.apps", "deployments.v2.apps", "deployments.apps.", "hpa.v3"]
)
async def test_what_is_not_served_is_not_found(clock: StillClock, argument: str) -> None:
    with pytest.raises(errors.NoMatch) as caught:
        await Discovery(Documents(CLUSTER), clock).find(argument)
    assert str(caught.value) == f'the server doesn\'t have a resource type "{argument}"'
