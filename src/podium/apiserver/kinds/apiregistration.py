"""APIServices."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from podium.api import names
from podium.api.kinds import Object
from podium.apiserver.kinds import metadata
from podium.apiserver.kinds.base import KindStrategy
from podium.apiserver.kinds.checks import each, restore, unsupported
from podium.apiserver.kinds.configuration import decoded_size
from podium.schema import fielderrors as errors
from podium.schema.fielderrors import FieldError

_STATUSES = ("True", "False", "Unknown")


class APIServiceStrategy(KindStrategy):
    namespaced = False
    unconditional_update = False
    standard_finalizers = False
    empty_status: ClassVar[Object | None] = {}

    def default(self, obj: Object) -> None:
        service = (obj.get("spec") or {}).get("service")
        if service is not None and service.get("port") is None:
            service["port"] = 443

    def prepare_create(self, obj: Object) -> None:
        super().prepare_create(obj)
        if (obj.get("spec") or {}).get("service") is None:
            condition = {
                "type": "Available",
                "status": "True",
                "lastTransitionTime": (obj.get("metadata") or {}).get("creationTimestamp"),
                "reason": "Local",
                "message": "Local APIServices are always available",
            }
            obj["status"] = {"conditions": [condition]}

    def prepare_status(self, new: Object, old: Object) -> None:
        super().prepare_status(new, old)
        meta, before = new.setdefault("metadata", {}), old.get("metadata") or {}
        for field in ("labels", "annotations", "finalizers", "ownerReferences"):
            restore(meta, before, field)

    def _metadata(self, obj: Object) -> list[FieldError]:
        return metadata.validate(obj, False, _version_and_group_of(obj), standard_finalizers=False)

    def _changed_metadata(self, new: Object, old: Object) -> list[FieldError]:
        return self._metadata(new) + metadata.validate_update(new, old)

    def validate(self, obj: Object, old: Object | None) -> list[FieldError]:
        spec = obj.get("spec") or {}
        group, version = spec.get("group") or "", spec.get("version") or ""
        found: list[FieldError] = []
        if group:
            found += each("spec.group", group, names.dns_subdomain(group))
        elif version != "v1":
            text = "only v1 may have an empty group and it better be legacy kube"
            found.append(errors.required("spec.group", text))
        found += each("spec.version", version, names.dns_1035_label(version))
        for field, highest in (("groupPriorityMinimum", 20000), ("versionPriority", 1000)):
            if not 0 < (value := spec.get(field) or 0) <= highest:
                text = f"must be positive and less than {highest}"
                found.append(errors.invalid(f"spec.{field}", value, text))
        return found + _service(spec)

    def validate_status_change(self, new: Object, old: Object) -> list[FieldError]:
        conditions = (new.get("status") or {}).get("conditions") or ()
        return [
            unsupported(f"status.conditions[{i}].status", condition.get("status") or "", _STATUSES)
            for i, condition in enumerate(conditions)
            if condition.get("status") not in _STATUSES
        ]


def _version_and_group_of(obj: Object) -> names.NameRule:
    spec = obj.get("spec") or {}
    wanted = f"{spec.get('version') or ''}.{spec.get('group') or ''}"

    def rule(name: str, prefix: bool) -> Sequence[str]:
        if problems := names.path_segment(name):
            return problems
        return [] if name == wanted else [f'must be `spec.version+"."+spec.group`: "{wanted}"']

    return rule


def _service(spec: Object) -> list[FieldError]:
    service, bundle, insecure = (
        spec.get("service"),
        spec.get("caBundle") or "",
        spec.get("insecureSkipTLSVerify"),
    )
    found: list[FieldError] = []
    if service is None:
        if bundle:
            shown = f"{decoded_size(bundle)} bytes"
            found.append(errors.invalid("spec.caBundle", shown, "local APIServices may not have a caBundle"))
        if insecure:
            text = "local APIServices may not have insecureSkipTLSVerify"
            found.append(errors.invalid("spec.insecureSkipTLSVerify", True, text))
        return found
    found += [errors.required(f"spec.service.{f}") for f in ("namespace", "name") if not service.get(f)]
    if problems := names.port_number(port := service.get("port") or 0):
        found.append(errors.invalid("spec.service.port", port, f"port is not valid: {', '.join(problems)}"))
    if insecure and bundle:
        text = "may not be true if caBundle is present"
        found.append(errors.invalid("spec.insecureSkipTLSVerify", True, text))
    return found
