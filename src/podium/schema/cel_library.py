"""The CEL functions that Kubernetes adds: on lists, texts, URLs, addresses, quantities, versions, formats.

Names, signatures and error texts are those of the real server.
"""

from __future__ import annotations

import ipaddress
import itertools
import re
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from podium.api import names
from podium.schema import cel_values as values
from podium.schema import formats, gourl, quantity
from podium.schema.cel_functions import (
    Definition,
    by_items,
    by_length,
    by_pattern,
    by_product,
    by_search,
    regex,
)
from podium.schema.cel_types import library_type
from podium.schema.cel_values import NONE, CelError, Duration, Opaque, Optional, checked_int, equal


def definitions() -> Iterable[Definition]:
    """Every function that Kubernetes adds to CEL."""
    yield from _lists()
    yield from _sets()
    yield from _regex()
    yield from _urls()
    yield from _addresses()
    yield from _networks()
    yield from _quantities()
    yield from _versions()
    yield from _formats()


_COMPARABLE = ("int", "uint", "double", "bool", "duration", "timestamp", "string", "bytes")


def _lists() -> Iterable[Definition]:
    for kind in _COMPARABLE:
        yield f"list<{kind}>::isSorted() -> bool", _is_sorted, values.deep_size
        yield f"list<{kind}>::min() -> {kind}", lambda a: _extreme(a, "min", min), values.deep_size
        yield f"list<{kind}>::max() -> {kind}", lambda a: _extreme(a, "max", max), values.deep_size
        yield f"list<{kind}>::sort() -> list<{kind}>", _sort, values.deep_size
    yield "list<int>::sum() -> int", lambda a: checked_int(sum(a)), by_items
    yield "list<uint>::sum() -> uint", lambda a: values.checked_uint(sum(a)), by_items
    yield "list<double>::sum() -> double", lambda a: float(sum(a)), by_items
    yield "list<duration>::sum() -> duration", lambda a: Duration(sum(d.nanoseconds for d in a)), by_items
    yield (
        "list<A>::indexOf(A) -> int",
        lambda a, b: next((i for i, x in enumerate(a) if equal(x, b)), -1),
        by_search,
    )
    yield "list<A>::lastIndexOf(A) -> int", _last_index, by_search
    yield "list<A>::slice(int,int) -> list<A>", _slice, by_items
    yield "list<A>::reverse() -> list<A>", lambda a: a[::-1], by_items
    yield "list<A>::distinct() -> list<A>", _distinct, _distinct_weight
    yield "list<list<A>>::flatten() -> list<A>", lambda a: _flatten(a, 1), values.deep_size
    yield "list<dyn>::flatten(int) -> list<dyn>", _flatten, lambda a, b: values.deep_size(a)
    yield "lists.range(int) -> list<int>", lambda n: list(range(n)), lambda n: max(n, 0)


def _is_sorted(items: list[Any]) -> bool:
    return all(not a > b for a, b in itertools.pairwise(items))


def _extreme(items: list[Any], name: str, choose: Callable[[list[Any]], Any]) -> Any:
    if not items:
        raise CelError(f"{name} called on empty list")
    return choose(items)


def _sort(items: list[Any]) -> list[Any]:
    try:
        return sorted(items)
    except TypeError:
        raise CelError("list elements must have the same type") from None


def _last_index(items: list[Any], item: Any) -> int:
    return next((i for i in range(len(items) - 1, -1, -1) if equal(items[i], item)), -1)


def _slice(items: list[Any], start: int, end: int) -> list[Any]:
    if start < 0 or end < 0:
        raise CelError(f"cannot slice({start}, {end}), negative indexes not supported")
    if start > end:
        raise CelError(f"cannot slice({start}, {end}), start index must be less than or equal to end index")
    if end > len(items):
        raise CelError(f"cannot slice({start}, {end}), list is length {len(items)}")
    return items[start:end]


