"""Webhook definitions of a ClusterServiceVersion, from webhook configurations and CRDs.

Whoever installs a bundle makes the webhook configurations, services and certificates, so the definitions name
a deployment and a port instead of a service. The service that a webhook calls tells both: its selector finds
the deployment, its port the container's.
"""

from __future__ import annotations

import copy
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from podium.api.findings import Finding, Severity
from podium.api.kinds import Object
from podium.bundle.authored import Authored
from podium.bundle.model import items, member
from podium.schema import coerce, facts

GROUP = "admissionregistration.k8s.io"
KINDS = {
    "ValidatingWebhookConfiguration": "ValidatingAdmissionWebhook",
    "MutatingWebhookConfiguration": "MutatingAdmissionWebhook",
}
_KEPT = ("failurePolicy", "matchPolicy", "timeoutSeconds")
# What a webhook can say but a definition cannot.
_LOST = ("namespaceSelector", "matchConditions")
_HTTPS = 443


@dataclass(slots=True)
class Definitions:
    """Webhook definitions in their order, and what could not be said in them."""

    listed: list[Object] = field(default_factory=list)
    findings: list[Finding] = field(default_factory=list)

    def warn(self, item: Authored, rule: str, message: str, severity: Severity = Severity.WARNING) -> None:
        """Adds a finding about an object."""
        self.findings.append(Finding(severity, rule, message, item.title, item.place))


@dataclass(frozen=True, slots=True)
class _Services:
    services: Sequence[Authored]
    deployments: Sequence[Authored]

    def find(self, name: str) -> Authored | None:
        return next((service for service in self.services if service.name == name), None)

    def deployment(self, service: Authored | None) -> str:
        """The name of the first deployment whose pods a service selects; empty if there is none."""
        spec = member(service.object, "spec") if service else {}
        selector = spec.get("selector")
        if not isinstance(selector, dict) or not selector or spec.get("type") == "ExternalName":
            return ""
        for deployment in self.deployments:
            labels = member(deployment.object, "spec", "template", "metadata", "labels")
            if labels and selector.items() <= labels.items():
                return deployment.name
        return ""


def define(
    configurations: Iterable[Authored],
    definitions: Iterable[Authored],
    services: Sequence[Authored],
    deployments: Sequence[Authored],
) -> Definitions:
    """The definitions for all webhooks of configurations and CRDs, sorted by name."""
    found = Definitions()
    known = _Services(services, deployments)
    for configuration in configurations:
        for webhook in items(configuration.object, "webhooks"):
            if isinstance(webhook, dict):
                _admission(found, configuration, webhook, known)
    _conversions(found, definitions, known)
    found.listed.sort(key=lambda each: (str(each["generateName"]), str(each["type"])))
    return found


def _admission(found: Definitions, configuration: Authored, webhook: Object, known: _Services) -> None:
    name = str(webhook.get("name") or "")
    service = member(webhook, "clientConfig").get("service")
    if not isinstance(service, dict):
        found.warn(
            configuration,
            "webhook-without-service",
            f"the webhook {name} calls a URL; a bundle can only hold webhooks that its operator serves",
            Severity.ERROR,
        )
        return
    for key in _LOST:
        if webhook.get(key):
            found.warn(
                configuration,
                "webhook-loses-field",
                f"the webhook {name} has a {key}, which a ClusterServiceVersion cannot say; it will be lost",
            )
    definition: Object = {
        "type": KINDS[configuration.kind],
        "generateName": name,
        "admissionReviewVersions": list(webhook.get("admissionReviewVersions") or ["v1beta1"]),
        "sideEffects": webhook.get("sideEffects") or "None",
        **{key: webhook[key] for key in _KEPT if webhook.get(key) is not None},
    }
    if webhook.get("rules"):
        definition["rules"] = _typed(webhook["rules"], "admissionregistration/v1.RuleWithOperations")
    if webhook.get("objectSelector") is not None:
        definition["objectSelector"] = _typed([webhook["objectSelector"]], "meta/v1.LabelSelector")[0]
    if webhook.get("reinvocationPolicy") and configuration.kind == "MutatingWebhookConfiguration":
        definition["reinvocationPolicy"] = webhook["reinvocationPolicy"]
    if service.get("path") is not None:
        definition["webhookPath"] = service["path"]
    _call(found, definition, configuration, service, known)


