"""URLs as Go's `net/url` reads them.

The `uri` format, CEL's `url()` and a few annotations accept exactly what Go accepts, which is neither RFC
3986 nor what `urllib` accepts, so the reading is done here.
"""

from __future__ import annotations

import re
from dataclasses import dataclass


class UrlError(ValueError):
    """A text that Go does not read as a URL; the message is Go's."""


@dataclass(frozen=True, slots=True)
class Url:
    """The parts of a URL."""

    scheme: str = ""
    opaque: str = ""
    user: str | None = None
    host: str = ""
    path: str = ""  # unescaped
    escaped_path: str = ""
    query: str = ""
    fragment: str = ""
    text: str = ""

    @property
    def hostname(self) -> str:
        """The host without port and brackets."""
        host = _without_port(self.host)
        return host[1:-1] if host.startswith("[") and host.endswith("]") else host

    @property
    def port(self) -> str:
        """The port, or nothing."""
        return self.host[len(_without_port(self.host)) + 1 :]

    @property
    def query_values(self) -> dict[str, list[str]]:
        """The query's values by key; malformed pairs are left out."""
        values: dict[str, list[str]] = {}
        for pair in self.query.split("&"):
            if not pair or ";" in pair:
                continue
            key, _, value = pair.partition("=")
            try:
                name, text = _unescape(key.replace("+", " ")), _unescape(value.replace("+", " "))
            except UrlError:
                continue
            values.setdefault(name, []).append(text)
        return values


def is_request_uri(text: str) -> bool:
    """Whether the text is an absolute URI or an absolute path."""
    try:
        parse_request_uri(text)
    except UrlError:
        return False
    return True


def parse_request_uri(text: str) -> Url:
    """Read an absolute URI or an absolute path; a `#` is an ordinary character here."""
    try:
        return _parse(text, via_request=True)
    except UrlError as error:
        raise UrlError(f'parse "{text}": {error}') from None


def parse(text: str) -> Url:
    """Read a URL reference."""
    body, mark, fragment = text.partition("#")
    try:
        url = _parse(body, via_request=False)
        return _replace(url, text, _unescape(fragment) if mark else "")
    except UrlError as error:
        raise UrlError(f'parse "{text}": {error}') from None


def _replace(url: Url, text: str, fragment: str) -> Url:
    return Url(
        url.scheme, url.opaque, url.user, url.host, url.path, url.escaped_path, url.query, fragment, text
    )  # fmt: skip


def _parse(text: str, via_request: bool) -> Url:
    if any(ord(c) < 0x20 or ord(c) == 0x7F for c in text):
        raise UrlError("net/url: invalid control character in URL")
    if not text and via_request:
        raise UrlError("empty url")
    if text == "*":
        return Url(path="*", escaped_path="*", text=text)
    scheme, rest = _split_scheme(text)
    rest, _, query = rest.partition("?")
    if not rest.startswith("/"):
        if scheme:
            return Url(scheme=scheme, opaque=rest, query=query, text=text)
        if via_request:
            raise UrlError("invalid URI for request")
        if ":" in rest.split("/", 1)[0]:
            raise UrlError("first path segment in URL cannot contain colon")
    user, host = None, ""
    if (scheme or (not via_request and not rest.startswith("///"))) and rest.startswith("//"):
        authority, slash, rest = rest[2:].partition("/")
        rest = slash + rest
        user, host = _parse_authority(authority)
    return Url(scheme, "", user, host, _unescape(rest), rest, query, "", text)


def _split_scheme(text: str) -> tuple[str, str]:
    found = re.match(r"[a-zA-Z][a-zA-Z0-9+.-]*:", text)
    if found:
        return found[0][:-1].lower(), text[found.end() :]
    if text.startswith(":"):
        raise UrlError("missing protocol scheme")
    return "", text


def _parse_authority(authority: str) -> tuple[str | None, str]:
    user, at, host = authority.rpartition("@")
    if at and not re.fullmatch(r"[A-Za-z0-9\-._:~!$&'()*+,;=%@]*", user):
        raise UrlError("net/url: invalid userinfo")
    return (user if at else None), _parse_host(host)


def _parse_host(host: str) -> str:
    if host.startswith("["):
        end = host.rfind("]")
        if end < 0:
            raise UrlError("missing ']' in host")
        _check_port(host[end + 1 :])
        return host
    colon = host.rfind(":")
    if colon >= 0:
        _check_port(host[colon:])
    for character in host:
        if character in ' <>"\\^`{|}' or (character == "%" and not re.search("%[0-9a-fA-F]{2}", host)):
            raise UrlError(f'invalid character "{character}" in host name')
    return _unescape(host)


def _check_port(text: str) -> None:
    if text and not re.fullmatch(r":[0-9]*", text):
        raise UrlError(f'invalid port "{text}" after host')


def _without_port(host: str) -> str:
    colon = host.rfind(":")
    if (
        colon >= 0
        and re.fullmatch(r":[0-9]*", host[colon:])
        and (host[:colon].count("[") == host[:colon].count("]"))
    ):
        return host[:colon]
    return host


def _unescape(text: str) -> str:
    if "%" not in text:
        return text
    bad = re.search(r"%(?![0-9a-fA-F]{2}).{0,2}", text)
    if bad:
        raise UrlError(f'invalid URL escape "{bad[0]}"')
    raw = re.sub(rb"%([0-9a-fA-F]{2})", lambda m: bytes([int(m[1], 16)]), text.encode())
    return raw.decode(errors="replace")