def _distinct(items: list[Any]) -> list[Any]:
    seen: set[Any] = set()
    kept: list[Any] = []
    for item in items:
        if type(item) in (str, bool, int, bytes):
            key = (type(item), item)
            if key not in seen:
                seen.add(key)
                kept.append(item)
        elif not any(equal(item, other) for other in kept):
            kept.append(item)
    return kept


def _distinct_weight(items: list[Any]) -> int:
    compound = any(type(item) in (list, dict) for item in items)
    return by_product(items, items) if compound else values.size(items)


def _flatten(items: list[Any], depth: int) -> list[Any]:
    if depth < 0:
        raise CelError("level must be non-negative")
    flat: list[Any] = []
    for item in items:
        if type(item) is list and depth:
            flat += _flatten(item, depth - 1)
        else:
            flat.append(item)
    return flat


def _sets() -> Iterable[Definition]:
    yield "sets.contains(list<A>,list<A>) -> bool", _contains_all, by_product
    yield (
        "sets.equivalent(list<A>,list<A>) -> bool",
        lambda a, b: _contains_all(a, b) and _contains_all(b, a),
        by_product,
    )
    yield "sets.intersects(list<A>,list<A>) -> bool", lambda a, b: any(_contains(a, x) for x in b), by_product


def _contains(items: list[Any], item: Any) -> bool:
    return any(equal(item, other) for other in items)


def _contains_all(items: list[Any], wanted: list[Any]) -> bool:
    return all(_contains(items, item) for item in wanted)


def _regex() -> Iterable[Definition]:
    yield "string::find(string) -> string", _find, by_pattern
    yield "string::findAll(string) -> list<string>", lambda a, b: _find_all(a, b, -1), _find_all_weight
    yield "string::findAll(string,int) -> list<string>", _find_all, _find_all_weight


def _find(text: str, expression: str) -> str:
    found = regex(expression).search(text)
    return found.group(0) if found else ""


def _find_all_weight(text: str, expression: str, limit: int = -1) -> int:
    # Every character may be a match, and making one is much dearer than reading a character.
    return by_pattern(text, expression) + 5 * (len(text) if limit < 0 else min(limit, len(text)))


def _find_all(text: str, expression: str, limit: int) -> list[str]:
    found: list[str] = []
    for match in regex(expression).finditer(text):
        if limit >= 0 and len(found) >= limit:
            break
        found.append(match.group(0))
    return found


_URL, _IP, _CIDR, _QUANTITY, _SEMVER, _FORMAT = (
    library_type(name).name for name in ("URL", "IP", "CIDR", "Quantity", "Semver", "NamedFormat")
)


def _urls() -> Iterable[Definition]:
    yield "url(string) -> URL", _url, by_length
    yield "isURL(string) -> bool", gourl.is_request_uri, by_length
    yield "URL::getScheme() -> string", lambda u: u.value.scheme
    yield "URL::getHost() -> string", lambda u: u.value.host
    yield "URL::getHostname() -> string", lambda u: u.value.hostname
    yield "URL::getPort() -> string", lambda u: u.value.port
    yield "URL::getEscapedPath() -> string", lambda u: u.value.escaped_path
    yield "URL::getQuery() -> map<string,list<string>>", lambda u: u.value.query_values


def _url(text: str) -> Opaque:
    try:
        gourl.parse_request_uri(text)
        return Opaque(_URL, gourl.parse(text))
    except gourl.UrlError as error:
        raise CelError(f"URL parse error during conversion from string: {error}") from None


