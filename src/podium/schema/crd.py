"""CustomResourceDefinitions: defaults, and whether one may be created or changed.

The real server judges an internal form of a CRD in which what all versions share (schema, subresources,
printer columns) stands once at the top of the spec. Its paths say so: the schema of a CRD with one version is
at `spec.validation`, not at `spec.versions[0].schema`. `_Spec` is that form, so the paths and texts here are
the same. What an existing CRD already does wrong it may go on doing: updates are judged by `_Leniency`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from podium.api.conditions import is_true
from podium.api.fields import value_at
from podium.api.kinds import Object
from podium.api.names import dns_1035_label, dns_subdomain
from podium.schema import crdschemas, fieldpaths, gourl, structuralrules
from podium.schema.crdschema import parse
from podium.schema.crdschemas import Leniency
from podium.schema.fielderrors import (
    Cause,
    FieldError,
    duplicate,
    forbidden,
    invalid,
    not_supported,
    required,
    too_many,
)  # fmt: skip
from podium.schema.govalues import same

_COLUMN_TYPES = ("boolean", "date", "integer", "number", "string")
_COLUMN_FORMATS = ("byte", "date", "date-time", "double", "float", "int32", "int64", "password")
_REVIEW_VERSIONS = ("v1", "v1beta1")
_MAX_SELECTABLE_FIELDS = 8
_APPROVAL = "api-approved.kubernetes.io"


def default_crd(crd: Object) -> None:
    """Fill in what the server fills in: names, conversion, the webhook's port, stored versions."""
    spec = crd.setdefault("spec", {})
    names = spec.setdefault("names", {})
    if not names.get("singular"):
        names["singular"] = names.get("kind", "").lower()
    if not names.get("listKind") and names.get("kind"):
        names["listKind"] = names["kind"] + "List"
    conversion = spec.setdefault("conversion", {"strategy": "None"})
    service = ((conversion.get("webhook") or {}).get("clientConfig") or {}).get("service")
    if service is not None and service.get("port") is None:
        service["port"] = 443
    status = crd.setdefault("status", {})
    if not status.get("storedVersions"):
        storage = [v["name"] for v in spec.get("versions") or () if v.get("storage")]
        status["storedVersions"] = storage[:1]


def format_warnings(crd: Object, old: Object | None) -> list[str]:
    """Advice about formats that nothing checks; those that the old definition had are not mentioned."""
    known = _unknown_formats(old) if old is not None else set()
    return [f'unrecognized format "{name}"' for name in sorted(_unknown_formats(crd) - known)]


def _unknown_formats(crd: Object) -> set[str]:
    found: set[str] = set()
    for version in (crd.get("spec") or {}).get("versions") or ():
        if (schema := _schema_of(version)) is not None:
            found |= crdschemas.unknown_formats(schema)
    return found


def validate_crd(crd: Object) -> list[FieldError]:
    """Return what is wrong with a new CRD, after defaulting; metadata other than the name is the caller's."""
    spec = crd.get("spec") or {}
    return [
        *_name_errors(crd, spec),
        *_spec_errors(_Spec.of(spec), Leniency()),
        *_names_errors((crd.get("status") or {}).get("acceptedNames") or {}, "status.acceptedNames"),
        *_stored_version_errors(crd, spec),
        *_approval_errors(crd, None),
        *_preserve_errors(spec, None),
    ]


def validate_crd_update(new: Object, old: Object) -> list[FieldError]:
    """Return what is wrong with a changed CRD; faults that the old one had are not held against it."""
    spec, old_spec = new.get("spec") or {}, old.get("spec") or {}
    errors = _spec_errors(_Spec.of(spec), _leniency(spec, old_spec))
    immutable = ["group", "names.plural"]
    if is_true(old, "Established"):
        immutable = ["scope", "names.kind", *immutable]
    for name in immutable:
        path = name.split(".")
        if (now := value_at(spec, path)) != value_at(old_spec, path):
            errors.append(invalid(f"spec.{name}", now or "", "field is immutable"))
    return [
        *errors,
        *_names_errors((new.get("status") or {}).get("acceptedNames") or {}, "status.acceptedNames"),
        *_stored_version_errors(new, spec),
        *_approval_errors(new, old),
        *_preserve_errors(spec, old_spec),
    ]


