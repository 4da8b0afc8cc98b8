"""registries.conf, version 2: which places hold an image, in which order, and which are forbidden.

Read from where podman reads it, drop-ins included. One `[[registry]]` table is chosen for a reference by
its longest prefix; its mirrors are tried in order and then its own location. Short names are not searched
for: `alpine` always means `docker.io/library/alpine`, so `unqualified-search-registries` and aliases have
no effect.
"""

from __future__ import annotations

import os
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from podium.oci.errors import BadReference, BadSetup, Blocked
from podium.oci.settings import Settings
from podium.text.references import Grammar, Reference, lower_host

_PULLS = ("", "all", "digest-only", "tag-only")
_MAX_FILE = 4 << 20


@dataclass(frozen=True, slots=True)
class Mirror:
    """A place that holds what another holds."""

    location: str
    insecure: bool = False
    pull: str = ""


@dataclass(frozen=True, slots=True)
class Registry:
    """One `[[registry]]` table; the location is empty if the name is used as it is."""

    prefix: str
    location: str
    insecure: bool = False
    blocked: bool = False
    mirrors: tuple[Mirror, ...] = ()
    mirror_by_digest_only: bool = False
    file: str = ""


@dataclass(frozen=True, slots=True)
class Source:
    """A place to read an image from."""

    reference: Reference
    insecure: bool


@dataclass(frozen=True, slots=True)
class RegistriesConf:
    """What all files say together."""

    registries: Mapping[str, Registry]
    credential_helpers: tuple[str, ...] = ()

    def find(self, reference: Reference) -> Registry | None:
        """The table that applies to a reference."""
        text = lower_host(str(reference))
        fitting = [each for each in self.registries.values() if _matched(text, each.prefix) is not None]
        # Of two that are as long, such as one with a wildcard, podman takes the first in the alphabet.
        return min(fitting, key=lambda registry: (-len(registry.prefix), registry.prefix), default=None)

    def sources(self, reference: Reference) -> list[Source]:
        """Where to read an image from, best first, the place itself last; Blocked if it is forbidden."""
        registry = self.permitted(reference)
        if registry is None:
            return [Source(reference, insecure=False)]
        mirrors = [mirror for mirror in registry.mirrors if _serves(registry, mirror, reference)]
        places = [(mirror.location, mirror.insecure) for mirror in mirrors]
        places.append((registry.location, registry.insecure))
        return [Source(_moved(reference, registry, location), insecure) for location, insecure in places]

    def target(self, reference: Reference) -> Source:
        """Where to write an image: the place that was named, as podman does; Blocked if forbidden."""
        registry = self.permitted(reference)
        return Source(reference, insecure=registry is not None and registry.insecure)

    def permitted(self, reference: Reference) -> Registry | None:
        """The table for a reference; Blocked if it says so."""
        registry = self.find(reference)
        if registry is not None and registry.blocked:
            raise Blocked(f"{reference}: {registry.file} blocks {registry.prefix}")
        return registry


def load(settings: Settings) -> RegistriesConf:
    """The configuration of this machine and user; empty if there is none."""
    registries: dict[str, Registry] = {}
    helpers: tuple[str, ...] = ()
    for file, explicit in _files(settings):
        text = _text(file, explicit=explicit)
        if text is None:
            continue
        read = parse(text, str(file))
        registries.update(read.registries)
        helpers = read.credential_helpers or helpers
    return RegistriesConf(registries, helpers)


def parse(text: str, file: str) -> RegistriesConf:
    """What one file says; BadSetup if it is malformed or of version 1."""
    try:
        content = tomllib.loads(text)
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        raise BadSetup(f"{file}: not TOML: {error}") from None
    _refuse_version_1(content, file)
    tables = _typed(content, "registry", list, [], file)
    found: dict[str, Registry] = {}
    for number, table in enumerate(tables, 1):
        registry = _registry(table, f"{file}: registry {number}", file)
        # The first of two tables with the same prefix wins, as in podman.
        found.setdefault(registry.prefix, registry)
        _refuse_conflict(registry, found.values(), file)
    helpers = _typed(content, "credential-helpers", list, [], file)
    if not all(isinstance(each, str) for each in helpers):
        raise BadSetup(f"{file}: credential-helpers must be a list of names")
    return RegistriesConf(found, tuple(helpers))


def _files(settings: Settings) -> Iterator[tuple[Path, bool]]:
    """Files in the order they are read, later ones winning, and whether the user named the file."""
    environ = settings.environ
    named = settings.registries_conf or environ.get("CONTAINERS_REGISTRIES_CONF")
    if named:
        yield Path(named), True
    else:
        bases = [settings.config_home, settings.etc, settings.share]
        candidates = [base / "containers" / "registries.conf" for base in bases]
        # Only one main file counts, that of the user before those of the machine.
        yield from [(file, False) for file in candidates if _is_file(file)][:1]
        yield from ((file, False) for file in _drop_ins(settings))
    override = environ.get("CONTAINERS_REGISTRIES_CONF_OVERRIDE")
    if override and settings.registries_conf is None:
        yield Path(override), True


def _drop_ins(settings: Settings) -> list[Path]:
    """Every drop-in by its name; of two with the same name the one in the more particular directory."""
    uid = os.getuid()
    rootless = [f"registries.rootless.conf.d/{uid}", "registries.rootless.conf.d"]
    rooted = rootless if uid else ["registries.rootful.conf.d"]
    directories = [settings.config_home / "containers" / "registries.conf.d"]
    for base in (settings.etc, settings.share):
        directories += [base / "containers" / name for name in (*rooted, "registries.conf.d")]
    found: dict[str, Path] = {}
    for directory in directories:
        try:
            files = sorted(directory.glob("*.conf"))
        except OSError:
            continue
        for file in files:
            if _is_file(file):
                found.setdefault(file.name, file)
    return [found[name] for name in sorted(found)]


