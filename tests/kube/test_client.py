from __future__ import annotations

import asyncio
import gzip
import json
import ssl
import subprocess
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import aclosing
from typing import Any

import msgspec
import pytest
import trustme
from aiohttp import web
from yarl import URL

from kube.conftest import Connect, Serve
from kube.stub import (
    CONFIG_MAP,
    DEPLOYMENT,
    GROUPS,
    NAMESPACE,
    Handler,
    StillClock,
    StubServer,
    aggregated,
    always,
    answer,
    failure,
    group,
    in_turn,
    resource,
    streaming,
)
from podium.api.kinds import GVK
from podium.kube import PEM, Client, Config, PatchType, RequestDone, WatchEvent, errors
from podium.kube.faults import Answer, AnswerLost, CutAt, Fault, FaultyTransport, InPieces, Refused, script
from podium.kube.transport import AiohttpTransport

MAPS = "/api/v1/namespaces/default/configmaps"
MAP = f"{MAPS}/a"
OBJECT = {
    "apiVersion": "v1",
    "kind": "ConfigMap",
    "metadata": {"name": "a", "namespace": "default"},
    "data": {"k": "ä\u2028"},
    "fieldOfTomorrow": {"n": [1, 2.5, None, 12345678901234567890]},
}
FOO = GVK("example.com", "v1", "Foo")

Verb = Callable[[Client], Awaitable[Any]]


async def echo(request: web.Request) -> web.StreamResponse:
    return web.Response(body=await request.read() or b'{"kind":"Status"}', content_type="application/json")


# Verbs


@pytest.mark.parametrize(
    ("act", "request_line", "content_type", "body"),
    [
        (lambda c: c.get(CONFIG_MAP, "a", "team"), "GET /api/v1/namespaces/team/configmaps/a", None, None),
        (lambda c: c.get(CONFIG_MAP, "a"), f"GET {MAP}", None, None),
        (lambda c: c.get(CONFIG_MAP, "a", resource_version="0"), f"GET {MAP}?resourceVersion=0", None, None),
        (lambda c: c.get(NAMESPACE, "x", "ignored"), "GET /api/v1/namespaces/x", None, None),
        (lambda c: c.get(NAMESPACE, "system:é"), "GET /api/v1/namespaces/system:%C3%A9", None, None),
        (
            lambda c: c.get(DEPLOYMENT, "web", subresource="scale"),
            "GET /apis/apps/v1/namespaces/default/deployments/web/scale",
            None,
            None,
        ),
        (lambda c: c.create(OBJECT), f"POST {MAPS}?fieldManager=podium", "application/json", OBJECT),
        (
            lambda c: c.create(
                OBJECT, namespace="b", dry_run=True, field_manager="m", field_validation="Strict"
            ),
            "POST /api/v1/namespaces/b/configmaps?fieldManager=m&dryRun=All&fieldValidation=Strict",
            "application/json",
            OBJECT,
        ),
        (
            lambda c: c.create_subresource(
                GVK("", "v1", "ServiceAccount"), "a", "token", {"spec": {}}, "team"
            ),
            "POST /api/v1/namespaces/team/serviceaccounts/a/token",
            "application/json",
            {"spec": {}},
        ),
        (
            lambda c: c.update(OBJECT, subresource="status"),
            f"PUT {MAP}/status?fieldManager=podium",
            "application/json",
            OBJECT,
        ),
        (
            lambda c: c.patch(CONFIG_MAP, "a", {"data": None}),
            f"PATCH {MAP}?fieldManager=podium",
            "application/merge-patch+json",
            {"data": None},
        ),
        (
            lambda c: c.patch(CONFIG_MAP, "a", [{"op": "remove", "path": "/data"}], type=PatchType.JSON),
            f"PATCH {MAP}?fieldManager=podium",
            "application/json-patch+json",
            [{"op": "remove", "path": "/data"}],
        ),
        (
            lambda c: c.patch(CONFIG_MAP, "a", {}, "team", type=PatchType.STRATEGIC, dry_run=True),
            "PATCH /api/v1/namespaces/team/configmaps/a?fieldManager=podium&dryRun=All",
            "application/strategic-merge-patch+json",
            {},
        ),
        (
            lambda c: c.apply(OBJECT, field_manager="me", force=True),
            f"PATCH {MAP}?fieldManager=me&force=true",
            "application/apply-patch+yaml",
            OBJECT,
        ),
        (lambda c: c.delete(CONFIG_MAP, "a"), f"DELETE {MAP}", None, None),
        (
            lambda c: c.delete(
                CONFIG_MAP,
                "a",
                propagation="Foreground",
                grace_seconds=0,
                uid="u",
                resource_version="7",
                dry_run=True,
            ),
            f"DELETE {MAP}",
            "application/json",
            {
                "apiVersion": "v1",
                "kind": "DeleteOptions",
                "propagationPolicy": "Foreground",
                "gracePeriodSeconds": 0,
                "preconditions": {"uid": "u", "resourceVersion": "7"},
                "dryRun": ["All"],
            },
        ),
        (
            lambda c: c.delete_collection(
                CONFIG_MAP, "default", labels="a in (b,c)", fields="metadata.name!=x"
            ),
            f"DELETE {MAPS}?labelSelector=a%20in%20%28b%2Cc%29&fieldSelector=metadata.name%21%3Dx",
            None,
            None,
        ),
        (
            lambda c: c.request(
                "POST", "/some where/x", query={"a": "b&c"}, body=b"{}", content_type="text/plain"
            ),
            "POST /some%20where/x?a=b%26c",
            "text/plain",
            {},
        ),
    ],
)
async def test_a_verb_becomes_this_request(
    serve: Serve, connect: Connect, act: Verb, request_line: str, content_type: str | None, body: Any
) -> None:
    method, target = request_line.split(" ")
    server = await serve({f"{method} {URL(target, encoded=True).path}": always({"kind": "Status"})})
    await act(connect(server, user_agent="tester/1"))
    (seen,) = server.calls
    assert str(seen) == request_line
    assert seen.headers.get("Content-Type") == content_type
    assert seen.headers["User-Agent"] == "tester/1"
    assert (json.loads(seen.body) if seen.body else None) == body


