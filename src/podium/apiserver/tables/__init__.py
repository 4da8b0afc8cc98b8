"""Rows for `kubectl get`: the columns of a resource and the cells of an object.

Each built-in kind has a `Printer` in the module of its neighbours (`pods`, `workloads`, `network`, ...); a
custom resource has the columns of its definition; a kind with neither shows when it was created. All
columns are always sent, those of `-o wide` with priority 1. Cells are what the real server's printers say,
`<none>` and `<unset>` included, since people's scripts cut them out of lines.
"""

from __future__ import annotations

from datetime import datetime
from typing import Any

from podium.api.kinds import Object
from podium.apiserver.registry import Resource
from podium.apiserver.tables import access, autoscaling, cluster, network, pods, storage, workloads
from podium.apiserver.tables.custom import custom_cells, custom_columns
from podium.apiserver.tables.printer import NAME, Printer, column

__all__ = ["cells", "columns", "row_conditions"]


def columns(resource: Resource) -> list[Object]:
    """The column definitions of a resource."""
    if resource.columns is not None:
        return custom_columns(resource.columns)
    return list(_PRINTERS.get((resource.group, resource.plural), _DEFAULT).columns)


def cells(resource: Resource, obj: Object, now: datetime) -> list[Any]:
    """The cells of one object, one per column."""
    if resource.columns is not None:
        return custom_cells(resource.columns, obj, now)
    return _PRINTERS.get((resource.group, resource.plural), _DEFAULT).cells(obj, now)


def row_conditions(resource: Resource, obj: Object) -> list[Object]:
    """The `conditions` of a row, to be left out if there are none; only Pods have any."""
    return pods.row_conditions(obj) if resource.plural == "pods" and not resource.group else []


def _default_cells(obj: Object, now: datetime) -> list[Any]:
    metadata = obj["metadata"]
    return [metadata.get("name", ""), metadata.get("creationTimestamp") or "0001-01-01T00:00:00Z"]


_DEFAULT = Printer(
    (NAME, column("Created At", "Time at which the object was created", "date")), _default_cells
)

_PRINTERS: dict[tuple[str, str], Printer] = {
    **pods.PRINTERS,
    **workloads.PRINTERS,
    **autoscaling.PRINTERS,
    **network.PRINTERS,
    **storage.PRINTERS,
    **cluster.PRINTERS,
    **access.PRINTERS,
}