def _addresses() -> Iterable[Definition]:
    yield "ip(string) -> IP", lambda text: Opaque(_IP, _address(text))
    yield "isIP(string) -> bool", lambda text: _is(_address, text)
    yield "ip.isCanonical(string) -> bool", lambda text: str(_address(text)) == text
    yield "string(IP) -> string", lambda ip: str(ip.value)
    yield "IP::family() -> int", lambda ip: ip.value.version
    yield "IP::isUnspecified() -> bool", lambda ip: ip.value.is_unspecified
    yield "IP::isLoopback() -> bool", lambda ip: ip.value.is_loopback
    yield "IP::isLinkLocalMulticast() -> bool", lambda ip: _is_link_local_multicast(ip.value)
    yield "IP::isLinkLocalUnicast() -> bool", lambda ip: ip.value.is_link_local and not ip.value.is_multicast
    yield "IP::isGlobalUnicast() -> bool", lambda ip: _is_global_unicast(ip.value)


Address = ipaddress.IPv4Address | ipaddress.IPv6Address


def _address(text: str) -> Address:
    try:
        address = ipaddress.ip_address(text)
    except ValueError:
        fault = f'ParseAddr("{text}"): {_address_fault(text)}'
        raise CelError(f'IP Address "{text}" parse error during conversion from string: {fault}') from None
    if "%" in text:
        raise CelError(f'IP address "{text}" with zone value is not allowed')
    if isinstance(address, ipaddress.IPv6Address) and address.ipv4_mapped is not None:
        raise CelError(f'IPv4-mapped IPv6 address "{text}" is not allowed')
    return address


def _address_fault(text: str) -> str:
    first = re.search("[.:%]", text)
    if first is None or first[0] != ".":
        return "unable to parse IP"
    if found := re.search(r"[^0-9.]", text):
        return f'unexpected character (at "{text[found.start() :]}")'
    fields = text.split(".")
    if "" in fields:
        return f'IPv4 field must have at least one digit (at "{text}")'
    if any(len(field) > 1 and field[0] == "0" for field in fields):
        return "IPv4 field has octet with leading zero"
    if any(int(field) > 255 for field in fields):
        return "IPv4 field has value >255"
    return "IPv4 address too short" if len(fields) < 4 else "IPv4 address too long"


def _is_link_local_multicast(address: Address) -> bool:
    if isinstance(address, ipaddress.IPv4Address):
        return address in ipaddress.IPv4Network("224.0.0.0/24")
    return address.packed[0] == 0xFF and address.packed[1] & 0x0F == 0x02


def _is_global_unicast(address: Address) -> bool:
    broadcast = address.version == 4 and address.packed == b"\xff" * 4
    return not (
        broadcast
        or address.is_unspecified
        or address.is_loopback
        or address.is_multicast
        or address.is_link_local
    )


def _is(parse: Callable[[str], Any], text: str) -> bool:
    try:
        parse(text)
    except CelError:
        return False
    return True


def _networks() -> Iterable[Definition]:
    yield "cidr(string) -> CIDR", lambda text: Opaque(_CIDR, _network(text))
    yield "isCIDR(string) -> bool", lambda text: _is(_network, text)
    yield "string(CIDR) -> string", lambda cidr: str(cidr.value)
    yield "CIDR::containsIP(string) -> bool", lambda cidr, text: _address(text) in cidr.value.network
    yield "CIDR::containsIP(IP) -> bool", lambda cidr, ip: ip.value in cidr.value.network
    yield "CIDR::containsCIDR(string) -> bool", lambda cidr, text: _holds(cidr.value, _network(text))
    yield "CIDR::containsCIDR(CIDR) -> bool", lambda cidr, other: _holds(cidr.value, other.value)
    yield "CIDR::ip() -> IP", lambda cidr: Opaque(_IP, cidr.value.ip)
    yield "CIDR::prefixLength() -> int", lambda cidr: cidr.value.network.prefixlen
    yield (
        "CIDR::masked() -> CIDR",
        lambda cidr: Opaque(_CIDR, ipaddress.ip_interface(str(cidr.value.network))),
    )


Network = ipaddress.IPv4Interface | ipaddress.IPv6Interface