def _conversions(found: Definitions, definitions: Iterable[Authored], known: _Services) -> None:
    """CRDs that one service converts at one port and path share a definition."""
    groups: dict[tuple[str, Any, str], list[tuple[Authored, Mapping[str, Any], Object]]] = {}
    for crd in definitions:
        conversion = member(crd.object, "spec", "conversion")
        # Before v1 the fields of `webhook` lay beside the strategy.
        webhook = member(conversion, "webhook") or conversion
        client = webhook.get("clientConfig") or webhook.get("webhookClientConfig")
        service = client.get("service") if isinstance(client, dict) else None
        if isinstance(service, dict):
            key = (str(service.get("name")), service.get("port"), str(service.get("path") or ""))
            groups.setdefault(key, []).append((crd, webhook, service))
    for (server, _, path), members in groups.items():
        members.sort(key=lambda each: each[0].name)
        first, webhook, service = members[0]
        if known.find(server) is None:
            found.warn(
                first,
                "conversion-without-service",
                f"its conversion calls the Service {server}, which is not there; "
                "add the Service's manifest, or remove spec.conversion",
                Severity.ERROR,
            )
            continue
        names = [crd.name for crd, _, _ in members]
        versions = webhook.get("conversionReviewVersions")
        if not versions:
            found.warn(
                first, "conversion-without-versions", "conversionReviewVersions is missing; v1 is assumed"
            )
        definition: Object = {
            "type": "ConversionWebhook",
            "generateName": f"c{''.join(name.partition('.')[0] for name in names)}.kb.io",
            "conversionCRDs": names,
            "admissionReviewVersions": list(versions or ["v1"]),
            "sideEffects": "None",
            **({"webhookPath": path} if path else {}),
        }
        _call(found, definition, first, service, known)


def _call(
    found: Definitions, definition: Object, subject: Authored, reference: Object, known: _Services
) -> None:
    """Completes a definition with the deployment and ports behind a service."""
    name = str(reference.get("name"))
    service = known.find(name)
    deployment = known.deployment(service)
    if not deployment:
        deployment = _assumed(found, definition, subject, name, known)
    if not deployment:
        return
    definition["deploymentName"] = deployment
    wanted = reference.get("port") or _HTTPS
    for port in items(service.object, "spec", "ports") if service else ():
        if isinstance(port, dict) and port.get("port") == wanted:
            definition["containerPort"] = wanted
            # The originals write the target 0 for a port without one; the port itself is meant.
            definition["targetPort"] = port.get("targetPort", wanted)
            break
    found.listed.append(definition)


def _assumed(found: Definitions, definition: Object, subject: Authored, name: str, known: _Services) -> str:
    """The deployment that is called like a service, as the originals assume; empty if there is none."""
    service = known.find(name)
    server = definition["generateName"]
    deployment = name.removesuffix("-service")
    selector = member(service.object, "spec", "selector") if service else {}
    pairs = ",".join(f"{key}={value}" for key, value in selector.items()) or "none"
    reason = (
        f"the selector of the Service {name} ({pairs}) fits no Deployment's pods"
        if service
        else f"there is no Service {name}"
    )
    if deployment in (item.name for item in known.deployments):
        message = f"{reason}, so the Deployment {deployment} is assumed to serve {server}"
        found.warn(subject, "webhook-without-deployment", message)
        return deployment
    remedy = (
        "give it the labels of the pods that serve it"
        if service
        else f"add the manifest of the Service {name}, which selects the pods that serve it"
    )
    message = f"nobody serves the webhook {server}: {reason}; {remedy}"
    found.warn(subject, "webhook-without-deployment", message, Severity.ERROR)
    return ""


def _typed(values: Any, type_: str) -> list[Any]:
    fact = facts.load().struct(type_)
    return [coerce.coerce(copy.deepcopy(value), fact).object for value in values]
