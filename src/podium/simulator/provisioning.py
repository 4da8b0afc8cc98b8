"""Volumes out of nothing: what a storage driver does for claims of the simulated storage class."""

from __future__ import annotations

from podium.api.kinds import Object
from podium.simulator.objects import annotations_of, is_deleting, name, namespace, spec, status, uid
from podium.simulator.plan import Create, Delete, Note, Plan
from podium.simulator.scheduling import SELECTED_NODE

PROVISIONER = "podium.dev/simulated"
COMPONENT = "simulated-provisioner"
# A CSI driver has no slash in its name.
_DRIVER = "simulated.podium.dev"
PROVISIONED_BY = "pv.kubernetes.io/provisioned-by"

STANDARD_CLASS: Object = {
    "apiVersion": "storage.k8s.io/v1",
    "kind": "StorageClass",
    "metadata": {
        "name": "standard",
        "annotations": {"storageclass.kubernetes.io/is-default-class": "true"},
    },
    "provisioner": PROVISIONER,
    "reclaimPolicy": "Delete",
    "volumeBindingMode": "Immediate",
    "allowVolumeExpansion": True,
}


def provision(claim: Object, storage_class: Object | None, volume_exists: bool) -> Plan:
    """The volume for a claim that asks our driver for one, as soon as it may be made."""
    if storage_class is None or storage_class.get("provisioner") != PROVISIONER or volume_exists:
        return Plan()
    if is_deleting(claim) or spec(claim).get("volumeName") or spec(claim).get("selector"):
        return Plan()
    waits = storage_class.get("volumeBindingMode") == "WaitForFirstConsumer"
    if waits and SELECTED_NODE not in annotations_of(claim):
        return Plan()
    volume = _volume(claim, storage_class)
    told = f"Successfully provisioned volume {name(volume)}"
    return Plan([Create(volume, Note(claim, "ProvisioningSucceeded", told, COMPONENT))])


def reclaim(volume: Object) -> Plan:
    """Delete a volume of ours that its claim has left."""
    ours = annotations_of(volume).get(PROVISIONED_BY) == PROVISIONER
    released = status(volume).get("phase") == "Released"
    doomed = spec(volume).get("persistentVolumeReclaimPolicy") == "Delete" and not is_deleting(volume)
    return Plan([Delete(volume)] if ours and released and doomed else [])


def volume_name(claim: Object) -> str:
    """The name of the volume made for a claim: the same however often it is tried."""
    return f"pvc-{uid(claim)}"


def _volume(claim: Object, storage_class: Object) -> Object:
    wanted = spec(claim)
    made = volume_name(claim)
    reference = {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "namespace": namespace(claim),
        "name": name(claim),
        "uid": uid(claim),
    }
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolume",
        "metadata": {"name": made, "annotations": {PROVISIONED_BY: PROVISIONER}},
        "spec": {
            "accessModes": wanted.get("accessModes") or ["ReadWriteOnce"],
            "capacity": {
                "storage": ((wanted.get("resources") or {}).get("requests") or {}).get("storage", "1Gi")
            },
            "claimRef": reference,
            "csi": {"driver": _DRIVER, "volumeHandle": made},
            "persistentVolumeReclaimPolicy": storage_class.get("reclaimPolicy") or "Delete",
            "storageClassName": name(storage_class),
            "volumeMode": wanted.get("volumeMode") or "Filesystem",
        },
    }
