"""The keys and certificates of one server, made on first start and re-used afterwards.

Each pair is one file, key and certificate together, so that a crash can never leave a key beside a foreign
certificate. The first line of the file says what was issued (names, expiry, issuer); a restart reads only
that line and so needs neither a certificate parser nor the `cryptography` import, which would cost a tenth
of the time that start-up may take. Keys are EC P-256: an RSA key takes thirty times as long to make.
"""

from __future__ import annotations

import base64
import hashlib
import ipaddress
import secrets
import ssl
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from podium.apiserver.access import durable
from podium.apiserver.access.identity import MASTERS

if TYPE_CHECKING:
    from cryptography import x509
    from cryptography.hazmat.primitives.asymmetric import ec

DEFAULT_NAMES = (
    "localhost",
    "kubernetes",
    "kubernetes.default",
    "kubernetes.default.svc",
    "kubernetes.default.svc.cluster.local",
    "127.0.0.1",
    "::1",
)
ADMIN_NAME = "kubernetes-admin"

_CA_LIFETIME = timedelta(days=3650)
_LEAF_LIFETIME = timedelta(days=365)
_RENEW_BEFORE = timedelta(days=60)
# A client whose clock is a little behind must not find the certificate "not yet valid".
_BACKDATED = timedelta(minutes=5)
_NOTE = b"# podium "


class Note(msgspec.Struct, frozen=True, omit_defaults=True):
    """What the first line of a key file says about the certificate in it."""

    subject: str
    expires: datetime
    names: tuple[str, ...] = ()
    organizations: tuple[str, ...] = ()
    issuer: str = ""  # SHA-256 of the issuing certificate


@dataclass(frozen=True, slots=True)
class KeyPair:
    """A private key and its certificate, both PEM."""

    key: bytes
    certificate: bytes


@dataclass(frozen=True, slots=True)
class Credentials:
    """Where the keys of one server are; every path exists."""

    ca: Path  # certificate and key of the authority
    ca_certificate: Path  # certificate only: what clients trust
    serving: Path
    admin: Path
    service_account_key: Path
    admin_token: str

    def issue_client_certificate(
        self, name: str, organizations: Sequence[str] = (), *, now: datetime | None = None
    ) -> KeyPair:
        """A client certificate for a user and its groups, signed by this server's authority."""
        note = Note(name, _now(now) + _LEAF_LIFETIME, organizations=tuple(organizations))
        return _split(_issue_leaf(self.ca.read_bytes(), note, server=False))

    def server_context(self) -> ssl.SSLContext:
        """TLS for the listener; a client certificate is welcome but not demanded."""
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.minimum_version = ssl.TLSVersion.TLSv1_2
        context.load_cert_chain(self.serving)
        context.load_verify_locations(self.ca_certificate)
        context.verify_mode = ssl.CERT_OPTIONAL
        return context

    def admin_kubeconfig(self, server: str, context: str = "podium") -> str:
        """A kubeconfig with everything embedded, for the member of system:masters."""
        pair = _split(self.admin.read_bytes())
        return kubeconfig(server, self.ca_certificate.read_bytes(), pair, user=ADMIN_NAME, context=context)


def ensure(directory: Path, extra_names: Iterable[str] = (), *, now: datetime | None = None) -> Credentials:
    """The credentials in a directory: what is missing, near its end or for other names is made anew."""
    moment = _now(now)
    durable.make_directory(directory)
    names = tuple(dict.fromkeys((*DEFAULT_NAMES, *extra_names)))
    found = Credentials(
        ca=directory / "ca.pem",
        ca_certificate=directory / "ca.crt",
        serving=directory / "serving.pem",
        admin=directory / "admin.pem",
        service_account_key=directory / "service-account.pem",
        admin_token=_ensure_token(directory / "admin.token"),
    )
    _ensure_pair(found.ca, Note("podium-ca", moment + _CA_LIFETIME), moment, _issue_ca)
    authority = found.ca.read_bytes()
    certificate = _split(authority).certificate
    if _read(found.ca_certificate) != certificate:
        durable.write(found.ca_certificate, certificate, durable.PUBLIC)

    issuer, expires = hashlib.sha256(certificate).hexdigest(), moment + _LEAF_LIFETIME
    serving = Note("kube-apiserver", expires, names=names, issuer=issuer)
    admin = Note(ADMIN_NAME, expires, organizations=(MASTERS,), issuer=issuer)
    _ensure_pair(found.serving, serving, moment, lambda note: _issue_leaf(authority, note, server=True))
    _ensure_pair(found.admin, admin, moment, lambda note: _issue_leaf(authority, note, server=False))
    if _read(found.service_account_key) is None:
        durable.write(found.service_account_key, _private_pem(_new_key()))
    return found


def kubeconfig(server: str, ca: bytes, pair: KeyPair, *, user: str, context: str) -> str:
    """A kubeconfig with one cluster, one user and one context, certificates embedded."""

    def embedded(content: bytes) -> str:
        return base64.b64encode(content).decode()

    def text(value: str) -> str:  # JSON strings are YAML strings
        return msgspec.json.encode(value).decode()

    return f"""\
apiVersion: v1
kind: Config
clusters:
- name: {text(context)}
  cluster:
    certificate-authority-data: {embedded(ca)}
    server: {text(server)}
users:
- name: {text(user)}
  user:
    client-certificate-data: {embedded(pair.certificate)}
    client-key-data: {embedded(pair.key)}
contexts:
- name: {text(context)}
  context:
    cluster: {text(context)}
    user: {text(user)}
current-context: {text(context)}
preferences: {{}}
"""


