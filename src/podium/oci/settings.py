"""What a user can say about how registries are reached.

One value, made by the command line or a controller and never changed. Nothing below reads `os.environ` or a
home directory by itself: both come in here, so a test or a controller can run in a world of its own.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Timeouts:
    """Seconds; a transfer that keeps moving is never cut off, however long it takes."""

    connect: float = 15.0
    # Longest silence while reading or writing; registries may compute for a while before they answer.
    idle: float = 30.0
    # A credential helper may have to ask a keychain, but nobody waits for a dialogue that is never answered.
    helper: float = 30.0


@dataclass(frozen=True, slots=True)
class Retries:
    """How often work is tried again after a reset, a 429 or a 5xx answer."""

    attempts: int = 4
    first_delay: float = 0.5
    longest_delay: float = 20.0
    # Seconds of waiting in all for one piece of work; a Retry-After that exceeds what is left ends it at
    # once.
    budget: float = 90.0


@dataclass(frozen=True, slots=True)
class Settings:
    """How to reach registries; hosts are written as in references: `host` or `host:port`."""

    # Hosts that are spoken to over plain HTTP. There is no default: not even localhost.
    plain_http: frozenset[str] = frozenset()
    # Hosts whose certificate is not checked.
    insecure_skip_tls_verify: frozenset[str] = frozenset()
    # Hosts that redirects and token realms may lead to even though they lie in a private network (see
    # `addresses`).
    trusted_hosts: frozenset[str] = frozenset()
    # Only this file is used for credentials; otherwise REGISTRY_AUTH_FILE, or the places docker and podman
    # use.
    auth_file: Path | None = None
    # Only this file is used; otherwise CONTAINERS_REGISTRIES_CONF, or the places podman uses, with drop-ins.
    registries_conf: Path | None = None
    # Directories of `host:port` directories with *.crt, *.cert and *.key, before the usual places.
    cert_dirs: tuple[Path, ...] = ()
    # Blobs that move at the same time, in each direction.
    concurrency: int = 4
    # Upload in pieces of this size; 0 sends a blob whole, which every registry takes, and changes to pieces
    # only when told that it is too large (413).
    upload_chunk: int = 0
    timeouts: Timeouts = Timeouts()
    retries: Retries = Retries()
    environ: Mapping[str, str] = field(default_factory=lambda: dict(os.environ), repr=False)
    etc: Path = Path("/etc")
    share: Path = Path("/usr/share")

    def __post_init__(self) -> None:
        for name in ("plain_http", "insecure_skip_tls_verify", "trusted_hosts"):
            object.__setattr__(self, name, frozenset(host.lower() for host in getattr(self, name)))

    @property
    def home(self) -> Path:
        """The user's home directory."""
        if home := self.environ.get("HOME"):
            return Path(home)
        try:
            return Path("~").expanduser()
        except RuntimeError:  # in a container, a user may have neither HOME nor an entry in passwd
            return Path("/")

    @property
    def config_home(self) -> Path:
        """Where the user's own configuration lies."""
        return Path(self.environ.get("XDG_CONFIG_HOME") or self.home / ".config")
