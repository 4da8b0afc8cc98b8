"""`podium up` and its companions, run as a user runs them: as commands."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from podium.run import instance


@pytest.fixture
def data(tmp_path: Path) -> Iterator[Path]:
    directory = tmp_path / "cluster"
    yield directory
    instance.stop(directory, grace=5)


def podium(*arguments: str, code: int = 0) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "podium", *arguments]
    done = subprocess.run(
        command, capture_output=True, text=True, timeout=60, stdin=subprocess.DEVNULL, check=False
    )
    assert done.returncode == code, done.stderr
    return done


def test_up_starts_it_and_says_what_to_type_next(data: Path) -> None:
    told = podium("up", "--detach", "--data", str(data)).stderr
    assert f"export KUBECONFIG={data / 'kubeconfig'}" in told
    assert "simulated" in told
    status = json.loads(podium("status", "--data", str(data), "-o", "json").stdout)
    assert status["running"] is True
    assert status["url"].startswith("https://127.0.0.1:")


def test_a_second_up_finds_the_first(data: Path) -> None:
    podium("up", "--detach", "--data", str(data))
    first = json.loads(podium("status", "--data", str(data), "-o", "json").stdout)
    assert "Already running" in podium("up", "--data", str(data)).stderr
    assert json.loads(podium("status", "--data", str(data), "-o", "json").stdout) == first


def test_a_second_up_says_that_its_options_come_too_late(data: Path) -> None:
    podium("up", "--detach", "--data", str(data), "--no-simulate")
    told = podium("up", "--data", str(data)).stderr
    assert "keeps its own options" in told
    assert "Nothing is simulated" in told
    assert "keeps its own options" not in podium("up", "--data", str(data), "--no-simulate").stderr


@pytest.mark.parametrize("command", ["up", "down", "status", "kubeconfig", "reset"])
def test_a_directory_without_a_name_is_refused(command: str) -> None:
    assert "the name is empty" in podium(command, "--data", "", code=2).stderr


def test_down_stops_it_and_up_continues_on_the_same_address(data: Path) -> None:
    podium("up", "--detach", "--data", str(data))
    before = json.loads(podium("status", "--data", str(data), "-o", "json").stdout)
    kubeconfig = (data / "kubeconfig").read_text()
    assert "Stopped" in podium("down", "--data", str(data)).stderr
    stopped = json.loads(podium("status", "--data", str(data), "-o", "json", code=3).stdout)
    assert stopped["running"] is False
    podium("up", "--detach", "--data", str(data))
    after = json.loads(podium("status", "--data", str(data), "-o", "json").stdout)
    assert after["url"] == before["url"]
    assert (data / "kubeconfig").read_text() == kubeconfig


def test_down_and_reset_of_nothing_are_fine(data: Path) -> None:
    assert "Not running" in podium("down", "--data", str(data)).stderr
    assert "Nothing to delete" in podium("reset", "--data", str(data), "--yes").stderr


def test_ctrl_c_ends_the_foreground_in_order(data: Path) -> None:
    command = [sys.executable, "-m", "podium", "up", "--data", str(data)]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        assert "ready at" in process.stderr.readline()
        process.send_signal(signal.SIGINT)
        rest = process.stderr.read()
        assert process.wait(20) == 0
    assert "Stopped" in rest
    assert "Traceback" not in rest
    assert not instance.is_held(data)


def test_of_several_that_start_at_once_one_runs_and_all_find_it(data: Path) -> None:
    with ThreadPoolExecutor() as starters:
        told = list(
            starters.map(lambda _: podium("up", "-d", "--no-simulate", "--data", str(data)), range(4))
        )
    running = instance.find(data)
    assert running is not None
    assert all(running.url in one.stderr for one in told)
    podium("down", "--data", str(data))
    assert not instance.is_held(data)


def test_a_killed_instance_leaves_nothing_in_the_way(data: Path) -> None:
    podium("up", "--detach", "--data", str(data))
    running = instance.find(data)
    assert running is not None
    os.kill(running.pid, signal.SIGKILL)
    assert instance.wait_until(lambda: not instance.is_held(data), 10)
    podium("status", "--data", str(data), code=3)
    told = podium("up", "--detach", "--data", str(data)).stderr
    again = instance.find(data)
    assert again is not None
    assert again.pid != running.pid
    assert again.url in told


def test_the_kubeconfig_and_keys_are_private(data: Path) -> None:
    podium("up", "--detach", "--data", str(data))
    assert podium("kubeconfig", "--data", str(data)).stdout.strip() == str(data / "kubeconfig")
    assert "clusters:" in podium("kubeconfig", "--data", str(data), "--raw").stdout
    for path in (data / "kubeconfig", *(data / "pki").glob("*.pem")):
        assert path.stat().st_mode & 0o077 == 0, path


def test_reset_deletes_the_cluster_but_never_a_stranger_s_files(data: Path) -> None:
    podium("up", "--detach", "--data", str(data))
    assert "--yes" in podium("reset", "--data", str(data), code=2).stderr
    (data / "thesis.txt").write_text("precious")
    assert "thesis.txt" in podium("reset", "--data", str(data), "--yes", code=4).stderr
    assert (data / "thesis.txt").exists()
    assert instance.find(data) is not None  # it was not even stopped
    (data / "thesis.txt").unlink()
    podium("reset", "--data", str(data), "--yes")
    assert not data.exists()


def test_a_port_that_is_taken_is_a_clear_error(data: Path) -> None:
    import socket

    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = str(taken.getsockname()[1])
        failed = podium("up", "--data", str(data), "--port", port, code=1)
        detached = podium("up", "--detach", "--data", str(data), "--port", port, code=1)
    assert failed.stderr.startswith(f"Error: port {port} is taken; choose another with --port")
    assert detached.stderr.endswith(f"podium.log:\n{failed.stderr}")


def test_a_failed_start_shows_nothing_of_earlier_ones(data: Path) -> None:
    data.mkdir()
    (data / "podium.log").write_text("from the week before\n")
    (data / "state.db").write_bytes(b"something else" * 1000)
    assert "the week before" not in podium("up", "--detach", "--data", str(data), code=1).stderr
    assert "the week before" in (data / "podium.log").read_text()


def test_a_damaged_database_is_a_clear_error(data: Path) -> None:
    data.mkdir()
    (data / "state.db").write_bytes(b"something else" * 1000)
    failed = podium("up", "--data", str(data), code=1)
    assert f"{data / 'state.db'} cannot be read" in failed.stderr
    assert "podium reset" in failed.stderr
    assert "Traceback" not in failed.stderr


@pytest.mark.parametrize("command", [["up"], ["up", "--detach"], ["status"], ["down"], ["reset", "--yes"]])
def test_a_directory_that_cannot_be_used_is_a_clear_error(tmp_path: Path, command: list[str]) -> None:
    (tmp_path / "lock").mkdir()
    failed = podium(*command, "--data", str(tmp_path), code=1)
    assert str(tmp_path / "lock") in failed.stderr
    assert "Traceback" not in failed.stderr


def test_a_directory_that_was_there_keeps_its_mode(data: Path) -> None:
    data.mkdir(mode=0o755)
    podium("up", "--detach", "--data", str(data))
    assert data.stat().st_mode & 0o777 == 0o755
    private = [path.name for path in data.iterdir() if path.stat().st_mode & 0o077 == 0]
    assert {"state.db", "state.db-wal", "kubeconfig", "pki"} <= set(private)


def test_help_teaches_and_loads_nothing_heavy() -> None:
    told = podium("--help").stdout
    assert "podium up" in told
    program = "import sys, podium.cli; assert 'aiohttp' not in sys.modules and 'asyncio' not in sys.modules"
    subprocess.run([sys.executable, "-c", program], check=True)