async def test_fields_that_nobody_here_knows_survive_a_round_trip(serve: Serve, connect: Connect) -> None:
    server = await serve({f"GET {MAP}": always(OBJECT), f"PUT {MAP}": echo})
    client = connect(server)
    assert await client.update(await client.get(CONFIG_MAP, "a")) == OBJECT


@pytest.mark.parametrize("name", ["", ".", "..", "a/b", "a%2fb"])
async def test_a_name_that_would_lead_elsewhere_is_refused(serve: Serve, connect: Connect, name: str) -> None:
    server = await serve()
    with pytest.raises(ValueError, match="name"):
        await connect(server).delete(CONFIG_MAP, name)
    assert server.calls == []


async def test_an_object_without_a_kind_is_refused(serve: Serve, connect: Connect) -> None:
    with pytest.raises(ValueError, match="no apiVersion and kind"):
        await connect(await serve()).create({"metadata": {"name": "a"}})


async def test_deleted_objects_are_listed_if_the_server_says_which(serve: Serve, connect: Connect) -> None:
    listed = {
        "kind": "ConfigMapList",
        "metadata": {"resourceVersion": "9"},
        "items": [{"metadata": {"name": "a"}}],
    }
    server = await serve({f"DELETE {MAPS}": always(listed)})
    deleted = await connect(server).delete_collection(CONFIG_MAP, "default")
    assert deleted.items == [{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}}]


async def test_a_large_object_is_sent_whole(serve: Serve, connect: Connect) -> None:
    server = await serve({f"POST {MAPS}": echo})
    large = {**OBJECT, "data": {"k": "x" * (3 << 20)}}
    assert await connect(server).create(large) == large


async def test_the_base_path_of_a_server_is_kept(serve: Serve, connect: Connect) -> None:
    server = await serve(
        {
            "GET /k8s/c-1/api": always(aggregated(group("", ("v1", [resource("configmaps", "ConfigMap")])))),
            "GET /k8s/c-1/apis": always(GROUPS),
            f"GET /k8s/c-1{MAP}": always(OBJECT),
        }
    )
    assert await connect(Config(f"{server.url}/k8s/c-1/")).get(CONFIG_MAP, "a") == OBJECT


# Lists


def page(names: str, version: str = "5", token: str = "") -> web.Response:
    items = [{"metadata": {"name": name}} for name in names]
    return answer(
        {"kind": "ConfigMapList", "metadata": {"resourceVersion": version, "continue": token}, "items": items}
    )


