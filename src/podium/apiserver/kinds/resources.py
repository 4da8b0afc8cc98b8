"""Resource names and the requests and limits that use them."""

from __future__ import annotations

from collections.abc import Callable, Collection

from podium.api import names
from podium.api.kinds import Object
from podium.apiserver.kinds import quantities
from podium.apiserver.kinds.checks import NOT_NEGATIVE, each
from podium.schema import fielderrors as errors
from podium.schema.fielderrors import Cause, FieldError

NameCheck = Callable[[str, str], list[FieldError]]

_COUNTS = (
    *("pods", "resourcequotas", "services", "replicationcontrollers", "secrets", "configmaps"),
    *("persistentvolumeclaims", "services.nodeports", "services.loadbalancers"),
)
_COMPUTE = ("cpu", "memory", "ephemeral-storage")
QUOTA_NAMES = frozenset(
    {
        *_COMPUTE,
        *(f"{kind}.{name}" for kind in ("requests", "limits") for name in _COMPUTE),
        *_COUNTS,
        "requests.storage",
    }
)
_STANDARD = QUOTA_NAMES | {"storage"}


def default_resource_list(quantity_by_name: Object | None) -> None:
    """Round what is finer than a thousandth, in place."""
    for name, quantity in (quantity_by_name or {}).items():
        if isinstance(quantity, str) and quantity.endswith(("n", "u")):
            assert quantity_by_name is not None
            quantity_by_name[name] = quantities.rounded_up_to_milli(quantity)


def is_huge_page(name: str) -> bool:
    return name.startswith("hugepages-")


def is_native(name: str) -> bool:
    return "/" not in name or "kubernetes.io/" in name


def is_overcommittable(name: str) -> bool:
    return is_native(name) and not is_huge_page(name)


def is_extended(name: str) -> bool:
    """A resource that a device plugin counts in whole units."""
    return (
        not is_native(name)
        and not name.startswith("requests.")
        and not names.qualified_name(f"requests.{name}")
    )


def validate_name(path: str, name: str) -> list[FieldError]:
    """Any resource name: a well-known one, or one with a domain."""
    if found := each(path, name, names.qualified_name(name)):
        return found
    if "/" not in name and name not in _STANDARD and not _is_quota_huge_page(name):
        return [errors.invalid(path, name, "must be a standard resource type or fully qualified")]
    return []


def validate_container_name(path: str, name: str) -> list[FieldError]:
    """A resource that a container can ask for."""
    if name in _COMPUTE:
        return []
    found = validate_name(path, name)
    if "/" not in name:
        if not is_huge_page(name):
            found.append(errors.invalid(path, name, "must be a standard resource for containers"))
    elif not is_native(name) and not is_extended(name):
        found.append(errors.invalid(path, name, "doesn't follow extended resource name standard"))
    return found


def validate_pod_level_name(path: str, name: str) -> list[FieldError]:
    found = validate_name(path, name)
    if not found and name not in ("cpu", "memory") and not is_huge_page(name):
        return [errors.not_supported(path, name, ["cpu", "hugepages-", "memory"])]
    return found


def validate_quota_name(path: str, name: str) -> list[FieldError]:
    found = validate_name(path, name)
    if "/" not in name and name not in QUOTA_NAMES and not _is_quota_huge_page(name):
        found.append(errors.invalid(path, name, "must be a standard resource for quota"))
    return found


def validate_quantity(path: str, name: str, quantity: str) -> list[FieldError]:
    found = not_negative_quantity(path, quantity)
    if (name in _COUNTS or is_extended(name)) and not quantities.is_whole(quantity):
        found.append(errors.invalid(path, quantity, "must be an integer"))
    return found


def not_negative_quantity(path: str, quantity: str) -> list[FieldError]:
    return [errors.invalid(path, quantity, NOT_NEGATIVE)] if quantities.nano(quantity) < 0 else []


def positive_quantity(path: str, quantity: str) -> list[FieldError]:
    return (
        [errors.invalid(path, quantity, "must be greater than zero")]
        if quantities.nano(quantity) <= 0
        else []
    )


def validate_basic(path: str, quantity: str) -> list[FieldError]:
    number = quantities.value(quantity)
    return [errors.invalid(path, number, "must be a valid resource quantity")] if number < 0 else []


def validate_requirements(
    path: str,
    requirements: Object,
    claims_of_pod: Collection[str] = (),
    check_name: NameCheck = validate_container_name,
) -> list[FieldError]:
    """Limits and requests by themselves and against each other, and the claims they mention."""
    if not requirements:
        return []
    limits, requests = requirements.get("limits") or {}, requirements.get("requests") or {}
    found: list[FieldError] = []
    for name, quantity in limits.items():
        found += _entry(f"{path}.limits[{name}]", name, quantity, check_name)
    for name, quantity in requests.items():
        found += _entry(f"{path}.requests[{name}]", name, quantity, check_name)
        found += _request_within_limit(path, name, quantity, limits.get(name))
    asked = limits.keys() | requests.keys()
    if any(map(is_huge_page, asked)) and asked.isdisjoint(("cpu", "memory")):
        found.append(errors.forbidden(path, "HugePages require cpu or memory"))
    return found + _claims(f"{path}.claims", requirements.get("claims") or [], claims_of_pod)


def _entry(path: str, name: str, quantity: str, check_name: NameCheck) -> list[FieldError]:
    found = check_name(path, name) + validate_quantity(path, name, quantity)
    if is_huge_page(name):
        page = quantities.value(name.removeprefix("hugepages-"))
        if page <= 0 or quantities.value(quantity) % page:
            found.append(
                errors.invalid(path, quantity, f"{quantity} is not positive integer multiple of {name}")
            )
    return found


def _request_within_limit(path: str, name: str, quantity: str, limit: str | None) -> list[FieldError]:
    if limit is None:
        if is_overcommittable(name):
            return []
        return [errors.required(f"{path}.limits", "Limit must be set for non overcommitable resources")]
    asked, allowed = quantities.nano(quantity), quantities.nano(limit)
    if asked != allowed and not is_overcommittable(name):
        return [errors.invalid(f"{path}.requests", quantity, f"must be equal to {name} limit of {limit}")]
    if asked > allowed:
        return [
            errors.invalid(
                f"{path}.requests", quantity, f"must be less than or equal to {name} limit of {limit}"
            )
        ]
    return []


def _claims(path: str, claims: list[Object], of_pod: Collection[str]) -> list[FieldError]:
    found: list[FieldError] = []
    seen: set[str] = set()
    for i, claim in enumerate(claims):
        here, name, request = f"{path}[{i}]", claim.get("name") or "", claim.get("request") or ""
        if not name:
            found.append(errors.required(here))
            continue
        key = f"{name}/{request}" if request else name
        if request:
            found += each(f"{here}.request", request, names.dns_label(request))
        clash = name in seen or key in seen
        if clash or (not request and any(s.startswith(f"{name}/") for s in seen)):
            found.append(errors.duplicate(here, name if name in seen or not request else key))
        seen.add(key)
        if name not in of_pod:
            listed = f": {', '.join(sorted(of_pod))}" if of_pod else " which is empty"
            text = f"must be one of the names in pod.spec.resourceClaims{listed}"
            found.append(FieldError(Cause.NOT_FOUND, here, name, text))
    return found


def _is_quota_huge_page(name: str) -> bool:
    return name.startswith(("hugepages-", "requests.hugepages-"))
