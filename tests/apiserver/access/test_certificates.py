from __future__ import annotations

import socket
import ssl
import stat
import subprocess
import sys
import threading
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
import yaml
from cryptography import x509

from podium.apiserver.access import certificates
from podium.apiserver.access.authentication import from_certificate
from podium.apiserver.access.certificates import Credentials

NOW = datetime.now(UTC)


def contents(directory: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in directory.iterdir()}


def certificate(path: Path) -> x509.Certificate:
    return x509.load_pem_x509_certificate(path.read_bytes())


def names(path: Path) -> set[str]:
    found = certificate(path).extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    return {str(name.value) for name in found}


def handshake(
    server: ssl.SSLContext, client: ssl.SSLContext, server_name: str
) -> tuple[Mapping[str, object] | None, bytes | None]:
    """What the server learns about the client of one TLS connection."""
    ours, theirs = socket.socketpair()
    found: list[tuple[Mapping[str, object] | None, bytes | None]] = []

    def serve() -> None:
        with server.wrap_socket(ours, server_side=True) as connection:
            found.append((connection.getpeercert(), connection.getpeercert(binary_form=True)))
            connection.recv(1)

    thread = threading.Thread(target=serve)
    thread.start()
    with client.wrap_socket(theirs, server_hostname=server_name) as connection:
        connection.send(b"x")
    thread.join()
    return found[0]


@pytest.fixture
def credentials(tmp_path: Path) -> Credentials:
    return certificates.ensure(tmp_path / "pki")


def client_context(credentials: Credentials) -> ssl.SSLContext:
    return ssl.create_default_context(cafile=str(credentials.ca_certificate))


def test_the_first_start_makes_files_that_only_their_owner_can_read(credentials: Credentials) -> None:
    directory = credentials.ca.parent
    modes = {path.name: stat.S_IMODE(path.stat().st_mode) for path in directory.iterdir()}
    assert modes.pop("ca.crt") == 0o644
    assert modes == dict.fromkeys(
        ("ca.pem", "serving.pem", "admin.pem", "service-account.pem", "admin.token"), 0o600
    )
    assert stat.S_IMODE(directory.stat().st_mode) == 0o700


@pytest.mark.parametrize("name", ["localhost", "127.0.0.1", "::1", "kubernetes.default.svc"])
def test_clients_that_trust_the_authority_trust_the_server(credentials: Credentials, name: str) -> None:
    peer, _ = handshake(credentials.server_context(), client_context(credentials), name)
    assert not peer


def test_a_client_certificate_tells_user_and_groups(credentials: Credentials, tmp_path: Path) -> None:
    pair = credentials.issue_client_certificate("alice", ["devs", "ops"])
    (tmp_path / "alice.pem").write_bytes(pair.certificate + pair.key)
    client = client_context(credentials)
    client.load_cert_chain(tmp_path / "alice.pem")
    peer, der = handshake(credentials.server_context(), client, "localhost")
    assert peer is not None
    assert der is not None
    identity = from_certificate(peer, der)
    assert identity is not None
    assert identity.username == "alice"
    assert identity.groups == ("devs", "ops", "system:authenticated")
    assert identity.extra["authentication.kubernetes.io/credential-id"][0].startswith("X509SHA256=")


def test_a_restart_uses_the_same_files_and_does_not_import_cryptography(credentials: Credentials) -> None:
    directory = credentials.ca.parent
    before = contents(directory)
    script = (
        "import sys, pathlib\n"
        "from podium.apiserver.access import certificates\n"
        f"certificates.ensure(pathlib.Path({str(directory)!r})).server_context()\n"
        "assert 'cryptography' not in sys.modules, 'imported'\n"
    )
    subprocess.run([sys.executable, "-c", script], check=True)
    assert contents(directory) == before


def test_new_names_renew_the_serving_certificate_only(credentials: Credentials) -> None:
    directory = credentials.ca.parent
    before = contents(directory)
    certificates.ensure(directory, ["podium.example", "10.0.0.7"])
    after = contents(directory)
    assert {name for name in after if after[name] != before[name]} == {"serving.pem"}
    assert {"podium.example", "10.0.0.7", "localhost"} <= names(credentials.serving)


def test_certificates_are_renewed_before_they_expire_and_the_authority_is_kept(
    credentials: Credentials,
) -> None:
    directory = credentials.ca.parent
    before = contents(directory)
    later = NOW + timedelta(days=330)
    certificates.ensure(directory, now=later)
    after = contents(directory)
    assert {name for name in after if after[name] != before[name]} == {"serving.pem", "admin.pem"}
    assert certificate(credentials.serving).not_valid_after_utc > later + timedelta(days=300)


def test_an_authority_near_its_end_is_replaced_with_all_it_issued(credentials: Credentials) -> None:
    directory = credentials.ca.parent
    certificates.ensure(directory, now=NOW + timedelta(days=3649))
    issuer = certificate(credentials.ca_certificate)
    for leaf in (credentials.serving, credentials.admin):
        certificate(leaf).verify_directly_issued_by(issuer)


def test_a_lost_or_damaged_file_is_made_again(credentials: Credentials) -> None:
    directory = credentials.ca.parent
    authority = credentials.ca.read_bytes()
    credentials.ca_certificate.unlink()
    credentials.serving.write_bytes(credentials.serving.read_bytes()[:-100])
    credentials.admin.write_bytes(b"# podium {}\n")
    certificates.ensure(directory)
    assert credentials.ca.read_bytes() == authority
    for leaf in (credentials.serving, credentials.admin):
        certificate(leaf).verify_directly_issued_by(certificate(credentials.ca_certificate))


def test_the_admin_kubeconfig_has_everything_embedded(credentials: Credentials) -> None:
    config = yaml.safe_load(credentials.admin_kubeconfig("https://127.0.0.1:6443"))
    assert config["clusters"][0]["cluster"]["server"] == "https://127.0.0.1:6443"
    assert set(config["users"][0]["user"]) == {"client-certificate-data", "client-key-data"}
    assert config["current-context"] == config["contexts"][0]["name"] == "podium"
    subject = certificate(credentials.admin).subject.rfc4514_string()
    assert subject == "CN=kubernetes-admin,O=system:masters"


def test_every_server_has_an_admin_token_of_its_own(tmp_path: Path) -> None:
    one, two = (certificates.ensure(tmp_path / name).admin_token for name in ("one", "two"))
    assert one != two
    assert len(one) == 64
    assert certificates.ensure(tmp_path / "one").admin_token == one
