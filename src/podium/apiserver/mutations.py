"""From a request body to the object that is to be stored: plain bodies, the patch formats, and apply.

Each function answers a `Transform` for `Objects.update`, which may call it more than once, always with the
newest version of the object.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import msgspec

from podium.api.kinds import Object
from podium.apiserver import bodies, errors
from podium.apiserver.objects import Transform, Write
from podium.apiserver.registry import Resource
from podium.apiserver.resetfields import reset_fields
from podium.apiserver.store import decode, encode
from podium.schema import facts, govalues, managedfields, patches, strategic
from podium.schema.fielderrors import invalid

JSON_PATCH = "application/json-patch+json"
MERGE_PATCH = "application/merge-patch+json"
STRATEGIC_PATCH = "application/strategic-merge-patch+json"
APPLY_PATCH = "application/apply-patch+yaml"
_MAX_OPERATIONS = 10_000
_REASONS = {400: "BadRequest", 422: "Invalid"}
_OPERATION_KEY = re.compile(r"\[\d+\]\.\w+")


def admitted(resource: Resource, body: bodies.Body, write: Write) -> Object:
    """A request body as an object of its kind, with defaults; unknown fields are reported as asked."""
    check_kind(resource, body.object)
    obj, unknown = resource.codec.admit(body.object)
    fields = [f'unknown field "{path}"' for path in unknown]
    findings = body.strict_findings + fields
    if findings and write.validation == "Strict":
        what = f'{resource.kind} in version "{resource.version}" cannot be handled as a {resource.kind}'
        raise errors.bad_request(f"{what}: strict decoding error: {', '.join(findings)}")
    if write.validation == "Warn":
        write.warnings += body.findings + fields
    resource.strategy.default(obj)
    return obj


def check_kind(resource: Resource, obj: Object) -> None:
    """Refuse an object of another kind or version than the URL names; fill in what is left out."""
    api_version, kind = obj.get("apiVersion") or "", obj.get("kind") or ""
    if not isinstance(kind, str) or not isinstance(api_version, str):
        raise errors.bad_request(
            "couldn't get version/kind; json parse error: apiVersion and kind must be strings"
        )
    if resource.custom:
        _check_custom_kind(resource, obj, api_version, kind)
        return
    api_version, kind = api_version or resource.api_version, kind or resource.kind
    if (api_version, kind) != (resource.api_version, resource.kind):
        if kind == resource.kind and (api_version in _RETIRED_VERSIONS or _is_served(api_version, kind)):
            raise _other_version(resource, api_version)
        version = api_version.rpartition("/")[2]
        what = f'{kind} in version "{version}" cannot be handled as a {resource.kind}'
        raise errors.bad_request(f"{what}: {_other_kind(resource, api_version, kind)}")
    obj["apiVersion"], obj["kind"] = api_version, kind


def _check_custom_kind(resource: Resource, obj: Object, api_version: str, kind: str) -> None:
    """Custom resources have no type to fall back on, so they must say what they are."""
    if not kind or not api_version:
        missing = "apiVersion" if kind else "Kind"
        data = encode(obj)
        problem = f"Object '{missing}' is missing in '{data.decode()}'"
        raise bodies.unrecognized(resource.kind, problem, data)
    if api_version != resource.api_version:
        raise _other_version(resource, api_version)
    if kind != resource.kind:
        name = str((obj.get("metadata") or {}).get("name") or "")
        wrong = invalid("kind", kind, f"must be {resource.kind}")
        raise errors.invalid(resource.group, kind, name, [wrong])


# Versions that are no longer served but still known, so that their objects are recognized as such.
_RETIRED_VERSIONS = frozenset(
    (
        "apiextensions.k8s.io/v1beta1",
        "apps/v1beta1",
        "apps/v1beta2",
        "batch/v1beta1",
        "extensions/v1beta1",
        "networking.k8s.io/v1beta1",
        "policy/v1beta1",
        "rbac.authorization.k8s.io/v1alpha1",
        "rbac.authorization.k8s.io/v1beta1",
        "storage.k8s.io/v1beta1",
    )
)


def _is_served(api_version: str, kind: str) -> bool:
    group, _, version = api_version.rpartition("/")
    return facts.load().type_for(group, version, kind) is not None


def _other_version(resource: Resource, api_version: str) -> errors.StatusError:
    return errors.bad_request(
        f"the API version in the data ({api_version}) does not match the expected API version "
        f"({resource.api_version})"
    )


def _other_kind(resource: Resource, api_version: str, kind: str) -> str:
    """Why an object of another kind is none of this, as Go's type registry says it."""
    version = api_version.rpartition("/")[2]
    if not _is_served(api_version, kind):
        scheme = 'scheme "pkg/runtime/scheme.go:111"'
        return f'no kind "{kind}" is registered for version "{api_version}" in {scheme}'
    package = resource.group.partition(".")[0] or "core"
    return f"converting ({version}.{kind}) to ({package}.{resource.kind}): unknown conversion"


