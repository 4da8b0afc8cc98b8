"""Which of our rules a message of the originals belongs to."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

Verdict = tuple[str, str]  # rule, severity

_MIN_KUBE = (
    ("minKubeVersion is not informed", "min-kube-version-missing"),
    ("MinKubeVersion has an invalid", "min-kube-version-invalid"),
)
_REMOVED = (
    ("invalid value informed", "k8s-version-invalid"),
    ("unable to use csv.Spec.MinKubeVersion", "min-kube-version-unusable"),
    ("using APIs which were", "removed-api"),
)
_CATEGORIES = (
    ("set of (standard|custom) categories", "category-unknown"),
    ("extract custom categories", "categories-file-invalid"),
)
_CAPABILITIES = (("valid capabilities level", "capability-unknown"),)
_HUB = (
    ("Provider.Name not", "provider-name-missing"),
    ("Maintainers elements", "maintainer-incomplete"),
    ("Maintainers email", "maintainer-email-invalid"),
    ("Links elements", "link-incomplete"),
    ("Links url", "link-url-invalid"),
    ("Version must be set", "version-missing"),
    ("only have one element", "icon-count"),
    ("both data and mediatype", "icon-incomplete"),
    ("valid mediatype", "icon-mediatype"),
    ("Icon not specified", "icon-missing"),
    *_MIN_KUBE,
    *_REMOVED,
)
_CSV = (
    (r"metadata\.name .* is invalid", "csv-name"),
    (r"spec\.replaces .* is invalid", "csv-replaces"),
    (r"\) annotations not found", "csv-annotations-missing"),
    ("example annotations not found", "examples-missing"),
    ("both `alm-examples`", "examples-twice"),
    (": invalid example", "examples-not-json"),
    ("error decoding example", "examples-undecodable"),
    ("couldn't parse plural.group", "owned-crd-name-malformed"),
    ("example must have", "example-not-provided"),
    ("should have an example", "example-missing"),
    ("install modes not found", "install-modes-missing"),
    ("none of InstallModeTypes", "install-modes-unsupported"),
    ("conversionCRDs is present", "conversion-install-modes"),
    ("required field missing", "required-field-missing"),
    ("uses wrong case", "annotation-case"),
    ("found olm.properties", "properties-annotation"),
    ("'apiVersion' is missing", "api-version-missing"),
    *_MIN_KUBE,
)

# By check, the first pattern that is found in a message says the rule; an empty rule: nothing of its own.
RULES: dict[str, tuple[tuple[str, str], ...]] = {
    "format": (
        ("Unable to locate manifests", "manifests-directory-missing"),
        ("Unable to locate metadata", "metadata-directory-missing"),
        ("contains no yaml files", "manifests-empty"),
        ("Could not find annotations file", "annotations-missing"),
        ("Missing annotation", "annotation-missing"),
        ("mediatype.* to have value", "mediatype-mismatch"),
        (r"channels\.v1.*non-empty", "channels-empty"),
        (r"channel\.default\.v1.*non-empty", "default-channel-empty"),
        ("couldn't parse dependency|is empty|Invalid semver|is missing|Invalid CEL", "dependency-invalid"),
    ),
    "load": (
        ("contains directory", "nested-directory"),
        ("hidden file", "hidden-file"),
        ("unable to decode object", "undecodable-file"),
        ("multiple CSVs", "several-csvs"),
        ("unable to find a csv", "csv-missing"),
        ("unsupported CRD version", "crd-version"),
        ("unable to parse CSV", "csv-undecodable"),
        ("unable to parse CRD", "crd-undecodable"),
        ("no bundle csv found|error loading objs|unable to load bundle|no such file", ""),
    ),
    "object": (
        ("unsupported kind $", "undecodable-file"),
        ("unsupported kind", "unsupported-kind"),
        ("^metadata.namespace: Forbidden", "namespace-forbidden"),
        ("^metadata", "invalid-metadata"),
    ),
    "bundle": (
        ("duplicate CRD", "duplicate-crd"),
        ("owned CRD .* not found", "owned-crd-missing"),
        ("present in bundle .* but not defined", "crd-not-owned"),
        ("invalid service account", "service-account-conflict"),
        ("maximum bundle compressed size with gzip size exceeded", "bundle-too-large"),
        ("nearing maximum", "bundle-nearly-too-large"),
        ("release versioning", "release-name"),
        ("empty image field", "related-image-empty"),
        ("invalid image pullspec", "related-image-invalid"),
    ),
    "csv": _CSV,
    "crd": (("", "invalid-crd"),),
    "operatorhubv2": _HUB,
    "operatorhub": (
        ("validator is deprecated", "check-deprecated"),
        *_CAPABILITIES,
        *_CATEGORIES,
        *_HUB,
    ),
    "capabilities": _CAPABILITIES,
    "categories": _CATEGORIES,
    "alpha-deprecated-apis": _REMOVED,
    "good-practices": (
        ("unable to find a deployment", "deployments-missing"),
        ("resource requests", "requests-missing"),
        ("empty description", "crd-description-missing"),
        (r"channel\(s\)", "channel-name"),
        ("permissions to create CRD", "crd-permissions"),
        ("versioning convention", "csv-name-version"),
        ("naming convention", "csv-name-convention"),
    ),
    "community": (
        ("not specified olm.max|with the key `olm.max", "max-openshift-version-missing"),
        ("invalid value specified for olm.properties", "properties-annotation-invalid"),
        ("Unable to parse", "max-openshift-version-invalid"),
        ("will be truncated", "max-openshift-version-too-exact"),
        ("which is >= of", "max-openshift-version-too-high"),
        ("inform the path", "openshift-label-unchecked"),
        ("invalid syntax|unable to parse the value|unable to get the range", "openshift-label-invalid"),
        ("via the labels", "openshift-label-missing"),
        ("by using the com", "openshift-label-too-high"),
    ),
    "multiarch": (
        ("unable to inspect", "image-not-inspected"),
        ("not all images", "platform-unsupported"),
        (r"missing the label \(operatorframework.io/arch", "arch-label-missing"),
        (r"missing the label \(operatorframework.io/os", "os-label-missing"),
        ("should not support", "image-platform-missing"),
        ("missing a node affinity|missing or invalid node affinity", "node-affinity-missing"),
        ("the CSV includes", "node-affinity-extra"),
        ("image data indicates", "node-affinity-short"),
    ),
    "bundle-objects": (
        ("error unmarshaling", "object-undecodable"),
        ("maxUnavailable", "pdb-max-unavailable"),
        ("minAvailable", "pdb-min-available"),
        ("globalDefault", "priority-class-global"),
        ("create/update poddisruption", "rbac-disruption-budgets"),
        ("modify default security", "rbac-default-sccs"),
    ),
}


def rule_of(check: str, message: str) -> str:
    """Our rule for what a check of the originals said."""
    for pattern, rule in RULES[check]:
        if re.search(pattern, message, re.DOTALL):
            return rule
    raise AssertionError(f"nobody knows this message of {check}: {message}")


def verdicts(answer: dict[str, Any]) -> set[Verdict]:
    """What the originals say, in terms of our rules; `panic` where one of them crashed."""
    found: set[Verdict] = set()
    for check in ("format", "load"):
        found |= {(_rule(check, message), "error") for message in answer[check] or ()}
    for each in answer["verdicts"] or ():
        rule = "panic" if each["level"] == "Panic" else _rule(each["check"], each["message"])
        found.add((rule, each["level"].lower()))
    return {verdict for verdict in found if verdict[0]}


def _rule(check: str, message: str) -> str:
    return "panic" if message.startswith("panic: ") else rule_of(check, message)


def rules(checks: Iterable[str]) -> set[str]:
    """Every rule of ours that these checks of the originals have."""
    return {rule for check in checks for _, rule in RULES[check] if rule}