def _is_file(file: Path) -> bool:
    try:
        return file.is_file()
    except OSError:  # a home directory that is another user's
        return False


def _text(file: Path, *, explicit: bool) -> str | None:
    try:
        with file.open("rb") as stream:
            data = stream.read(_MAX_FILE + 1)
        if len(data) > _MAX_FILE:
            raise BadSetup(f"{file} is larger than {_MAX_FILE} bytes")
        return data.decode()
    except FileNotFoundError:
        if explicit:
            raise BadSetup(f"the registries.conf {file} does not exist") from None
        return None
    except (OSError, UnicodeDecodeError) as error:
        raise BadSetup(f"{file} cannot be read: {error}") from error


def _refuse_version_1(content: Mapping[str, Any], file: str) -> None:
    old = content.get("registries")
    if isinstance(old, dict) and old.keys() & {"search", "insecure", "block"}:
        raise BadSetup(
            f"{file} is of version 1 ([registries.search], .insecure, .block), which is no longer read: "
            "write [[registry]] tables with location, insecure and blocked instead"
        )


def _registry(table: Any, where: str, file: str) -> Registry:
    if not isinstance(table, dict):
        raise BadSetup(f"{where}: must be a [[registry]] table")
    location = _location(table, "location", where)
    prefix = _location(table, "prefix", where) or location
    if not prefix:
        raise BadSetup(f"{where}: neither location nor prefix is set")
    wildcard = prefix.startswith("*.")
    if wildcard and any(letter in prefix for letter in "/@:"):
        raise BadSetup(f"{where}: a prefix with a wildcard is written *.example.com, not {prefix}")
    if not location and not wildcard:
        raise BadSetup(f"{where}: prefix {prefix} needs a location")
    if "pull-from-mirror" in table:
        raise BadSetup(f"{where}: pull-from-mirror belongs to a mirror, not to {prefix}")
    by_digest = _typed(table, "mirror-by-digest-only", bool, False, where)
    mirrors = tuple(
        _mirror(each, f"{where}, mirror {number}", by_digest=by_digest)
        for number, each in enumerate(_typed(table, "mirror", list, [], where), 1)
    )
    insecure = _typed(table, "insecure", bool, False, where)
    blocked = _typed(table, "blocked", bool, False, where)
    return Registry(prefix, location, insecure, blocked, mirrors, by_digest, file)


def _mirror(table: Any, where: str, *, by_digest: bool) -> Mirror:
    if not isinstance(table, dict):
        raise BadSetup(f"{where}: must be a table")
    location = _location(table, "location", where)
    pull = _typed(table, "pull-from-mirror", str, "", where)
    if not location:
        raise BadSetup(f"{where}: has no location")
    if pull not in _PULLS:
        raise BadSetup(f"{where}: pull-from-mirror is all, digest-only or tag-only, not {pull!r}")
    if pull and by_digest:
        raise BadSetup(
            f"{where}: pull-from-mirror and the registry's mirror-by-digest-only exclude each other"
        )
    return Mirror(location, _typed(table, "insecure", bool, False, where), pull)


def _refuse_conflict(registry: Registry, others: Iterable[Registry], file: str) -> None:
    for other in others:
        if (other.location or other.prefix) != (registry.location or registry.prefix):
            continue
        for name in ("insecure", "blocked"):
            if getattr(other, name) != getattr(registry, name):
                place = registry.location or registry.prefix
                raise BadSetup(f"{file}: {place} is defined several times, with different values of {name}")


def _location(table: Mapping[str, Any], key: str, where: str) -> str:
    text: str = _typed(table, key, str, "", where).rstrip("/")
    if text.startswith(("http://", "https://")):
        raise BadSetup(
            f"{where}: {key} {text} must be written without a scheme; insecure = true allows plain HTTP"
        )
    return lower_host(text)


def _typed(table: Mapping[str, Any], key: str, kind: type, default: Any, where: str) -> Any:
    value = table.get(key, default)
    if not isinstance(value, kind):
        raise BadSetup(f"{where}: {key} must be of type {kind.__name__}, not {type(value).__name__}")
    return value


def _matched(text: str, prefix: str) -> int | None:
    """How many characters of a reference a prefix covers; None if it does not fit."""
    if prefix.startswith("*."):
        name = text.partition("/")[0].partition(":")[0]
        return len(name) if name.endswith(prefix[1:]) else None
    if not text.startswith(prefix):
        return None
    # As in podman, `example.com` also fits `example.com:5000`.
    return len(prefix) if text[len(prefix) : len(prefix) + 1] in ("", "/", ":", "@") else None


def _serves(registry: Registry, mirror: Mirror, reference: Reference) -> bool:
    by_digest = bool(reference.digest)
    if registry.mirror_by_digest_only or mirror.pull == "digest-only":
        return by_digest
    return not (mirror.pull == "tag-only" and by_digest)


def _moved(reference: Reference, registry: Registry, location: str) -> Reference:
    """The reference as it is called in another location."""
    if not location:
        return reference
    text = lower_host(str(reference))
    moved = location + text[_matched(text, registry.prefix) or 0 :]
    # The older grammar, which podman applies here, knows no IPv6 addresses.
    grammar = Grammar.DISTRIBUTION if moved.startswith("[") else Grammar.CONTAINERS
    try:
        found = Reference.parse(moved, grammar)
        if str(found) != moved:
            raise ValueError(f"it would have to be written {found}")
    except ValueError as error:
        raise BadReference(
            f"{registry.file} turns {text} into {moved}, which names no image: {error}"
        ) from None
    return found
