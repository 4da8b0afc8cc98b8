"""PriorityClasses."""

from __future__ import annotations

from podium.api.kinds import Object
from podium.apiserver.kinds.base import KindStrategy
from podium.apiserver.kinds.checks import immutable, unsupported
from podium.schema import fielderrors as errors
from podium.schema.fielderrors import FieldError

_HIGHEST = 1_000_000_000
_SYSTEM = {"system-node-critical": 2_000_001_000, "system-cluster-critical": 2_000_000_000}
_POLICIES = ("PreemptLowerPriority", "Never")


class PriorityClassStrategy(KindStrategy):
    namespaced = False
    # Set to 1 at creation and never raised: nothing that counts may change.
    generation_fields = ("value",)

    def default(self, obj: Object) -> None:
        if obj.get("preemptionPolicy") is None:
            obj["preemptionPolicy"] = "PreemptLowerPriority"

    def validate(self, obj: Object, old: Object | None) -> list[FieldError]:
        if old is not None:
            return []
        name, value = (obj.get("metadata") or {}).get("name") or "", obj.get("value") or 0
        found: list[FieldError] = []
        if name.startswith("system-"):
            found += _system_class(name, value, bool(obj.get("globalDefault")))
        elif value > _HIGHEST:
            text = f"maximum allowed value of a user defined priority is {_HIGHEST}"
            found.append(errors.forbidden("value", text))
        policy = obj.get("preemptionPolicy")
        if policy is not None and policy not in _POLICIES:
            found.append(unsupported("preemptionPolicy", policy, _POLICIES))
        return found

    def validate_change(self, new: Object, old: Object) -> list[FieldError]:
        found: list[FieldError] = []
        if (new.get("value") or 0) != (old.get("value") or 0):
            found.append(errors.forbidden("value", "may not be changed in an update."))
        return found + immutable("preemptionPolicy", new.get("preemptionPolicy"), old.get("preemptionPolicy"))


def _system_class(name: str, value: int, is_default: bool) -> list[FieldError]:
    if name not in _SYSTEM:
        problem = f"{name} is not a known system priority class"
    elif value != _SYSTEM[name]:
        problem = f"value of {name} PriorityClass must be {_SYSTEM[name]}"
    elif is_default:
        problem = f"globalDefault of {name} PriorityClass must be false"
    else:
        return []
    text = "priority class names with 'system-' prefix are reserved for system use only. error: "
    return [errors.forbidden("metadata.name", f"{text}{problem}")]
