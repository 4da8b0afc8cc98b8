from __future__ import annotations

import shutil
import threading
from pathlib import Path

import msgspec
import pytest

from podium.run import instance
from podium.run.instance import Instance, InUse, Lock


def held_once(data: Path) -> None:
    lock = Lock(data)
    lock.acquire()
    lock.release()


def test_only_one_holds_a_directory(tmp_path: Path) -> None:
    first = Lock(tmp_path)
    first.acquire()
    with pytest.raises(InUse):
        Lock(tmp_path).acquire()
    assert instance.is_held(tmp_path)
    first.release()
    assert not instance.is_held(tmp_path)


def test_looking_whether_it_is_held_gets_in_nobody_s_way(tmp_path: Path) -> None:
    done = threading.Event()

    def look() -> None:
        while not done.is_set():
            instance.is_held(tmp_path)

    lookers = [threading.Thread(target=look) for _ in range(2)]
    for looker in lookers:
        looker.start()
    try:
        for _ in range(200):
            held_once(tmp_path)
    finally:
        done.set()
        for looker in lookers:
            looker.join()


def test_those_who_look_do_not_take_each_other_for_the_holder(tmp_path: Path) -> None:
    held_once(tmp_path)
    found: list[bool] = []
    lookers = [
        threading.Thread(target=lambda: found.extend(instance.is_held(tmp_path) for _ in range(500)))
        for _ in range(4)
    ]
    for looker in lookers:
        looker.start()
    for looker in lookers:
        looker.join()
    assert not any(found)


def test_looking_makes_nothing(tmp_path: Path) -> None:
    assert not instance.is_held(tmp_path / "nothing")
    assert instance.find(tmp_path / "nothing") is None
    assert list(tmp_path.iterdir()) == []


def test_what_a_crashed_instance_left_is_gone_once_another_holds_the_directory(tmp_path: Path) -> None:
    stale = Instance(1, "https://127.0.0.1:1", "0", "2026-01-01T00:00:00Z")
    (tmp_path / instance.STATE).write_bytes(msgspec.json.encode(stale))
    lock = Lock(tmp_path)
    lock.acquire()
    assert instance.find(tmp_path) is None
    lock.release()


def test_what_a_crash_left_half_written_is_ours_to_erase(tmp_path: Path) -> None:
    data = tmp_path / "cluster"
    data.mkdir()
    for name in (".kubeconfig.abc123", "instance.json.4711", "state.db", "lock"):
        (data / name).touch()
    instance.erase(data)
    assert not data.exists()


def test_a_stranger_s_file_is_not_ours_to_erase(tmp_path: Path) -> None:
    (tmp_path / ".kubeconfig").touch()
    with pytest.raises(instance.NotOurs, match=r"\.kubeconfig"):
        instance.erase(tmp_path)


def test_a_directory_that_is_held_is_not_erased(tmp_path: Path) -> None:
    lock = Lock(tmp_path)
    lock.acquire()
    with pytest.raises(InUse):
        instance.erase(tmp_path)
    lock.release()


def test_a_lock_that_was_erased_meanwhile_is_not_held(tmp_path: Path) -> None:
    data = tmp_path / "cluster"
    first = Lock(data)
    first.acquire()
    shutil.rmtree(data)
    second = Lock(data)
    second.acquire()
    assert instance.is_held(data)
    first.release()
    assert instance.is_held(data)
    second.release()
