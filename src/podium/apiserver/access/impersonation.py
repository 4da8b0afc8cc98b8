"""Acting as somebody else: the Impersonate-* headers and who may use them.

Since 1.36 there are two ways to be allowed. Constrained: `impersonate:<mode>` on the wanted user together
with `impersonate-on:<mode>:<verb>` on what the request does, where the mode follows from the kind of user
(the node a service account runs on, any node, a service account, anybody else). Classic: `impersonate` on
users, groups, uids and userextras. The modes are tried in this order, the one that worked last for the
requester first, and the refusal that a client sees is that of the first mode tried.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import NamedTuple
from urllib.parse import unquote

import msgspec

from podium.apiserver import errors
from podium.apiserver.access.authorization import Attributes, Authorizer, check, forbidden
from podium.apiserver.access.identity import (
    ANONYMOUS,
    AUTHENTICATED,
    MASTERS,
    NODE_NAME,
    NODES,
    UNAUTHENTICATED,
    Identity,
    account_groups,
    split_account,
    split_node,
)
from podium.apiserver.errors import StatusError
from podium.text.quoting import quote

_EXTRA_PREFIX = "impersonate-extra-"
_AUTHENTICATION = "authentication.k8s.io"
# From this many values on, one question about all of them is asked before one about each.
_MANY = 4
_MAX_REMEMBERED = 10_000


def wanted_identity(headers: Iterable[tuple[str, str]]) -> Identity | None:
    """Whom the headers ask for, exactly as they say it; None if for nobody, 400 without a username."""
    username = uid = ""
    groups: list[str] = []
    extra: dict[str, tuple[str, ...]] = {}
    for name, value in headers:
        name = name.lower()
        if not name.startswith("impersonate-"):
            continue
        if name == "impersonate-user":
            username = username or value
        elif name == "impersonate-uid":
            uid = uid or value
        elif name == "impersonate-group":
            groups.append(value)
        elif name.startswith(_EXTRA_PREFIX):
            key = unquote(name.removeprefix(_EXTRA_PREFIX))
            extra[key] = (*extra.get(key, ()), value)
    wanted = Identity(username, uid, tuple(groups), extra)
    if username:
        return wanted
    if uid or groups or extra:
        raise errors.bad_request(f"requested {_go_syntax(wanted)} without impersonating a user name")
    return None


class Impersonation:
    """Decides whether a requester may be somebody else for one request."""

    def __init__(self, authorizer: Authorizer) -> None:
        self._authorizer = authorizer
        self._last_mode: dict[str, _Mode] = {}

    def impersonate(self, wanted: Identity, request: Attributes) -> Identity:
        """The identity to go on with; `request` is what the requester (its user) is about to do."""
        requester = request.user.username
        first_refusal: StatusError | None = None
        for mode in self._modes(requester):
            if not mode.applies(wanted, request.user):
                continue
            try:
                found = _become(self._authorizer, mode, wanted, request)
            except StatusError as refusal:
                first_refusal = first_refusal or refusal
                continue
            self._remember(requester, mode)
            return found
        assert first_refusal is not None  # the classic mode applies to everybody
        raise first_refusal

    def _modes(self, requester: str) -> list[_Mode]:
        last = self._last_mode.get(requester)
        return list(_MODES) if last is None else [last, *(mode for mode in _MODES if mode is not last)]

    def _remember(self, requester: str, mode: _Mode) -> None:
        if len(self._last_mode) >= _MAX_REMEMBERED:
            self._last_mode.clear()
        self._last_mode[requester] = mode


class _Mode(NamedTuple):
    """One way to impersonate; the classic one has no name."""

    name: str
    applies: Callable[[Identity, Identity], bool]

    @property
    def verb(self) -> str:
        return f"impersonate:{self.name}" if self.name else "impersonate"


def _only_username(wanted: Identity) -> bool:
    return not wanted.uid and not wanted.groups and not wanted.extra


def _own_node(wanted: Identity, requester: Identity) -> bool:
    node = split_node(wanted.username)
    own = requester.extra.get(NODE_NAME, ())
    return node is not None and split_account(requester.username) is not None and tuple(own) == (node,)


_MODES = (
    _Mode(
        "associated-node", lambda wanted, requester: _only_username(wanted) and _own_node(wanted, requester)
    ),
    _Mode(
        "arbitrary-node", lambda wanted, _: _only_username(wanted) and split_node(wanted.username) is not None
    ),
    _Mode(
        "serviceaccount", lambda wanted, _: _only_username(wanted) and bool(split_account(wanted.username))
    ),
    _Mode(
        "user-info", lambda wanted, _: not split_node(wanted.username) and not split_account(wanted.username)
    ),
    _Mode("", lambda _, __: True),
)


def _become(authorizer: Authorizer, mode: _Mode, wanted: Identity, request: Attributes) -> Identity:
    if mode.name:
        check(authorizer, msgspec.structs.replace(request, verb=f"impersonate-on:{mode.name}:{request.verb}"))
    groups = _check_username(authorizer, mode, wanted, request.user)
    if wanted.uid:
        check(authorizer, _question(request.user, mode, "uids", wanted.uid, group=_AUTHENTICATION))
    if wanted.groups:
        _check_groups(authorizer, mode, wanted, request.user)
    if wanted.extra:
        _check_extra(authorizer, mode, wanted.extra, request.user)
    found = msgspec.structs.replace(wanted, groups=groups)
    if found.username == ANONYMOUS:
        return found.with_groups(UNAUTHENTICATED)
    return found if UNAUTHENTICATED in groups else found.with_groups(AUTHENTICATED)


def _check_username(
    authorizer: Authorizer, mode: _Mode, wanted: Identity, requester: Identity
) -> tuple[str, ...]:
    """Check the username and return the groups it comes with: those asked for, else those of its kind."""
    question = _question(requester, mode, "users", wanted.username)
    groups = wanted.groups
    if mode.name and (node := split_node(wanted.username)):
        # The own node is allowed by one permission for all nodes: which one is checked by the mode itself.
        name = "*" if mode.name == "associated-node" else node
        question = _question(requester, mode, "nodes", name)
        groups = (NODES,)
    elif account := split_account(wanted.username):
        question = msgspec.structs.replace(
            question, resource="serviceaccounts", namespace=account[0], name=account[1]
        )
        groups = groups or account_groups(account[0])
    check(authorizer, question)
    return groups


def _check_groups(authorizer: Authorizer, mode: _Mode, wanted: Identity, requester: Identity) -> None:
    if mode.name and "" in wanted.groups:
        question = _question(requester, mode, "groups", "")
        raise forbidden(question, "impersonating the empty string group is not allowed")
    if mode.name and MASTERS in wanted.groups:
        question = _question(requester, mode, "groups", MASTERS)
        raise forbidden(question, "impersonating the system:masters group is not allowed")
    many = bool(mode.name) and len(wanted.groups) >= _MANY
    if many and authorizer.decide(_question(requester, mode, "groups", "*")).allowed:
        return
    for group in wanted.groups:
        check(authorizer, _question(requester, mode, "groups", group))


def _check_extra(
    authorizer: Authorizer, mode: _Mode, extra: Mapping[str, tuple[str, ...]], requester: Identity
) -> None:
    question = _question(requester, mode, "userextras", "", group=_AUTHENTICATION)
    if mode.name and (fault := _extra_fault(extra)):
        raise forbidden(question, fault)
    many = bool(mode.name) and sum(map(len, extra.values())) >= _MANY
    if many and authorizer.decide(msgspec.structs.replace(question, subresource="*", name="*")).allowed:
        return
    for key, values in extra.items():
        for value in values:
            check(authorizer, msgspec.structs.replace(question, subresource=key, name=value))


def _extra_fault(extra: Mapping[str, tuple[str, ...]]) -> str:
    for key, values in extra.items():
        if not key:
            return "impersonating the empty string key in extra is not allowed"
        if key != key.lower():
            return f"impersonating a non-lowercase key in extra is not allowed: {quote(key)}"
        if "" in values:
            return "impersonating the empty string value in extra is not allowed"
    return ""


def _question(
    requester: Identity, mode: _Mode, resource: str, name: str, group: str | None = None
) -> Attributes:
    if group is None:
        group = _AUTHENTICATION if mode.name else ""
    return Attributes(requester, mode.verb, group=group, resource=resource, name=name)


def _go_syntax(wanted: Identity) -> str:
    """The wanted user as Go's %#v prints it, which is what the real server tells."""

    def texts(values: tuple[str, ...]) -> str:
        return f"[]string{{{', '.join(map(quote, values))}}}" if values else "[]string(nil)"

    pairs = ", ".join(f"{quote(key)}:{texts(values)}" for key, values in sorted(wanted.extra.items()))
    extra = f"map[string][]string{{{pairs}}}" if pairs else "map[string][]string(nil)"
    return (
        f"&user.DefaultInfo{{Name:{quote(wanted.username)}, UID:{quote(wanted.uid)}, "
        f"Groups:{texts(wanted.groups)}, Extra:{extra}}}"
    )
