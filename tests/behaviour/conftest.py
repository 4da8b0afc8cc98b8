"""Fixtures of the behaviour suite: one client, and short ways to make things.

Every test here runs unchanged on the embedded server and on the real one, so it may assert only what both
do. A namespace of its own keeps each test apart from the others.
"""

from __future__ import annotations

import secrets
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from behaviour import manifests
from behaviour.collection import Collection
from behaviour.definitions import Definitions
from behaviour.scratch import Scratch
from behaviour.support import eventually
from behaviour.widgets import Widgets, installed
from harness.plain import Plain
from harness.plane import ControlPlane
from podium.kube import Client, load_config


@pytest.fixture
async def client(control_plane: ControlPlane) -> AsyncIterator[Client]:
    """Our client, as admin."""
    async with Client(load_config(Path(control_plane.kubeconfig))) as client:
        yield client


@pytest.fixture(scope="session")
def widget_group(control_plane: ControlPlane) -> Iterator[str]:
    """The API group of a custom kind `Widget` (see `manifests.widgets`), defined once for the whole run."""
    plain, group = Plain(control_plane.kubeconfig), f"g{secrets.token_hex(3)}.example.com"
    definitions = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
    answer = plain.request("POST", definitions, manifests.widgets(group))
    assert answer.status == 201, answer.body.decode()
    for document in (f"/apis/{group}/v1", f"/openapi/v3/apis/{group}/v1"):
        eventually(lambda path=document: plain.request("GET", path).status == 200)  # type: ignore[misc]
    yield group
    plain.request("DELETE", f"{definitions}/widgets.{group}")


@pytest.fixture
def scratch(plain: Plain, namespace: str) -> Iterator[Scratch]:
    """Makes objects by kind, and removes the cluster-wide ones afterwards."""
    made = Scratch(plain, namespace)
    yield made
    made.clean_up()


@pytest.fixture
def config_maps(plain: Plain, namespace: str) -> Collection:
    """The ConfigMaps of the test's namespace."""
    return Collection(plain, f"/api/v1/namespaces/{namespace}/configmaps")


@pytest.fixture
def pods(plain: Plain, namespace: str) -> Collection:
    """The Pods of the test's namespace."""
    return Collection(plain, f"/api/v1/namespaces/{namespace}/pods")


@pytest.fixture
def deployments(plain: Plain, namespace: str) -> Collection:
    """The Deployments of the test's namespace."""
    return Collection(plain, f"/apis/apps/v1/namespaces/{namespace}/deployments")


@pytest.fixture(scope="session")
def widget_kind(control_plane: ControlPlane) -> Iterator[Widgets]:
    """A custom resource that is installed once for all tests that ask for it."""
    with installed(Plain(control_plane.kubeconfig)) as kind:
        yield kind


@pytest.fixture
def widgets(plain: Plain, namespace: str, widget_kind: Widgets) -> Collection:
    """The custom resources of the test's namespace."""
    return widget_kind.collection(plain, namespace)


@pytest.fixture(scope="module")
def definitions(control_plane: ControlPlane) -> Iterator[Definitions]:
    """Makes CustomResourceDefinitions in a group that only this module uses."""
    made = Definitions(Plain(control_plane.kubeconfig))
    yield made
    made.clean_up()
