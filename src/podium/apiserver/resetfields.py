"""The fields that an endpoint ignores, and that its writers therefore cannot own.

The main endpoint of a kind with a status resets status; the status endpoint resets the rest, and how much of
the metadata is part of that rest differs from kind to kind. Field managers are told so before they settle
who owns what.
"""

from __future__ import annotations

from podium.apiserver.registry import Resource
from podium.schema.fieldset import FieldSet


def reset_fields(resource: Resource, subresource: str) -> FieldSet | None:
    """Fields a writer of this endpoint cannot own, because the strategy puts them back."""
    if "status" not in resource.subresources:
        return None
    if subresource not in ("status", "approval"):
        return _MAIN_RESETS.get(resource.table, {"f:status": {}})
    if resource.custom:
        return {"f:metadata": {}, "f:spec": {}}
    return _STATUS_RESETS.get(f"{resource.table}/{subresource}", {"f:spec": {}})


_REQUESTS = "certificates.k8s.io/certificatesigningrequests"
_MAIN_RESETS: dict[str, FieldSet] = {_REQUESTS: {"f:spec": {}, "f:status": {}}}
_STATUS_RESETS: dict[str, FieldSet] = {
    "/pods/status": {"f:spec": {}, "f:metadata": {"f:deletionTimestamp": {}, "f:ownerReferences": {}}},
    "apps/deployments/status": {"f:spec": {}, "f:metadata": {"f:labels": {}}},
    f"{_REQUESTS}/status": {"f:spec": {}, "f:status": {"f:conditions": {}}},
    f"{_REQUESTS}/approval": {"f:spec": {}, "f:status": {"f:certificate": {}}},
    **{
        f"{table}/status": {"f:spec": {}, "f:metadata": {}}
        for table in (
            "apiregistration.k8s.io/apiservices",
            "flowcontrol.apiserver.k8s.io/flowschemas",
            "flowcontrol.apiserver.k8s.io/prioritylevelconfigurations",
            "networking.k8s.io/servicecidrs",
            "resource.k8s.io/resourceclaims",
            "storage.k8s.io/volumeattachments",
        )
    },
}
