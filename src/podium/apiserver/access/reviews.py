"""The kinds that ask a question: may somebody do this, what may I do, who am I, whose token is this?

A review is never stored: its spec comes in, the completed object goes out. Each function here takes the
decoded object and returns a new one, or raises the `StatusError` for a spec that makes no sense.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from datetime import UTC, datetime

from podium.api import names, selectors
from podium.api.kinds import Object
from podium.api.times import timestamp
from podium.apiserver import errors
from podium.apiserver.access import rules
from podium.apiserver.access.authentication import Authenticator
from podium.apiserver.access.authorization import Attributes, Authorizer
from podium.apiserver.access.identity import Identity
from podium.apiserver.access.rbac import Rbac
from podium.apiserver.access.signing import TokenError
from podium.apiserver.access.wording import aggregate
from podium.schema import fielderrors
from podium.schema.fielderrors import FieldError

_AUTHORIZATION = "authorization.k8s.io"
_AUTHENTICATION = "authentication.k8s.io"


def subject_access(review: Object, authorizer: Authorizer) -> Object:
    """Complete a SubjectAccessReview."""
    spec = review.get("spec") or {}
    faults = [*_spec_faults(spec), *_subject_faults(spec), *_attribute_faults(spec)]
    _refuse(faults + _metadata_faults(review, "must be empty"))
    return _answered(review, _subject(spec), spec, authorizer)


def local_subject_access(review: Object, namespace: str, authorizer: Authorizer) -> Object:
    """Complete a LocalSubjectAccessReview that was posted to a namespace."""
    # The namespace of the URL is filled in before anything is checked.
    review = {**review, "metadata": {"namespace": namespace, **(review.get("metadata") or {})}}
    spec = review.get("spec") or {}
    faults = [*_spec_faults(spec), *_subject_faults(spec), *_attribute_faults(spec)]
    faults += _metadata_faults(review, "must be empty except for namespace", "namespace")
    own = review["metadata"]["namespace"]
    asked = spec.get("resourceAttributes")
    if asked is not None and asked.get("namespace", "") != own:
        path = "spec.resourceAttributes.namespace"
        faults.append(fielderrors.invalid(path, asked.get("namespace", ""), "must match metadata.namespace"))
    if spec.get("nonResourceAttributes") is not None:
        value = _shown_path(spec["nonResourceAttributes"])
        faults.append(
            fielderrors.invalid("spec.nonResourceAttributes", value, "disallowed on this kind of request")
        )
    _refuse(faults)
    if own != namespace:
        raise errors.bad_request(f"spec.resourceAttributes.namespace must match namespace: {namespace}")
    return _answered(review, _subject(spec), spec, authorizer)


def self_subject_access(review: Object, user: Identity, authorizer: Authorizer) -> Object:
    """Complete a SelfSubjectAccessReview of the user who posts it."""
    spec = review.get("spec") or {}
    faults = [*_spec_faults(spec), *_attribute_faults(spec)]
    _refuse(faults + _metadata_faults(review, "must be empty"))
    return _answered(review, user, spec, authorizer)


def self_subject_rules(review: Object, user: Identity, rbac: Rbac) -> Object:
    """Complete a SelfSubjectRulesReview: all rules of the user who posts it, in one namespace."""
    namespace = (review.get("spec") or {}).get("namespace")
    if not namespace:
        raise errors.bad_request("no namespace on request")
    grants = rbac.grants(user, namespace)
    found = [rule for rule, _ in grants.rules]
    status: Object = {
        "resourceRules": [
            rules.to_object(rules.Rule(rule.verbs, rule.groups, rule.resources, rule.names))
            for rule in found
            if rule.resources
        ],
        "nonResourceRules": [
            rules.to_object(rules.Rule(rule.verbs, urls=rule.urls)) for rule in found if rule.urls
        ],
        "incomplete": False,
    }
    if grants.missing:
        status["evaluationError"] = aggregate(map(str, grants.missing))
    kind = {"kind": "SelfSubjectRulesReview", "apiVersion": f"{_AUTHORIZATION}/v1"}
    return {**kind, "metadata": {}, "spec": {}, "status": status}


def self_subject(user: Identity, clock: Callable[[], float] = time.time) -> Object:
    """Complete a SelfSubjectReview: who the server takes the requester for."""
    now = timestamp(datetime.fromtimestamp(clock(), UTC))
    return {
        "kind": "SelfSubjectReview",
        "apiVersion": f"{_AUTHENTICATION}/v1",
        "metadata": {"creationTimestamp": now},
        "status": {"userInfo": user.user_info()},
    }


def token(review: Object, authenticator: Authenticator) -> Object:
    """Complete a TokenReview: whose token it is, or why it is nobody's."""
    spec = review.get("spec") or {}
    if not spec.get("token"):
        raise errors.bad_request("token is required for TokenReview in authentication")
    try:
        verified = authenticator.check_token(spec["token"], spec.get("audiences") or None)
    except TokenError as error:
        return {**review, "status": {"user": {}, "error": str(error)}}
    status = {
        "authenticated": True,
        "user": verified.identity.user_info(),
        "audiences": list(verified.audiences),
    }
    return {**review, "status": status}


def _answered(review: Object, user: Identity, spec: Object, authorizer: Authorizer) -> Object:
    decision = authorizer.decide(_attributes(user, spec))
    status: Object = {"allowed": decision.allowed}
    if decision.reason:
        status["reason"] = decision.reason
    if evaluation := _selector_errors(spec.get("resourceAttributes") or {}):
        status["evaluationError"] = evaluation
    return {**review, "status": status}


