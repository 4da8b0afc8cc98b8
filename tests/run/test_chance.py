"""A program that holds a control plane keeps its own `random`."""

from __future__ import annotations

import random

from harness.embedded import EmbeddedControlPlane
from harness.plain import Plain

PODS, SERVICES = "/api/v1/namespaces/default/pods", "/api/v1/namespaces/default/services"
POD = {"metadata": {"generateName": "dice-"}, "spec": {"containers": [{"name": "c", "image": "i"}]}}
SERVICE = {"metadata": {"generateName": "dice-"}, "spec": {"type": "NodePort", "ports": [{"port": 80}]}}


def test_a_control_plane_neither_uses_nor_disturbs_the_shared_generator() -> None:
    before = random.getstate()
    try:
        random.seed(1)
        seeded = random.getstate()
        with EmbeddedControlPlane() as plane:
            plain = Plain(plane.kubeconfig)
            for path, body in ((PODS, POD), (SERVICES, SERVICE)):
                assert plain.request("POST", path, body).status == 201
            assert plain.request("GET", f"{PODS}?watch=true&timeoutSeconds=1").status == 200
        assert random.getstate() == seeded
    finally:
        random.setstate(before)