@dataclass(frozen=True, slots=True)
class _Spec:
    """A spec in the form that is judged: what all versions share stands at the top."""

    raw: Object
    versions: tuple[Object, ...]
    shared: Object = field(default_factory=dict)

    @staticmethod
    def of(spec: Object) -> _Spec:
        versions = [dict(v) for v in spec.get("versions") or ()]
        shared: Object = {}
        for key in ("subresources", "schema", "additionalPrinterColumns", "selectableFields"):
            values = [v.get(key) for v in versions]
            if values and all(same(value, values[0]) for value in values):
                shared[key] = values[0]
                for version in versions:
                    version.pop(key, None)
        return _Spec(spec, tuple(versions), {k: v for k, v in shared.items() if v is not None})


def _leniency(spec: Object, old_spec: Object) -> Leniency:
    schemas = {v.get("name"): _schema_of(v) for v in old_spec.get("versions") or ()}
    known = [schema for schema in schemas.values() if schema is not None]
    return Leniency(
        may_lack_schema=any(schema is None for schema in schemas.values()),
        any_type=any(crdschemas.has_invalid_type(s) for s in known),
        not_structural=any(structuralrules.unsupported(s) or structuralrules.check(s, "") for s in known),
        unpruned_defaults=any(crdschemas.has_unpruned_defaults(s) for s in known),
        any_set_items=any(crdschemas.has_non_atomic_set(s) for s in known),
        any_map_keys=any(crdschemas.has_bad_map_keys(s) for s in known),
        any_review_version=not _has_review_version(old_spec),
        unchanged_schemas=frozenset(
            v.get("name", "")
            for v in spec.get("versions") or ()
            if v.get("name") in schemas and same(_schema_of(v), schemas[v.get("name")])
        ),
        many_selectable_fields=frozenset(
            v.get("name", "")
            for v in old_spec.get("versions") or ()
            if len(v.get("selectableFields") or ()) > _MAX_SELECTABLE_FIELDS
            and any(
                n.get("name") == v.get("name") and same(n.get("selectableFields"), v.get("selectableFields"))
                for n in spec.get("versions") or ()
            )
        ),
    )


def _schema_of(version: Object) -> Any:
    return (version.get("schema") or {}).get("openAPIV3Schema")


def _has_review_version(spec: Object) -> bool:
    versions = value_at(spec, ("conversion", "webhook", "conversionReviewVersions"))
    return not versions or any(v in _REVIEW_VERSIONS for v in versions)


def _name_errors(crd: Object, spec: Object) -> list[FieldError]:
    name = (crd.get("metadata") or {}).get("name", "")
    faults = [*dns_subdomain(name)]
    wanted = f"{value_at(spec, ('names', 'plural')) or ''}.{spec.get('group') or ''}"
    if name != wanted:
        faults.append('must be spec.names.plural+"."+spec.group')
    return [invalid("metadata.name", name, fault) for fault in faults]


