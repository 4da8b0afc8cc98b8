"""RBAC rules by themselves: what one allows, which rules others cover, how they aggregate.

Everything is a pure function of rules. `uncovered` is the heart of the escalation check: it breaks the
wanted rules into atoms (one verb, one group, one resource, one name) so that each atom is held by a single
rule of the owner or by none; no combination of rules has to be searched.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import product

import msgspec

from podium.api import selectors
from podium.api.kinds import Object
from podium.apiserver.access.authorization import Attributes
from podium.text.quoting import quote_all

ALL = "*"


class Rule(msgspec.Struct, frozen=True, gc=False):
    """One rule of a Role or ClusterRole."""

    verbs: tuple[str, ...] = ()
    groups: tuple[str, ...] = ()
    resources: tuple[str, ...] = ()
    names: tuple[str, ...] = ()
    urls: tuple[str, ...] = ()

    def __str__(self) -> str:
        """The rule as escalation errors show it."""
        parts = (
            ("APIGroups", self.groups),
            ("Resources", self.resources),
            ("NonResourceURLs", self.urls),
            ("ResourceNames", self.names),
            ("Verbs", self.verbs),
        )
        return f"{{{', '.join(f'{title}:{quote_all(values)}' for title, values in parts if values)}}}"


FULL_AUTHORITY = (Rule((ALL,), (ALL,), (ALL,)), Rule((ALL,), urls=(ALL,)))


def parse(rule: Object) -> Rule:
    """The rule that a PolicyRule object describes."""

    def texts(key: str) -> tuple[str, ...]:
        return tuple(rule.get(key) or ())

    return Rule(
        texts("verbs"),
        texts("apiGroups"),
        texts("resources"),
        texts("resourceNames"),
        texts("nonResourceURLs"),
    )


def parse_all(role: Object) -> tuple[Rule, ...]:
    """The rules of a Role or ClusterRole object."""
    return tuple(parse(rule) for rule in role.get("rules") or ())


def to_object(rule: Rule) -> Object:
    """The PolicyRule object of a rule; what is empty is left out."""
    fields = (
        ("verbs", rule.verbs),
        ("apiGroups", rule.groups),
        ("resources", rule.resources),
        ("resourceNames", rule.names),
        ("nonResourceURLs", rule.urls),
    )
    return {key: list(values) for key, values in fields if values or key == "verbs"}


def allows(rule: Rule, attributes: Attributes) -> bool:
    """Whether one rule is enough for a request."""
    if attributes.path is not None:
        return allows_path(rule, attributes.verb, attributes.path)
    return allows_kind(
        rule, attributes.verb, attributes.group, attributes.resource, attributes.subresource
    ) and allows_name(rule, attributes.name)


def allows_kind(rule: Rule, verb: str, group: str, resource: str, subresource: str) -> bool:
    """Whether a rule is about this verb and resource, leaving the object's name aside."""
    if verb not in rule.verbs and ALL not in rule.verbs:
        return False
    if group not in rule.groups and ALL not in rule.groups:
        return False
    if ALL in rule.resources:
        return True
    if subresource:
        return f"{resource}/{subresource}" in rule.resources or f"*/{subresource}" in rule.resources
    return resource in rule.resources


def allows_name(rule: Rule, name: str) -> bool:
    """Whether a rule is about this object; a rule without names is about all of them."""
    return not rule.names or name in rule.names


def allows_path(rule: Rule, verb: str, path: str) -> bool:
    """Whether a rule allows a verb on a path that is no resource."""
    return (verb in rule.verbs or ALL in rule.verbs) and any(_url_covers(url, path) for url in rule.urls)


def uncovered(owned: Sequence[Rule], wanted: Iterable[Rule]) -> list[Rule]:
    """The atoms of the wanted rules that none of the owned rules contains."""
    return [atom for rule in wanted for atom in atoms(rule) if not any(_covers(own, atom) for own in owned)]


def atoms(rule: Rule) -> Iterator[Rule]:
    """A rule as rules with at most one value per field, which together allow the same."""
    for group, resource, verb in product(rule.groups, rule.resources, rule.verbs):
        if rule.names:
            for name in rule.names:
                yield Rule((verb,), (group,), (resource,), (name,))
        else:
            yield Rule((verb,), (group,), (resource,))
    for url, verb in product(rule.urls, rule.verbs):
        yield Rule((verb,), urls=(url,))


def compact(found: Iterable[Rule]) -> list[Rule]:
    """Atoms that differ only by verb put together again, for people to read."""
    others: list[Rule] = []
    simple: dict[tuple[str, str, tuple[str, ...]], Rule] = {}
    for rule in found:
        if len(rule.groups) != 1 or len(rule.resources) != 1 or len(rule.names) > 1 or rule.urls:
            others.append(rule)
            continue
        key = (rule.groups[0], rule.resources[0], rule.names)
        if before := simple.get(key):
            rule = msgspec.structs.replace(before, verbs=before.verbs + rule.verbs)
        simple[key] = rule
    return [*others, *simple.values()]


def aggregate(role: Object, roles: Iterable[Object]) -> list[Object]:
    """The rules of an aggregated ClusterRole: those of every role its selectors match, without repetition.

    Roles are taken in the order of their names. Since aggregated roles may select each other, the caller
    repeats this until nothing changes (`aggregate_all` does).
    """
    ordered = sorted(roles, key=lambda other: str(other["metadata"]["name"]))
    found: list[Object] = []
    for wanted in (role.get("aggregationRule") or {}).get("clusterRoleSelectors") or ():
        selector = selectors.from_object(wanted)
        for other in ordered:
            metadata = other["metadata"]
            if metadata["name"] == role["metadata"]["name"]:
                continue
            if selectors.matches(selector, metadata.get("labels")):
                found.extend(rule for rule in other.get("rules") or () if rule not in found)
    return found


def aggregate_all(roles: Iterable[Object]) -> dict[str, list[Object]]:
    """The rules that each aggregated ClusterRole should have, for those that have others now."""
    current = {role["metadata"]["name"]: role for role in roles}
    aggregated = [name for name, role in current.items() if role.get("aggregationRule")]
    changed: dict[str, list[Object]] = {}
    # Each round settles at least one more link of the longest chain of selections.
    for _ in range(len(aggregated) + 1):
        settled = True
        for name in aggregated:
            found = aggregate(current[name], current.values())
            if found != (current[name].get("rules") or []):
                current[name] = {**current[name], "rules": found}
                changed[name] = found
                settled = False
        if settled:
            break
    return changed


def _covers(own: Rule, atom: Rule) -> bool:
    return (
        _has(own.verbs, atom.verbs)
        and _has(own.groups, atom.groups)
        and all(_resource_covered(own.resources, resource) for resource in atom.resources)
        and (not own.names or (bool(atom.names) and atom.names[0] in own.names))
        and all(any(_url_covers(have, url) for have in own.urls) for url in atom.urls)
    )


def _has(own: tuple[str, ...], wanted: tuple[str, ...]) -> bool:
    return ALL in own or all(value in own for value in wanted)


def _resource_covered(own: tuple[str, ...], resource: str) -> bool:
    if ALL in own or resource in own:
        return True
    _, slash, subresource = resource.partition("/")
    return bool(slash) and f"*/{subresource}" in own


def _url_covers(own: str, url: str) -> bool:
    return own == url or (own.endswith(ALL) and url.startswith(own.rstrip(ALL)))