async def test_a_list_is_fetched_in_pages(serve: Serve, connect: Connect) -> None:
    handler = in_turn(lambda: page("ab", token="t/1="), lambda: page("c", token="t2"), lambda: page(""))
    server = await serve({"GET /api/v1/configmaps": handler})
    found = await connect(server).list(CONFIG_MAP, limit=2, labels="x=y", resource_version="3")
    assert [item["metadata"]["name"] for item in found.items] == ["a", "b", "c"]
    assert {(item["apiVersion"], item["kind"]) for item in found.items} == {("v1", "ConfigMap")}
    assert found.resource_version == "5"
    base = "/api/v1/configmaps?labelSelector=x%3Dy"
    assert [seen.target for seen in server.calls] == [
        f"{base}&resourceVersion=3&limit=2",
        f"{base}&limit=2&continue=t%2F1%3D",
        f"{base}&limit=2&continue=t2",
    ]


async def test_a_list_that_expires_on_the_way_starts_again_in_one_piece(
    serve: Serve, connect: Connect
) -> None:
    handler = in_turn(
        lambda: page("ab", token="t"), lambda: failure(410, "Expired"), lambda: page("bcd", "9")
    )
    server = await serve({"GET /api/v1/configmaps": handler})
    found = await connect(server).list(CONFIG_MAP, limit=2)
    assert [item["metadata"]["name"] for item in found.items] == ["b", "c", "d"]
    assert found.resource_version == "9"
    assert server.calls[-1].target == "/api/v1/configmaps"


async def test_pages_give_the_items_as_the_server_wrote_them(serve: Serve, connect: Connect) -> None:
    body = b'{"metadata":{"resourceVersion":"7"},"items":[{"a": 1.50},  {"b":[ ]}]}'
    server = await serve({"GET /api/v1/configmaps": streaming(body)})
    pages = [page async for page in connect(server).pages(CONFIG_MAP, metadata_only=True)]
    assert [[bytes(item) for item in page.items] for page in pages] == [[b'{"a": 1.50}', b'{"b":[ ]}']]
    assert pages[0].resource_version == "7"
    accept = server.calls[0].headers["Accept"]
    assert accept == "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1,application/json"


async def test_pages_that_expire_say_so(serve: Serve, connect: Connect) -> None:
    handler = in_turn(lambda: page("ab", token="t"), lambda: failure(410, "Expired"))
    client = connect(await serve({"GET /api/v1/configmaps": handler}))
    with pytest.raises(errors.Gone):
        [page async for page in client.pages(CONFIG_MAP)]


# Watches


def line(kind: str, name: str) -> bytes:
    return msgspec.json.encode({"type": kind, "object": {"metadata": {"name": name}}}) + b"\n"


LINES = [line("ADDED", "a"), line("MODIFIED", "ä"), line("BOOKMARK", "b"), line("DELETED", "c")]


async def collect(changes: AsyncIterator[WatchEvent], seen: list[str]) -> None:
    """Note the types of events; what was seen before an error stays noted."""
    async for change in changes:
        seen.append(change.type)  # noqa: PERF401


async def test_a_watch_gives_events_until_the_server_ends_it(serve: Serve, connect: Connect) -> None:
    body = b"".join(LINES)
    server = await serve({f"GET {MAPS}": streaming(body[:30], body[30:31], body[31:])})
    seen = [event async for event in connect(server).watch(CONFIG_MAP, "default", resource_version="5")]
    assert [event.type for event in seen] == ["ADDED", "MODIFIED", "BOOKMARK", "DELETED"]
    assert bytes(seen[0].object) == b'{"metadata":{"name":"a"}}'
    assert server.calls[0].target == f"{MAPS}?watch=true&allowWatchBookmarks=true&resourceVersion=5"


async def test_a_streamed_list_is_asked_for_with_its_conditions(serve: Serve, connect: Connect) -> None:
    server = await serve({"GET /api/v1/configmaps": streaming()})
    watch = connect(server).watch(
        CONFIG_MAP, fields="metadata.name=a", send_initial_events=True, metadata_only=True, timeout_seconds=9
    )
    assert [event async for event in watch] == []
    assert server.calls[0].target == (
        "/api/v1/configmaps?watch=true&allowWatchBookmarks=true&fieldSelector=metadata.name%3Da"
        "&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&timeoutSeconds=9"
    )
    accept = server.calls[0].headers["Accept"]
    assert accept == "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1,application/json"


