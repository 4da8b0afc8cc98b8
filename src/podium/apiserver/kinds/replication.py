"""ReplicationControllers and PodTemplates, from before there were ReplicaSets."""

from __future__ import annotations

from typing import ClassVar

from podium.api.kinds import Object
from podium.apiserver.kinds.base import KindStrategy
from podium.apiserver.kinds.checks import go_order, not_negative_fields, unsupported
from podium.apiserver.kinds.podtemplate import default_template, validate_template
from podium.apiserver.kinds.podwarnings import name_warning, warn_pod
from podium.apiserver.kinds.workloads import MISMATCH, counts_within_total, template_labels
from podium.schema import fielderrors as errors
from podium.schema.fielderrors import FieldError


class ReplicationControllerStrategy(KindStrategy):
    generation_fields = ("spec",)
    empty_status: ClassVar[Object | None] = {"replicas": 0}

    def default(self, obj: Object) -> None:
        spec = obj.setdefault("spec", {})
        if labels := template_labels(spec):
            if not spec.get("selector"):
                spec["selector"] = dict(labels)
            meta = obj.setdefault("metadata", {})
            if not meta.get("labels"):
                meta["labels"] = dict(labels)
        if spec.get("replicas") is None:
            spec["replicas"] = 1
        if spec.get("template") is not None:
            default_template(spec["template"])

    def validate(self, obj: Object, old: Object | None) -> list[FieldError]:
        spec = obj.get("spec") or {}
        selector, template = spec.get("selector") or {}, spec.get("template")
        found = not_negative_fields("spec", spec, ("minReadySeconds",))
        if not selector:
            found.append(errors.required("spec.selector"))
        found += not_negative_fields("spec", spec, ("replicas",))
        if template is None:
            return [*found, errors.required("spec.template")]
        labels = template_labels(spec)
        if any((labels or {}).get(key) != value for key, value in selector.items()):
            found.append(errors.invalid("spec.template.metadata.labels", go_order(labels), MISMATCH))
        found += validate_template("spec.template", template)
        pod = template.get("spec") or {}
        if (policy := pod.get("restartPolicy") or "") != "Always":
            found.append(unsupported("spec.template.spec.restartPolicy", policy, ("Always",)))
        if pod.get("activeDeadlineSeconds") is not None:
            text = "activeDeadlineSeconds in ReplicationController is not Supported"
            found.append(errors.forbidden("spec.template.spec.activeDeadlineSeconds", text))
        return found

    def validate_status_change(self, new: Object, old: Object) -> list[FieldError]:
        status = new.get("status") or {}
        counts = ("fullyLabeledReplicas", "readyReplicas", "availableReplicas")
        found = not_negative_fields("status", status, ("replicas", *counts, "observedGeneration"))
        return found + counts_within_total(status, counts)

    def warnings(self, obj: Object, old: Object | None) -> list[str]:
        spec = obj.get("spec") or {}
        if old is not None:
            same = spec == (old.get("spec") or {})
            return [] if same else warn_pod("spec.template", spec.get("template") or {})
        name = (obj.get("metadata") or {}).get("name") or ""
        return name_warning(name, "Pod names and hostnames") + warn_pod(
            "spec.template", spec.get("template") or {}
        )


class PodTemplateStrategy(KindStrategy):
    generation_fields = ("template",)

    def default(self, obj: Object) -> None:
        default_template(obj.setdefault("template", {}))

    def validate(self, obj: Object, old: Object | None) -> list[FieldError]:
        return validate_template("template", obj.get("template") or {})

    def warnings(self, obj: Object, old: Object | None) -> list[str]:
        if old is not None and obj.get("template") == old.get("template"):
            return []
        return warn_pod("template", obj.get("template") or {})
