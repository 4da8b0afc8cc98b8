"""The registries that one program talks to: their hosts, and what they share.

All repositories share one set of slots, one keychain and one view of registries.conf; repositories of one
host share its connections and tokens. Configuration is read when the first repository is asked for.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from urllib.parse import urlsplit

from podium.oci import registriesconf
from podium.oci.certificates import Certificates
from podium.oci.credentials import AUTH_FILES, Keychain
from podium.oci.errors import BadReference
from podium.oci.host import Host
from podium.oci.registriesconf import RegistriesConf
from podium.oci.registry import Repository, Slots
from podium.oci.remote import Remote
from podium.oci.retrying import Clock
from podium.oci.settings import Settings
from podium.oci.store import Progress
from podium.text.references import Reference


class Connections:
    """Everything that is open towards registries."""

    def __init__(self, settings: Settings, progress: Progress | None, clock: Clock | None) -> None:
        self._settings = settings
        self._progress = progress
        self._clock = clock or Clock()
        self._slots = Slots(max(1, settings.concurrency))
        self._certificates = Certificates(settings)
        self._hosts: dict[tuple[str, bool], Host] = {}
        self._conf: RegistriesConf | None = None
        self._keys: Keychain | None = None

    async def close(self) -> None:
        """Close every connection."""
        hosts, self._hosts = self._hosts, {}
        for host in hosts.values():
            await host.close()

    def repository(self, reference: Reference) -> Repository:
        """The repository of a reference; Blocked before any connection."""
        # DNS knows no upper case, so whatever is said of a host holds however it is written.
        reference = replace(reference, domain=reference.domain.lower())
        self._registries().permitted(reference)
        named = Reference(reference.domain, reference.path)
        target = self._registries().target(named)
        return Repository(
            named,
            self._sources,
            self._remote(target.reference, insecure=target.insecure),
            self._slots,
            progress=self._progress,
            upload_chunk=self._settings.upload_chunk,
        )

    def _sources(self, reference: Reference) -> Sequence[tuple[Remote, str]]:
        places = self._registries().sources(reference)
        return [
            (
                self._remote(place.reference, insecure=place.insecure),
                place.reference.digest or place.reference.tag,
            )
            for place in places
        ]

    def _remote(self, reference: Reference, *, insecure: bool) -> Remote:
        return Remote(self._host(reference.domain, insecure=insecure), reference.path)

    def _host(self, name: str, *, insecure: bool) -> Host:
        key = (name, insecure)
        if key not in self._hosts:
            _check_host(name)
            self._hosts[key] = Host(
                name,
                self._settings,
                self._certificates,
                self._keychain(),
                insecure=insecure,
                clock=self._clock,
            )
        return self._hosts[key]

    def _registries(self) -> RegistriesConf:
        if self._conf is None:
            self._conf = registriesconf.load(self._settings)
        return self._conf

    def _keychain(self) -> Keychain:
        if self._keys is None:
            self._keys = Keychain(self._settings, self._registries().credential_helpers or (AUTH_FILES,))
        return self._keys


def _check_host(name: str) -> None:
    """BadReference for what the grammar of references takes for a host but nobody can connect to."""
    try:
        parts = urlsplit(f"//{name}")
        if parts.hostname and parts.port != 0:
            return
    except ValueError:
        pass
    raise BadReference(f"{name[:300]!r} is not a host that can be connected to")