@pytest.mark.parametrize("as_event", [True, False])
async def test_a_watch_from_too_far_back_is_gone(serve: Serve, connect: Connect, as_event: bool) -> None:
    status = {"kind": "Status", "code": 410, "reason": "Expired", "message": "too old resource version"}
    event = msgspec.json.encode({"type": "ERROR", "object": status}) + b"\n"
    server = await serve({f"GET {MAPS}": streaming(LINES[0], event) if as_event else always(status, 410)})
    seen: list[str] = []
    with pytest.raises(errors.Gone, match="too old"):
        await collect(connect(server).watch(CONFIG_MAP, "default", resource_version="1"), seen)
    assert seen == (["ADDED"] if as_event else [])


async def test_a_watch_that_dies_at_any_byte_gives_only_whole_events(serve: Serve, connect: Connect) -> None:
    body = b"".join(LINES)
    server = await serve({f"GET {MAPS}": streaming(body, then_hang=True)})
    transport = AiohttpTransport(Config(server.url))
    cuts = iter(range(len(body) + 1))
    faulty = FaultyTransport(
        transport, lambda request: CutAt(next(cuts)) if "watch" in request.target else None
    )
    client = connect(server, transport=faulty)
    for cut in range(len(body) + 1):
        seen: list[str] = []
        with pytest.raises(errors.ConnectionFailed):
            await collect(client.watch(CONFIG_MAP, "default"), seen)
        whole = body[:cut].count(b"\n")
        assert seen == ["ADDED", "MODIFIED", "BOOKMARK", "DELETED"][:whole]


async def test_a_watch_that_comes_in_drips_gives_the_same_events(serve: Serve, connect: Connect) -> None:
    server = await serve({f"GET {MAPS}": streaming(*LINES)})
    faulty = FaultyTransport(AiohttpTransport(Config(server.url)), lambda request: InPieces(1))
    seen = [change async for change in connect(server, transport=faulty).watch(CONFIG_MAP, "default")]
    assert [change.type for change in seen] == ["ADDED", "MODIFIED", "BOOKMARK", "DELETED"]


@pytest.mark.parametrize(
    ("fault", "expected", "arrivals"),
    [
        (Refused(), errors.ConnectionFailed, 0),
        (AnswerLost(), errors.ConnectionFailed, 1),
        (Answer(429, retry_after=3), errors.TooManyRequests, 0),
        (Answer(502, body=b"<html>bad gateway"), errors.ServerError, 0),
        (Answer(403, "Forbidden"), errors.Forbidden, 0),
    ],
)
async def test_a_watch_that_does_not_begin_is_not_repeated(
    serve: Serve, connect: Connect, fault: Fault, expected: type[errors.KubeError], arrivals: int
) -> None:
    server = await serve({f"GET {MAPS}": streaming(*LINES)})
    transport = FaultyTransport(
        AiohttpTransport(Config(server.url)), lambda request: fault if "watch" in request.target else None
    )
    with pytest.raises(expected):
        await collect(connect(server, transport=transport).watch(CONFIG_MAP, "default"), [])
    assert len(server.calls) == arrivals


async def test_a_silent_watch_is_given_up(serve: Serve, connect: Connect) -> None:
    server = await serve({f"GET {MAPS}": streaming(LINES[0], then_hang=True)})
    client = connect(Config(server.url, watch_idle_timeout=0.05))
    with pytest.raises(errors.ConnectionFailed, match=r"nothing came for 0\.05 s"):
        [change async for change in client.watch(CONFIG_MAP, "default")]


