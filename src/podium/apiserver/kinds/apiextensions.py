"""CustomResourceDefinitions: `podium.schema.crd` knows the rules, this puts them in their place."""

from __future__ import annotations

from podium.api.conditions import new_condition, with_condition
from podium.api.kinds import Object
from podium.apiserver.kinds.base import KindStrategy
from podium.schema import crd
from podium.schema.fielderrors import FieldError

# Holds a definition until its objects are gone.
CLEANUP = "customresourcecleanup.apiextensions.k8s.io"


class CustomResourceDefinitionStrategy(KindStrategy):
    namespaced = False
    standard_finalizers = False
    unconditional_update = False
    generation_fields = ("spec",)
    guarded_by_status = ("spec",)

    def default(self, obj: Object) -> None:
        crd.default_crd(obj)

    def prepare_create(self, obj: Object) -> None:
        storage = [v["name"] for v in obj["spec"].get("versions") or () if v.get("storage")]
        obj["status"] = {
            "conditions": None,
            "acceptedNames": {"plural": "", "kind": ""},
            "storedVersions": storage,
        }

    def prepare_update(self, new: Object, old: Object) -> None:
        new["status"] = old.get("status") or {}
        # The storage version may change with any update, and what was ever stored must be remembered.
        stored = list(new["status"].get("storedVersions") or ())
        for version in new["spec"].get("versions") or ():
            if version.get("storage") and version["name"] not in stored:
                new["status"] = {**new["status"], "storedVersions": [*stored, version["name"]]}

    def warnings(self, obj: Object, old: Object | None) -> list[str]:
        return crd.format_warnings(obj, old)

    def begin_deletion(self, obj: Object, now: str) -> bool:
        """A definition never goes at once, and says so before its objects are looked at."""
        finalizers = obj["metadata"].setdefault("finalizers", [])
        if CLEANUP not in finalizers:
            finalizers.append(CLEANUP)
        obj["metadata"]["deletionTimestamp"] = now
        words = "CustomResourceDefinition marked for deletion; CustomResource deletion will begin soon"
        pending = new_condition("Terminating", True, "InstanceDeletionPending", words, now)
        obj["status"] = with_condition(obj.get("status"), pending)
        return True

    def validate(self, obj: Object, old: Object | None) -> list[FieldError]:
        return crd.validate_crd(obj) if old is None else []

    def validate_change(self, new: Object, old: Object) -> list[FieldError]:
        return crd.validate_crd_update(new, old)