def _network(text: str) -> Network:
    words = "network address parse error during conversion from string: " * 2  # as the real server has it
    if not re.fullmatch(r"[^/%]+/(0|[1-9]\d{0,2})", text, re.ASCII):
        raise CelError(f"{words}netip.ParsePrefix(\"{text}\"): no '/'")
    try:
        network = ipaddress.ip_interface(text)
    except ValueError:
        raise CelError(f'{words}netip.ParsePrefix("{text}"): bad address or prefix length') from None
    if isinstance(network, ipaddress.IPv6Interface) and network.ip.ipv4_mapped is not None:
        raise CelError(f'IPv4-mapped IPv6 address "{text}" is not allowed')
    return network


def _holds(outer: Network, inner: Network) -> bool:
    if outer.version != inner.version:
        return False
    return outer.network.overlaps(inner.network) and outer.network.prefixlen <= inner.network.prefixlen


def _quantities() -> Iterable[Definition]:
    yield "quantity(string) -> Quantity", lambda text: Opaque(_QUANTITY, _quantity(text))
    yield "isQuantity(string) -> bool", lambda text: _is(_quantity, text)
    yield "sign(Quantity) -> int", lambda q: (q.value.nanos > 0) - (q.value.nanos < 0)
    yield "Quantity::isGreaterThan(Quantity) -> bool", lambda a, b: b.value < a.value
    yield "Quantity::isLessThan(Quantity) -> bool", lambda a, b: a.value < b.value
    yield "Quantity::compareTo(Quantity) -> int", lambda a, b: (b.value < a.value) - (a.value < b.value)
    yield "Quantity::asApproximateFloat() -> double", lambda q: q.value.nanos / 10**9
    yield "Quantity::isInteger() -> bool", lambda q: _whole(q.value) is not None
    yield "Quantity::asInteger() -> int", _as_integer
    yield "Quantity::add(Quantity) -> Quantity", lambda a, b: Opaque(_QUANTITY, a.value + b.value)
    yield (
        "Quantity::add(int) -> Quantity",
        lambda a, b: Opaque(_QUANTITY, a.value + quantity.of_nanos(b * 10**9)),
    )
    yield "Quantity::sub(Quantity) -> Quantity", lambda a, b: Opaque(_QUANTITY, a.value - b.value)
    yield (
        "Quantity::sub(int) -> Quantity",
        lambda a, b: Opaque(_QUANTITY, a.value - quantity.of_nanos(b * 10**9)),
    )


def _quantity(text: str) -> quantity.Quantity:
    try:
        return quantity.parse(text)
    except quantity.QuantityError as error:
        raise CelError(str(error)) from None


def _whole(value: quantity.Quantity) -> int | None:
    number, rest = divmod(value.nanos, 10**9)
    return number if rest == 0 and values.INT_MIN <= number <= values.INT_MAX else None


def _as_integer(opaque: Opaque) -> int:
    number = _whole(opaque.value)
    if number is None:
        raise CelError("cannot convert value to integer")
    return number


def _versions() -> Iterable[Definition]:
    yield "semver(string) -> Semver", lambda text: Opaque(_SEMVER, _semver(text))
    yield "semver(string,bool) -> Semver", lambda text, loose: Opaque(_SEMVER, _semver(text, loose))
    yield "isSemver(string) -> bool", lambda text: _is(_semver, text)
    yield "isSemver(string,bool) -> bool", lambda text, loose: _is(lambda t: _semver(t, loose), text)
    yield "Semver::isGreaterThan(Semver) -> bool", lambda a, b: b.value < a.value
    yield "Semver::isLessThan(Semver) -> bool", lambda a, b: a.value < b.value
    yield "Semver::compareTo(Semver) -> int", lambda a, b: (b.value < a.value) - (a.value < b.value)
    for place, name in enumerate(("major", "minor", "patch")):
        yield f"Semver::{name}() -> int", lambda v, place=place: v.value[place]