async def test_a_watch_that_is_left_closes_its_connection(serve: Serve, connect: Connect) -> None:
    gone = asyncio.Event()

    async def handle(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse()
        await response.prepare(request)
        await response.write(LINES[0])
        try:
            await asyncio.Event().wait()  # until the stub notices that nobody listens any more
        finally:
            gone.set()
        raise AssertionError

    server = await serve({f"GET {MAPS}": handle})
    async with aclosing(connect(server).watch(CONFIG_MAP, "default")) as changes:
        async for change in changes:
            assert change.type == "ADDED"
            break
    await asyncio.wait_for(gone.wait(), 5)


async def test_a_watch_does_not_take_the_place_of_a_request(serve: Serve, connect: Connect) -> None:
    server = await serve({f"GET {MAPS}": streaming(LINES[0], then_hang=True), f"GET {MAP}": always(OBJECT)})
    client = connect(Config(server.url, max_connections=1))
    async with aclosing(client.watch(CONFIG_MAP, "default")) as changes:
        await anext(changes)
        assert await client.get(CONFIG_MAP, "a") == OBJECT


# When a request is repeated


async def faulty_client(
    serve: Serve, connect: Connect, faults: list[Fault | None]
) -> tuple[Client, StubServer]:
    server = await serve(
        {f"GET {MAP}": always(OBJECT), f"POST {MAPS}": echo, f"PUT {MAP}": echo, f"DELETE {MAP}": echo}
    )
    plan = script(faults)
    transport = FaultyTransport(
        AiohttpTransport(Config(server.url)),
        lambda request: plan(request) if "/v1/" in request.target else None,
    )
    return connect(server, transport=transport), server


GET: Verb = lambda client: client.get(CONFIG_MAP, "a")  # noqa: E731
CREATE: Verb = lambda client: client.create(OBJECT)  # noqa: E731
UPDATE: Verb = lambda client: client.update(OBJECT)  # noqa: E731
DELETE: Verb = lambda client: client.delete(CONFIG_MAP, "a")  # noqa: E731


@pytest.mark.parametrize(
    ("act", "faults", "arrivals"),
    [
        (GET, [Refused(), Refused()], 1),
        (CREATE, [Refused(), Refused()], 1),
        (GET, [AnswerLost(), AnswerLost()], 3),
        (GET, [CutAt(10), InPieces(3)], 2),
        (GET, [Answer(429, retry_after=1), Answer(503, retry_after=0)], 1),
        (CREATE, [Answer(429, retry_after=1), Answer(429, retry_after=1)], 1),
        (UPDATE, [Refused(), Answer(429, retry_after=1)], 1),
        (DELETE, [Refused(), Answer(429, retry_after=1)], 1),
        (GET, [Answer(500, retry_after=1), Answer(504, retry_after=1), AnswerLost(), Refused()], 2),
    ],
)
async def test_a_fault_that_can_be_healed_safely_is(
    serve: Serve, connect: Connect, act: Verb, faults: list[Fault | None], arrivals: int
) -> None:
    client, server = await faulty_client(serve, connect, faults)
    assert await act(client)
    assert len(server.calls) == arrivals


@pytest.mark.parametrize(
    ("act", "faults", "expected", "arrivals"),
    [
        (CREATE, [AnswerLost()], errors.ConnectionFailed, 1),
        (UPDATE, [AnswerLost()], errors.ConnectionFailed, 1),
        (DELETE, [AnswerLost()], errors.ConnectionFailed, 1),
        (CREATE, [Answer(503, retry_after=1)], errors.ServerError, 0),
        (UPDATE, [Answer(500, retry_after=1)], errors.ServerError, 0),
        (UPDATE, [Answer(409, "Conflict")], errors.Conflict, 0),
        (GET, [Answer(500)], errors.ServerError, 0),
        (CREATE, [Answer(429)], errors.TooManyRequests, 0),
        (GET, [Answer(429, retry_after=31)], errors.TooManyRequests, 0),
        (GET, [Refused()] * 9, errors.ConnectionFailed, 0),
        (GET, [AnswerLost()] * 9, errors.ConnectionFailed, 5),
        (CREATE, [Answer(429, retry_after=1)] * 9, errors.TooManyRequests, 0),
        (GET, [Answer(401, "Unauthorized")], errors.Unauthorized, 0),
    ],
)
async def test_a_fault_that_cannot_be_healed_safely_is_reported(
    serve: Serve,
    connect: Connect,
    act: Verb,
    faults: list[Fault | None],
    expected: type[errors.KubeError],
    arrivals: int,
) -> None:
    client, server = await faulty_client(serve, connect, faults)
    with pytest.raises(expected):
        await act(client)
    assert len(server.calls) == arrivals


async def test_the_server_decides_how_long_to_wait_and_the_client_adds_its_own(
    serve: Serve, connect: Connect, clock: StillClock
) -> None:
    client, _ = await faulty_client(
        serve, connect, [Answer(429, retry_after=7), Refused(), Refused(), Refused()]
    )
    await GET(client)
    assert clock.waits[0] == 7
    assert [0.2 <= clock.waits[1] <= 0.3, 0.4 <= clock.waits[2] <= 0.6, 0.8 <= clock.waits[3] <= 1.2] == [
        True
    ] * 3


async def test_a_refusal_says_how_long_to_wait(serve: Serve, connect: Connect, clock: StillClock) -> None:
    client, _ = await faulty_client(serve, connect, [Answer(429, retry_after=3600)])
    with pytest.raises(errors.TooManyRequests) as caught:
        await GET(client)
    assert (caught.value.retry_after, clock.waits) == (3600, [])


async def test_a_server_that_is_not_there_was_sent_nothing(connect: Connect, clock: StillClock) -> None:
    with pytest.raises(
        errors.ConnectionFailed, match=r"cannot connect to http://127\.0\.0\.1:1: Connection refused"
    ) as e:
        await connect(Config("http://127.0.0.1:1")).get(CONFIG_MAP, "a")
    assert not e.value.sent


async def test_a_connection_that_breaks_under_a_write_is_reported_and_not_repeated(
    serve: Serve, connect: Connect
) -> None:
    async def hang_up(request: web.Request) -> web.StreamResponse:
        assert request.transport is not None
        request.transport.abort()
        return web.Response()

    server = await serve({f"PUT {MAP}": hang_up, f"GET {MAP}": always(OBJECT)})
    client = connect(server)
    await client.get(CONFIG_MAP, "a")  # so that the write reuses a connection, which aiohttp would repeat
    with pytest.raises(errors.ConnectionFailed) as caught:
        await client.update(OBJECT)
    assert caught.value.sent
    assert [seen.method for seen in server.calls] == ["GET", "PUT"]


async def test_a_server_that_does_not_answer_is_given_up(serve: Serve, connect: Connect) -> None:
    async def hang(request: web.Request) -> web.StreamResponse:
        await asyncio.Event().wait()
        raise AssertionError

    server = await serve({f"POST {MAPS}": hang})
    client = connect(Config(server.url, request_timeout=0.1))
    with pytest.raises(
        errors.ConnectionFailed, match=r"POST .*configmaps: no answer from .* in 0\.1 s"
    ) as caught:
        await client.create(OBJECT)
    assert caught.value.sent


async def test_requests_at_once_are_bounded(serve: Serve, connect: Connect) -> None:
    running, most = 0, 0

    async def handle(request: web.Request) -> web.StreamResponse:
        nonlocal running, most
        running += 1
        most = max(most, running)
        for _ in range(20):
            await asyncio.sleep(0)
        running -= 1
        return answer(OBJECT)

    server = await serve({f"GET {MAP}": handle})
    client = connect(Config(server.url, max_connections=3))
    await asyncio.gather(*(client.get(CONFIG_MAP, "a") for _ in range(20)))
    assert most == 3


# What comes back


async def test_compressed_answers_are_asked_for_and_read(serve: Serve, connect: Connect) -> None:
    async def handle(request: web.Request) -> web.StreamResponse:
        body = gzip.compress(msgspec.json.encode(OBJECT))
        return web.Response(body=body, headers={"Content-Encoding": "gzip"})

    server = await serve({f"GET {MAP}": handle})
    assert await connect(server).get(CONFIG_MAP, "a") == OBJECT
    assert server.calls[0].headers["Accept-Encoding"] == "gzip"


async def test_compression_can_be_switched_off(serve: Serve, connect: Connect) -> None:
    server = await serve({f"GET {MAP}": always(OBJECT)})
    await connect(Config(server.url, disable_compression=True)).get(CONFIG_MAP, "a")
    assert server.calls[0].headers["Accept-Encoding"] == "identity"


@pytest.mark.parametrize("compressed", [True, False])
async def test_an_answer_without_end_is_refused(serve: Serve, connect: Connect, compressed: bool) -> None:
    async def handle(request: web.Request) -> web.StreamResponse:
        body = b"[" + b"0," * 100_000
        if compressed:
            return web.Response(body=gzip.compress(body), headers={"Content-Encoding": "gzip"})
        return web.Response(body=body)

    server = await serve({f"GET {MAP}": handle})
    transport = AiohttpTransport(Config(server.url), max_body=10_000)
    with pytest.raises(errors.ProtocolError, match="larger than 10000 bytes"):
        await connect(server, transport=transport).get(CONFIG_MAP, "a")


@pytest.mark.parametrize(
    ("handler", "expected", "message"),
    [
        (always("text"), errors.ProtocolError, "is not a Kubernetes object"),
        (streaming(b"<html>hello"), errors.ProtocolError, "is not a Kubernetes object"),
        (always({"x": 1}, 302, {"Location": "https://login"}), errors.APIError, "the server answered 302"),
        (
            always({"error": "bad gateway"}, 502),
            errors.ServerError,
            f'GET {MAP}: the server answered 502: {{"error"',
        ),
        (always({}, 403), errors.Forbidden, "the server answered 403"),
    ],
)
async def test_an_answer_that_is_none_of_an_api_server_is_explained(
    serve: Serve, connect: Connect, handler: Handler, expected: type[errors.KubeError], message: str
) -> None:
    client = connect(await serve({f"GET {MAP}": handler}))
    with pytest.raises(expected) as caught:
        await client.get(CONFIG_MAP, "a")
    assert message in str(caught.value)


async def test_warnings_reach_whoever_asked(serve: Serve, connect: Connect) -> None:
    header = (
        '299 - "unknown field \\"spec.x\\"", 299 - "deprecated, use v2" "Mon, 01 Jan 2024", 199 - "other"'
    )
    server = await serve({f"GET {MAP}": always(OBJECT, headers={"Warning": header})})
    heard: list[str] = []
    await connect(server, on_warning=heard.append).get(CONFIG_MAP, "a")
    assert heard == ['unknown field "spec.x"', "deprecated, use v2"]


async def test_warnings_are_logged_if_nobody_asked(
    serve: Serve, connect: Connect, caplog: pytest.LogCaptureFixture
) -> None:
    server = await serve({f"GET {MAP}": always(OBJECT, headers={"Warning": '299 - "old"'})})
    await connect(server).get(CONFIG_MAP, "a")
    assert caplog.messages == ["the server warns: old"]


async def test_every_request_is_observed(serve: Serve, connect: Connect) -> None:
    server = await serve({f"GET {MAPS}": streaming(), f"POST {MAPS}": echo})
    seen: list[RequestDone] = []
    transport = FaultyTransport(
        AiohttpTransport(Config(server.url)), lambda request: Refused() if len(seen) == 2 else None
    )
    client = connect(server, observer=seen.append, transport=transport)
    await client.create(OBJECT)
    assert [change async for change in client.watch(CONFIG_MAP, "default")] == []
    with pytest.raises(errors.NotFound):
        await client.get(DEPLOYMENT, "a")
    assert [(done.verb, done.resource, done.code) for done in seen[2:5]] == [
        ("create", "configmaps", 0),
        ("create", "configmaps", 200),
        ("watch", "configmaps", 200),
    ]
    assert ("get", "deployments.apps", 404) in [(done.verb, done.resource, done.code) for done in seen]


async def test_the_raw_way_gives_refusals_as_they_are(serve: Serve, connect: Connect) -> None:
    response = await connect(await serve()).request("GET", "/nowhere")
    assert (response.status, response.body) == (404, b"404 page not found\n")
    assert response.headers.get("content-type").startswith("text/plain")


# Kinds that come and go


def foo_groups(*, namespaced: bool = True) -> dict[str, Any]:
    return aggregated(group("example.com", ("v1", [resource("foos", "Foo", namespaced=namespaced)])))


@pytest.mark.parametrize("watching", [True, False])
async def test_a_path_that_is_gone_is_looked_up_again(serve: Serve, connect: Connect, watching: bool) -> None:
    server = await serve({"GET /apis": in_turn(lambda: answer(foo_groups()), lambda: answer(GROUPS))})
    client = connect(server)
    act = collect(client.watch(FOO), []) if watching else client.get(FOO, "a")
    with pytest.raises(errors.NoMatch, match=r"serves no kind Foo in example\.com/v1"):
        await act


async def test_a_path_that_moved_is_followed(serve: Serve, connect: Connect) -> None:
    server = await serve(
        {
            "GET /apis": in_turn(lambda: answer(foo_groups()), lambda: answer(foo_groups(namespaced=False))),
            "GET /apis/example.com/v1/foos/a": always({"kind": "Foo"}),
        }
    )
    assert await connect(server).get(FOO, "a") == {"kind": "Foo"}


async def test_a_path_that_is_still_served_is_simply_not_found(serve: Serve, connect: Connect) -> None:
    client = connect(await serve())
    with pytest.raises(errors.NotFound, match="404 page not found"):
        await client.get(CONFIG_MAP, "a", subresource="nonsense")


async def test_an_object_that_is_missing_is_no_reason_to_discover_again(
    serve: Serve, connect: Connect
) -> None:
    async def missing(request: web.Request) -> web.StreamResponse:
        return failure(404, "NotFound", 'configmaps "a" not found', name="a", kind="configmaps")

    server = await serve({f"GET {MAP}": missing})
    client = connect(server)
    for _ in range(3):
        with pytest.raises(errors.NotFound, match='configmaps "a" not found'):
            await client.get(CONFIG_MAP, "a")
    assert [
        seen.target for seen in server.seen if seen.target.startswith("/api") and "/v1" not in seen.target
    ] == [
        "/api",
        "/apis",
    ]


# The way there


@pytest.fixture
async def proxy() -> AsyncIterator[tuple[str, list[str]]]:
    """A proxy that connects to whatever it is asked for, and the heads of the requests that it got."""
    heads: list[str] = []
    pipes: set[asyncio.Task[None]] = set()

    async def pipe(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while data := await reader.read(1 << 16):
            writer.write(data)
            await writer.drain()
        writer.close()

    async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = (await reader.readuntil(b"\r\n\r\n")).decode()
        heads.append(head)
        host, _, port = head.split(" ")[1].rpartition(":")
        up_reader, up_writer = await asyncio.open_connection(host, int(port))
        writer.write(b"HTTP/1.1 200 Connection established\r\n\r\n")
        pipes.update(
            {asyncio.create_task(pipe(reader, up_writer)), asyncio.create_task(pipe(up_reader, writer))}
        )

    server = await asyncio.start_server(handle, "127.0.0.1", 0)
    yield f"http://user:pass@127.0.0.1:{server.sockets[0].getsockname()[1]}", heads
    server.close()
    await asyncio.gather(*pipes, return_exceptions=True)


async def test_a_proxy_is_asked_to_connect_and_sees_no_secrets(
    serve: Serve, connect: Connect, proxy: tuple[str, list[str]]
) -> None:
    url, heads = proxy
    ca = trustme.CA()
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    ca.issue_cert("api.example.com").configure_cert(tls)
    server = await serve({f"GET {MAP}": always(OBJECT)}, tls=tls)
    config = Config(
        server.url,
        ca=PEM(ca.cert_pem.bytes()),
        token="secret",
        proxy_url=url,
        tls_server_name="api.example.com",
    )
    client = connect(config)
    assert await client.get(CONFIG_MAP, "a") == OBJECT
    await client.close()
    assert heads[0].startswith(f"CONNECT {server.url.removeprefix('https://')} HTTP/1.1\r\n")
    assert "Proxy-Authorization: Basic dXNlcjpwYXNz" in heads[0]
    assert "secret" not in "".join(heads)


async def test_connections_are_kept_between_requests(serve: Serve, connect: Connect) -> None:
    ports: set[int] = set()

    async def handle(request: web.Request) -> web.StreamResponse:
        ports.add(request.get_extra_info("peername")[1])
        return answer(OBJECT)

    client = connect(await serve({f"GET {MAP}": handle}))
    for _ in range(10):
        await client.get(CONFIG_MAP, "a")
    assert len(ports) <= 2  # those that discovery opened


async def test_a_closed_client_says_so(serve: Serve, connect: Connect) -> None:
    server = await serve()
    async with Client(Config(server.url)) as client:
        await client.discovery.resources()
    with pytest.raises(RuntimeError, match="the client is closed"):
        await client.request("GET", "/version")


def test_importing_the_package_loads_no_heavy_library() -> None:
    heavy = ("aiohttp", "cryptography", "yaml", "prometheus_client")
    program = f"import sys, podium.kube; print([name for name in {heavy!r} if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