def replaced_by(resource: Resource, obj: Object) -> Transform:
    """A PUT: the body takes the place of whatever is there, if that is the object it means."""
    data = encode(obj)
    wanted = (obj.get("metadata") or {}).get("uid")

    def transform(current: Object | None) -> Object:
        found = current["metadata"]["uid"] if current else ""
        if wanted and wanted != found:
            why = f"Precondition failed: UID in precondition: {wanted}, UID in object meta: {found}"
            raise errors.conflict(resource.group, resource.plural, obj["metadata"].get("name", ""), why)
        return decode(data)

    return transform


def patched(resource: Resource, kind: str, body: bytes, write: Write) -> Transform:
    """A PATCH with one of the three patch formats."""
    if kind == STRATEGIC_PATCH and resource.custom:
        raise errors.unsupported_media_type((JSON_PATCH, MERGE_PATCH, APPLY_PATCH))
    patch, earlier = _patch(resource, kind, body), list(write.warnings)

    def transform(current: Object | None) -> Object:
        if current is None:
            raise AssertionError("patches never create")
        result = patch.apply_to(current)
        if not isinstance(result, dict):
            raise errors.bad_request("the patch does not give an object")
        kept = {"kind": result.get("kind") or resource.kind}
        kept["apiVersion"] = result.get("apiVersion") or resource.api_version
        result = {**result, **kept}
        shown = patch.shown or _shown(resource, result)
        try:
            check_kind(resource, result)
            obj, unknown = resource.codec.admit(result)
        except errors.StatusError as error:
            # Whatever is wrong with the result is said of the patch.
            if error.code != 400:
                raise
            problem = error.message.partition(f"cannot be handled as a {resource.kind}: ")[2] or error.message
            raise errors.invalid("", "", "", [invalid("patch", shown, problem)]) from None
        findings = patch.findings + [f'unknown field "{path}"' for path in unknown]
        if findings and write.validation == "Strict":
            text = f"strict decoding error: {', '.join(findings)}"
            raise errors.invalid("", "", "", [invalid("patch", shown, text)])
        if write.validation == "Warn":
            write.warnings[:] = earlier + findings
        resource.strategy.default(obj)
        return obj

    return transform


def _shown(resource: Resource, obj: Object) -> str:
    """An object within a message; upstream a custom resource is a map, and its keys come out sorted."""
    if not resource.custom:
        return encode(obj).decode()
    return msgspec.json.encode(obj, order="sorted").decode()


@dataclass(frozen=True, slots=True)
class _Patch:
    """A decoded patch: what it does, how Go would print it (empty: by its result), and what is odd in it."""

    apply_to: Callable[[Object], Any]
    shown: str
    findings: list[str]


def _patch(resource: Resource, kind: str, body: bytes) -> _Patch:
    if kind == JSON_PATCH:
        return _json_patch(body)
    if kind == MERGE_PATCH:
        try:
            if body.strip() == b"null":
                raise errors.bad_request("Invalid JSON Patch")
            merge = bodies.decode(body, bodies.JSON)
        except bodies.Undecodable as error:
            raise errors.bad_request(f"error decoding patch: {error}") from None
        return _Patch(lambda current: patches.merge_patch(current, merge.object), "", merge.findings)
    decoded, shape = bodies.decode(body, bodies.JSON), resource.codec.shape
    shown = govalues.show(decoded.object)
    return _Patch(
        lambda current: _strategically_patched(current, decoded.object, shape), shown, decoded.findings
    )