def _ensure_pair(path: Path, wanted: Note, now: datetime, issue: Any) -> None:
    have = _note(_read(path) or b"")
    same = have is not None and msgspec.structs.replace(have, expires=wanted.expires) == wanted
    if have is None or not same or have.expires - now < _RENEW_BEFORE:
        durable.write(path, issue(wanted))


def _ensure_token(path: Path) -> str:
    content = _read(path)
    if not content:
        content = secrets.token_hex(32).encode()
        durable.write(path, content)
    return content.decode().strip()


def _read(path: Path) -> bytes | None:
    try:
        return path.read_bytes()
    except FileNotFoundError:
        return None


def _note(content: bytes) -> Note | None:
    """What the first line says; None for a file that is not ours or was cut short."""
    line, _, rest = content.partition(b"\n")
    if not line.startswith(_NOTE) or not rest.endswith(b"-----END PRIVATE KEY-----\n"):
        return None
    try:
        return msgspec.json.decode(line.removeprefix(_NOTE), type=Note)
    except msgspec.DecodeError:
        return None


def _split(content: bytes) -> KeyPair:
    certificate, marker, key = content.partition(b"-----BEGIN PRIVATE KEY-----")
    return KeyPair(key=marker + key, certificate=certificate[certificate.index(b"-----BEGIN") :])


def _now(given: datetime | None) -> datetime:
    return given if given is not None else datetime.now(UTC)


def _issue_ca(note: Note) -> bytes:
    from cryptography import x509

    key = _new_key()
    name = _subject(note)
    certificate = (
        _builder(note, key, issuer=name)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .add_extension(_key_usage(signs_certificates=True), critical=True)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
    )
    return _pem(note, key, certificate, key)


def _issue_leaf(authority: bytes, note: Note, *, server: bool) -> bytes:
    from cryptography import x509
    from cryptography.hazmat.primitives import serialization
    from cryptography.x509.oid import ExtendedKeyUsageOID

    pair = _split(authority)
    issuer = x509.load_pem_x509_certificate(pair.certificate)
    issuer_key: Any = serialization.load_pem_private_key(pair.key, password=None)
    key = _new_key()
    usage = ExtendedKeyUsageOID.SERVER_AUTH if server else ExtendedKeyUsageOID.CLIENT_AUTH
    builder = (
        _builder(note, key, issuer=issuer.subject)
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(_key_usage(signs_certificates=False), critical=True)
        .add_extension(x509.ExtendedKeyUsage([usage]), critical=False)
        .add_extension(
            x509.AuthorityKeyIdentifier.from_issuer_public_key(issuer_key.public_key()), critical=False
        )
    )
    if note.names:
        names = [_general_name(name) for name in note.names]
        builder = builder.add_extension(x509.SubjectAlternativeName(names), critical=False)
    return _pem(note, key, builder, issuer_key)


def _builder(note: Note, key: ec.EllipticCurvePrivateKey, *, issuer: x509.Name) -> x509.CertificateBuilder:
    from cryptography import x509

    issued = datetime.now(UTC)
    # An injected clock may lie in the past or the future; the lifetime must still be a span.
    starts = min(issued, note.expires - _LEAF_LIFETIME) - _BACKDATED
    return (
        x509.CertificateBuilder()
        .subject_name(_subject(note))
        .issuer_name(issuer)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(starts)
        .not_valid_after(note.expires)
    )


def _subject(note: Note) -> x509.Name:
    from cryptography import x509
    from cryptography.x509.oid import NameOID

    parts = [x509.NameAttribute(NameOID.ORGANIZATION_NAME, group) for group in note.organizations]
    return x509.Name([*parts, x509.NameAttribute(NameOID.COMMON_NAME, note.subject)])


def _general_name(name: str) -> x509.GeneralName:
    from cryptography import x509

    try:
        return x509.IPAddress(ipaddress.ip_address(name))
    except ValueError:
        return x509.DNSName(name)


def _key_usage(*, signs_certificates: bool) -> x509.KeyUsage:
    from cryptography import x509

    return x509.KeyUsage(
        digital_signature=True,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        key_cert_sign=signs_certificates,
        crl_sign=signs_certificates,
        encipher_only=False,
        decipher_only=False,
    )


def _new_key() -> ec.EllipticCurvePrivateKey:
    from cryptography.hazmat.primitives.asymmetric import ec

    return ec.generate_private_key(ec.SECP256R1())


def _private_pem(key: ec.EllipticCurvePrivateKey) -> bytes:
    from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

    return key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())


def _pem(
    note: Note,
    key: ec.EllipticCurvePrivateKey,
    builder: x509.CertificateBuilder,
    signer: ec.EllipticCurvePrivateKey,
) -> bytes:
    from cryptography.hazmat.primitives import hashes
    from cryptography.hazmat.primitives.serialization import Encoding

    certificate = builder.sign(signer, hashes.SHA256())
    line = _NOTE + msgspec.json.encode(note) + b"\n"
    return line + certificate.public_bytes(Encoding.PEM) + _private_pem(key)
