"""Reading blobs: in pieces, checked as they pass, taken up again where a transfer broke off.

Nothing counts as received but bytes handed on, and all of them go through one hash, whichever place and
however many connections they came from. A blob that turns out longer than its size is given up at that
byte; one whose digest is wrong ends in Corrupt instead of its end.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import AsyncGenerator, AsyncIterator, Sequence
from contextlib import aclosing

from podium.oci.errors import Corrupt, OCIError
from podium.oci.host import Call
from podium.oci.model import Descriptor
from podium.oci.remote import Remote
from podium.oci.retrying import Attempts, TryAgain
from podium.oci.transport import Answer, Interrupted, ended

_CONTENT_RANGE = re.compile(r"bytes (\d{1,19})-(\d{1,19})/(\d{1,19}|\*)")


class Checked:
    """What has passed of a blob, and whether it may pass."""

    def __init__(self, descriptor: Descriptor, name: str) -> None:
        self._descriptor = descriptor
        self._name = name
        self._hash = hashlib.new(descriptor.digest.partition(":")[0])
        self.count = 0

    def take(self, part: bytes) -> None:
        """Count and hash a piece; Corrupt as soon as there is too much."""
        self.count += len(part)
        if self.count > self._descriptor.size:
            raise Corrupt(f"{self._what}: has more than its {self._descriptor.size} bytes")
        self._hash.update(part)

    def finish(self) -> None:
        """Corrupt unless everything was there and right."""
        if self.count != self._descriptor.size:
            raise Corrupt(f"{self._what}: should have {self._descriptor.size} bytes, got {self.count}")
        algorithm, _, wanted = self._descriptor.digest.partition(":")
        if (found := self._hash.hexdigest()) != wanted:
            raise Corrupt(f"{self._what}: content does not match its digest, got {algorithm}:{found}")

    @property
    def _what(self) -> str:
        return f"{self._name}@{self._descriptor.digest}"


async def download(places: Sequence[Remote], descriptor: Descriptor) -> AsyncGenerator[bytes, None]:
    """The bytes of a blob from the first place that gives them, the next going on where one gave up."""
    passed = Checked(descriptor, places[-1].name)
    for number, place in enumerate(places, 1):
        try:
            async with aclosing(_from(place, descriptor, passed)) as parts:
                async for part in parts:
                    yield part
            break
        except OCIError:
            # Bytes that were handed on cannot be taken back, so a place that lied has spoilt it for the
            # others.
            if number == len(places) or passed.count >= descriptor.size > 0:
                raise
    passed.finish()


async def _from(place: Remote, descriptor: Descriptor, passed: Checked) -> AsyncGenerator[bytes, None]:
    attempts = place.host.attempts()
    while True:
        before = passed.count
        try:
            async with aclosing(_once(place, descriptor, passed)) as parts:
                async for part in parts:
                    yield part
            return
        except (TryAgain, Interrupted) as failure:
            if passed.count == descriptor.size:
                return  # it broke after the last byte, and there is nothing left to ask for
            await _after(failure, attempts, moved=passed.count > before)


async def _after(failure: TryAgain | Interrupted, attempts: Attempts, *, moved: bool) -> None:
    if moved:
        attempts.progressed()
    await attempts.after(failure)


async def _once(place: Remote, descriptor: Descriptor, passed: Checked) -> AsyncGenerator[bytes, None]:
    start = passed.count
    headers = {"Range": f"bytes={start}-{descriptor.size - 1}"} if start else {}
    path = place.url(f"blobs/{descriptor.digest}")
    call = Call("GET", path, place.scope(), headers, expected=(200, 206, 416) if start else (200,))
    async with place.host.open(call) as answer:
        skip = _skipped(answer, descriptor, start)
        async for part in answer.chunks():
            fresh = part[skip:]
            skip -= len(part) - len(fresh)
            if fresh:
                passed.take(fresh)
                yield fresh
    if passed.count < descriptor.size:
        short = f"{place.name}@{descriptor.digest}: ended after {passed.count} of {descriptor.size} bytes"
        raise TryAgain(Corrupt(short))


def _skipped(answer: Answer, descriptor: Descriptor, start: int) -> int:
    """How many bytes of this answer we have already; Corrupt if it cannot be the blob."""
    what = f"{descriptor.digest}: "
    if answer.status == 416:
        raise Corrupt(f"{what}the registry has only {start} of {descriptor.size} bytes")
    if answer.status == 206:
        match = _CONTENT_RANGE.fullmatch(answer.headers.get("Content-Range", "").strip())
        if match is None or int(match[1]) != start or match[3] not in ("*", str(descriptor.size)):
            raise Corrupt(
                f"{what}asked to go on at byte {start} of {descriptor.size}, the registry went elsewhere"
            )
        return 0
    if answer.length is not None and answer.length != descriptor.size:
        raise Corrupt(f"{what}should have {descriptor.size} bytes, the registry has {answer.length}")
    return start


async def checked_source(source: AsyncIterator[bytes], descriptor: Descriptor) -> AsyncGenerator[bytes, None]:
    """The same bytes, checked as they pass."""
    passed = Checked(descriptor, "source")
    async with ended(source) as parts:
        async for part in parts:
            passed.take(part)
            yield part
    passed.finish()
