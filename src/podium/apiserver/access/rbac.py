"""RBAC decisions: which rules a user has in a namespace, found once and kept until a role or binding changes.

The bindings are indexed by subject (a service account is just the user it logs in as). For each user, set
of groups and namespace the rules are gathered once; for each verb and resource the few rules that are about
it are remembered, so that a repeated question costs two dictionary look-ups. All of it is dropped when the
reader's revision moves, which only a write to one of the four RBAC kinds may cause.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Protocol

import msgspec

from podium.api.kinds import Object
from podium.apiserver.access import rules
from podium.apiserver.access.authorization import Attributes, Decision
from podium.apiserver.access.identity import MASTERS, Identity, account_username
from podium.apiserver.access.rules import Rule
from podium.apiserver.access.wording import aggregate
from podium.text.quoting import quote

GROUP = "rbac.authorization.k8s.io"

# Questions come from clients, strangers among them, so what is remembered about them must have a limit.
_MAX_USERS = 1024
_MAX_QUESTIONS = 512
_MAX_PARSED = 4096
_LONGEST_QUESTION = 256


class RoleReader(Protocol):
    """What the authorizer reads from the store."""

    @property
    def rbac_revision(self) -> int:
        """A number that changes whenever a role or binding is created, changed or deleted."""
        ...

    def cluster_role(self, name: str) -> Object | None: ...

    def role(self, namespace: str, name: str) -> Object | None: ...

    def cluster_role_bindings(self) -> Iterable[Object]: ...

    def role_bindings(self, namespace: str) -> Iterable[Object]: ...


class MissingRole(msgspec.Struct, frozen=True):
    """A binding's reference to a role that does not exist."""

    kind: str
    name: str

    def __str__(self) -> str:
        if self.kind not in ("Role", "ClusterRole"):
            return f"unsupported role reference kind: {quote(self.kind)}"
        return f"{self.kind.lower()}.{GROUP} {quote(self.name)} not found"


class Grants(msgspec.Struct, frozen=True):
    """All rules a user has in one namespace, each with the binding it comes from."""

    rules: tuple[tuple[Rule, str], ...]
    missing: tuple[MissingRole, ...]


class Rbac:
    """The RBAC authorizer over the roles and bindings of a store."""

    def __init__(self, reader: RoleReader) -> None:
        self._reader = reader
        self._revision: int | None = None
        self._parsed: dict[tuple[str, str], tuple[str, tuple[Rule, ...]]] = {}
        self._reset()

    def decide(self, attributes: Attributes) -> Decision:
        """Whether some binding allows it; members of system:masters may do everything."""
        user = attributes.user
        if MASTERS in user.groups:
            return _ALLOWED
        return self._holder(user, attributes.namespace).decide(attributes)

    def grants(self, user: Identity, namespace: str) -> Grants:
        """The rules that apply to a user in a namespace (empty: cluster-wide ones only)."""
        return self._holder(user, namespace).grants

    def rules_of(self, reference: Object, namespace: str) -> Sequence[Rule] | None:
        """The rules of the role that a binding in a namespace refers to; None where there is none."""
        kind, name = reference.get("kind", ""), reference.get("name", "")
        if kind == "ClusterRole":
            return self._parse(("", name), self._reader.cluster_role(name))
        if kind == "Role" and namespace:
            return self._parse((namespace, name), self._reader.role(namespace, name))
        return None

    def _reset(self) -> None:
        self._holders: dict[tuple[str, tuple[str, ...], str], _Holder] = {}
        self._bindings: dict[str, _Bindings] = {}

    def _holder(self, user: Identity, namespace: str) -> _Holder:
        revision = self._reader.rbac_revision
        if revision != self._revision:
            self._reset()
            self._revision = revision
        if len(namespace) > _LONGEST_QUESTION:
            namespace = ""  # there is none of such a name, so nothing but the cluster's bindings counts in it
        key = (user.username, user.groups, namespace)
        holder = self._holders.get(key)
        if holder is None:
            if len(self._holders) >= _MAX_USERS:
                self._reset()
            holder = self._holders[key] = self._gather(user, namespace)
        return holder

    def _gather(self, user: Identity, namespace: str) -> _Holder:
        found: list[tuple[Rule, str]] = []
        missing: list[MissingRole] = []
        for scope in ("", namespace) if namespace else ("",):
            for binding, subject in self._bindings_in(scope).of(user):
                reference = binding.get("roleRef") or {}
                role_rules = self.rules_of(reference, scope)
                if role_rules is None:
                    missing.append(MissingRole(reference.get("kind", ""), reference.get("name", "")))
                    continue
                source = _describe(binding, reference, subject, scope)
                found.extend((rule, source) for rule in role_rules)
        return _Holder(Grants(tuple(found), tuple(missing)))

    def _bindings_in(self, scope: str) -> _Bindings:
        index = self._bindings.get(scope)
        if index is None:
            listed = self._reader.role_bindings(scope) if scope else self._reader.cluster_role_bindings()
            index = self._bindings[scope] = _Bindings(listed, scope)
        return index

    def _parse(self, key: tuple[str, str], role: Object | None) -> tuple[Rule, ...] | None:
        if role is None:
            self._parsed.pop(key, None)
            return None
        metadata = role.get("metadata") or {}
        version = f"{metadata.get('uid')}/{metadata.get('resourceVersion')}"
        known = self._parsed.get(key)
        if known is None or known[0] != version or "resourceVersion" not in metadata:
            if len(self._parsed) >= _MAX_PARSED:
                self._parsed.clear()  # roles of namespaces that are gone are never asked for again
            known = self._parsed[key] = (version, rules.parse_all(role))
        return known[1]


