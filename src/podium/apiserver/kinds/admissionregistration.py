"""Admission webhooks and admission policies. CEL expressions are not compiled here."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import ClassVar
from urllib.parse import urlsplit

from podium.api import names
from podium.api.kinds import Object
from podium.apiserver.kinds import metadata
from podium.apiserver.kinds.base import KindStrategy
from podium.apiserver.kinds.checks import each, one_of, unsupported
from podium.schema import fielderrors as errors
from podium.schema.fielderrors import FieldError

_FAILURE = ("Fail", "Ignore")
_MATCH = ("Equivalent", "Exact")
_OPERATIONS = ("*", "CONNECT", "CREATE", "DELETE", "UPDATE")
_SCOPES = ("*", "Cluster", "Namespaced")
_SIDE_EFFECTS = ("None", "NoneOnDryRun")
_ALL_SIDE_EFFECTS = ("None", "NoneOnDryRun", "Some", "Unknown")
_VERSIONS = ("v1", "v1beta1")
_URL_FORM = "; desired format: https://host[/path]"
_REASONS = ("Forbidden", "Invalid", "RequestEntityTooLarge")
_ONE_ITEM = "validations or auditAnnotations must contain at least one item"


class ValidatingWebhookConfigurationStrategy(KindStrategy):
    namespaced = False
    unconditional_update = False
    standard_finalizers = False
    generation_fields = ("webhooks",)
    _reinvokes = False

    def default(self, obj: Object) -> None:
        for hook in obj.get("webhooks") or ():
            _default_match(hook)
            for field, value in (("failurePolicy", "Fail"), ("timeoutSeconds", 10)):
                if hook.get(field) is None:
                    hook[field] = value
            if self._reinvokes and hook.get("reinvocationPolicy") is None:
                hook["reinvocationPolicy"] = "Never"
            _default_rules(hook.get("rules"))
            service = (hook.get("clientConfig") or {}).get("service")
            if service is not None and service.get("port") is None:
                service["port"] = 443

    def validate(self, obj: Object, old: Object | None) -> list[FieldError]:
        before = (old or {}).get("webhooks") or []
        # What an existing configuration already got away with stays allowed.
        effects = (
            _SIDE_EFFECTS if all(h.get("sideEffects") in _SIDE_EFFECTS for h in before) else _ALL_SIDE_EFFECTS
        )
        known = all(set(h.get("admissionReviewVersions") or _VERSIONS) & set(_VERSIONS) for h in before)
        unique = len({h.get("name") for h in before}) == len(before)
        found: list[FieldError] = []
        seen: set[str] = set()
        for i, hook in enumerate(obj.get("webhooks") or ()):
            here, name = f"webhooks[{i}]", hook.get("name") or ""
            found += self._hook(here, hook, effects)
            versions = hook.get("admissionReviewVersions") or []
            found += _review_versions(f"{here}.admissionReviewVersions", versions, known)
            if unique and name and name in seen:
                found.append(errors.duplicate(f"{here}.name", name))
            seen.add(name)
        return found

    def _hook(self, path: str, hook: Object, effects: Sequence[str]) -> list[FieldError]:
        found = _qualified_domain(f"{path}.name", hook.get("name") or "")
        for i, rule in enumerate(hook.get("rules") or ()):
            found += _rule(f"{path}.rules[{i}]", rule)
        for field, supported in (("failurePolicy", _FAILURE), ("matchPolicy", _MATCH)):
            if (value := hook.get(field)) is not None and value not in supported:
                found.append(unsupported(f"{path}.{field}", value, supported))
        effect = hook.get("sideEffects")
        if effect is None:
            found.append(errors.required(f"{path}.sideEffects", f"must specify one of {', '.join(effects)}"))
        elif effect not in effects:
            found.append(unsupported(f"{path}.sideEffects", effect, effects))
        timeout = hook.get("timeoutSeconds")
        if timeout is not None and not 1 <= timeout <= 30:
            text = "the timeout value must be between 1 and 30 seconds"
            found.append(errors.invalid(f"{path}.timeoutSeconds", timeout, text))
        for field in ("namespaceSelector", "objectSelector"):
            found += metadata.validate_selector(f"{path}.{field}", hook.get(field))
        reinvocation, policies = hook.get("reinvocationPolicy"), ("IfNeeded", "Never")
        if self._reinvokes and reinvocation is not None and reinvocation not in policies:
            found.append(unsupported(f"{path}.reinvocationPolicy", reinvocation, policies))
        found += _client(f"{path}.clientConfig", hook.get("clientConfig") or {})
        return found + _conditions(f"{path}.matchConditions", hook.get("matchConditions") or [])


class MutatingWebhookConfigurationStrategy(ValidatingWebhookConfigurationStrategy):
    _reinvokes = True


class ValidatingAdmissionPolicyStrategy(KindStrategy):
    namespaced = False
    unconditional_update = False
    standard_finalizers = False
    generation_fields = ("spec",)
    empty_status: ClassVar[Object | None] = {}

    def default(self, obj: Object) -> None:
        spec = obj.setdefault("spec", {})
        if spec.get("failurePolicy") is None:
            spec["failurePolicy"] = "Fail"
        if (constraints := spec.get("matchConstraints")) is not None:
            _default_resources(constraints)

    def validate(self, obj: Object, old: Object | None) -> list[FieldError]:
        spec = obj.get("spec") or {}
        found = _policy_frame(spec)
        checks, annotations = spec.get("validations") or [], spec.get("auditAnnotations") or []
        if not checks and not annotations:
            return [
                *found,
                *(errors.required(f"spec.{f}", _ONE_ITEM) for f in ("validations", "auditAnnotations")),
            ]
        for i, check in enumerate(checks):
            found += _check(f"spec.validations[{i}]", check)
        for i, annotation in enumerate(annotations):
            if not (annotation.get("valueExpression") or "").strip():
                found.append(
                    errors.required(
                        f"spec.auditAnnotations[{i}].valueExpression", "valueExpression is not specified"
                    )
                )
        return found


class MutatingAdmissionPolicyStrategy(ValidatingAdmissionPolicyStrategy):
    empty_status: ClassVar[Object | None] = None

    def validate(self, obj: Object, old: Object | None) -> list[FieldError]:
        spec = obj.get("spec") or {}
        found = _policy_frame(spec)
        if not spec.get("mutations"):
            found.append(errors.required("spec.mutations", "mutations must contain at least one item"))
        rules = (spec.get("matchConstraints") or {}).get("resourceRules") or ()
        for operation in (o for rule in rules for o in rule.get("operations") or ()):
            path, supported = (
                "spec.matchConstraints.resourceRules.operations",
                ("*", "CONNECT", "CREATE", "UPDATE"),
            )
            if operation not in supported:
                found.append(unsupported(path, operation, supported))
        for i, mutation in enumerate(spec.get("mutations") or ()):
            found += _mutation(f"spec.mutations[{i}]", mutation)
        return found + one_of(
            "spec.reinvocationPolicy", spec.get("reinvocationPolicy"), ("IfNeeded", "Never")
        )


class ValidatingAdmissionPolicyBindingStrategy(KindStrategy):
    namespaced = False
    unconditional_update = False
    standard_finalizers = False
    generation_fields = ("spec",)
    _has_actions = True

    def default(self, obj: Object) -> None:
        if (resources := (obj.get("spec") or {}).get("matchResources")) is not None:
            _default_resources(resources)

    def validate(self, obj: Object, old: Object | None) -> list[FieldError]:
        spec = obj.get("spec") or {}
        name, ref, resources = spec.get("policyName") or "", spec.get("paramRef"), spec.get("matchResources")
        path = "spec.policyName"
        found = each(path, name, names.dns_subdomain(name)) if name else [errors.required(path)]
        if ref is not None:
            found += _param_ref("spec.paramRef", ref)
        if resources is not None:
            found += _resources("spec.matchResources", resources)
        return found + (_actions(spec.get("validationActions") or []) if self._has_actions else [])


class MutatingAdmissionPolicyBindingStrategy(ValidatingAdmissionPolicyBindingStrategy):
    _has_actions = False


def _default_match(holder: Object) -> None:
    if holder.get("matchPolicy") is None:
        holder["matchPolicy"] = "Equivalent"
    for field in ("namespaceSelector", "objectSelector"):
        if holder.get(field) is None:
            holder[field] = {}


def _default_rules(rules: list[Object] | None) -> None:
    for rule in rules or ():
        if rule.get("scope") is None:
            rule["scope"] = "*"


def _default_resources(resources: Object) -> None:
    _default_match(resources)
    for field in ("resourceRules", "excludeResourceRules"):
        _default_rules(resources.get(field))


def _qualified_domain(path: str, name: str) -> list[FieldError]:
    if not name:
        return [errors.required(path)]
    if problems := names.dns_subdomain(name):
        return [errors.invalid(path, name, ",".join(problems))]
    if name.count(".") < 2:
        return [
            errors.invalid(path, name, "should be a domain with at least three segments separated by dots")
        ]
    return []


def _rule(path: str, rule: Object) -> list[FieldError]:
    operations = rule.get("operations") or []
    found = [] if operations else [errors.required(f"{path}.operations")]
    found += _lonely_star(f"{path}.operations", operations, "operations")
    for i, operation in enumerate(operations):
        if operation not in _OPERATIONS:
            found.append(unsupported(f"{path}.operations[{i}]", operation, _OPERATIONS))
    for field, word in (("apiGroups", "API groups"), ("apiVersions", "API versions")):
        values = rule.get(field) or []
        if not values:
            found.append(errors.required(f"{path}.{field}"))
        found += _lonely_star(f"{path}.{field}", values, word)
    for i, version in enumerate(rule.get("apiVersions") or ()):
        if not version:
            found.append(errors.required(f"{path}.apiVersions[{i}]"))
    found += _rule_resources(f"{path}.resources", rule.get("resources") or [])
    scope = rule.get("scope")
    if scope is not None and scope not in _SCOPES:
        found.append(unsupported(f"{path}.scope", scope, _SCOPES))
    return found


def _lonely_star(path: str, values: list[str], word: str) -> list[FieldError]:
    if len(values) > 1 and "*" in values:
        return [errors.invalid(path, values, f"if '*' is present, must not specify other {word}")]
    return []


def _rule_resources(path: str, resources: list[str]) -> list[FieldError]:
    found = [] if resources else [errors.required(path)]
    every_sub: set[str] = set()
    every_resource: set[str] = set()
    plain = False
    for i, resource in enumerate(resources):
        if not resource:
            found.append(errors.required(f"{path}[{i}]"))
            continue
        base, slash, sub = resource.partition("/")
        if not slash:
            plain = resource != "*"
            continue
        if base in every_sub:
            text = f"if '{base}/*' is present, must not specify {resource}"
            found.append(errors.invalid(f"{path}[{i}]", resource, text))
        if sub in every_resource:
            text = f"if '*/{sub}' is present, must not specify {resource}"
            found.append(errors.invalid(f"{path}[{i}]", resource, text))
        if sub == "*":
            every_sub.add(base)
        if base == "*":
            every_resource.add(sub)
    if len(resources) > 1 and "*/*" in resources:
        found.append(errors.invalid(path, resources, "if '*/*' is present, must not specify other resources"))
    if "*" in resources and plain:
        text = "if '*' is present, must not specify other resources without subresources"
        found.append(errors.invalid(path, resources, text))
    return found


def _review_versions(path: str, versions: list[str], known_needed: bool) -> list[FieldError]:
    if not versions:
        return [errors.required(path, f"must specify one of {', '.join(_VERSIONS)}")]
    found: list[FieldError] = []
    for i, version in enumerate(versions):
        if version in versions[:i]:
            found.append(errors.invalid(f"{path}[{i}]", version, "duplicate version"))
        else:
            found += each(f"{path}[{i}]", version, names.dns_1035_label(version))
    if known_needed and not set(versions) & set(_VERSIONS):
        found.append(errors.invalid(path, versions, f"must include at least one of {', '.join(_VERSIONS)}"))
    return found


def _client(path: str, config: Object) -> list[FieldError]:
    url, service = config.get("url"), config.get("service")
    if (url is None) == (service is None):
        return [errors.required(path, "exactly one of url or service is required")]
    return _url(f"{path}.url", url) if url is not None else validate_service(f"{path}.service", service or {})


def _url(path: str, url: str) -> list[FieldError]:
    parts = urlsplit(url)
    found: list[FieldError] = []
    if parts.scheme != "https":
        text = f"'https' is the only allowed URL scheme{_URL_FORM}"
        found.append(errors.invalid(path, parts.scheme, text))
    host = parts.netloc.rpartition("@")
    if not host[2]:
        found.append(errors.invalid(path, "", f"host must be specified{_URL_FORM}"))
    if host[1]:
        found.append(errors.invalid(path, host[0], "user information is not permitted in the URL"))
    if parts.fragment:
        found.append(errors.invalid(path, parts.fragment, "fragments are not permitted in the URL"))
    if parts.query:
        found.append(errors.invalid(path, parts.query, "query parameters are not permitted in the URL"))
    return found


def validate_service(path: str, service: Object) -> list[FieldError]:
    """A reference to a Service that takes webhook calls."""
    # Upstream hands name and namespace over in the wrong order, so each is reported as the other.
    found = [
        errors.required(f"{path}.{shown}")
        for shown, field in (("name", "namespace"), ("namespace", "name"))
        if not service.get(field)
    ]
    port, target = service.get("port") or 0, service.get("path")
    if problems := names.port_number(port):
        found.append(errors.invalid(f"{path}.port", port, f"port is not valid: {', '.join(problems)}"))
    if target in (None, "", "/"):
        return found
    here = f"{path}.path"
    if target == "//":
        return [*found, errors.invalid(here, target, "segment[0] may not be empty")]
    if not target.startswith("/"):
        found.append(errors.invalid(here, target, "must start with a '/'"))
    for i, step in enumerate(target[1:].removesuffix("/").split("/")):
        if not step:
            found.append(errors.invalid(here, target, f"segment[{i}] may not be empty"))
        else:
            found += each(here, target, [f"segment[{i}]: {text}" for text in names.dns_subdomain(step)])
    return found


def _conditions(path: str, conditions: list[Object]) -> list[FieldError]:
    found = [errors.too_many(path, len(conditions), 64)] if len(conditions) > 64 else []
    seen: set[str] = set()
    for i, condition in enumerate(conditions):
        here, name = f"{path}[{i}]", condition.get("name") or ""
        if not (condition.get("expression") or "").strip():
            found.append(errors.required(f"{here}.expression"))
        found += (
            each(f"{here}.name", name, names.qualified_name(name))
            if name
            else [errors.required(f"{here}.name")]
        )
        if name and name in seen:
            found.append(errors.duplicate(f"{here}.name", name))
        seen.add(name)
    return found


def _policy_frame(spec: Object) -> list[FieldError]:
    """What validating and mutating policies share."""
    found = one_of("spec.failurePolicy", spec.get("failurePolicy"), _FAILURE)
    if (kind := spec.get("paramKind")) is not None:
        found += _param_kind("spec.paramKind", kind)
    constraints = spec.get("matchConstraints")
    if constraints is None:
        found.append(errors.required("spec.matchConstraints"))
    else:
        found += _resources("spec.matchConstraints", constraints)
        if not constraints.get("resourceRules"):
            found.append(errors.required("spec.matchConstraints.resourceRules"))
    found += _conditions("spec.matchConditions", spec.get("matchConditions") or [])
    for i, variable in enumerate(spec.get("variables") or ()):
        here, name = f"spec.variables[{i}]", variable.get("name") or ""
        if not name.strip():
            found.append(errors.required(f"{here}.name", "name is not specified"))
        elif not re.fullmatch("[_a-zA-Z][_a-zA-Z0-9]*", name):
            found.append(errors.invalid(f"{here}.name", name, "must be a valid CEL identifier"))
        if not (variable.get("expression") or "").strip():
            found.append(errors.required(f"{here}.expression", "expression is not specified"))
    return found


def _mutation(path: str, mutation: Object) -> list[FieldError]:
    fields = {"ApplyConfiguration": "applyConfiguration", "JSONPatch": "jsonPatch"}
    kind = mutation.get("patchType") or ""
    if kind not in fields:
        return one_of(f"{path}.patchType", kind, tuple(fields))
    found: list[FieldError] = []
    for other, field in fields.items():
        if other == kind and mutation.get(field) is None:
            found.append(errors.required(f"{path}.{field}", f"must be specified when patchType is {kind}"))
        if other != kind and mutation.get(field) is not None:
            text = f"must not be specified when patchType is {kind}"
            found.append(errors.invalid(f"{path}.{field}", f"{{{field}}}", text))
    return found


def _param_kind(path: str, kind: Object) -> list[FieldError]:
    version, name = kind.get("apiVersion") or "", kind.get("kind") or ""
    found: list[FieldError] = []
    if not version:
        found.append(errors.required(f"{path}.apiVersion"))
    elif version.count("/") > 1:
        found.append(
            errors.invalid(f"{path}.apiVersion", version, f"unexpected GroupVersion string: {version}")
        )
    if not name:
        found.append(errors.required(f"{path}.kind"))
    elif problems := names.dns_1035_label(name.lower()):
        text = f"may have mixed case, but should otherwise match: {','.join(problems)}"
        found.append(errors.invalid(f"{path}.kind", name, text))
    return found


def _param_ref(path: str, ref: Object) -> list[FieldError]:
    name, selector, action = ref.get("name") or "", ref.get("selector"), ref.get("parameterNotFoundAction")
    found: list[FieldError] = []
    if name:
        found += each(f"{path}.name", name, names.path_segment(name))
        if selector is not None:
            text = "name and selector are mutually exclusive"
            found += [errors.forbidden(f"{path}.{field}", text) for field in ("name", "selector")]
    elif selector is None:
        text = "one of name or selector must be specified"
        found.append(errors.required(path, text))
    found += metadata.validate_selector(f"{path}.selector", selector)
    here, actions = f"{path}.parameterNotFoundAction", ("Deny", "Allow")
    if action is None:
        found.append(errors.required(here))
    elif action not in actions:
        found.append(unsupported(here, action, actions))
    return found


def _resources(path: str, resources: Object) -> list[FieldError]:
    found: list[FieldError] = []
    if (policy := resources.get("matchPolicy")) not in _MATCH:
        found.append(unsupported(f"{path}.matchPolicy", policy, _MATCH))
    for field in ("namespaceSelector", "objectSelector"):
        found += metadata.validate_selector(f"{path}.{field}", resources.get(field))
    for field in ("resourceRules", "excludeResourceRules"):
        for i, rule in enumerate(resources.get(field) or ()):
            here, listed = f"{path}.{field}[{i}]", rule.get("resourceNames") or []
            for j, name in enumerate(listed):
                found += each(f"{here}.resourceNames[{j}]", name, names.path_segment(name))
                if name in listed[:j]:
                    found.append(errors.duplicate(f"{here}.resourceNames[{j}]", name))
            found += _rule(here, rule)
    return found


def _actions(actions: list[str]) -> list[FieldError]:
    path = "spec.validationActions"
    found: list[FieldError] = []
    for i, action in enumerate(actions):
        if action not in ("Audit", "Deny", "Warn"):
            found.append(unsupported(f"{path}[{i}]", action, ("Audit", "Deny", "Warn")))
        if action in actions[:i]:
            found.append(errors.duplicate(f"{path}[{i}]", action))
    if "Deny" in actions and "Warn" in actions:
        text = (
            "must not contain both Deny and Warn (repeating the same validation failure information in the "
            "API response and headers serves no purpose)"
        )
        found.append(errors.invalid(path, actions, text))
    if not actions:
        found.append(errors.required(path, "at least one validation action is required"))
    return found


def _check(path: str, check: Object) -> list[FieldError]:
    expression, message = (check.get("expression") or "").strip(), check.get("message") or ""
    found = [] if expression else [errors.required(f"{path}.expression", "expression is not specified")]
    if message and not message.strip():
        text = "message must be non-empty if specified"
        found.append(errors.invalid(f"{path}.message", message, text))
    elif "\n" in message.strip():
        found.append(errors.invalid(f"{path}.message", message, "message must not contain line breaks"))
    reason = check.get("reason")
    if reason is not None and reason not in ("Unauthorized", *_REASONS):
        found.append(unsupported(f"{path}.reason", reason, _REASONS))
    return found
