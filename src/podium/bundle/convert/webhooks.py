"""Webhook configurations, the Services in front of webhook servers, and CRDs that a webhook converts."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from podium.api.kinds import Object
from podium.bundle.convert.contents import Contents, Webhook
from podium.bundle.convert.installmodes import ALL_NAMESPACES
from podium.bundle.convert.objects import new_object
from podium.bundle.convert.options import Options

VALIDATING = "ValidatingAdmissionWebhook"
MUTATING = "MutatingAdmissionWebhook"
CONVERSION = "ConversionWebhook"

_DEFAULT_PORT = 443


def validating_configurations(contents: Contents, options: Options) -> list[Object]:
    """A configuration for each validating webhook."""
    return _configurations(contents, options, VALIDATING, "ValidatingWebhookConfiguration")


def mutating_configurations(contents: Contents, options: Options) -> list[Object]:
    """A configuration for each mutating webhook."""
    return _configurations(contents, options, MUTATING, "MutatingWebhookConfiguration")


def custom_resource_definitions(contents: Contents, options: Options) -> list[Object]:
    """The bundle's CRDs; those that conversion webhooks name call them."""
    conversions = [webhook for webhook in contents.webhooks if webhook.type == CONVERSION]
    converters = {crd: webhook for webhook in conversions for crd in webhook.crds}
    definitions = []
    for crd in contents.crds:
        webhook = converters.get(crd["metadata"].get("name", ""))
        if webhook is not None:
            crd = crd | {"spec": crd["spec"] | {"conversion": _conversion(webhook, options)}}
            crd = options.trusted(crd, webhook.deployment)
        definitions.append(crd)
    return definitions


def services(contents: Contents, options: Options) -> list[Object]:
    """A Service for each deployment that serves webhooks, with a port for each way to reach them."""
    made = []
    for deployment in contents.deployments:
        ports = [_service_port(each) for each in contents.webhooks if each.deployment == deployment.name]
        if not ports:
            continue
        spec: Object = {"ports": list(_sorted_ports(ports))}
        if selector := (deployment.spec["selector"] or {}).get("matchLabels"):
            spec["selector"] = selector
        name = options.serving(deployment.name).service
        service = new_object("v1", "Service", name, options.namespace, spec=spec, status={"loadBalancer": {}})
        made.append(options.trusted(service, deployment.name))
    return made


def certificate_objects(contents: Contents, options: Options) -> list[Object]:
    """What has to be in the cluster for the Services to have certificates."""
    if options.certificates is None:
        return []
    servings = map(options.serving, contents.webhook_deployments)
    return [obj for serving in servings for obj in options.certificates.objects(serving)]


def _configurations(contents: Contents, options: Options, type_: str, kind: str) -> list[Object]:
    return [
        options.trusted(_configuration(webhook, kind, options), webhook.deployment)
        for webhook in contents.webhooks
        if webhook.type == type_
    ]


def _configuration(webhook: Webhook, kind: str, options: Options) -> Object:
    name = webhook.name.removesuffix("-")
    fields = dict(webhook.fields)
    if kind != "MutatingWebhookConfiguration":
        fields.pop("reinvocationPolicy", None)
    hook: Object = {
        "name": name,
        "clientConfig": {"service": _service_reference(webhook, options, webhook.path)},
        "sideEffects": None,
        "admissionReviewVersions": None,
        **fields,
    }
    if webhook.rules:
        hook["rules"] = webhook.rules
    if options.watched and ALL_NAMESPACES not in options.watched:
        # Objects outside of namespaces are sent to a webhook whatever its namespace selector says.
        within = {"key": "kubernetes.io/metadata.name", "operator": "In", "values": [*options.watched]}
        hook["namespaceSelector"] = {"matchExpressions": [within]}
    return new_object("admissionregistration.k8s.io/v1", kind, name, options.namespace, webhooks=[hook])


def _conversion(webhook: Webhook, options: Options) -> Object:
    path = "/" if webhook.path is None else webhook.path
    versions = webhook.fields.get("admissionReviewVersions")
    service = _service_reference(webhook, options, path)
    return {
        "strategy": "Webhook",
        "webhook": {"clientConfig": {"service": service}, "conversionReviewVersions": versions},
    }


def _service_reference(webhook: Webhook, options: Options, path: str | None) -> Object:
    service = options.serving(webhook.deployment).service
    # The original refers to port 0 where the bundle names none, which no server accepts; its Service has 443.
    reference = {"namespace": options.namespace, "name": service, "port": _port(webhook)}
    return reference if path is None else reference | {"path": path}


def _port(webhook: Webhook) -> int:
    return webhook.container_port if webhook.container_port > 0 else _DEFAULT_PORT


def _service_port(webhook: Webhook) -> Object:
    port = _port(webhook)
    target = port if webhook.target_port is None else webhook.target_port
    return {"name": str(port), "port": port, "targetPort": target}


def _sorted_ports(ports: list[Object]) -> Iterator[Object]:
    """Each port once, by number and then by target; a target with a name counts as zero."""
    distinct = {(port["port"], type(port["targetPort"]), port["targetPort"]): port for port in ports}

    def order(port: Object) -> tuple[int, int]:
        target: Any = port["targetPort"]
        return port["port"], target if isinstance(target, int) else _number(target)

    yield from sorted(distinct.values(), key=order)


def _number(text: str) -> int:
    digits = text[1:] if text[:1] in ("+", "-") else text
    return int(text) if digits.isascii() and digits.isdecimal() else 0
