"""Events: what a person should see in `kubectl describe`, told without holding up or failing a reconcile.

`event` only notes what happened; a task sends it. The same thing said again about the same object becomes a
higher count of the first Event. After ten different messages with one reason about one object within ten
minutes the rest become one combined Event. Each object has a budget that refills slowly; when that is spent,
when too much is waiting or when the server will not take them, events are dropped and counted as such.

core/v1 is used rather than events.k8s.io/v1: both are views of the same objects, and kubectl shows the count
and the first time of the former.
"""

from __future__ import annotations

import asyncio
import logging
from collections import OrderedDict
from collections.abc import Callable, Hashable
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, Generic, Protocol, TypeVar

from podium.api.kinds import GVK, Object
from podium.api.times import timestamp
from podium.kube.backoff import Backoff
from podium.kube.clock import Clock, SystemClock, timeout_after
from podium.kube.errors import ConnectionFailed, Forbidden, KubeError, NotFound, ServerError, TooManyRequests
from podium.kube.metrics import Metrics

logger = logging.getLogger(__name__)

EVENT = GVK("", "v1", "Event")
COMBINED = "(combined from similar events): "
_MAX_MESSAGE = 1024
_MAX_NAME = 253


class Severity(Enum):
    """The two types of Event."""

    NORMAL = "Normal"
    WARNING = "Warning"


@dataclass(frozen=True, slots=True)
class EventLimits:
    """How much is told."""

    # So many different messages with one reason about one object are told one by one, within so many seconds.
    similar: int = 10
    similar_seconds: float = 600.0
    # So many Events about one object at once, and then one more each time so many seconds have passed.
    burst: int = 25
    refill_seconds: float = 300.0
    # So many Events wait to be sent, and so many are sent at the same time.
    waiting: int = 1000
    at_once: int = 1
    tries: int = 12
    # Of so many Events and objects it is remembered what was told.
    remembered: int = 4096


@dataclass(frozen=True, slots=True)
class EventSource:
    """Who tells an Event: a component, which of its instances, and on which host something happened."""

    component: str
    instance: str = ""
    host: str = ""


class EventClient(Protocol):
    """The calls of the client that are used here."""

    async def create(self, obj: Object, *, namespace: str = "") -> Object: ...

    async def patch(self, gvk: GVK, name: str, patch: Any, namespace: str = "") -> Object: ...


@dataclass(slots=True)
class _Told:
    """One Event object, existing or to be made."""

    name: str
    namespace: str
    about: Object
    source: EventSource
    severity: Severity
    reason: str
    message: str
    first: str
    last: str
    count: int = 1
    # How high a count the server knows; 0 before the Event was created.
    sent: int = 0
    is_being_sent: bool = False


@dataclass(slots=True)
class _Similar:
    last: float
    messages: set[str] = field(default_factory=set)


@dataclass(slots=True)
class _Budget:
    tokens: float
    since: float


