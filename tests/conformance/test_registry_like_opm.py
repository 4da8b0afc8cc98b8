"""The gRPC registry and `opm serve` on the same real catalog, asked by upstream's own client code."""

from __future__ import annotations

import json
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from harness import binaries, corpus
from harness.oracle import Oracle

pytestmark = [pytest.mark.oracle, pytest.mark.timeout(300)]


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def await_port(port: int, process: subprocess.Popen[bytes]) -> None:
    deadline = time.monotonic() + 120
    while time.monotonic() < deadline:
        assert process.poll() is None, "the server ended before it listened"
        try:
            socket.create_connection(("127.0.0.1", port), timeout=1).close()
            return
        except OSError:
            time.sleep(0.05)
    raise AssertionError("the server did not listen in time")


@pytest.fixture(scope="module")
def servers() -> Iterator[tuple[str, str]]:
    """The addresses of ours and of opm's."""
    catalog = corpus.catalog()
    ours, theirs = free_port(), free_port()
    commands: list[tuple[int, list[str | Path]]] = [
        (ours, [sys.executable, "-m", "podium", "catalog", "serve", str(catalog), "--port", str(ours)]),
        (theirs, [binaries.find("opm"), "serve", str(catalog), "-p", str(theirs), "--pprof-addr", ""]),
    ]
    started = []
    try:
        for port, command in commands:
            process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            started.append(process)
            await_port(port, process)
        yield f"127.0.0.1:{ours}", f"127.0.0.1:{theirs}"
    finally:
        for process in started:
            process.terminate()
            process.wait()


def ask(address: str, calls: list[dict[str, Any]]) -> list[Any]:
    answers = Oracle().ask_all("registry/call", [{"address": address, **call} for call in calls])
    assert not [answer.error for answer in answers if answer.error]
    return [in_fixed_order(answer.output) for answer in answers]


def in_fixed_order(reply: dict[str, Any]) -> dict[str, Any]:
    """The reply with JSON texts parsed; opm streams entries in random order, so they are sorted."""
    for found in reply["messages"]:
        if "csvJson" in found:
            found["csvJson"] = json.loads(found["csvJson"])
            found["object"] = [json.loads(text) for text in found["object"]]
    reply["messages"].sort(key=lambda found: json.dumps(found, sort_keys=True))
    return reply


def test_all_bundles_are_the_same_in_the_same_order(servers: tuple[str, str]) -> None:
    ours, theirs = (
        Oracle().ask("registry/call", {"address": address, "method": "ListBundles"}).output["messages"]
        for address in servers
    )
    assert len(ours) > 1000
    assert ours == theirs


def test_every_other_method_answers_the_same(servers: tuple[str, str]) -> None:
    (listed,) = ask(servers[1], [{"method": "ListBundles"}])
    calls: list[dict[str, Any]] = []

    def add(method: str, **request: str) -> None:
        calls.append({"method": method, "request": request})

    for bundle in listed["messages"][::5]:
        package, channel, name = bundle["packageName"], bundle["channelName"], bundle["csvName"]
        add("GetPackage", name=package)
        add("GetBundle", pkgName=package, channelName=channel, csvName=name)
        add("GetBundleForChannel", pkgName=package, channelName=channel)
        add("GetBundleThatReplaces", csvName=name, pkgName=package, channelName=channel)
        add("GetChannelEntriesThatReplace", csvName=name)
    for bundle in listed["messages"][::40]:
        for api in bundle.get("providedApis", []):
            add("GetChannelEntriesThatProvide", **api)
            add("GetLatestChannelEntriesThatProvide", **api)
            add("GetDefaultBundleThatProvides", **api)
    some = listed["messages"][0]
    add("GetPackage", name="absent")
    add("GetBundle", pkgName="absent")
    add("GetBundle", pkgName=some["packageName"], channelName="absent")
    add("GetBundle", pkgName=some["packageName"], channelName=some["channelName"], csvName="absent")
    add("GetBundleThatReplaces", pkgName="absent")
    add("GetBundleThatReplaces", pkgName=some["packageName"], channelName=some["channelName"], csvName="x")
    add("GetDefaultBundleThatProvides", group="absent")
    add("Health", service="Registry")
    add("ListPackages")
    ours, theirs = (ask(address, calls) for address in servers)
    assert len({call["method"] for call in calls}) == 10
    for call, our_reply, their_reply in zip(calls, ours, theirs, strict=True):
        if call["method"] == "GetBundleThatReplaces" and our_reply != their_reply:
            # opm picks any of several at random; ours must then be one that does replace it.
            replaces = {e["bundleName"] for e in entries_that_replace(servers[1], call["request"]["csvName"])}
            assert our_reply["messages"][0]["csvName"] in replaces
            continue
        assert our_reply == their_reply, call


def entries_that_replace(address: str, name: str) -> list[dict[str, Any]]:
    (reply,) = ask(address, [{"method": "GetChannelEntriesThatReplace", "request": {"csvName": name}}])
    entries: list[dict[str, Any]] = reply["messages"]
    return entries


def test_the_client_library_of_olm_works_with_ours(servers: tuple[str, str]) -> None:
    ours, theirs = (Oracle().ask("registry/client", address) for address in servers)
    assert not ours.error
    assert ours.output["healthy"]
    assert ours == theirs


def test_a_client_that_knows_nothing_can_call_by_reflection(servers: tuple[str, str]) -> None:
    package = Oracle().ask("registry/call", {"address": servers[1], "method": "ListPackages"}).output
    name = min(message["name"] for message in package["messages"])
    call = {"service": "api.Registry", "method": "GetPackage", "request": {"name": name}}
    ours, theirs = (Oracle().ask("registry/reflect", {"address": address, **call}) for address in servers)
    assert not ours.error
    assert ours == theirs
