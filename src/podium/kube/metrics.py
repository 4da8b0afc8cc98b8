"""What the runtime counts, under the names that controller-runtime and client-go gave these things.

Counting is a dictionary update; the Prometheus library is imported by the first scrape and only sees copies.
So a process that nobody scrapes pays next to nothing, and gauges (queue depth, longest running reconcile) are
asked for their value when somebody looks instead of being kept up to date.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from prometheus_client import CollectorRegistry
    from prometheus_client.core import Metric

    from podium.kube.calls import RequestDone

Labels = tuple[str, ...]

QUEUE_SECONDS = tuple(1e-8 * 10**power for power in range(10))
RECONCILE_SECONDS = (
    0.005, 0.01, 0.025, 0.05, 0.1, 0.15, 0.2, 0.25, 0.3, 0.35, 0.4, 0.45, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0,
    1.25, 1.5, 1.75, 2.0, 2.5, 3.0, 3.5, 4.0, 4.5, 5.0, 6.0, 7.0, 8.0, 9.0, 10.0, 15.0, 20.0, 25.0, 30.0,
    40.0, 50.0, 60.0,
)  # fmt: skip
REQUEST_SECONDS = (0.005, 0.025, 0.1, 0.25, 0.5, 1.0, 2.0, 4.0, 8.0, 15.0, 30.0, 60.0)

# client-go labels its calls with the HTTP method.
_METHODS = {
    "get": "GET",
    "list": "GET",
    "watch": "GET",
    "create": "POST",
    "update": "PUT",
    "patch": "PATCH",
    "apply": "PATCH",
    "delete": "DELETE",
    "deletecollection": "DELETE",
}


class Counter:
    """A number per combination of labels that only grows."""

    def __init__(self, name: str, help: str, labels: Sequence[str] = ()) -> None:  # noqa: A002
        self.name, self.help, self.labels = name, help, tuple(labels)
        self.values: dict[Labels, float] = {}

    def inc(self, *labels: str, by: float = 1.0) -> None:
        """Add to the number with these label values."""
        self.values[labels] = self.values.get(labels, 0.0) + by

    def value(self, *labels: str) -> float:
        """The number with these label values; 0 if nothing was counted."""
        return self.values.get(labels, 0.0)

    def family(self) -> Metric:
        """The Prometheus form."""
        from prometheus_client.core import CounterMetricFamily

        family = CounterMetricFamily(self.name, self.help, labels=self.labels)
        for labels, value in self.values.items():
            family.add_metric(labels, value)
        return family


class Gauge:
    """A number per combination of labels: set, or asked for at each scrape."""

    def __init__(self, name: str, help: str, labels: Sequence[str] = ()) -> None:  # noqa: A002
        self.name, self.help, self.labels = name, help, tuple(labels)
        self._values: dict[Labels, float] = {}
        self._readers: dict[Labels, Callable[[], float]] = {}

    def set(self, value: float, *labels: str) -> None:
        """Hold this number until it is set again."""
        self._values[labels] = value

    def read_by(self, reader: Callable[[], float], *labels: str) -> None:
        """Ask this function for the number whenever somebody looks."""
        self._readers[labels] = reader

    def value(self, *labels: str) -> float:
        """The number with these label values; 0 if there is none."""
        reader = self._readers.get(labels)
        return self._values.get(labels, 0.0) if reader is None else reader()

    def forget(self, *labels: str) -> None:
        """Stop reporting the number with these label values."""
        self._values.pop(labels, None)
        self._readers.pop(labels, None)

    def family(self) -> Metric:
        """The Prometheus form."""
        from prometheus_client.core import GaugeMetricFamily

        family = GaugeMetricFamily(self.name, self.help, labels=self.labels)
        for labels in {**self._values, **self._readers}:
            family.add_metric(labels, self.value(*labels))
        return family


class Distribution:
    """How often values fell into each bucket, for one combination of labels."""

    __slots__ = ("_bounds", "counts", "total")

    def __init__(self, bounds: tuple[float, ...]) -> None:
        self._bounds = bounds
        self.counts = [0] * (len(bounds) + 1)
        self.total = 0.0

    def observe(self, value: float) -> None:
        """Count one value."""
        self.counts[bisect_left(self._bounds, value)] += 1
        self.total += value

    @property
    def count(self) -> int:
        """How many values were observed."""
        return sum(self.counts)

    def cumulative(self) -> list[tuple[str, float]]:
        """Each upper bound with the number of values at or below it."""
        rows, seen = [], 0
        for bound, count in zip((*map(repr, self._bounds), "+Inf"), self.counts, strict=True):
            seen += count
            rows.append((bound, float(seen)))
        return rows


class Histogram:
    """A distribution per combination of labels."""

    def __init__(self, name: str, help: str, labels: Sequence[str], bounds: tuple[float, ...]) -> None:  # noqa: A002
        self.name, self.help, self.labels = name, help, tuple(labels)
        self._bounds = bounds
        self._children: dict[Labels, Distribution] = {}

    def at(self, *labels: str) -> Distribution:
        """The distribution with these label values; keep it where it is used often."""
        child = self._children.get(labels)
        if child is None:
            child = self._children[labels] = Distribution(self._bounds)
        return child

    def family(self) -> Metric:
        """The Prometheus form."""
        from prometheus_client.core import HistogramMetricFamily

        family = HistogramMetricFamily(self.name, self.help, labels=self.labels)
        for labels, child in self._children.items():
            family.add_metric(labels, child.cumulative(), child.total)
        return family


class Metrics:
    """All that one runtime counts; also a Prometheus collector."""

    def __init__(self) -> None:
        self._families: list[Counter | Gauge | Histogram] = []
        self._registry: CollectorRegistry | None = None
        self._define_queue_metrics()
        self._define_controller_metrics()
        self._define_client_metrics()

    def counter(self, name: str, help: str, labels: Sequence[str] = ()) -> Counter:  # noqa: A002
        """Define a further counter."""
        counter = Counter(name, help, labels)
        self._families.append(counter)
        return counter

    def gauge(self, name: str, help: str, labels: Sequence[str] = ()) -> Gauge:  # noqa: A002
        """Define a further gauge."""
        gauge = Gauge(name, help, labels)
        self._families.append(gauge)
        return gauge

    def histogram(self, name: str, help: str, labels: Sequence[str], bounds: tuple[float, ...]) -> Histogram:  # noqa: A002
        """Define a further histogram."""
        histogram = Histogram(name, help, labels, bounds)
        self._families.append(histogram)
        return histogram

    def client_observer(self, host: str) -> Callable[[RequestDone], None]:
        """What to give a client as its observer, so that its calls are counted."""

        def observe(done: RequestDone) -> None:
            method = _METHODS.get(done.verb, done.verb.upper())
            self.requests.inc(str(done.code) if done.code else "<error>", method, host)
            self.request_seconds.at(method, host).observe(done.seconds)

        return observe

    def collect(self) -> Iterator[Metric]:
        """Every family with a copy of its present values."""
        return (family.family() for family in self._families)

    def describe(self) -> Iterable[Metric]:
        """Nothing: a non-empty answer would only serve to find clashes with other collectors."""
        return ()

    def render(self) -> tuple[bytes, str]:
        """The text exposition and its content type."""
        from prometheus_client import CONTENT_TYPE_LATEST, generate_latest

        return generate_latest(self.registry), CONTENT_TYPE_LATEST

    @property
    def registry(self) -> CollectorRegistry:
        """A registry of our own, in which further collectors may be registered."""
        if self._registry is None:
            from prometheus_client import CollectorRegistry

            self._registry = CollectorRegistry(auto_describe=False)
            self._registry.register(self)
        return self._registry

    def _define_queue_metrics(self) -> None:
        names = ("name", "controller")
        self.queue_depth = self.gauge("workqueue_depth", "Keys that wait in the queue.", names)
        self.queue_adds = self.counter("workqueue_adds_total", "Adds handled by the queue.", names)
        self.queue_retries = self.counter("workqueue_retries_total", "Adds after a failure.", names)
        self.queue_seconds = self.histogram(
            "workqueue_queue_duration_seconds", "How long a key waited for a worker.", names, QUEUE_SECONDS
        )
        self.work_seconds = self.histogram(
            "workqueue_work_duration_seconds", "How long a worker held a key.", names, QUEUE_SECONDS
        )
        self.queue_unfinished = self.gauge(
            "workqueue_unfinished_work_seconds", "Seconds of work in progress, summed up.", names
        )
        self.queue_longest = self.gauge(
            "workqueue_longest_running_processor_seconds", "Age of the oldest work in progress.", names
        )

    def _define_controller_metrics(self) -> None:
        name = ("controller",)
        prefix = "controller_runtime_"
        self.reconciles = self.counter(
            f"{prefix}reconcile_total", "Reconciles by result.", ("controller", "result")
        )
        self.reconcile_errors = self.counter(f"{prefix}reconcile_errors_total", "Failed reconciles.", name)
        self.terminal_errors = self.counter(
            f"{prefix}terminal_reconcile_errors_total", "Failed reconciles that are not retried.", name
        )
        self.panics = self.counter(
            f"{prefix}reconcile_panics_total", "Reconciles that failed by a bug of their own.", name
        )
        self.reconcile_timeouts = self.counter(
            f"{prefix}reconcile_timeouts_total", "Reconciles that were cut short.", name
        )
        self.reconcile_seconds = self.histogram(
            f"{prefix}reconcile_time_seconds", "How long a reconcile took.", name, RECONCILE_SECONDS
        )
        self.max_workers = self.gauge(f"{prefix}max_concurrent_reconciles", "Workers.", name)
        self.active_workers = self.gauge(f"{prefix}active_workers", "Workers that hold a key.", name)

    def _define_client_metrics(self) -> None:
        self.requests = self.counter(
            "rest_client_requests_total", "Calls to the API server.", ("code", "method", "host")
        )
        self.request_seconds = self.histogram(
            "rest_client_request_duration_seconds", "Time to the answer.", ("verb", "host"), REQUEST_SECONDS
        )
        self.lists = self.counter("reflector_lists_total", "Initial and repeated lists.", ("name",))
        self.watches = self.counter("reflector_watches_total", "Watches opened.", ("name",))
        self.watch_restarts = self.counter(
            "podium_watch_restarts_total", "Watches that ended, by cause.", ("name", "cause")
        )
        self.watch_events = self.counter("podium_watch_events_total", "Events received.", ("name", "type"))
        self.cached_objects = self.gauge("podium_cached_objects", "Objects held in a cache.", ("name",))
        self.leader_status = self.gauge(
            "leader_election_master_status", "1 while this process leads, else 0.", ("name",)
        )
        self.events_sent = self.counter("podium_events_sent_total", "Events created or counted up.", ("how",))
        self.events_dropped = self.counter(
            "podium_events_dropped_total", "Events that were given up, by cause.", ("cause",)
        )
