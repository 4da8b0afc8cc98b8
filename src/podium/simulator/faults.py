"""What a person can make go wrong, or slow, by annotation; `docs/simulator.md` has the table.

Annotations are looked up on the Pod, then on its Namespace. A Pod template carries them to every Pod of a
workload. A value that makes no sense counts as absent: a typing error must not break a cluster.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase

# Images that cannot be pulled: a glob, or `true` for all.
UNPULLABLE = "podium.dev/unpullable"
# Containers that crash as soon as they run: a glob of container names, or `true` for all.
CRASH = "podium.dev/crash"
# After how many restarts a crashing container stays in CrashLoopBackOff.
CRASH_RESTARTS = "podium.dev/crash-restarts"
# Containers that run and never become ready: a glob of container names, or `true` for all.
NEVER_READY = "podium.dev/never-ready"
# The exit code of containers that crash (default 1) or finish (default 0).
EXIT_CODE = "podium.dev/exit-code"
# Whether a Pod that does not always restart ends by itself; the default is true for Pods of Jobs only.
FINISH = "podium.dev/finish"
# Seconds that pass between these steps; the default is 0 for each.
START_SECONDS = "podium.dev/start-seconds"
FINISH_SECONDS = "podium.dev/finish-seconds"
RESTART_SECONDS = "podium.dev/restart-seconds"
# On a Node: it takes no more Pods while this is `true`.
NODE_FULL = "podium.dev/node-full"

# More than the default backoffLimit of a Job, which must be able to run out.
_DEFAULT_RESTARTS = 10


@dataclass(frozen=True, slots=True)
class Faults:
    """The wishes that apply to one Pod."""

    unpullable: str = ""
    crash: str = ""
    crash_restarts: int = _DEFAULT_RESTARTS
    never_ready: str = ""
    exit_code: int | None = None
    finish: bool | None = None
    start_seconds: float = 0.0
    finish_seconds: float = 0.0
    restart_seconds: float = 0.0

    def is_unpullable(self, image: str) -> bool:
        """Whether this image cannot be pulled."""
        return _matches(self.unpullable, image)

    def crashes(self, container: str) -> bool:
        """Whether the container of this name crashes."""
        return _matches(self.crash, container)

    def is_never_ready(self, container: str) -> bool:
        """Whether the container of this name stays unready."""
        return _matches(self.never_ready, container)


NONE = Faults()


def read(pod: Mapping[str, str], namespace: Mapping[str, str]) -> Faults:
    """The wishes in the annotations of a Pod and of its Namespace."""
    found = {**namespace, **pod}
    if not any(key.startswith("podium.dev/") for key in found):
        return NONE
    code = _number(found.get(EXIT_CODE), -1)
    finish = found.get(FINISH)
    return Faults(
        unpullable=_glob(found.get(UNPULLABLE)),
        crash=_glob(found.get(CRASH)),
        crash_restarts=int(_number(found.get(CRASH_RESTARTS), _DEFAULT_RESTARTS)),
        never_ready=_glob(found.get(NEVER_READY)),
        exit_code=int(code) if 0 <= code <= 255 else None,
        finish=finish == "true" if finish in ("true", "false") else None,
        start_seconds=_number(found.get(START_SECONDS), 0.0),
        finish_seconds=_number(found.get(FINISH_SECONDS), 0.0),
        restart_seconds=_number(found.get(RESTART_SECONDS), 0.0),
    )


def _glob(value: str | None) -> str:
    if value in (None, "", "false"):
        return ""
    return "*" if value == "true" else str(value)


def _matches(glob: str, text: str) -> bool:
    return bool(glob) and fnmatchcase(text, glob)


def _number(value: str | None, default: float) -> float:
    try:
        number = float(value or "")
    except ValueError:
        return default
    return number if 0 <= number < 1e9 else default
