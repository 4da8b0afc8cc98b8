"""client-go: informers, clients and leases of the official library"""

from __future__ import annotations

import pytest

from harness import informer
from harness.plane import ControlPlane

pytestmark = pytest.mark.kubectl


def test_every_check_of_our_client_go_program_passes(control_plane: ControlPlane) -> None:
    report = informer.run(control_plane.kubeconfig)
    assert report.checks
    assert report.failures == [], report.log