def _spec_errors(spec: _Spec, leniency: Leniency) -> list[FieldError]:
    raw = spec.raw
    errors = _group_errors(raw.get("group") or "")
    errors += _enum_errors("spec.scope", raw.get("scope") or "", ("Cluster", "Namespaced"))
    if not leniency.may_lack_schema and _schema_of(spec.shared) is None:
        errors += [
            required(f"spec.versions[{i}].schema.openAPIV3Schema")
            for i, v in enumerate(spec.versions)
            if _schema_of(v) is None
        ]
    errors += _version_errors(spec, leniency)
    errors += [
        required(f"spec.names.{key}")
        for key in ("plural", "singular", "kind", "listKind")
        if not (raw.get("names") or {}).get(key)
    ]
    errors += _names_errors(raw.get("names") or {}, "spec.names")
    has_status = _has_status(spec.shared) or any(_has_status(v) for v in spec.versions)
    errors += crdschemas.errors(
        _schema_of(spec.shared),
        "spec.validation",
        has_status,
        leniency,
        is_unchanged=bool(spec.versions) and spec.versions[0].get("name") in leniency.unchanged_schemas,
    )
    errors += _part_errors(spec.shared, "spec", leniency, "")
    errors += _conversion_errors(raw.get("conversion"), leniency)
    return errors


def _group_errors(group: str) -> list[FieldError]:
    if not group:
        return [required("spec.group")]
    if faults := dns_subdomain(group):
        return [invalid("spec.group", group, ",".join(faults))]
    if "." not in group:
        return [invalid("spec.group", group, "should be a domain with at least one dot")]
    return []


def _enum_errors(path: str, value: str, accepted: tuple[str, ...]) -> list[FieldError]:
    if not value:
        return [required(path)]
    return [] if value in accepted else [not_supported(path, value, accepted)]


def _version_errors(spec: _Spec, leniency: Leniency) -> list[FieldError]:
    errors: list[FieldError] = []
    for index, version in enumerate(spec.versions):
        path = f"spec.versions[{index}]"
        if faults := dns_1035_label(version.get("name", "")):
            errors.append(invalid(f"{path}.name", version.get("name", ""), ",".join(faults)))
        errors += _deprecation_errors(version, path)
        has_status = _has_status(version if "subresources" not in spec.shared else spec.shared)
        errors += crdschemas.errors(
            _schema_of(version),
            f"{path}.schema",
            has_status,
            leniency,
            is_unchanged=version.get("name") in leniency.unchanged_schemas,
        )
        errors += _part_errors(version, path, leniency, version.get("name", ""))
    names = [v.get("name") for v in spec.versions]
    # The internal form repeats the first version.
    if names and names[0] and (faults := dns_1035_label(names[0])):
        errors.append(invalid("spec.version", names[0], ",".join(faults)))
    if len(set(names)) != len(names):
        errors.append(invalid("spec.versions", _shown(spec), "must contain unique version names"))
    if sum(bool(v.get("storage")) for v in spec.versions) != 1:
        errors.append(
            invalid("spec.versions", _shown(spec), "must have exactly one version marked as storage version")
        )
    return errors


def _shown(spec: _Spec) -> list[Object] | None:
    """The versions as the real server shows them: Go's internal struct, the schema's content left out."""
    if spec.raw.get("versions") is None:
        return None
    return [
        {
            "Name": v.get("name", ""),
            "Served": bool(v.get("served")),
            "Storage": bool(v.get("storage")),
            "Deprecated": bool(v.get("deprecated")),
            "DeprecationWarning": v.get("deprecationWarning"),
            "Schema": v.get("schema"),
            "Subresources": v.get("subresources"),
            "AdditionalPrinterColumns": v.get("additionalPrinterColumns"),
            "SelectableFields": v.get("selectableFields"),
        }
        for v in spec.versions
    ]


def _has_status(part: Mapping[str, Any]) -> bool:
    return (part.get("subresources") or {}).get("status") is not None


def _deprecation_errors(version: Object, path: str) -> list[FieldError]:
    warning = version.get("deprecationWarning")
    if warning is None:
        return []
    faults: list[str] = []
    if not version.get("deprecated"):
        faults.append("can only be set for deprecated versions")
    else:
        if len(warning.encode()) > 256:
            faults.append("must be <= 256 characters long")
        if not warning:
            faults.append("must not be an empty string")
        bad = next((i for i, c in enumerate(warning) if not c.isprintable()), None)
        if bad is not None:
            place = len(warning[:bad].encode())
            words = "must only contain printable UTF-8 characters; non-printable character found at index"
            faults.append(f"{words} {place}")
    return [invalid(f"{path}.deprecationWarning", warning, fault) for fault in faults]


