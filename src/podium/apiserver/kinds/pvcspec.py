"""The spec of a PersistentVolumeClaim, which also stands in StatefulSets and in ephemeral volumes."""

from __future__ import annotations

from podium.api import names
from podium.api.kinds import Object
from podium.apiserver.kinds import metadata, quantities
from podium.apiserver.kinds.checks import each
from podium.apiserver.kinds.resources import default_resource_list, positive_quantity, validate_quantity
from podium.schema import fielderrors as errors
from podium.schema.fielderrors import FieldError

ACCESS_MODES = ("ReadOnlyMany", "ReadWriteMany", "ReadWriteOnce", "ReadWriteOncePod")
VOLUME_MODES = ("Block", "Filesystem")


def default_claim_spec(spec: Object) -> None:
    """Fill in a claim's spec, in place."""
    if spec.get("volumeMode") is None:
        spec["volumeMode"] = "Filesystem"
    resources = spec.get("resources") or {}
    default_resource_list(resources.get("limits"))
    default_resource_list(resources.get("requests"))


def validate_claim_spec(path: str, spec: Object) -> list[FieldError]:
    """What is wrong with a claim's spec."""
    found: list[FieldError] = []
    modes = spec.get("accessModes") or []
    if not modes:
        found.append(errors.required(f"{path}.accessModes", "at least 1 access mode is required"))
    found += metadata.validate_selector(f"{path}.selector", spec.get("selector"))
    found += validate_access_modes(f"{path}.accessModes", modes)
    found += _storage(
        f"{path}.resources[storage]", ((spec.get("resources") or {}).get("requests") or {}).get("storage")
    )
    for field in ("storageClassName", "volumeAttributesClassName"):
        if (name := spec.get(field)) and field == "storageClassName":
            found += each(f"{path}.{field}", name, names.dns_subdomain(name))
    if (mode := spec.get("volumeMode")) is not None and mode not in VOLUME_MODES:
        found.append(errors.not_supported(f"{path}.volumeMode", mode, VOLUME_MODES))
    found += _sources(path, spec)
    if name := spec.get("volumeAttributesClassName"):
        found += each(f"{path}.volumeAttributesClassName", name, names.dns_subdomain(name))
    return found


def validate_access_modes(path: str, modes: list[str]) -> list[FieldError]:
    found = [errors.not_supported(path, mode, ACCESS_MODES) for mode in modes if mode not in ACCESS_MODES]
    if "ReadWriteOncePod" in modes and any(m in ACCESS_MODES and m != "ReadWriteOncePod" for m in modes):
        found.append(errors.forbidden(path, "may not use ReadWriteOncePod with other access modes"))
    return found


def warn_claim_spec(path: str, spec: Object) -> list[str]:
    """Advice about storage sizes that are not whole bytes."""
    resources = spec.get("resources") or {}
    found = []
    for kind in ("requests", "limits"):
        size = (resources.get(kind) or {}).get("storage")
        if size is not None and not quantities.is_whole(size):
            where = f"{path}.resources.{kind}[storage]"
            found.append(f'{where}: fractional byte value "{size}" is invalid, must be an integer')
    return found


def _storage(path: str, size: str | None) -> list[FieldError]:
    if size is None:
        return [errors.required(path)]
    return positive_quantity(path, size) or validate_quantity(path, "storage", size)


def _sources(path: str, spec: Object) -> list[FieldError]:
    source, ref = spec.get("dataSource"), spec.get("dataSourceRef")
    found: list[FieldError] = []
    for field, value in (("dataSource", source), ("dataSourceRef", ref)):
        if value is not None:
            found += _source(f"{path}.{field}", value)
    if ref is not None and (namespace := ref.get("namespace")):
        found += each(f"{path}.dataSourceRef.namespace", namespace, names.dns_label(namespace))
        if source is not None:
            text = "may not be specified when dataSourceRef.namespace is specified"
            found.append(errors.invalid(path, {}, text))
    elif source is not None and ref is not None:
        keys = ("apiGroup", "kind", "name")
        if any(source.get(key) != ref.get(key) for key in keys):
            found.append(errors.invalid(path, {}, "must match dataSourceRef"))
    return found


def _source(path: str, source: Object) -> list[FieldError]:
    found = [errors.required(f"{path}.{field}") for field in ("name", "kind") if not source.get(field)]
    group, kind = source.get("apiGroup") or "", source.get("kind") or ""
    if not group and kind != "PersistentVolumeClaim":
        text = "must be 'PersistentVolumeClaim' when referencing the default apiGroup"
        found.append(errors.invalid(path, kind, text))
    return found + (each(f"{path}.apiGroup", group, names.dns_subdomain(group)) if group else [])
