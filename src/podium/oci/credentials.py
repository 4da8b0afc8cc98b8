"""Who we are to a registry: auth files of docker and podman, and the helpers they name.

Files are read in the order podman uses, and the first with something for the repository wins. Within a
file: the helper for the registry, then `auths` by the longest key (`host/namespace/repository`, then
shorter, then the host in any of its old spellings), then the general store. Secrets stay out of every
message and repr.
"""

from __future__ import annotations

import base64
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import msgspec

from podium.oci import credentialhelpers
from podium.oci.errors import BadSetup
from podium.oci.settings import Settings
from podium.text.references import lower_host

# The name that registries.conf gives to the auth files when it lists where to look.
AUTH_FILES = "containers-auth.json"
_DOCKER_HUB = "docker.io"
_DOCKER_HUB_KEY = "https://index.docker.io/v1/"
_MAX_FILE = 4 << 20


@dataclass(frozen=True, slots=True)
class Credential:
    """A user name with a password, or an identity token to trade for others; and where it was found."""

    username: str
    password: str = field(repr=False)
    identity_token: str = field(default="", repr=False)
    # A token to be sent as it is.
    registry_token: str = field(default="", repr=False)
    origin: str = ""


class _Entry(msgspec.Struct, rename="lower"):
    auth: str = ""
    username: str = ""
    password: str = ""
    identity_token: str = msgspec.field(name="identitytoken", default="")
    registry_token: str = msgspec.field(name="registrytoken", default="")

    def __repr__(self) -> str:
        return "_Entry(...)"


class _AuthFile(msgspec.Struct):
    auths: dict[str, _Entry] | None = None
    cred_helpers: dict[str, str] | None = msgspec.field(name="credHelpers", default=None)
    creds_store: str = msgspec.field(name="credsStore", default="")

    def __post_init__(self) -> None:
        # A registry is the same however its name was written when somebody logged in.
        self.auths = {lower_host(key): entry for key, entry in (self.auths or {}).items()}
        self.cred_helpers = {lower_host(key): name for key, name in (self.cred_helpers or {}).items()}


class Keychain:
    """Finds credentials; files are read when they are needed, once."""

    def __init__(self, settings: Settings, helpers: Sequence[str] = (AUTH_FILES,)) -> None:
        self._settings = settings
        self._helpers = tuple(helpers) or (AUTH_FILES,)
        self._files: dict[Path, _AuthFile | None] = {}

    async def find(self, repository: str) -> Credential | None:
        """The credential for a repository (`host/path`), None if there is none anywhere."""
        for helper in self._helpers:
            if helper == AUTH_FILES:
                found = await self._in_files(repository)
            else:
                found = await self._from_helper(helper, repository, "credential-helpers of registries.conf")
            if found is not None:
                return found
        return None

    def places(self) -> str:
        """Where credentials are looked for, for messages."""
        return ", ".join(str(path) for path, _ in self._paths())

    async def _in_files(self, repository: str) -> Credential | None:
        for path, explicit in self._paths():
            content = self._content(path, explicit=explicit)
            if content is not None and (found := await self._in_file(path, content, repository)) is not None:
                return found
        return None

    async def _in_file(self, path: Path, content: _AuthFile, repository: str) -> Credential | None:
        host = repository.partition("/")[0]
        for key in _spellings(host):
            if helper := (content.cred_helpers or {}).get(key):
                # A registry that has a helper has no other credentials in this file.
                return await self._from_helper(helper, repository, f"{path}: credHelpers")
        found = _in_auths(path, content.auths or {}, repository)
        if found is None and content.creds_store:
            return await self._from_helper(content.creds_store, repository, f"{path}: credsStore")
        return found

    async def _from_helper(self, helper: str, repository: str, origin: str) -> Credential | None:
        for server in _spellings(repository.partition("/")[0]):
            stored = await credentialhelpers.ask(
                helper,
                server,
                environ=self._settings.environ,
                timeout=self._settings.timeouts.helper,
                origin=origin,
            )
            if stored is None:
                continue
            found_at = f"docker-credential-{helper}"
            if stored.username == "<token>":
                return Credential("", "", identity_token=stored.secret, origin=found_at)
            return Credential(stored.username, stored.secret, origin=found_at)
        return None

    def _paths(self) -> Iterator[tuple[Path, bool]]:
        """Auth files in order, and whether the user named the file, so that it must be there."""
        environ, home = self._settings.environ, self._settings.home
        named = self._settings.auth_file or environ.get("REGISTRY_AUTH_FILE")
        if named:
            yield Path(named), True
            return
        if docker := environ.get("DOCKER_CONFIG"):
            yield Path(docker, "config.json"), False
        runtime = environ.get("XDG_RUNTIME_DIR")
        yield (
            Path(f"{runtime}/containers" if runtime else f"/run/containers/{os.getuid()}", "auth.json"),
            False,
        )
        yield self._settings.config_home / "containers" / "auth.json", False
        if not environ.get("DOCKER_CONFIG"):
            yield home / ".docker" / "config.json", False
        yield home / ".dockercfg", False

    def _content(self, path: Path, *, explicit: bool) -> _AuthFile | None:
        if path not in self._files:
            self._files[path] = _read(path, explicit=explicit)
        return self._files[path]