class EventRecorder:
    """Tells what a component did to objects; where several speak, each Event may name its own."""

    def __init__(
        self,
        client: EventClient,
        component: str,
        *,
        instance: str = "",
        limits: EventLimits | None = None,
        clock: Clock | None = None,
        metrics: Metrics | None = None,
        backoff: Backoff | None = None,
    ) -> None:
        self._client = client
        self._source = EventSource(component, instance)
        self._limits = limits or EventLimits()
        self._clock = clock or SystemClock()
        self._metrics = metrics or Metrics()
        self._backoff = backoff or Backoff(initial=1.0, maximum=10.0)
        remembered = self._limits.remembered
        self._budgets: _Recent[Hashable, _Budget] = _Recent(remembered)
        self._similar: _Recent[Hashable, _Similar] = _Recent(remembered)
        self._told: _Recent[Hashable, _Told] = _Recent(remembered)
        self._waiting: OrderedDict[str, _Told] = OrderedDict()
        self._wake = asyncio.Event()
        self._empty = asyncio.Event()
        self._empty.set()
        self._tasks: list[asyncio.Task[None]] = []
        self._being_sent = 0
        self._latest_name = 0

    def event(
        self,
        about: Object,
        severity: Severity,
        reason: str,
        message: str,
        *,
        source: EventSource | None = None,
        field_path: str = "",
    ) -> None:
        """Note that something happened to an object, or to the part of it that `field_path` names.

        Never waits, never raises for want of a server.
        """
        source = source or self._source
        reference = _reference(about, field_path)
        subject = (source, *(reference.get(part) for part in _IDENTITY))
        if not self._spend((subject, severity)):
            self._metrics.events_dropped.inc("budget")
            return
        message = _shortened(message)
        key: Hashable = (subject, severity, reason, field_path)
        if self._is_one_of_many(key, message):
            message = _shortened(COMBINED + message)
        else:
            key = (key, message)
        self._count(key, reference, source, severity, reason, message)

    def normal(self, about: Object, reason: str, message: str) -> None:
        """Note something that went as it should."""
        self.event(about, Severity.NORMAL, reason, message)

    def warning(self, about: Object, reason: str, message: str) -> None:
        """Note something that a person should look at."""
        self.event(about, Severity.WARNING, reason, message)

    def start(self) -> None:
        """Begin to send; what was noted before is sent too."""
        if not self._tasks:
            loop = asyncio.get_running_loop()
            self._tasks = [
                loop.create_task(self._send_all(), name="events") for _ in range(self._limits.at_once)
            ]

    @property
    def is_busy(self) -> bool:
        """Whether something that was noted is not sent yet."""
        return not self._empty.is_set()

    async def stop(self, flush_seconds: float = 5.0) -> None:
        """Send what waits, as far as that is possible in a few seconds."""
        if not self._tasks:
            return
        try:
            async with timeout_after(self._clock, flush_seconds):
                await self._empty.wait()
        except TimeoutError:
            self._metrics.events_dropped.inc("stopped", by=len(self._waiting) + self._being_sent)
        finally:
            for task in self._tasks:
                task.cancel()
            await asyncio.wait(self._tasks)
            self._tasks = []

    def _spend(self, subject: Hashable) -> bool:
        now, limits = self._clock.monotonic(), self._limits
        budget = self._budgets.get(subject, lambda: _Budget(float(limits.burst), now))
        budget.tokens = min(budget.tokens + (now - budget.since) / limits.refill_seconds, float(limits.burst))
        budget.since = now
        if budget.tokens < 1.0:
            return False
        budget.tokens -= 1.0
        return True

    def _is_one_of_many(self, kind: Hashable, message: str) -> bool:
        now, limits = self._clock.monotonic(), self._limits
        similar = self._similar.get(kind, lambda: _Similar(now))
        if now - similar.last > limits.similar_seconds:
            similar.messages.clear()
        similar.last = now
        if message in similar.messages:
            return False
        if len(similar.messages) >= limits.similar:
            return True
        similar.messages.add(message)
        return False

    def _count(
        self, key: Hashable, about: Object, source: EventSource, severity: Severity, reason: str, message: str
    ) -> None:
        now = timestamp(self._clock.wall())
        told = self._told.find(key)
        if told is None:
            namespace = about.get("namespace") or "default"
            told = _Told(self._name(about), namespace, about, source, severity, reason, message, now, now)
            self._told.put(key, told)
        else:
            told.count += 1
            told.last, told.message = now, message
        self._enqueue(told)

    def _enqueue(self, told: _Told) -> None:
        if told.is_being_sent or told.name in self._waiting:
            return
        if len(self._waiting) >= self._limits.waiting:
            self._metrics.events_dropped.inc("full")
            return
        self._waiting[told.name] = told
        self._empty.clear()
        self._wake.set()

    def _name(self, about: Object) -> str:
        # Times have whole seconds, and kubectl sorts what is equally old by name: later ones get later names.
        self._latest_name = max(self._latest_name + 1, int(self._clock.wall().timestamp() * 1e6) * 1000)
        suffix = f".{self._latest_name:x}"
        return str(about["name"])[: _MAX_NAME - len(suffix)] + suffix

    async def _send_all(self) -> None:
        while True:
            while not self._waiting:
                if not self._being_sent:
                    self._empty.set()
                self._wake.clear()
                await self._wake.wait()
            told = self._waiting.pop(next(iter(self._waiting)))
            told.is_being_sent = True
            self._being_sent += 1
            try:
                await self._send_patiently(told)
            finally:
                self._being_sent -= 1
                told.is_being_sent = False
            if 0 < told.sent < told.count:
                self._enqueue(told)

    async def _send_patiently(self, told: _Told) -> None:
        for tried in range(1, self._limits.tries + 1):
            try:
                return await self._send(told)
            except (ConnectionFailed, ServerError, TooManyRequests) as error:
                if tried == self._limits.tries:
                    return self._give_up(told, error)
                await self._clock.sleep(self._backoff.delay(tried))
            except Exception as error:  # noqa: BLE001 - an Event is never worth more than a line in the log
                return self._give_up(told, error)
        return None

    async def _send(self, told: _Told) -> None:
        count = told.count
        if told.sent:
            patch = {"count": count, "lastTimestamp": told.last, "message": told.message}
            try:
                await self._client.patch(EVENT, told.name, patch, told.namespace)
                self._metrics.events_sent.inc("counted")
            except NotFound:
                # Servers forget Events after an hour or so; then the story begins anew, under a new name.
                told.name, told.sent = self._name(told.about), 0
        if not told.sent:
            await self._client.create(self._object(told, count), namespace=told.namespace)
            self._metrics.events_sent.inc("created")
        told.sent = count

    def _give_up(self, told: _Told, error: Exception) -> None:
        self._metrics.events_dropped.inc("refused" if isinstance(error, KubeError) else "failed")
        level = logging.DEBUG if _is_moot(error) else logging.WARNING
        logger.log(level, "event %s about %s: %s", told.reason, told.about.get("name"), error)

    def _object(self, told: _Told, count: int) -> Object:
        source = told.source
        return {
            "apiVersion": EVENT.api_version,
            "kind": EVENT.kind,
            "metadata": {"name": told.name, "namespace": told.namespace},
            "involvedObject": told.about,
            "reason": told.reason,
            "message": told.message,
            "type": told.severity.value,
            "source": {"component": source.component, **({"host": source.host} if source.host else {})},
            "reportingComponent": source.component,
            "reportingInstance": source.instance,
            "firstTimestamp": told.first,
            "lastTimestamp": told.last,
            "count": count,
        }