_ALLOWED = Decision(True)


class _Holder:
    """One user's rules in one namespace, and what has been asked of them so far."""

    __slots__ = ("_about", "_denied", "grants")

    def __init__(self, grants: Grants) -> None:
        self.grants = grants
        self._about: dict[tuple[str, ...], tuple[tuple[Rule, Decision], ...]] = {}
        reason = f"RBAC: {aggregate(map(str, grants.missing))}" if grants.missing else ""
        self._denied = Decision(False, reason)

    def decide(self, attributes: Attributes) -> Decision:
        question: tuple[str, ...]
        if attributes.path is None:
            question = (attributes.verb, attributes.group, attributes.resource, attributes.subresource)
        else:
            question = (attributes.verb, attributes.path)
        about = self._about.get(question)
        if about is None:
            about = self._find(question)
        for rule, decision in about:
            if not rule.names or attributes.path is not None or attributes.name in rule.names:
                return decision
        return self._denied

    def _find(self, question: tuple[str, ...]) -> tuple[tuple[Rule, Decision], ...]:
        matches = rules.allows_kind if len(question) == 4 else rules.allows_path
        found = []
        for rule, source in self.grants.rules:
            if matches(rule, *question):
                found.append((rule, Decision(True, f"RBAC: allowed by {source}")))
                if not rule.names or len(question) == 2:
                    break  # it allows every name: later rules can add nothing
        about = tuple(found)
        # What nothing is about is not remembered: anybody can think of more of that.
        if about and sum(map(len, question)) <= _LONGEST_QUESTION:
            if len(self._about) >= _MAX_QUESTIONS:
                self._about.clear()
            self._about[question] = about
        return about


class _Bindings:
    """The bindings of one namespace (or the cluster), findable by the user or group they are for."""

    __slots__ = ("_by_subject",)

    def __init__(self, bindings: Iterable[Object], namespace: str) -> None:
        self._by_subject: dict[tuple[str, str], list[tuple[int, int, Object, Object]]] = {}
        for order, binding in enumerate(bindings):
            for position, subject in enumerate(binding.get("subjects") or ()):
                if key := _subject_key(subject, namespace):
                    self._by_subject.setdefault(key, []).append((order, position, binding, subject))

    def of(self, user: Identity) -> list[tuple[Object, Object]]:
        """The bindings that apply to a user, each once, with the first of its subjects that does."""
        keys = [("User", user.username), *(("Group", group) for group in user.groups)]
        found: dict[int, tuple[int, Object, Object]] = {}
        for key in keys:
            for order, position, binding, subject in self._by_subject.get(key, ()):
                if order not in found or position < found[order][0]:
                    found[order] = (position, binding, subject)
        return [found[order][1:] for order in sorted(found)]


def _subject_key(subject: Object, namespace: str) -> tuple[str, str] | None:
    kind, name = subject.get("kind"), subject.get("name", "")
    if kind == "ServiceAccount":
        home = subject.get("namespace") or namespace
        return ("User", account_username(home, name)) if home else None
    return (kind, name) if kind in ("User", "Group") else None


def _describe(binding: Object, reference: Object, subject: Object, namespace: str) -> str:
    name = binding["metadata"]["name"]
    start = (
        f"RoleBinding {quote(f'{name}/{namespace}')}" if namespace else f"ClusterRoleBinding {quote(name)}"
    )
    who = subject.get("name", "")
    if subject.get("kind") == "ServiceAccount":
        who += f"/{subject.get('namespace') or namespace}"
    role = f"{reference.get('kind')} {quote(reference.get('name', ''))}"
    return f"{start} of {role} to {subject.get('kind')} {quote(who)}"