def _read(path: Path, *, explicit: bool) -> _AuthFile | None:
    try:
        with path.open("rb") as file:
            data = file.read(_MAX_FILE + 1)
    except (FileNotFoundError, NotADirectoryError):
        if explicit:
            raise BadSetup(f"the auth file {path} does not exist: log in, or do not name it") from None
        return None
    except OSError as error:
        if not explicit and isinstance(error, PermissionError):
            return None
        raise BadSetup(f"the auth file {path} cannot be read: {error.strerror}") from error
    if len(data) > _MAX_FILE:
        raise BadSetup(f"the auth file {path} is larger than {_MAX_FILE} bytes")
    try:
        if path.name == ".dockercfg":
            return _AuthFile(auths=msgspec.json.decode(data, type=dict[str, _Entry]))
        return msgspec.json.decode(data, type=_AuthFile)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise BadSetup(f"the auth file {path} is not what docker or podman login writes: {error}") from None


def _in_auths(path: Path, auths: dict[str, _Entry], repository: str) -> Credential | None:
    for key in _keys(auths, repository):
        if (found := _credential(auths[key], f"{path}: {key}")) is not None:
            return found
    return None


def _keys(auths: dict[str, _Entry], repository: str) -> Iterator[str]:
    """Keys that fit a repository, the most specific first."""
    host, key = repository.partition("/")[0], repository
    while key:
        if key in auths:
            yield key
        key = key.rpartition("/")[0]
    # Old clients wrote URLs, and Docker Hub still has one for its key.
    wanted = _spellings(host)
    yield from (key for key in auths if key != host and _host_of(key) in wanted)


def _host_of(key: str) -> str:
    """The host of a key that is a URL, or of one of Docker Hub's names; otherwise the key."""
    bare = key.removeprefix("http://").removeprefix("https://")
    return bare.partition("/")[0] if bare != key else key


def _spellings(host: str) -> tuple[str, ...]:
    """The names under which credentials for a host may be kept."""
    if host in (_DOCKER_HUB, "index.docker.io", "registry-1.docker.io"):
        return (_DOCKER_HUB, _DOCKER_HUB_KEY, "index.docker.io", "registry-1.docker.io")
    return (host,)


def _credential(entry: _Entry, origin: str) -> Credential | None:
    """What an entry holds; None if it is empty, as Docker leaves it when a helper keeps the secret."""
    username, password = entry.username, entry.password
    if entry.auth:
        try:
            text = base64.b64decode(entry.auth, validate=True).decode()
        except ValueError:  # not base64, not ASCII, not UTF-8
            raise BadSetup(f"{origin}: `auth` is not base64 of user:password; log in again") from None
        username, colon, password = text.partition(":")
        password = password.strip("\x00")
        if not colon:
            raise BadSetup(f"{origin}: `auth` has no colon between user and password; log in again")
    token = entry.registry_token
    # It goes into a header as it is.
    if not token.isascii() or not token.isprintable() or " " in token:
        raise BadSetup(f"{origin}: `registrytoken` is no token; log in again")
    if not (password or entry.identity_token or token):
        return None
    return Credential(username, password, entry.identity_token, token, origin)
