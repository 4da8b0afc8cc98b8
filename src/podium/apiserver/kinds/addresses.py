"""IP addresses and ranges, with the words Kubernetes uses for bad ones."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Collection

from podium.apiserver.kinds.checks import each
from podium.schema import fielderrors as errors
from podium.schema.fielderrors import FieldError

Address = ipaddress.IPv4Address | ipaddress.IPv6Address
Network = ipaddress.IPv4Network | ipaddress.IPv6Network

_BAD_IP = "must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)"
_BAD_CIDR = "must be a valid CIDR value, (e.g. 10.9.8.0/24 or 2001:db8::/64)"


def parse(text: str) -> Address | None:
    """The address, or None; IPv6 zones are refused, IPv4 written in IPv6 counts as IPv4."""
    try:
        found = ipaddress.ip_address(text)
    except ValueError:
        return None
    if isinstance(found, ipaddress.IPv6Address):
        return None if found.scope_id else (found.ipv4_mapped or found)
    return found


def parse_network(text: str) -> Network | None:
    if "/" not in text:
        return None
    try:
        return ipaddress.ip_network(text, strict=False)
    except ValueError:
        return None


def is_v6(text: str) -> bool:
    return isinstance(parse(text), ipaddress.IPv6Address)


def validate_ip(path: str, text: str, known: Collection[str] = ()) -> list[FieldError]:
    """An address in a field that was always lenient; values it had before (`known`) pass."""
    if text in known:
        return []
    found = parse(text)
    if found is None:
        if _leading_zeros(text):
            return [errors.invalid(path, text, "must not have leading 0s")]
        return [errors.invalid(path, text, _BAD_IP)]
    if isinstance(found, ipaddress.IPv4Address) and ":" in text:
        return [errors.invalid(path, text, "must not be an IPv4-mapped IPv6 address")]
    return []


def validate_cidr(path: str, text: str, known: Collection[str] = ()) -> list[FieldError]:
    if text in known:
        return []
    found = parse_network(text)
    if found is None:
        return [errors.invalid(path, text, _BAD_CIDR)]
    if ipaddress.ip_address(text.partition("/")[0]) != found.network_address:
        return [errors.invalid(path, text, "must not have bits set beyond the prefix length")]
    return []


def validate_endpoint_ip(path: str, text: str) -> list[FieldError]:
    """An address that traffic can be sent to: not unspecified, loopback or link-local."""
    found = parse(text)
    if found is None:
        return [errors.invalid(path, text, "must be a valid IP address")]
    problems = []
    if found.is_unspecified:
        problems.append(f"may not be unspecified ({text})")
    if found.is_loopback:
        problems.append("may not be in the loopback range (127.0.0.0/8, ::1/128)")
    if found.is_link_local and not found.is_multicast:
        problems.append("may not be in the link-local range (169.254.0.0/16, fe80::/10)")
    if found in _LINK_LOCAL_MULTICAST[found.version]:
        problems.append("may not be in the link-local multicast range (224.0.0.0/24, ff02::/10)")
    return each(path, text, problems)


def warn_ip(path: str, text: str) -> list[str]:
    """Advice about an address that is understood but not written the standard way."""
    found = parse(text)
    if found is None:
        return []
    if isinstance(found, ipaddress.IPv4Address):
        return [f'{path}: non-standard IP address "{text}" is invalid: use "{found}"'] if ":" in text else []
    if str(found) != text:
        return [f'{path}: IPv6 address "{text}" should be in RFC 5952 canonical format ("{found}")']
    return []


def warn_cidr(path: str, text: str) -> list[str]:
    found = parse_network(text)
    if found is None:
        return []
    address = ipaddress.ip_address(text.partition("/")[0])
    if address != found.network_address:
        either = f'should be "{found}" or "{address}/{found.max_prefixlen}"?'
        return [f'{path}: CIDR value "{text}" is ambiguous in this context ({either})']
    if found.version == 6 and str(found) != text:
        return [f'{path}: IPv6 CIDR value "{text}" should be in RFC 5952 canonical format ("{found}")']
    return []


def _leading_zeros(text: str) -> bool:
    parts = text.split(".")
    if len(parts) != 4 or not all(re.fullmatch("[0-9]{1,10}", p) for p in parts):
        return False
    return all(int(p) <= 255 for p in parts)


_LINK_LOCAL_MULTICAST: dict[int, Network] = {
    4: ipaddress.ip_network("224.0.0.0/24"),
    6: ipaddress.ip_network("ff02::/16"),
}
