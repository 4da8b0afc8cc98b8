"""Service-account tokens: checked, asked for by TokenRequest, and the older kind kept in Secrets.

A token is good while its signature, its time and the objects it is bound to are: the ServiceAccount with
the same uid, and the Pod, Secret or Node it was issued for. Signatures are checked once per token and
remembered by hash; the objects are looked up every time, so that deleting one revokes its tokens at once.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import time
import uuid
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from typing import NamedTuple, Protocol

import msgspec

from podium.api.kinds import Object
from podium.api.times import parse_timestamp, timestamp
from podium.apiserver import errors
from podium.apiserver.access.identity import (
    CREDENTIAL_ID,
    NODE_NAME,
    NODE_UID,
    POD_NAME,
    POD_UID,
    Identity,
    account_groups,
    account_username,
    split_account,
)
from podium.apiserver.access.signing import ISSUER, SigningKey, TokenError
from podium.schema import fielderrors
from podium.schema.fielderrors import FieldError
from podium.text.quoting import quote, quote_all

Clock = Callable[[], float]

LEGACY_ISSUER = "kubernetes/serviceaccount"
TOKEN_SECRET = "kubernetes.io/service-account-token"
_ACCOUNT_NAME = "kubernetes.io/service-account.name"
_ACCOUNT_UID = "kubernetes.io/service-account.uid"
_INVALID_SINCE = "kubernetes.io/legacy-token-invalid-since"
_LEGACY_CLAIM = "kubernetes.io/serviceaccount/"
_GROUP = "authentication.k8s.io"

_LEEWAY = 60.0
_DEFAULT_SECONDS = 3600
_LEAST_SECONDS = 600
_MOST_SECONDS = 1 << 32
_LONGEST_TOKEN = 16 * 1024
_MAX_REMEMBERED = 4096


class BoundObjects(Protocol):
    """What is looked up in the core group: serviceaccounts, secrets, pods, nodes (namespace empty)."""

    def get(self, resource: str, namespace: str, name: str) -> Object | None: ...


class Verified(NamedTuple):
    """Whose token it is, and which of the wanted audiences it is for."""

    identity: Identity
    audiences: tuple[str, ...]


class ServiceAccountTokens:
    """Issues and checks the tokens of the service accounts of one server."""

    def __init__(
        self, key: SigningKey, objects: BoundObjects, *, issuer: str = ISSUER, clock: Clock = time.time
    ) -> None:
        self._key = key
        self._objects = objects
        self._issuer = issuer
        self._clock = clock
        self._checked: dict[bytes, Object] = {}
        self.audiences: tuple[str, ...] = (issuer,)

    def authenticate(self, token: str, audiences: Sequence[str] | None = None) -> Verified | None:
        """Whose token it is; None if it is not of ours at all, `TokenError` if it is not good any more."""
        claims = self._claims(token)
        if claims is None:
            return None
        carried = claims.get("aud") or self.audiences
        own = (carried,) if isinstance(carried, str) else tuple(carried)
        wanted = tuple(audiences) if audiences is not None else self.audiences
        shared = tuple(audience for audience in own if audience in wanted)
        if not shared:
            raise TokenError(
                f"token audiences {quote_all(own)} is invalid for the target audiences {quote_all(wanted)}"
            )
        identify = self._identify_legacy if claims["iss"] == LEGACY_ISSUER else self._identify
        return Verified(identify(token, claims), shared)

    def request(self, namespace: str, name: str, body: Object) -> Object:
        """Answer a TokenRequest for a service account; `StatusError` if it asks for what cannot be."""
        _check_names(namespace, name, body)
        account = self._existing("serviceaccounts", namespace, name)
        metadata = body.get("metadata") or {}
        uid = account["metadata"]["uid"]
        if metadata.get("uid") and metadata["uid"] != uid:
            detail = (
                f"the UID in the token request ({metadata['uid']}) does not match "
                f"the UID of the service account ({uid})"
            )
            raise errors.conflict(_GROUP, "TokenRequest", name, detail)
        spec = body.get("spec") or {}
        audiences = list(spec.get("audiences") or self.audiences)
        seconds = spec.get("expirationSeconds")
        seconds = _DEFAULT_SECONDS if seconds is None else seconds
        if faults := _lifetime_errors(seconds):
            raise errors.invalid(_GROUP, "TokenRequest", "", faults)
        reference = spec.get("boundObjectRef")
        bound = self._bind(account, reference) if reference else {}
        now = int(self._clock())
        token = self._key.sign(self._new_claims(account, audiences, now, seconds, bound))
        return {
            "kind": "TokenRequest",
            "apiVersion": f"{_GROUP}/v1",
            "metadata": {
                **metadata,
                "name": name,
                "namespace": namespace,
                "uid": uid,
                "creationTimestamp": _timestamp(now),
            },
            "spec": {"audiences": audiences, "expirationSeconds": seconds, "boundObjectRef": reference},
            "status": {"token": token, "expirationTimestamp": _timestamp(now + seconds)},
        }

    def fill_secret(self, secret: Object, account: Object, ca: bytes) -> Object | None:
        """A token Secret with the data and annotations it should have; None if it has them already."""
        data = dict(secret.get("data") or {})
        authority = base64.b64encode(ca).decode()
        if data.get("ca.crt") == authority and data.get("namespace") and data.get("token"):
            return None
        metadata, owner = secret["metadata"], account["metadata"]
        data["ca.crt"] = authority
        if not data.get("namespace"):
            data["namespace"] = base64.b64encode(metadata["namespace"].encode()).decode()
        if not data.get("token"):
            token = self._key.sign(_legacy_claims(owner, metadata["name"]))
            data["token"] = base64.b64encode(token.encode()).decode()
        annotations = {
            **(metadata.get("annotations") or {}),
            _ACCOUNT_NAME: owner["name"],
            _ACCOUNT_UID: owner["uid"],
        }
        return {**secret, "metadata": {**metadata, "annotations": annotations}, "data": data}

    def _claims(self, token: str) -> Object | None:
        """What a token of ours says, its signature checked; None for any other token."""
        digest = hashlib.sha256(token.encode("utf-8", "surrogateescape")).digest()
        claims = self._checked.get(digest)
        if claims is None:
            if _unverified_issuer(token) not in (self._issuer, LEGACY_ISSUER):
                return None
            claims = self._key.verify(token)
            if len(self._checked) >= _MAX_REMEMBERED:
                del self._checked[next(iter(self._checked))]
            self._checked[digest] = claims
        if self._clock() - _LEEWAY > claims.get("exp", float("inf")):
            self._checked.pop(digest, None)
        return claims

    def _new_claims(
        self, account: Object, audiences: list[str], now: int, seconds: int, bound: Object
    ) -> Object:
        metadata = account["metadata"]
        return {
            "aud": audiences,
            "exp": now + seconds,
            "iat": now,
            "iss": self._issuer,
            "jti": str(uuid.uuid4()),
            "kubernetes.io": {
                "namespace": metadata["namespace"],
                **bound,
                "serviceaccount": {"name": metadata["name"], "uid": metadata["uid"]},
            },
            "nbf": now,
            "sub": account_username(metadata["namespace"], metadata["name"]),
        }

    def _bind(self, account: Object, reference: Object) -> Object:
        """The claims that tie a token to the object it was asked for."""
        group, slash, version = (reference.get("apiVersion") or "").rpartition("/")
        kind, name = reference.get("kind", ""), reference.get("name", "")
        namespace = account["metadata"]["namespace"]
        if group or slash or kind not in ("Pod", "Secret", "Node"):
            raise errors.bad_request(f"cannot bind token to object of type {group}/{version}, Kind={kind}")
        found = self._existing(f"{kind.lower()}s", "" if kind == "Node" else namespace, name)
        owner = account["metadata"]["name"]
        if kind == "Pod" and (found.get("spec") or {}).get("serviceAccountName") != owner:
            raise errors.bad_request(
                f"cannot bind token for serviceaccount {quote(owner)} to pod running with different "
                "serviceaccount name."
            )
        uid = found["metadata"]["uid"]
        if reference.get("uid") and reference["uid"] != uid:
            detail = (
                f"the UID in the bound object reference ({reference['uid']}) does not match "
                "the UID in record. The object might have been deleted and then recreated"
            )
            raise errors.conflict("", kind, name, detail)
        claims: Object = {kind.lower(): {"name": name, "uid": uid}}
        if kind == "Pod" and (node := found["spec"].get("nodeName")):
            claims["node"] = self._node_claim(node)
        return claims

    def _node_claim(self, name: str) -> Object:
        node = self._objects.get("nodes", "", name)
        return {"name": name, "uid": node["metadata"]["uid"]} if node else {"name": name}

    def _existing(self, resource: str, namespace: str, name: str) -> Object:
        found = self._objects.get(resource, namespace, name)
        if found is None:
            raise errors.not_found("", resource, name)
        return found

    def _identify(self, token: str, claims: Object) -> Identity:
        _check_times(claims, self._clock())
        private = claims.get("kubernetes.io") or {}
        namespace, account = private.get("namespace", ""), private.get("serviceaccount") or {}
        name = account.get("name", "")
        found = self._objects.get("serviceaccounts", namespace, name)
        if found is None:
            raise TokenError(f"serviceaccounts {quote(name)} not found")
        uid = found["metadata"]["uid"]
        if uid != account.get("uid"):
            raise TokenError(f"service account UID ({uid}) does not match claim ({account.get('uid')})")
        if self._deleted(found):
            raise TokenError(f"service account {namespace}/{name} has been deleted")
        extra: dict[str, tuple[str, ...]] = {}
        if claims.get("jti"):
            extra[CREDENTIAL_ID] = (f"JTI={claims['jti']}",)
        if secret := private.get("secret"):
            self._check_bound("secret", namespace, secret)
        pod, node = private.get("pod"), private.get("node")
        if pod:
            self._check_bound("pod", namespace, pod)
            extra |= {POD_NAME: (pod["name"],), POD_UID: (pod["uid"],)}
        elif node:
            self._check_bound("node", "", node)
        if node:
            extra[NODE_NAME] = (node["name"],)
            if node.get("uid"):
                extra[NODE_UID] = (node["uid"],)
        return Identity(account_username(namespace, name), account["uid"], account_groups(namespace), extra)

    def _check_bound(self, kind: str, namespace: str, claim: Object) -> None:
        found = self._objects.get(f"{kind}s", namespace, claim["name"])
        if found is None:
            raise TokenError("service account token has been invalidated")
        if found["metadata"]["uid"] != claim.get("uid"):
            raise TokenError(
                f"{kind} UID ({found['metadata']['uid']}) does not match service account {kind} ref claim "
                f"({claim.get('uid')})"
            )
        if self._deleted(found):
            raise TokenError("service account token has been invalidated")

    def _deleted(self, found: Object) -> bool:
        deleted = found["metadata"].get("deletionTimestamp")
        return bool(deleted) and parse_timestamp(deleted).timestamp() < self._clock() - _LEEWAY

    def _identify_legacy(self, token: str, claims: Object) -> Identity:
        namespace, secret_name, name, uid = (
            _legacy_claim(claims, key)
            for key in ("namespace", "secret.name", "service-account.name", "service-account.uid")
        )
        if split_account(claims.get("sub", "")) != (namespace, name):
            raise TokenError("sub claim is invalid")
        secret = self._objects.get("secrets", namespace, secret_name)
        if secret is None or secret["metadata"].get("deletionTimestamp"):
            raise TokenError("Token has been invalidated")
        kept = base64.b64decode((secret.get("data") or {}).get("token", ""))
        if not hmac.compare_digest(kept, token.encode()):
            raise TokenError("Token does not match server's copy")
        account = self._objects.get("serviceaccounts", namespace, name)
        if account is None:
            raise TokenError(f"serviceaccounts {quote(name)} not found")
        if account["metadata"].get("deletionTimestamp"):
            raise TokenError(f"ServiceAccount {namespace}/{name} has been deleted")
        if account["metadata"]["uid"] != uid:
            raise TokenError(
                f"ServiceAccount UID ({account['metadata']['uid']}) does not match claim ({uid})"
            )
        if (secret["metadata"].get("labels") or {}).get(_INVALID_SINCE):
            raise TokenError(
                f"the token in secret {namespace}/{secret_name} for service account {namespace}/{name} has "
                "been marked invalid. Use tokens from the TokenRequest API or manually created secret-based "
                f"tokens, or remove the '{_INVALID_SINCE}' label from the secret to temporarily allow use "
                "of this token"
            )
        return Identity(account_username(namespace, name), uid, account_groups(namespace))


def is_token_secret(secret: Object, account: Object) -> bool:
    """Whether a Secret is meant to hold a token of this very service account."""
    annotations = secret["metadata"].get("annotations") or {}
    owner = account["metadata"]
    return (
        secret.get("type") == TOKEN_SECRET
        and annotations.get(_ACCOUNT_NAME) == owner["name"]
        and annotations.get(_ACCOUNT_UID, owner["uid"]) == owner["uid"]
    )


def _unverified_issuer(token: str) -> str | None:
    """The issuer that a token claims; nothing else of it may be believed yet."""
    parts = token.split(".")
    if len(parts) != 3 or len(token) > _LONGEST_TOKEN:
        return None
    try:
        payload = base64.urlsafe_b64decode(parts[1] + "=" * (-len(parts[1]) % 4))
        claims = msgspec.json.decode(payload)
    except (ValueError, msgspec.DecodeError):
        return None
    issuer = claims.get("iss") if isinstance(claims, dict) else None
    return issuer if isinstance(issuer, str) else None


def _check_times(claims: Object, now: float) -> None:
    if now + _LEEWAY < claims.get("nbf", 0):
        raise TokenError("service account token is not valid yet")
    if now - _LEEWAY > claims.get("exp", float("inf")):
        raise TokenError("service account token has expired")
    if now + _LEEWAY < claims.get("iat", 0):
        raise TokenError("service account token is issued in the future")


def _check_names(namespace: str, name: str, body: Object) -> None:
    metadata = body.get("metadata") or {}
    for key, wanted in (("name", name), ("namespace", namespace)):
        given = metadata.get(key)
        if given and given != wanted:
            detail = f"must match the service account {key} if specified"
            error = fielderrors.invalid(f"metadata.{key}", given, detail)
            raise errors.invalid(_GROUP, "TokenRequest", name, [error])


def _lifetime_errors(seconds: int) -> list[FieldError]:
    path = "spec.expirationSeconds"
    if seconds < _LEAST_SECONDS:
        return [fielderrors.invalid(path, seconds, "may not specify a duration less than 10 minutes")]
    if seconds > _MOST_SECONDS:
        return [fielderrors.invalid(path, seconds, "may not specify a duration larger than 2^32 seconds")]
    return []


def _legacy_claims(owner: Object, secret_name: str) -> Object:
    return {
        "iss": LEGACY_ISSUER,
        f"{_LEGACY_CLAIM}namespace": owner["namespace"],
        f"{_LEGACY_CLAIM}secret.name": secret_name,
        f"{_LEGACY_CLAIM}service-account.name": owner["name"],
        f"{_LEGACY_CLAIM}service-account.uid": owner["uid"],
        "sub": account_username(owner["namespace"], owner["name"]),
    }


def _legacy_claim(claims: Object, key: str) -> str:
    value = claims.get(f"{_LEGACY_CLAIM}{key}")
    if not isinstance(value, str) or not value:
        names = {
            "namespace": "namespace",
            "secret.name": "secretName",
            "service-account.name": "serviceAccountName",
            "service-account.uid": "serviceAccountUID",
        }
        raise TokenError(f"{names[key]} claim is missing")
    return value


def _timestamp(seconds: float) -> str:
    return timestamp(datetime.fromtimestamp(seconds, UTC))