def _attributes(user: Identity, spec: Object) -> Attributes:
    asked = spec.get("resourceAttributes")
    if asked is None:
        path = spec["nonResourceAttributes"]
        return Attributes(user, path.get("verb", ""), path=path.get("path", ""))
    return Attributes(
        user,
        asked.get("verb", ""),
        group=asked.get("group", ""),
        resource=asked.get("resource", ""),
        subresource=asked.get("subresource", ""),
        namespace=asked.get("namespace", ""),
        name=asked.get("name", ""),
    )


def _subject(spec: Object) -> Identity:
    extra = {key: tuple(values) for key, values in (spec.get("extra") or {}).items()}
    return Identity(spec.get("user", ""), spec.get("uid", ""), tuple(spec.get("groups") or ()), extra)


def _refuse(faults: list[FieldError]) -> None:
    if faults:
        # The real server has lost the kind when it words this: `.authorization.k8s.io "" is invalid`.
        raise errors.invalid(_AUTHORIZATION, "", "", faults)


def _spec_faults(spec: Object) -> list[FieldError]:
    asked, path = spec.get("resourceAttributes"), spec.get("nonResourceAttributes")
    if asked is not None and path is not None:
        detail = "cannot be specified in combination with resourceAttributes"
        return [fielderrors.invalid("spec.nonResourceAttributes", _shown_path(path), detail)]
    if asked is None and path is None:
        detail = "exactly one of nonResourceAttributes or resourceAttributes must be specified"
        return [fielderrors.invalid("spec.resourceAttributes", None, detail)]
    return []


def _subject_faults(spec: Object) -> list[FieldError]:
    if spec.get("user") or spec.get("groups"):
        return []
    return [fielderrors.invalid("spec.user", "", "at least one of user or group must be specified")]


def _metadata_faults(review: Object, detail: str, *allowed: str) -> list[FieldError]:
    metadata = {key: value for key, value in (review.get("metadata") or {}).items() if value}
    if all(key in allowed or key == "managedFields" for key in metadata):
        return []
    return [fielderrors.invalid("metadata", metadata, detail)]


def _shown_path(path: Object) -> Object:
    """The value as errors show it: with the names that the fields have inside the real server."""
    return {"Path": path.get("path", ""), "Verb": path.get("verb", "")}


def _attribute_faults(spec: Object) -> list[FieldError]:
    asked = spec.get("resourceAttributes") or {}
    faults: list[FieldError] = []
    for field, check in (("fieldSelector", _field_faults), ("labelSelector", _label_faults)):
        selector = asked.get(field)
        if selector is None:
            continue
        path = f"spec.resourceAttributes.{field}"
        requirements = selector.get("requirements") or []
        if selector.get("rawSelector") and requirements:
            detail = "may not specified at the same time as requirements"
            faults.append(fielderrors.invalid(f"{path}.rawSelector", selector["rawSelector"], detail))
        if not selector.get("rawSelector") and not requirements:
            detail = f"when {path} is specified, requirements or rawSelector is required"
            faults.append(fielderrors.required(f"{path}.requirements", detail))
        for index, requirement in enumerate(requirements):
            faults += check(requirement, f"{path}.requirements[{index}]")
    return faults


def _field_faults(requirement: Object, path: str) -> list[FieldError]:
    faults = _value_count_faults(requirement, path)
    if not requirement.get("key"):
        faults.insert(0, fielderrors.required(f"{path}.key", "must be specified"))
    return faults


def _label_faults(requirement: Object, path: str) -> list[FieldError]:
    faults = _value_count_faults(requirement, path)
    key = requirement.get("key", "")
    faults += [fielderrors.invalid(f"{path}.key", key, detail) for detail in names.qualified_name(key)]
    for index, value in enumerate(requirement.get("values") or ()):
        faults += [
            fielderrors.invalid(f"{path}.values[{index}]", value, detail)
            for detail in names.label_value(value)
        ]
    return faults


def _value_count_faults(requirement: Object, path: str) -> list[FieldError]:
    operator, values = requirement.get("operator"), requirement.get("values")
    if operator in ("In", "NotIn") and not values:
        detail = "must be specified when `operator` is 'In' or 'NotIn'"
        return [fielderrors.required(f"{path}.values", detail)]
    if operator in ("Exists", "DoesNotExist") and values:
        detail = "may not be specified when `operator` is 'Exists' or 'DoesNotExist'"
        return [fielderrors.forbidden(f"{path}.values", detail)]
    return []


def _selector_errors(asked: Object) -> str:
    """What of the selectors cannot be understood: RBAC ignores them, but the asker is told."""
    texts = []
    for field, parse, understood in (
        ("fieldSelector", selectors.parse_fields, _understands_field),
        ("labelSelector", selectors.parse, _understands_label),
    ):
        selector = asked.get(field) or {}
        requirements = selector.get("requirements") or []
        good = [requirement for requirement in requirements if understood(requirement)]
        if len(good) < len(requirements):
            partly = "partially " if good else ""
            texts.append(f"spec.resourceAttributes.{field} {partly}ignored due to parse error")
        elif not requirements and not _parses(parse, selector.get("rawSelector", "")):
            texts.append(f"spec.resourceAttributes.{field} ignored due to parse error")
    return "; ".join(texts)


def _understands_field(requirement: Object) -> bool:
    return requirement.get("operator") in ("In", "NotIn") and len(requirement.get("values") or ()) == 1


def _understands_label(requirement: Object) -> bool:
    return requirement.get("operator") in ("In", "NotIn", "Exists", "DoesNotExist")


def _parses(parse: Callable[[str], object], text: str) -> bool:
    try:
        parse(text)
    except selectors.SelectorError:
        return False
    return True
