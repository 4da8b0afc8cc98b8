"""RuntimeClasses."""

from __future__ import annotations

from podium.api import names
from podium.api.kinds import Object
from podium.apiserver.kinds import metadata
from podium.apiserver.kinds.affinity import validate_tolerations
from podium.apiserver.kinds.base import KindStrategy
from podium.apiserver.kinds.checks import each, immutable
from podium.apiserver.kinds.podwarnings import deprecated_node_labels
from podium.apiserver.kinds.resources import default_resource_list, validate_requirements
from podium.schema import fielderrors as errors
from podium.schema.fielderrors import FieldError


class RuntimeClassStrategy(KindStrategy):
    namespaced = False
    create_on_update = True
    unconditional_update = False
    standard_finalizers = False

    def default(self, obj: Object) -> None:
        default_resource_list((obj.get("overhead") or {}).get("podFixed"))

    def validate(self, obj: Object, old: Object | None) -> list[FieldError]:
        handler, overhead, scheduling = (
            obj.get("handler") or "",
            obj.get("overhead"),
            obj.get("scheduling") or {},
        )
        found = (
            each("handler", handler, names.dns_label(handler)) if handler else [errors.required("handler")]
        )
        if overhead is not None:
            found += validate_requirements("overhead", {"limits": overhead.get("podFixed") or {}})
        found += metadata.validate_labels("scheduling.nodeSelector", scheduling.get("nodeSelector") or {})
        tolerations, path = scheduling.get("tolerations") or [], "scheduling.tolerations"
        found += validate_tolerations(path, tolerations)
        identities = [{k: v for k, v in t.items() if k != "tolerationSeconds"} for t in tolerations]
        for i, identity in enumerate(identities):
            if identity in identities[:i]:
                found.append(errors.duplicate(f"{path}[{i}]", _internal(tolerations[i])))
        return found

    def validate_change(self, new: Object, old: Object) -> list[FieldError]:
        return immutable("handler", new.get("handler"), old.get("handler"))

    def warnings(self, obj: Object, old: Object | None) -> list[str]:
        selector = (obj.get("scheduling") or {}).get("nodeSelector") or {}
        return [f"scheduling.nodeSelector: {text}" for text in deprecated_node_labels(selector)]


def _internal(toleration: Object) -> Object:
    # Upstream shows its internal struct here.
    fields = ("Key", "Operator", "Value", "Effect")
    shown: Object = {name: toleration.get(name.lower()) or "" for name in fields}
    return shown | {"TolerationSeconds": toleration.get("tolerationSeconds")}