_K = TypeVar("_K", bound=Hashable)
_V = TypeVar("_V")


class _Recent(Generic[_K, _V]):
    """The entries used last, up to a number."""

    def __init__(self, size: int) -> None:
        self._size = size
        self._entries: OrderedDict[_K, _V] = OrderedDict()

    def find(self, key: _K) -> _V | None:
        entry = self._entries.get(key)
        if entry is not None:
            self._entries.move_to_end(key)
        return entry

    def put(self, key: _K, entry: _V) -> None:
        self._entries[key] = entry
        if len(self._entries) > self._size:
            self._entries.popitem(last=False)

    def get(self, key: _K, make: Callable[[], _V]) -> _V:
        entry = self.find(key)
        if entry is None:
            entry = make()
            self.put(key, entry)
        return entry


_IDENTITY = ("apiVersion", "kind", "namespace", "name", "uid")


def _reference(obj: Object, field_path: str) -> Object:
    metadata = obj.get("metadata") or {}
    reference = {
        "apiVersion": obj.get("apiVersion"),
        "kind": obj.get("kind"),
        "namespace": metadata.get("namespace"),
        "name": metadata.get("name") or "unknown",
        "uid": metadata.get("uid"),
        "resourceVersion": metadata.get("resourceVersion"),
        "fieldPath": field_path,
    }
    return {key: value for key, value in reference.items() if value}


def _is_moot(error: Exception) -> bool:
    """Whether an Event was refused because its namespace is going or gone."""
    if isinstance(error, Forbidden):
        return any(cause.get("reason") == "NamespaceTerminating" for cause in error.causes)
    return isinstance(error, NotFound)


def _shortened(message: str) -> str:
    encoded = message.encode()
    if len(encoded) <= _MAX_MESSAGE:
        return message
    return encoded[: _MAX_MESSAGE - 3].decode(errors="ignore") + "…"