def _part_errors(part: Mapping[str, Any], path: str, leniency: Leniency, version: str) -> list[FieldError]:
    """What is wrong with subresources, printer columns and selectable fields."""
    errors = _scale_errors((part.get("subresources") or {}).get("scale"), f"{path}.subresources")
    for index, column in enumerate(part.get("additionalPrinterColumns") or ()):
        errors += _column_errors(column, f"{path}.additionalPrinterColumns[{index}]")
    if selectable := part.get("selectableFields"):
        errors += _selectable_errors(
            selectable, _schema_of(dict(part)), path, version in leniency.many_selectable_fields
        )
    return errors


def _scale_errors(scale: Object | None, path: str) -> list[FieldError]:
    if scale is None:
        return []
    errors: list[FieldError] = []
    for key, roots, words in (
        ("specReplicasPath", (".spec.",), "under .spec"),
        ("statusReplicasPath", (".status.",), "under .status"),
        ("labelSelectorPath", (".spec.", ".status."), "under either .spec or .status"),
    ):
        value, where = scale.get(key) or "", f"{path}.scale.{key}"
        if not value:
            if key != "labelSelectorPath":
                errors.append(required(where))
        elif value[0] != ".":
            errors.append(invalid(where, value, "must be a simple json path starting with ."))
        elif not value.startswith(roots):
            errors.append(invalid(where, value, f"should be a json path {words}"))
    return errors


def _column_errors(column: Object, path: str) -> list[FieldError]:
    errors: list[FieldError] = []
    if not column.get("name"):
        errors.append(required(f"{path}.name"))
    kinds = f"must be one of {','.join(_COLUMN_TYPES)}"
    if not column.get("type"):
        errors.append(required(f"{path}.type", kinds))
    elif column["type"] not in _COLUMN_TYPES:
        errors.append(invalid(f"{path}.type", column["type"], kinds))
    if column.get("format") and column["format"] not in _COLUMN_FORMATS:
        errors.append(
            invalid(f"{path}.format", column["format"], f"must be one of {','.join(_COLUMN_FORMATS)}")
        )
    if not column.get("jsonPath"):
        errors.append(required(f"{path}.JSONPath"))
    elif column["jsonPath"][0] != ".":
        where = f"{path}.JSONPath"
        errors.append(invalid(where, column["jsonPath"], "must be a simple json path starting with ."))
    return errors


def _selectable_errors(fields: list[Object], schema: Any, path: str, may_be_many: bool) -> list[FieldError]:
    path = f"{path}.selectableFields"
    if schema is None:
        # The server looks for the schema beside the fields: found where both are shared, or neither is.
        text = (
            "may only be set when validations.schema is included"
            if path == "spec.selectableFields"
            else "may only be set when `version.schema.openAPIV3Schema` is not included"
        )
        return [invalid(path, "", text)]
    errors: list[FieldError] = []
    seen: set[str] = set()
    if structuralrules.unsupported(schema):
        return []
    tree = parse(schema)
    for index, selectable in enumerate(fields):
        text, where = selectable.get("jsonPath") or "", f"{path}[{index}].jsonPath"
        if not text:
            errors.append(required(where))
            continue
        try:
            shown, found = fieldpaths.resolve(text, tree, allow_brackets=False)
        except fieldpaths.PathError as error:
            errors.append(invalid(where, text, f"is an invalid path: {error}"))
            continue
        if shown.split(".")[1:2] == ["metadata"]:
            errors.append(invalid(where, text, "must not point to fields in metadata"))
        if found.type not in ("string", "boolean", "integer"):
            words = (
                "must point to a field of type string, boolean or integer. "
                "Enum string fields and strings with formats are allowed."
            )
            errors.append(invalid(where, text, words))
        if shown in seen:
            errors.append(duplicate(where, text))
        seen.add(shown)
    if len(seen) > _MAX_SELECTABLE_FIELDS and not may_be_many:
        errors.append(too_many(path, len(seen), _MAX_SELECTABLE_FIELDS))
    return errors


