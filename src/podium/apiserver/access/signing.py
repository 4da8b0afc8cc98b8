"""The key that signs service-account tokens, and the documents by which others can check them.

The key and the libraries for it are loaded with the first token, not at start-up.
"""

from __future__ import annotations

import base64
import hashlib
from pathlib import Path
from typing import TYPE_CHECKING, Any

from podium.api.kinds import Object

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ec import EllipticCurvePrivateKey


ISSUER = "https://kubernetes.default.svc.cluster.local"


class TokenError(Exception):
    """A token that is ours but not good; the message says why, and is shown by TokenReview."""


class SigningKey:
    """The EC P-256 key that signs service-account tokens; the file is read on first use."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._loaded: tuple[EllipticCurvePrivateKey, str] | None = None

    def sign(self, claims: Object) -> str:
        """A JWT with these claims."""
        import jwt

        key, key_id = self._load()
        return jwt.encode(claims, key, algorithm="ES256", headers={"kid": key_id, "typ": ""})

    def verify(self, token: str) -> Object:
        """The claims of a JWT that this key signed; `TokenError` otherwise. Times are not looked at."""
        import jwt

        key, key_id = self._load()
        checks = ("exp", "nbf", "iat", "aud", "iss", "sub", "jti")
        options: Any = {f"verify_{check}": False for check in checks}
        try:
            if jwt.get_unverified_header(token).get("kid", key_id) != key_id:
                raise TokenError("invalid signature, no keys found")
            claims: Object = jwt.decode(token, key.public_key(), algorithms=["ES256"], options=options)
        except jwt.PyJWTError as error:
            raise TokenError("go-jose/go-jose: error in cryptographic primitive") from error
        return claims

    def jwks(self) -> Object:
        """The public key as a JSON Web Key Set (`/openid/v1/jwks`)."""
        key, key_id = self._load()
        numbers = key.public_key().public_numbers()
        return {
            "keys": [
                {
                    "use": "sig",
                    "kty": "EC",
                    "kid": key_id,
                    "crv": "P-256",
                    "alg": "ES256",
                    "x": _base64url(numbers.x.to_bytes(32, "big")),
                    "y": _base64url(numbers.y.to_bytes(32, "big")),
                }
            ]
        }

    def _load(self) -> tuple[EllipticCurvePrivateKey, str]:
        if self._loaded is None:
            from cryptography.hazmat.primitives import serialization

            key: Any = serialization.load_pem_private_key(self._path.read_bytes(), password=None)
            der = key.public_key().public_bytes(
                serialization.Encoding.DER, serialization.PublicFormat.SubjectPublicKeyInfo
            )
            # The hash of the key, so that the key id tells nothing about the key.
            self._loaded = (key, _base64url(hashlib.sha256(der).digest()))
        return self._loaded


def discovery_document(jwks_uri: str, issuer: str = ISSUER) -> Object:
    """`/.well-known/openid-configuration`, for those who check our tokens elsewhere."""
    return {
        "issuer": issuer,
        "jwks_uri": jwks_uri,
        "response_types_supported": ["id_token"],
        "subject_types_supported": ["public"],
        "id_token_signing_alg_values_supported": ["ES256"],
    }


def _base64url(content: bytes) -> str:
    return base64.urlsafe_b64encode(content).rstrip(b"=").decode()
