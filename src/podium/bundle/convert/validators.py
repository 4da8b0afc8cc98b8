"""What a bundle has to be like to be converted: every rule of operator-controller, every breach reported.

The rules run in the original's order and speak its words, because scripts match on them. Names within one
rule are sorted, as there.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from typing import TypeVar

from podium.api.findings import Finding, Place, Severity
from podium.api.names import dns_subdomain
from podium.bundle.convert.contents import Contents, Webhook
from podium.bundle.convert.installmodes import InstallMode
from podium.bundle.convert.objects import SUPPORTED_KINDS
from podium.bundle.convert.webhooks import CONVERSION
from podium.text.quoting import quote

Rule = Callable[[Contents], Iterable[tuple[str, str]]]  # what each breach is about, and the sentence

_FORBIDDEN_GROUPS = ("olm.operatorframework.io", "*")
_ADMISSION_GROUP = "admissionregistration.k8s.io"
_FORBIDDEN_ADMISSION_RESOURCES = (
    "*",
    "mutatingwebhookconfiguration",
    "mutatingwebhookconfigurations",
    "validatingwebhookconfiguration",
    "validatingwebhookconfigurations",
)


def validate(contents: Contents) -> list[Finding]:
    """Everything that keeps the bundle from being converted, whatever the options."""
    here = Place(contents.file)
    return [
        Finding(Severity.ERROR, name, message, subject, Place() if name in _ABOUT_OTHER_FILES else here)
        for name, rule in RULES.items()
        for subject, message in rule(contents)
    ]


def _unique_deployments(contents: Contents) -> Iterator[tuple[str, str]]:
    for name in _duplicates(deployment.name for deployment in contents.deployments):
        yield name, f"cluster service version contains duplicate strategy deployment spec '{name}'"


def _deployment_names(contents: Contents) -> Iterator[tuple[str, str]]:
    for name in sorted({deployment.name for deployment in contents.deployments}):
        if problems := dns_subdomain(name):
            listed = ", ".join(sorted(problems))
            yield name, f"invalid cluster service version strategy deployment name '{name}': {listed}"


def _unique_crds(contents: Contents) -> Iterator[tuple[str, str]]:
    for name in _duplicates(_crd_names(contents)):
        yield name, f"bundle contains duplicate custom resource definition '{name}'"


def _owned_crds(contents: Contents) -> Iterator[tuple[str, str]]:
    for name in sorted(set(contents.owned_crds).difference(_crd_names(contents))):
        start = "cluster service definition references owned custom resource definition"
        yield name, f"{start} '{name}' not found in bundle"


def _package_name(contents: Contents) -> Iterator[tuple[str, str]]:
    if not contents.package:
        yield contents.name, "package name is empty"


def _conversion_support(contents: Contents) -> Iterator[tuple[str, str]]:
    if contents.supported_modes == {InstallMode.ALL}:
        return
    modes = " ".join(sorted(contents.supported_modes))
    rule = "conversion webhooks are only supported for bundles that only support AllNamespaces install mode"
    for webhook in _conversions(contents):
        start = f"bundle contains conversion webhook {quote(webhook.name)}"
        yield webhook.name, f"{start} and supports install modes [{modes}] - {rule}"


def _webhook_deployments(contents: Contents) -> Iterator[tuple[str, str]]:
    known = {deployment.name for deployment in contents.deployments}
    lost = [webhook for webhook in contents.webhooks if webhook.deployment not in known]
    for webhook in sorted(lost, key=lambda each: (each.deployment, each.type, each.name)):
        start = f"webhook of type '{webhook.type}' with name '{webhook.name}'"
        yield webhook.name, f"{start} references non-existent deployment '{webhook.deployment}'"


def _unique_webhooks(contents: Contents) -> Iterator[tuple[str, str]]:
    for type_, name in _duplicates((webhook.type, webhook.name) for webhook in contents.webhooks):
        yield name, f"duplicate webhook '{name}' of type '{type_}'"


def _webhook_names(contents: Contents) -> Iterator[tuple[str, str]]:
    for type_, name in sorted({(webhook.type, webhook.name) for webhook in contents.webhooks}):
        if problems := dns_subdomain(name):
            listed = ",".join(sorted(problems))
            yield name, f"webhook of type '{type_}' has invalid name '{name}': {listed}"


def _one_converter_each(contents: Contents) -> Iterator[tuple[str, str]]:
    converters: dict[str, list[str]] = {}
    for webhook in _conversions(contents):
        for crd in webhook.crds:
            converters.setdefault(crd, []).append(webhook.name)
    for crd, names in sorted(converters.items()):
        if len(names) > 1:
            listed = ",".join(sorted(names))
            yield crd, f"conversion webhooks [{listed}] reference same custom resource definition '{crd}'"


def _converted_crds(contents: Contents) -> Iterator[tuple[str, str]]:
    for webhook in sorted(_conversions(contents), key=lambda each: each.name):
        start = f"conversion webhook '{webhook.name}' references custom resource definition"
        for crd in sorted(webhook.crds):
            if crd not in contents.owned_crds:
                yield crd, f"{start} '{crd}' not owned bundle"


def _webhook_rules(contents: Contents) -> Iterator[tuple[str, str]]:
    for webhook in contents.webhooks:
        reason = "contains forbidden rule: admission webhook rules cannot reference"
        start = f"webhook {quote(webhook.name)} {reason}"
        for rule in webhook.rules if webhook.type != CONVERSION else ():
            for group in rule.get("apiGroups") or ():
                if group in _FORBIDDEN_GROUPS:
                    yield webhook.name, f"{start} API group {quote(group)}"
                for resource in rule.get("resources") or () if group == _ADMISSION_GROUP else ():
                    if resource.lower() in _FORBIDDEN_ADMISSION_RESOURCES:
                        yield webhook.name, f"{start} resource {quote(resource)} for API group {quote(group)}"


def _kinds(contents: Contents) -> Iterator[tuple[str, str]]:
    for obj in contents.others:
        kind = obj.get("kind", "")
        if kind not in SUPPORTED_KINDS:
            metadata = obj.get("metadata")
            name = metadata.get("name") if isinstance(metadata, dict) else ""
            name = name if isinstance(name, str) else ""
            yield name, f"unsupported resource {quote(name)} with kind {quote(kind)}"


def _convertible(contents: Contents) -> Iterator[tuple[str, str]]:
    converted = {crd for webhook in _conversions(contents) for crd in webhook.crds}
    for crd in contents.crds:
        name = crd["metadata"].get("name", "")
        if name in converted and crd["spec"].get("preserveUnknownFields"):
            rule = "must have .spec.preserveUnknownFields set to false"
            reason = "to let API Server call webhook to do the conversion"
            yield name, f"custom resource definition '{name}' {rule} {reason}"


# In the order that the original runs them; the last is one of its generators' own.
RULES: dict[str, Rule] = {
    "deployment-unique": _unique_deployments,
    "deployment-name": _deployment_names,
    "crd-unique": _unique_crds,
    "owned-crd-missing": _owned_crds,
    "package-name": _package_name,
    "conversion-install-mode": _conversion_support,
    "webhook-deployment": _webhook_deployments,
    "webhook-unique": _unique_webhooks,
    "webhook-name": _webhook_names,
    "conversion-unique": _one_converter_each,
    "conversion-crd-owned": _converted_crds,
    "webhook-rule": _webhook_rules,
    "object-kind": _kinds,
    "conversion-preserves-unknown": _convertible,
}
_ABOUT_OTHER_FILES = ("crd-unique", "package-name", "object-kind", "conversion-preserves-unknown")


def _conversions(contents: Contents) -> list[Webhook]:
    return [webhook for webhook in contents.webhooks if webhook.type == CONVERSION]


def _crd_names(contents: Contents) -> list[str]:
    return [crd["metadata"].get("name", "") for crd in contents.crds]


T = TypeVar("T", str, tuple[str, str])


def _duplicates(values: Iterable[T]) -> list[T]:
    return sorted(value for value, times in Counter(values).items() if times > 1)