def _names_errors(names: Object, path: str) -> list[FieldError]:
    errors: list[FieldError] = []
    for key in ("plural", "singular", "kind", "listKind"):
        value = names.get(key) or ""
        mixed = key in ("kind", "listKind")
        faults = dns_1035_label(value.lower() if mixed else value) if value else ()
        if faults:
            prefix = "may have mixed case, but should otherwise match: " if mixed else ""
            errors.append(invalid(f"{path}.{key}", value, prefix + ",".join(faults)))
    for key in ("shortNames", "categories"):
        for index, value in enumerate(names.get(key) or ()):
            if faults := dns_1035_label(value):
                errors.append(invalid(f"{path}.{key}[{index}]", value, ",".join(faults)))
    if names.get("kind") and names["kind"] == names.get("listKind"):
        errors.append(invalid(f"{path}.listKind", names["listKind"], "kind and listKind may not be the same"))
    return errors


def _conversion_errors(conversion: Object | None, leniency: Leniency) -> list[FieldError]:
    if conversion is None:
        return []
    path = "spec.conversion"
    errors = _enum_errors(f"{path}.strategy", conversion.get("strategy") or "", ("None", "Webhook"))
    webhook = conversion.get("webhook") or {}
    client, versions = webhook.get("clientConfig"), webhook.get("conversionReviewVersions") or []
    if conversion.get("strategy") != "Webhook":
        words = "should not be set when strategy is not set to Webhook"
        if client is not None:
            errors.append(forbidden(f"{path}.webhookClientConfig", words))
        if versions:
            errors.append(forbidden(f"{path}.conversionReviewVersions", words))
        return errors
    errors += _client_errors(client, f"{path}.webhookClientConfig")
    return errors + _review_errors(versions, f"{path}.conversionReviewVersions", leniency)


def _client_errors(client: Object | None, path: str) -> list[FieldError]:
    if client is None:
        return [required(path, "required when strategy is set to Webhook")]
    url, service = client.get("url"), client.get("service")
    if (url is None) == (service is None):
        return [required(path, "exactly one of url or service is required")]
    if url is not None:
        return _webhook_url_errors(url, f"{path}.url")
    return _service_errors(service or {}, f"{path}.service")


def _webhook_url_errors(text: str, path: str) -> list[FieldError]:
    form = "; desired format: https://host[/path]"
    try:
        url = gourl.parse(text)
    except gourl.UrlError as error:
        return [required(path, f"url must be a valid URL: {error}{form}")]
    errors: list[FieldError] = []
    if url.scheme != "https":
        errors.append(invalid(path, url.scheme, f"'https' is the only allowed URL scheme{form}"))
    if not url.host:
        errors.append(invalid(path, url.host, f"host must be specified{form}"))
    if url.user is not None:
        errors.append(invalid(path, url.user, "user information is not permitted in the URL"))
    if url.fragment:
        errors.append(invalid(path, url.fragment, "fragments are not permitted in the URL"))
    if url.query:
        errors.append(invalid(path, url.query, "query parameters are not permitted in the URL"))
    return errors


def _service_errors(service: Object, path: str) -> list[FieldError]:
    # Upstream mixes the two up: a missing namespace is reported as a missing name.
    swapped = (("name", "namespace"), ("namespace", "name"))
    errors = [required(f"{path}.{shown}") for shown, key in swapped if not service.get(key)]
    port = service.get("port") or 0
    if not 1 <= port <= 65535:
        words = "port is not valid: must be between 1 and 65535, inclusive"
        errors.append(invalid(f"{path}.port", port, words))
    text = service.get("path")
    if text and text != "/":
        errors += _url_path_errors(text, f"{path}.path")
    return errors


