"""Which proxy leads to a server, by the rules of Go's HTTP client, which the container world follows.

HTTPS_PROXY or HTTP_PROXY by the scheme, unless NO_PROXY excepts the host. Loopback addresses are never
reached through a proxy from the environment.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Mapping
from urllib.parse import urlsplit


def proxy_for(url: str, environ: Mapping[str, str]) -> str:
    """The proxy that the environment names for a URL, or the empty string; ValueError if it is not usable."""
    parts = urlsplit(url)
    name = f"{parts.scheme}_proxy"
    proxy = environ.get(name.upper()) or environ.get(name) or ""
    if not proxy or not parts.hostname:
        return ""
    port = parts.port or (443 if parts.scheme == "https" else 80)
    no_proxy = environ.get("NO_PROXY") or environ.get("no_proxy") or ""
    if _is_loopback(parts.hostname) or _excepted(parts.hostname, port, no_proxy):
        return ""
    return checked(proxy if "://" in proxy else f"http://{proxy}", f"{name.upper()} of the environment")


def checked(proxy: str, where: str) -> str:
    """The proxy URL itself if it is one that we can use; ValueError saying where it stands otherwise."""
    parts = urlsplit(proxy)
    if parts.scheme.startswith("socks"):
        raise ValueError(f"{where}: SOCKS proxies are not supported; use an http:// or https:// proxy")
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise ValueError(f"{where}: not a proxy URL; write http://host:port or https://host:port")
    return proxy


def _excepted(host: str, port: int, no_proxy: str) -> bool:
    return any(_matches(host.rstrip("."), port, entry.strip().lower()) for entry in no_proxy.split(","))


def _matches(host: str, port: int, entry: str) -> bool:
    if entry == "*":
        return True
    address = _address(host)
    if "/" in entry:
        try:
            return address is not None and address in ipaddress.ip_network(entry, strict=False)
        except ValueError:
            return False
    name, wanted_port = _split_port(entry)
    if not name or (wanted_port and wanted_port != str(port)):
        return False
    excepted_address = _address(name)
    if excepted_address is not None:
        return excepted_address == address
    if name.startswith("*."):
        name = name[1:]
    # `.example.com` excepts subdomains only; `example.com` also itself.
    return host.endswith(name) if name.startswith(".") else host == name or host.endswith(f".{name}")


def _split_port(entry: str) -> tuple[str, str]:
    if entry.startswith("["):
        name, _, port = entry[1:].partition("]")
        return name, port.removeprefix(":")
    if entry.count(":") == 1:
        name, _, port = entry.partition(":")
        return name, port
    return entry, ""


def _is_loopback(host: str) -> bool:
    address = _address(host)
    return host == "localhost" or (address is not None and address.is_loopback)


def _address(host: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    try:
        return ipaddress.ip_address(host)
    except ValueError:
        return None
