"""The control plane that a test run asked for, whichever it is."""

from __future__ import annotations

import contextlib
import os
import re
import secrets
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, TypeAlias

import pytest

from harness import binaries
from harness.plain import Plain

Kind: TypeAlias = Literal["embedded", "real"]


@dataclass(frozen=True, slots=True)
class ControlPlane:
    """Where to reach it, and which it is (for the few rows of docs/compatibility.md)."""

    kubeconfig: Path
    kind: Kind


@contextlib.contextmanager
def running(kind: Kind) -> Iterator[ControlPlane]:
    """A control plane for as long as the context lasts."""
    if kind == "embedded":
        from harness.embedded import EmbeddedControlPlane

        with EmbeddedControlPlane() as embedded:
            yield ControlPlane(embedded.kubeconfig, kind)
    elif binaries.uses_existing_cluster():
        if not os.environ.get("KUBECONFIG"):
            pytest.fail("PODIUM_USE_CLUSTER=1 needs KUBECONFIG to name one kubeconfig file", pytrace=False)
        yield ControlPlane(Path(os.environ["KUBECONFIG"]), kind)
    else:
        from harness import simulated
        from harness.real import RealControlPlane

        # No node runs here, so the simulator plays them; the workload controllers are the real ones.
        with RealControlPlane() as real, simulated.nodes(real.kubeconfig):
            yield ControlPlane(real.kubeconfig, kind)


def create_namespace(plain: Plain, purpose: str) -> str:
    """A new namespace, ready for Pods: its default ServiceAccount and root certificate are there."""
    slug = re.sub(r"[^a-z0-9]+", "-", purpose.lower())[:40].strip("-")
    name = f"{slug}-{secrets.token_hex(3)}"
    namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}
    answer = plain.request("POST", "/api/v1/namespaces", namespace)
    assert answer.status == 201, answer.body.decode()
    for content in ("serviceaccounts/default", "configmaps/kube-root-ca.crt"):
        _wait_for(plain, f"/api/v1/namespaces/{name}/{content}")
    return name


def _wait_for(plain: Plain, path: str) -> None:
    deadline = time.monotonic() + 20
    while (answer := plain.request("GET", path)).status != 200:
        assert time.monotonic() < deadline, f"{path} never appeared: {answer.body.decode()}"
        time.sleep(0.01)
