"""CertificateSigningRequests. A request is checked to be PEM of the right type, not for its signature."""

from __future__ import annotations

import base64
from typing import Any, ClassVar

from podium.api import names
from podium.api.kinds import Object
from podium.apiserver.kinds.base import KindStrategy
from podium.apiserver.kinds.checks import each, restore, unsupported
from podium.apiserver.strategy import Check, Hook
from podium.schema import fielderrors as errors
from podium.schema.fielderrors import FieldError

_USAGES = (
    *(
        "any",
        "cert sign",
        "client auth",
        "code signing",
        "content commitment",
        "crl sign",
        "data encipherment",
    ),
    *(
        "decipher only",
        "digital signature",
        "email protection",
        "encipher only",
        "ipsec end system",
        "ipsec tunnel",
    ),
    *(
        "ipsec user",
        "key agreement",
        "key encipherment",
        "microsoft sgc",
        "netscape sgc",
        "ocsp signing",
        "s/mime",
    ),
    *("server auth", "signing", "timestamping"),
)
_DECISIONS = ("Approved", "Denied")


class CertificateSigningRequestStrategy(KindStrategy):
    namespaced = False
    empty_status: ClassVar[Object | None] = {}

    def name_problems(self, name: str, prefix: bool) -> Any:
        return names.anything(name, prefix)

    def prepare_update(self, new: Object, old: Object) -> None:
        restore(new, old, "spec")
        restore(new, old, "status")

    def prepare_status(self, new: Object, old: Object) -> None:
        restore(new, old, "spec")

    def hooks(self, subresource: str) -> tuple[Hook, Check]:
        if subresource == "approval":
            return self.prepare_approval, self.validate_approval
        return super().hooks(subresource)

    def prepare_approval(self, new: Object, old: Object) -> None:
        """Keep only what a write to the `approval` subresource may change, in place."""
        conditions = (new.get("status") or {}).get("conditions")
        restore(new, old, "spec")
        new["status"] = dict(old.get("status") or {})
        if conditions:
            new["status"]["conditions"] = conditions
        else:
            new["status"].pop("conditions", None)

    def validate(self, obj: Object, old: Object | None) -> list[FieldError]:
        spec = obj.get("spec") or {}
        usages, signer, seconds = (
            spec.get("usages") or [],
            spec.get("signerName") or "",
            spec.get("expirationSeconds"),
        )
        found: list[FieldError] = []
        if problem := _request_problem(spec.get("request") or ""):
            found.append(errors.invalid("spec.request", spec.get("request"), problem))
        if not usages:
            found.append(errors.required("spec.usages"))
        for i, usage in enumerate(usages):
            if usage not in _USAGES:
                found.append(unsupported(f"spec.usages[{i}]", usage, _USAGES))
        for i, usage in enumerate(usages):
            if usage in usages[:i]:
                found.append(errors.duplicate(f"spec.usages[{i}]", usage))
        if signer == "kubernetes.io/legacy-unknown":
            text = "the legacy signerName is not allowed via this API version"
            found.append(errors.invalid("spec.signerName", signer, text))
        else:
            found += _signer("spec.signerName", signer)
        if seconds is not None and seconds < 600:
            text = "may not specify a duration less than 600 seconds (10 minutes)"
            found.append(errors.invalid("spec.expirationSeconds", seconds, text))
        return found + _conditions((obj.get("status") or {}).get("conditions") or [])

    def validate_status_change(self, new: Object, old: Object) -> list[FieldError]:
        found = self.validate(new, old) + _decisions_kept(new, old)
        for kind in _DECISIONS:
            if len(_with_type(new, kind)) > len(_with_type(old, kind)):
                text = f'updates may not add a condition of type "{kind}"'
                found.append(errors.forbidden("status.conditions", text))
        certificate, before = ((o.get("status") or {}).get("certificate") or "" for o in (new, old))
        if before and certificate != before:
            text = "updates may not modify existing certificate content"
            found.append(errors.forbidden("status.certificate", text))
        return found

    def validate_approval(self, new: Object, old: Object) -> list[FieldError]:
        """What is wrong with a write to the `approval` subresource."""
        return self._changed_metadata(new, old) + self.validate(new, old) + _decisions_kept(new, old)


def _decisions_kept(new: Object, old: Object) -> list[FieldError]:
    return [
        errors.forbidden("status.conditions", f'updates may not remove a condition of type "{kind}"')
        for kind in (*_DECISIONS, "Failed")
        if len(_with_type(new, kind)) < len(_with_type(old, kind))
    ]


def _with_type(obj: Object, kind: str) -> list[Object]:
    return [c for c in (obj.get("status") or {}).get("conditions") or () if c.get("type") == kind]


def _request_problem(encoded: str) -> str:
    text = base64.b64decode(encoded)
    if (
        b"-----BEGIN CERTIFICATE REQUEST-----" not in text
        and b"-----BEGIN NEW CERTIFICATE REQUEST-----" not in text
    ):
        return "PEM block type must be CERTIFICATE REQUEST"
    return ""


def _signer(path: str, signer: str) -> list[FieldError]:
    if not signer:
        return [errors.required(path)]
    segments = signer.split("/")
    if len(segments) != 2:
        text = "must be a fully qualified domain and path of the form 'example.com/signer-name'"
        return [errors.invalid(path, signer, text)]
    domain, rest = segments
    found: list[FieldError] = []
    for label in domain.split("."):
        if problems := names.dns_label(label):
            found += each(path, domain, [f'validating label "{label}": {text}' for text in problems])
            break
    if "." not in domain:
        text = "should be a domain with at least two segments separated by dots"
        found.append(errors.invalid(path, domain, text))
    for label in rest.split("."):
        if problems := names.dns_subdomain(label):
            found += each(path, rest, [f'validating label "{label}": {text}' for text in problems])
            break
    return found


def _conditions(conditions: list[Object]) -> list[FieldError]:
    path = "status.conditions"
    found: list[FieldError] = []
    seen: list[str] = []
    for i, condition in enumerate(conditions):
        kind, status = condition.get("type") or "", condition.get("status") or ""
        if not kind:
            found.append(errors.required(f"{path}[{i}].type"))
        allowed = ("True",) if kind in (*_DECISIONS, "Failed") else ("False", "True", "Unknown")
        if not status:
            found.append(errors.required(f"{path}[{i}].status"))
        elif status not in allowed:
            found.append(unsupported(f"{path}[{i}].status", status, allowed))
        if kind in _DECISIONS and set(_DECISIONS) - {kind} <= set(seen):
            text = "Approved and Denied conditions are mutually exclusive"
            found.append(errors.invalid(path, kind, text))
        if kind in seen:
            found.append(errors.duplicate(f"{path}[{i}].type", kind))
        seen.append(kind)
    return found
