"""The built-in resources, made from the table of facts."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

from podium.apiserver import codecs, kinds
from podium.apiserver.registry import Codec, Resource, ScalePaths
from podium.schema import facts
from podium.schema.facts import ResourceFact

# DELETE of these answers the deleted object; of all others a Status.
_RETURNS_DELETED = {
    ("", "namespaces"),
    ("", "persistentvolumeclaims"),
    ("", "persistentvolumes"),
    ("", "pods"),
    ("", "podtemplates"),
    ("", "resourcequotas"),
    ("", "serviceaccounts"),
    ("", "services"),
    ("resource.k8s.io", "deviceclasses"),
    ("resource.k8s.io", "resourceclaims"),
    ("resource.k8s.io", "resourceclaimtemplates"),
    ("resource.k8s.io", "resourceslices"),
    ("storage.k8s.io", "csidrivers"),
    ("storage.k8s.io", "csinodes"),
    ("storage.k8s.io", "storageclasses"),
    ("storage.k8s.io", "volumeattachments"),
    ("storage.k8s.io", "volumeattributesclasses"),
}

_EVENT_REFERENCE = ("kind", "namespace", "name", "uid", "apiVersion", "resourceVersion", "fieldPath")
_SELECTABLE: dict[tuple[str, str], tuple[str, ...]] = {
    ("", "pods"): (
        "spec.nodeName",
        "spec.restartPolicy",
        "spec.schedulerName",
        "spec.serviceAccountName",
        "spec.hostNetwork",
        "status.phase",
        "status.podIP",
        "status.nominatedNodeName",
    ),
    ("", "events"): (
        *(f"involvedObject.{name}" for name in _EVENT_REFERENCE),
        "reason",
        "reportingComponent",
        "source",
        "type",
    ),
    ("events.k8s.io", "events"): (
        *(f"regarding.{name}" for name in _EVENT_REFERENCE),
        "reason",
        "reportingController",
        "type",
    ),
    ("", "secrets"): ("type",),
    ("", "namespaces"): ("status.phase",),
    ("", "nodes"): ("spec.unschedulable",),
    ("", "services"): ("spec.clusterIP", "spec.type"),
    ("", "replicationcontrollers"): ("status.replicas",),
    ("batch", "jobs"): ("status.successful",),
    ("certificates.k8s.io", "certificatesigningrequests"): ("spec.signerName",),
}

_DEPRECATED = {
    ("", "v1", "endpoints"): "v1 Endpoints is deprecated in v1.33+; use discovery.k8s.io/v1 EndpointSlice",
    ("", "v1", "componentstatuses"): "v1 ComponentStatus is deprecated in v1.19+",
}

_SCALE = ScalePaths(("spec", "replicas"), ("status", "replicas"), ("spec", "selector"))

# Kinds with two versions: where they are stored and how the other version is converted.
_CONVERTED: dict[tuple[str, str, str], tuple[str, codecs.Convert, codecs.Convert]] = {
    ("events.k8s.io", "v1", "events"): ("/events", codecs.event_to_v1, codecs.event_from_v1),
    ("autoscaling", "v1", "horizontalpodautoscalers"): (
        "autoscaling/horizontalpodautoscalers",
        codecs.hpa_to_v1,
        codecs.hpa_from_v1,
    ),
}


def resources() -> Iterator[Resource]:
    """Every built-in resource of every served group and version."""
    for fact in facts.load().resources:
        yield _resource(fact)


def _resource(fact: ResourceFact) -> Resource:
    codec: Codec
    converted = _CONVERTED.get((fact.group, fact.version, fact.plural))
    if converted:
        table, from_storage, to_storage = converted
        codec = codecs.ConvertedCodec(fact.group, fact.version, fact.kind, from_storage, to_storage)
    else:
        table = f"{fact.group}/{fact.plural}"
        codec = codecs.BuiltinCodec(fact.group, fact.version, fact.kind)
    subresources: dict[str, dict[str, Any]] = {
        sub.name: {"kind": sub.kind, "group": sub.group, "version": sub.version, "verbs": sub.verbs}
        for sub in fact.subresources
    }
    return Resource(
        group=fact.group,
        version=fact.version,
        plural=fact.plural,
        singular=fact.singular,
        kind=fact.kind,
        list_kind=f"{fact.kind}List",
        namespaced=fact.namespaced,
        verbs=fact.verbs,
        short_names=fact.short_names,
        categories=fact.categories,
        subresources=subresources,
        table=table,
        codec=codec,
        load_strategy=partial(kinds.strategy_for, fact.group, fact.kind),
        returns_deleted=(fact.group, fact.plural) in _RETURNS_DELETED,
        scale=_SCALE if "scale" in subresources else None,
        selectable_fields=frozenset(_SELECTABLE.get((fact.group, fact.plural), ())),
        deprecation=_DEPRECATED.get((fact.group, fact.version, fact.plural), ""),
        extra={"storageVersionHash": fact.storage_version_hash},
    )
