"""Where a server may send us: the guard against requests forged through redirects and token realms.

The registry that a user names may lie anywhere. Another host, to which that registry points, may be public,
or lie no deeper in private ground than the registry itself: a registry in the company's network may have
its token server there, but one on the Internet must not make us talk to this machine or its neighbours.
Link-local addresses, where clouds keep their credentials, are refused unless the registry itself has that
very address. The addresses that are judged are those connected to, not a lookup done before, so that no
name can change between.
"""

from __future__ import annotations

import ipaddress
import re
import socket
from enum import IntEnum

from aiohttp.abc import AbstractResolver, ResolveResult
from aiohttp.resolver import ThreadedResolver

Address = ipaddress.IPv4Address | ipaddress.IPv6Address

# Credential services of clouds that do not lie in link-local ranges: Alibaba, Oracle, Azure, AWS over IPv6.
_METADATA = frozenset(
    map(ipaddress.ip_address, ("100.100.100.200", "192.0.0.192", "168.63.129.16", "fd00:ec2::254"))
)
# Names for the same; they matter only where a proxy does the lookup.
_METADATA_NAMES = frozenset(
    {"metadata", "metadata.google.internal", "instance-data", "instance-data.ec2.internal"}
)
_SHARED = ipaddress.ip_network("100.64.0.0/10")
# Private, whatever the version of Python says: a translator's own prefix, and site-local addresses of old.
_LOCAL = (ipaddress.ip_network("64:ff9b:1::/48"), ipaddress.ip_network("fec0::/10"))
# Those with an IPv4 address in their last bits: by a translator (two ways), and by nothing but the bits.
_TRANSLATED = tuple(map(ipaddress.ip_network, ("64:ff9b::/96", "::ffff:0:0:0/96", "::/96")))
# What an old resolver would take for an IPv4 address: 127.1, 0x7f000001, 2130706433, 0177.0.0.1
_NUMERIC = re.compile(r"(?:.*\.)?(?:0x[0-9a-f]*|[0-9]+)\.?", re.IGNORECASE)


class Ground(IntEnum):
    """How private an address is; a higher number is deeper."""

    PUBLIC = 0
    PRIVATE = 1
    LOOPBACK = 2
    FORBIDDEN = 3


def ground(address: Address) -> Ground:
    """How private an address is, that of the IPv4 address inside included."""
    inner = _inside(address)
    if inner is not None:
        return ground(inner)
    if (
        address in _METADATA
        or address.is_link_local
        or address.is_unspecified
        or address.is_multicast
        or address == ipaddress.IPv4Address("255.255.255.255")
    ):
        return Ground.FORBIDDEN
    if address.is_loopback:
        return Ground.LOOPBACK
    if address in _SHARED or any(address in network for network in _LOCAL):
        return Ground.PRIVATE
    return Ground.PUBLIC if address.is_global else Ground.PRIVATE


def literal(host: str) -> Address | None:
    """The address that a host is written as, if it is; ValueError for a number in an odd form."""
    try:
        return ipaddress.ip_address(host.partition("%")[0])
    except ValueError:
        if _NUMERIC.fullmatch(host) or ":" in host:
            raise ValueError(f"{host!r} is not an address in its usual form") from None
        return None


class Guard:
    """Decides for one registry which other addresses it may send us to."""

    def __init__(self, registry_host: str, trusted_hosts: frozenset[str] = frozenset()) -> None:
        self._host = registry_host
        self._trusted = trusted_hosts
        # None until the registry's name has been looked up; only ever becomes shallower.
        self._depth: Ground | None = None
        self._own: set[Address] = set()
        try:
            written = literal(registry_host)
        except ValueError:
            written = None
        if written is not None:
            self.learned(registry_host, [written])

    def learned(self, host: str, addresses: list[Address]) -> None:
        """Note where the registry itself lies; the shallowest of its addresses counts."""
        if host != self._host or not addresses:
            return
        shallowest = min(map(ground, addresses))
        self._depth = shallowest if self._depth is None else min(self._depth, shallowest)
        self._own.update(addresses)

    def refusal(self, host: str, port: int | None, address: Address | None) -> str:
        """Why this place must not be connected to, or the empty string."""
        if host in self._trusted or f"{host}:{port}" in self._trusted:
            return ""
        if address is None:
            return (
                f"{host} is a cloud's credential service"
                if host.rstrip(".").lower() in _METADATA_NAMES
                else ""
            )
        found = ground(address)
        depth = self._depth or Ground.PUBLIC
        # One that the registry itself has, but not one that it only claims beside a public one.
        if found is Ground.PUBLIC or (address in self._own and found <= depth):
            return ""
        if found is Ground.FORBIDDEN or found > depth:
            place = str(address) if str(address) == host else f"{host} ({address})"
            return f"{place} is a {found.name.lower()} address, and {self._host} is not there itself"
        return ""


class Refused(OSError):
    """A name led to an address that the guard refuses."""


class Lookup(AbstractResolver):
    """Looks names up; tells the guard where the registry is, or asks it about everybody else."""

    def __init__(self, guard: Guard, *, guarded: bool) -> None:
        self._inner = ThreadedResolver()
        self._guard = guard
        self._guarded = guarded

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_INET
    ) -> list[ResolveResult]:
        """The addresses of a host; Refused if any of them is."""
        try:
            found = await self._inner.resolve(host, port, family)
        except UnicodeError:  # a part of the name is too long
            raise OSError(f"{host} cannot be looked up") from None
        addresses = [ipaddress.ip_address(each["host"].partition("%")[0]) for each in found]
        if not self._guarded:
            self._guard.learned(host, addresses)
            return found
        for address in addresses:
            if refusal := self._guard.refusal(host, port, address):
                raise Refused(refusal)
        return found

    async def close(self) -> None:
        """Nothing is held."""
        await self._inner.close()


def _inside(address: Address) -> ipaddress.IPv4Address | None:
    """The IPv4 address that an IPv6 address stands for."""
    if isinstance(address, ipaddress.IPv4Address):
        return None
    if address.is_loopback or address.is_unspecified:
        return None
    if any(address in network for network in _TRANSLATED):
        return ipaddress.IPv4Address(int(address) & 0xFFFFFFFF)
    return address.ipv4_mapped or address.sixtofour or (address.teredo[1] if address.teredo else None)