def _url_path_errors(text: str, path: str) -> list[FieldError]:
    if text == "//":
        return [invalid(path, text, "segment[0] may not be empty")]
    errors = [] if text.startswith("/") else [invalid(path, text, "must start with a '/'")]
    for index, step in enumerate(text[1:].removesuffix("/").split("/")):
        faults = [f": {fault}" for fault in dns_subdomain(step)] if step else [" may not be empty"]
        errors += [invalid(path, text, f"segment[{index}]{fault}") for fault in faults]
    return errors


def _review_errors(versions: list[str], path: str, leniency: Leniency) -> list[FieldError]:
    if not versions:
        return [required(path)]
    errors: list[FieldError] = []
    for index, version in enumerate(versions):
        if version in versions[:index]:
            errors.append(invalid(f"{path}[{index}]", version, "duplicate version"))
        else:
            errors += [invalid(f"{path}[{index}]", version, fault) for fault in dns_1035_label(version)]
    if not leniency.any_review_version and not set(versions) & set(_REVIEW_VERSIONS):
        errors.append(invalid(path, versions, f"must include at least one of {', '.join(_REVIEW_VERSIONS)}"))
    return errors


def _stored_version_errors(crd: Object, spec: Object) -> list[FieldError]:
    stored = (crd.get("status") or {}).get("storedVersions") or []
    path = "status.storedVersions"
    if not stored:
        return [invalid(path, None, "must have at least one stored version")]
    versions = spec.get("versions") or []
    errors = [
        invalid(path, stored, f"must have the storage version {v.get('name')}")
        for v in versions
        if v.get("storage") and v.get("name") not in stored
    ]
    names = {v.get("name") for v in versions}
    for index, name in enumerate(stored):
        if name not in names:
            words = (
                f"missing from spec.versions; {name} was previously a storage version, and must remain in "
                f"spec.versions until a storage migration ensures no data remains persisted in {name} and "
                f"removes "
                f"{name} from status.storedVersions"
            )
            errors.append(invalid(f"{path}[{index}]", name, words))
    return errors


def _approval_errors(crd: Object, old: Object | None) -> list[FieldError]:
    group = (crd.get("spec") or {}).get("group") or ""
    if not re.search(r"(^|\.)(k8s|kubernetes)\.io$", group):
        return []
    state, reason = _approval(crd)
    if old is not None and _approval(old)[0] == state:
        return []
    path = f"metadata.annotations[{_APPROVAL}]"
    if state == "missing":
        return [required(path, reason)]
    if state == "invalid":
        return [invalid(path, crd["metadata"]["annotations"][_APPROVAL], reason)]
    return []


def _approval(crd: Object) -> tuple[str, str]:
    text = ((crd.get("metadata") or {}).get("annotations") or {}).get(_APPROVAL) or ""
    see = "see https://github.com/kubernetes/enhancements/pull/1111"
    if not text:
        return "missing", f'protected groups must have approval annotation "{_APPROVAL}", {see}'
    if text.startswith("unapproved"):
        return "bypassed", ""
    try:
        url = gourl.parse_request_uri(text)
    except gourl.UrlError:
        url = gourl.Url()
    if url.host and url.scheme:
        return "approved", ""
    return "invalid", (
        f'protected groups must have approval annotation "{_APPROVAL}" with either a URL or a reason '
        "starting with "
        f'"unapproved", {see}'
    )


def _preserve_errors(spec: Object, old_spec: Object | None) -> list[FieldError]:
    if not spec.get("preserveUnknownFields") or (old_spec or {}).get("preserveUnknownFields"):
        return []
    instead = "set x-kubernetes-preserve-unknown-fields to true in spec.versions[*].schema instead"
    words = f"cannot set to true, {instead}"
    return [FieldError(Cause.INVALID, "spec.preserveUnknownFields", True, words)]