def _json_patch(body: bytes) -> _Patch:
    try:
        operations = bodies.decode_json_value(body)
    except bodies.Undecodable as error:
        raise errors.bad_request(f"error decoding patch: {error}") from None
    if isinstance(operations, list) and len(operations) > _MAX_OPERATIONS:
        limit = f"The allowed maximum operations in a JSON patch is {_MAX_OPERATIONS}, got {len(operations)}"
        raise errors.too_large(limit)
    return _Patch(
        lambda current: _json_patched(current, operations), "", _odd_in_operations(body, operations)
    )


def _odd_in_operations(body: bytes, operations: Any) -> list[str]:
    """Keys of operations that mean nothing or stand twice; the values are the object's own business."""
    if not isinstance(operations, list):
        return []
    known = ("op", "path", "from", "value")
    odd = [
        f'json patch unknown field "[{position}].{key}"'
        for position, operation in enumerate(operations)
        if isinstance(operation, dict)
        for key in operation
        if key not in known
    ]
    twice = bodies.duplicate_paths(body.decode())
    return [f'json patch duplicate field "{path}"' for path in twice if _OPERATION_KEY.fullmatch(path)] + odd


def _json_patched(current: Object, operations: Any) -> Any:
    try:
        return patches.json_patch(current, operations)
    except patches.MalformedPatchError as error:
        raise errors.bad_request(str(error)) from None
    except patches.PatchError as error:
        # Upstream's generic 422, which hides the reason; the reason is worth more to the user.
        message = "the server rejected our request due to an error in our request"
        cause = {"message": str(error), "field": "patch"}  # kubectl prints the two side by side
        raise errors.StatusError(422, "Invalid", message, {"causes": [cause]}) from None


def _strategically_patched(current: Object, patch: Object, shape: Any) -> Any:
    try:
        return strategic.strategic_merge(current, patch, shape)
    except strategic.StrategicPatchError as error:
        raise errors.StatusError(error.status, _REASONS.get(error.status, ""), str(error)) from None


def applied(
    resource: Resource, intent: Object, write: Write, *, force: bool, subresource: str, now: Callable[[], str]
) -> Transform:
    """Server-side apply; the result carries its managedFields."""

    def transform(current: Object | None) -> Object:
        try:
            result = managedfields.apply(
                current,
                intent,
                manager=write.manager,
                api_version=resource.api_version,
                shape=resource.codec.shape,
                force=force,
                subresource=subresource,
                now=now(),
                reset_fields=reset_fields(resource, subresource),
                zero=resource.codec.zero,
            )
        except managedfields.ApplyConflictError as error:
            causes = [conflict.cause for conflict in error.conflicts]
            raise errors.apply_conflict(str(error), causes) from None
        except managedfields.ApplyError as error:
            raise errors.StatusError(error.status, _REASONS.get(error.status, ""), str(error)) from None
        obj, _ = resource.codec.admit(result.obj)
        resource.strategy.default(obj)
        if result.managed_fields:
            obj["metadata"]["managedFields"] = result.managed_fields
        return obj

    return transform


def intent_of(api_version: str, kind: str, body: bytes, write: Write) -> Object:
    """The configuration to apply. Unknown fields are not looked for: they do not fit the kind's shape."""
    try:
        decoded = _decoded_intent(body)
    except bodies.Undecodable as error:
        problem = str(error)
        if problem.startswith("json:"):
            problem = f"error unmarshaling JSON: while decoding JSON: {problem}"
        raise errors.bad_request(f"error decoding YAML: {problem}") from None
    if decoded.findings and write.validation == "Strict":
        problem = f"error converting YAML to JSON: {decoded.strict_findings[0]}"
        raise errors.bad_request(f"error strict decoding YAML: {problem}")
    if write.validation == "Warn":
        write.warnings += decoded.findings
    intent = decoded.object
    if (intent.get("apiVersion"), intent.get("kind")) != (api_version, kind):
        group, _, version = str(intent.get("apiVersion") or "").rpartition("/")
        raise errors.bad_request(f"invalid object type: {group}/{version}, Kind={intent.get('kind') or ''}")
    return intent


def _decoded_intent(body: bytes) -> bodies.Body:
    """JSON where it is clean JSON, which is read much faster; what is odd in it is reported as YAML."""
    if body.lstrip().startswith(b"{"):
        with suppress(bodies.Undecodable):
            decoded = bodies.decode(body, bodies.JSON)
            if not decoded.findings:
                return decoded
    return bodies.decode(body, bodies.YAML)
