"""Options and fixtures for tests that need a control plane.

The same test runs on the embedded server (`--server=embedded`, the default) and on the real one
(`--server=real`). One control plane serves a whole run (one per worker under xdist), and tests keep
apart by namespace. Tests marked `kubectl` run with `--kubectl`; those marked `real`, `oracle` or `registry`
with `-m` and that name.
"""

from __future__ import annotations

import os
import re
import signal
import threading
from collections.abc import Generator, Iterator
from pathlib import Path
from typing import TypeVar

import pytest
from hypothesis import HealthCheck, settings

from harness.kubectl import Kubectl
from harness.plain import Plain
from harness.plane import ControlPlane, create_namespace, running

# Machines are noisy: how long an example takes says nothing about whether it is right.
settings.register_profile("podium", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("podium")

# A shell that starts the tests in the background has them ignore Ctrl-C, and so would what they start.
_in_main_thread = threading.current_thread() is threading.main_thread()
if _in_main_thread and signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

Report = TypeVar("Report", pytest.TestReport, pytest.CollectReport)


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the options that choose a control plane."""
    group = parser.getgroup("podium")
    group.addoption("--server", choices=["embedded", "real"], default="embedded", help="which control plane")
    group.addoption("--kubectl", action="store_true", help="also run the tests that drive the real kubectl")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out tests whose component nobody asked for; asked for and missing, they fail."""
    asked = set(re.findall(r"\w+", config.option.markexpr))
    if config.option.kubectl:
        asked.add("kubectl")
    unasked = {"kubectl", "real", "oracle", "registry"} - asked
    left_out = [item for item in items if any(item.get_closest_marker(name) for name in unasked)]
    if left_out:
        config.hook.pytest_deselected(items=left_out)
        items[:] = [item for item in items if item not in set(left_out)]


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport() -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """In CI a test that skips itself has failed: whatever it misses is to be there."""
    return _without_skip((yield))


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report() -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
    """The same for a module that skips itself as a whole."""
    return _without_skip((yield))


def _without_skip(report: Report) -> Report:
    expected_to_fail = hasattr(report, "wasxfail")
    if report.skipped and not expected_to_fail and os.environ.get("CI") == "true":
        report.outcome = "failed"
        report.longrepr = f"skipped, which CI does not allow: {report.longrepr}"
    return report


@pytest.fixture(scope="session")
def control_plane(request: pytest.FixtureRequest) -> Iterator[ControlPlane]:
    """The control plane of this run: `.kubeconfig` (a Path, for an admin) and `.kind`."""
    if request.config.option.server == "real":
        yield request.getfixturevalue("real_control_plane")
        return
    with running("embedded") as plane:
        yield plane


@pytest.fixture(scope="session")
def real_control_plane() -> Iterator[ControlPlane]:
    """The real one, whatever `--server` says; for tests marked `real`."""
    with running("real") as plane:
        yield plane


@pytest.fixture
def plain(control_plane: ControlPlane) -> Plain:
    """Raw HTTP as admin: `plain.request(method, path, body, headers=...)`."""
    return Plain(control_plane.kubeconfig)


@pytest.fixture
def namespace(plain: Plain, request: pytest.FixtureRequest) -> Iterator[str]:
    """The name of a namespace that only this test uses; its deletion is not waited for."""
    name = create_namespace(plain, request.node.name.removeprefix("test_"))
    yield name
    plain.request("DELETE", f"/api/v1/namespaces/{name}")


@pytest.fixture
def kubectl(control_plane: ControlPlane, namespace: str, tmp_path: Path) -> Kubectl:
    """The real kubectl as admin, with the test's namespace as default; mark the test `kubectl`."""
    home = tmp_path / "kubectl"
    home.mkdir()
    return Kubectl(control_plane.kubeconfig, namespace=namespace, home=home)
