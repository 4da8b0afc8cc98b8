"""Watches over a plain connection: each event as the server sent it, and how the stream ended."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from http.client import HTTPResponse
from typing import Any

from harness.plain import Plain

Object = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Event:
    """One line of a watch."""

    type: str
    object: Object

    @property
    def name(self) -> str:
        """The name of the object; empty for a bookmark."""
        name: str = self.object["metadata"].get("name", "")
        return name

    @property
    def version(self) -> int:
        """The resourceVersion as a number."""
        return int(self.object["metadata"]["resourceVersion"])

    @property
    def brief(self) -> tuple[str, str]:
        """What happened to which object."""
        return self.type, self.name


class Stream:
    """An open watch; reading waits for the server, at most as long as plain requests do."""

    def __init__(self, response: HTTPResponse) -> None:
        self._response = response
        self.status = response.status
        self.headers = response.headers

    def next(self) -> Event:
        """The next event; the stream must not have ended."""
        line = self._response.readline()
        assert line, "the watch ended"
        return _event(line)

    def take(self, count: int) -> list[tuple[str, str]]:
        """The next events in brief."""
        return [self.next().brief for _ in range(count)]

    def until_bookmark(self) -> list[Event]:
        """The events up to the first bookmark, which is the last of them."""
        found = [self.next()]
        while found[-1].type != "BOOKMARK":
            found.append(self.next())
        return found

    def rest(self) -> list[Event]:
        """Everything until the server ends the stream."""
        return [_event(line) for line in self._response]


@contextmanager
def watching(plain: Plain, path: str, query: str = "", *, accept: str = "") -> Iterator[Stream]:
    """A watch of a collection for as long as the context lasts."""
    headers = {**plain._headers, "Accept": accept or "application/json"}
    connection = plain._connect()
    try:
        connection.request("GET", f"{path}?watch=true" + (f"&{query}" if query else ""), headers=headers)
        yield Stream(connection.getresponse())
    finally:
        connection.close()


def _event(line: bytes) -> Event:
    decoded = json.loads(line)
    return Event(decoded["type"], decoded["object"])