_SEMVER_TEXT = re.compile(
    r"(0|[1-9]\d*)\.(0|[1-9]\d*)\.(0|[1-9]\d*)"
    r"(?:-([0-9A-Za-z-]+(?:\.[0-9A-Za-z-]+)*))?(?:\+[0-9A-Za-z-]+(?:\.[0-9A-Za-z-]+)*)?",
    re.ASCII,
)


def _semver(text: str, loose: bool = False) -> tuple[Any, ...]:
    """A version as a tuple that sorts by precedence; build metadata does not take part."""
    text = _normalised(text) if loose else text
    found = _SEMVER_TEXT.fullmatch(text)
    if found is None:
        raise CelError(_semver_fault(text))
    identifiers = found[4].split(".") if found[4] else []
    if any(i.isdigit() and len(i) > 1 and i[0] == "0" for i in identifiers):
        raise CelError(f'Numeric PreRelease version must not contain leading zeroes "{found[4]}"')
    ranked = tuple((0, int(i), "") if i.isdigit() else (1, 0, i) for i in identifiers)
    return (int(found[1]), int(found[2]), int(found[3]), not identifiers, ranked)


def _semver_fault(text: str) -> str:
    parts = text.split(".", 2)
    if len(parts) < 3:
        return "No Major.Minor.Patch elements found" if text else "Version string empty"
    parts[2] = re.split("[-+]", parts[2])[0]
    for name, part in zip(("major", "minor", "patch"), parts, strict=True):
        if not re.fullmatch("[0-9]+", part):
            return f'Invalid character(s) found in {name} number "{part}"'
        if len(part) > 1 and part[0] == "0":
            return f'{name.capitalize()} number must not contain leading zeroes "{part}"'
    return f'Invalid character(s) found in prerelease "{text}"'


def _normalised(text: str) -> str:
    parts = [re.sub(r"^0+(?=\d)", "", part) for part in text.removeprefix("v").split(".", 2)]
    if len(parts) < 3 and re.search(r"[+-]", parts[-1]):
        raise CelError("short version cannot contain PreRelease/Build meta data")
    return ".".join([*parts, "0", "0"][: max(3, len(parts))])


def _formats() -> Iterable[Definition]:
    yield "NamedFormat::validate(string) -> optional<list<string>>", _validate, lambda a, b: len(b) // 10 * 15
    yield "format.named(string) -> optional<NamedFormat>", _named
    for name in _CHECKS:
        yield f"format.{name}() -> NamedFormat", lambda name=name: Opaque(_FORMAT, name)


def _named(name: str) -> Optional:
    return Optional(True, Opaque(_FORMAT, name)) if name in _CHECKS else NONE


def _validate(named: Opaque, text: str) -> Optional:
    faults = _CHECKS[named.value](text)
    return Optional(True, [*faults]) if faults else NONE


def _prefix(rule: names.NameRule) -> Callable[[str], Sequence[str]]:
    return lambda text: rule(text, True)


def _format(name: str, fault: str) -> Callable[[str], list[str]]:
    return lambda text: [] if formats.matches(name, text) else [fault]


def _uri(text: str) -> list[str]:
    try:
        gourl.parse_request_uri(text)
    except gourl.UrlError as error:
        return [str(error)]
    return []


_CHECKS: dict[str, Callable[[str], Sequence[str]]] = {
    "dns1123Label": names.dns_label,
    "dns1123Subdomain": names.dns_subdomain,
    "dns1035Label": names.dns_1035_label,
    "qualifiedName": names.qualified_name,
    "dns1123LabelPrefix": _prefix(names.dns_label),
    "dns1123SubdomainPrefix": _prefix(names.dns_subdomain),
    "dns1035LabelPrefix": _prefix(names.dns_1035_label),
    "labelValue": names.label_value,
    "uri": _uri,
    "uuid": _format("uuid", "does not match the UUID format"),
    "byte": _format("byte", "invalid base64"),
    "date": _format("date", "invalid date"),
    "datetime": _format("datetime", "invalid datetime"),
}
