"""ConfigMaps, Secrets and ServiceAccounts: keys, sizes, immutability."""

from __future__ import annotations

import base64
import binascii
import json
import re

from podium.api import names
from podium.api.kinds import Object
from podium.apiserver.kinds.base import KindStrategy
from podium.apiserver.kinds.checks import annotations_of, each, immutable
from podium.schema import fielderrors as errors
from podium.schema.fielderrors import FieldError

_SIZE_LIMIT = 1024 * 1024
_SET_IMMUTABLE = "field is immutable when `immutable` is set"
_ACCOUNT_NAME = "kubernetes.io/service-account.name"
_MOUNTABLE = "kubernetes.io/enforce-mountable-secrets"

# Secret type -> keys that its data must have. Docker configurations must also be JSON.
_NEEDED_KEYS = {
    "kubernetes.io/dockercfg": (".dockercfg",),
    "kubernetes.io/dockerconfigjson": (".dockerconfigjson",),
    "kubernetes.io/ssh-auth": ("ssh-privatekey",),
    "kubernetes.io/tls": ("tls.crt", "tls.key"),
}


class ConfigMapStrategy(KindStrategy):
    def default(self, obj: Object) -> None:
        if obj.get("data") is None:
            obj.pop("data", None)

    def validate(self, obj: Object, old: Object | None) -> list[FieldError]:
        data, binary = obj.get("data") or {}, obj.get("binaryData") or {}
        found: list[FieldError] = []
        size = 0
        for key, text in data.items():
            found += each(f"data[{key}]", key, names.config_key(key))
            if key in binary:
                found.append(errors.invalid(f"data[{key}]", key, "duplicate of key present in binaryData"))
            size += len(text.encode())
        for key, encoded in binary.items():
            found += each(f"binaryData[{key}]", key, names.config_key(key))
            size += decoded_size(encoded)
        if size > _SIZE_LIMIT:
            found.append(errors.too_long("[]", _SIZE_LIMIT))
        return found

    def validate_change(self, new: Object, old: Object) -> list[FieldError]:
        return _frozen(new, old, ("data", "binaryData"))


class SecretStrategy(KindStrategy):
    def default(self, obj: Object) -> None:
        if texts := obj.pop("stringData", None):
            encoded = {key: base64.b64encode(text.encode()).decode() for key, text in texts.items()}
            obj["data"] = {**(obj.get("data") or {}), **encoded}
        if not obj.get("type"):
            obj["type"] = "Opaque"

    def validate(self, obj: Object, old: Object | None) -> list[FieldError]:
        data: dict[str, str] = obj.get("data") or {}
        found: list[FieldError] = []
        for key in data:
            found += each(f"data[{key}]", key, names.config_key(key))
        if sum(map(decoded_size, data.values())) > _SIZE_LIMIT:
            found.append(errors.too_long("data", _SIZE_LIMIT))
        return found + _secret_type(obj, data)

    def validate_change(self, new: Object, old: Object) -> list[FieldError]:
        found = immutable("type", new.get("type") or "", old.get("type") or "")
        return found + _frozen(new, old, ("data",))

    def warnings(self, obj: Object, old: Object | None) -> list[str]:
        if obj.get("type") != "kubernetes.io/tls":
            return []
        return _key_pair_warning(obj.get("data") or {})


class ServiceAccountStrategy(KindStrategy):
    def prepare_create(self, obj: Object) -> None:
        _keep_only_names(obj)

    def prepare_update(self, new: Object, old: Object) -> None:
        _keep_only_names(new)

    def warnings(self, obj: Object, old: Object | None) -> list[str]:
        if _MOUNTABLE not in annotations_of(obj) or (old is not None and _MOUNTABLE in annotations_of(old)):
            return []
        text = "deprecated in v1.32+; prefer separate namespaces to isolate access to mounted secrets"
        return [f"metadata.annotations[{_MOUNTABLE}]: {text}"]


def decoded_size(encoded: str | None) -> int:
    """How many bytes a base64 text stands for."""
    return 0 if not encoded else len(encoded) // 4 * 3 - encoded.count("=", -2)


def _frozen(new: Object, old: Object, fields: tuple[str, ...]) -> list[FieldError]:
    if not old.get("immutable"):
        return []
    found = [] if new.get("immutable") else [errors.forbidden("immutable", _SET_IMMUTABLE)]
    changed = [field for field in fields if (new.get(field) or {}) != (old.get(field) or {})]
    return found + [errors.forbidden(field, _SET_IMMUTABLE) for field in changed]


def _secret_type(obj: Object, data: dict[str, str]) -> list[FieldError]:
    kind = obj.get("type") or ""
    if kind == "kubernetes.io/service-account-token":
        if not annotations_of(obj).get(_ACCOUNT_NAME):
            return [errors.required(f"metadata.annotations[{_ACCOUNT_NAME}]")]
        return []
    if kind == "kubernetes.io/basic-auth":
        missing = "username" not in data and "password" not in data
        return [errors.required(f"data[{key}]") for key in ("username", "password") if missing]
    needed = _NEEDED_KEYS.get(kind, ())
    if kind == "kubernetes.io/ssh-auth":
        return [errors.required(f"data[{key}]") for key in needed if not data.get(key)]
    found = [errors.required(f"data[{key}]") for key in needed if key not in data]
    if found or not kind.startswith("kubernetes.io/docker"):
        return found
    problem = _json_object_problem(data[needed[0]])
    return [errors.invalid(f"data[{needed[0]}]", "<secret contents redacted>", problem)] if problem else []


def _json_object_problem(encoded: str) -> str:
    try:
        text = base64.b64decode(encoded)
        value = json.loads(text)
    except (ValueError, binascii.Error):
        return _go_json_error(base64.b64decode(encoded))
    if isinstance(value, dict) or value is None:
        return ""
    word = {list: "array", str: "string", bool: "bool"}.get(type(value), "number")
    return f"json: cannot unmarshal {word} into Go value of type map[string]interface {{}}"


def _go_json_error(text: bytes) -> str:
    stripped = text.strip()
    if not stripped:
        return "unexpected end of JSON input"
    first = chr(stripped[0])
    number = re.match(rb"-?[0-9]+(\.[0-9]+)?", stripped)
    if number and number.end() < len(stripped):
        return f"invalid character '{chr(stripped[number.end()])}' after top-level value"
    for literal in ("true", "false", "null"):
        if first == literal[0]:
            for expected, actual in zip(literal, stripped.decode(errors="replace"), strict=False):
                if expected != actual:
                    return f"invalid character '{actual}' in literal {literal} (expecting '{expected}')"
    if first in '{["-0123456789tfn':
        return "unexpected end of JSON input"
    shown = "'\\''" if first == "'" else f"'{first}'"
    return f"invalid character {shown} looking for beginning of value"


def _keep_only_names(obj: Object) -> None:
    if secrets := obj.get("secrets"):
        obj["secrets"] = [{"name": s["name"]} if s.get("name") else {} for s in secrets]


def _key_pair_warning(data: dict[str, str]) -> list[str]:
    for key, what in (("tls.crt", "certificate"), ("tls.key", "key")):
        text = base64.b64decode(data.get(key) or "")
        if b"-----BEGIN " not in text:
            return [f"tls: failed to find any PEM data in {what} input"]
    return []
