"""PEM keys and certificates are accepted from files and in place, and a handshake proves it."""

import shutil
import socket
import ssl
import subprocess
import threading
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from rackspan.client.config.tls import TlsLimits, is_plain, openssl_cipher, pem_lines, tls_context, tls_limits
from rackspan.errors import UsageError
from tests.certificates import authority, openssl
from tests.waiting import WITHIN_SECONDS

OPENSSL = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=localhost"]


@pytest.fixture(scope="module")
def identity(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with key.pem, cert.pem and both.pem of one self-signed identity for 127.0.0.1."""
    folder = tmp_path_factory.mktemp("tls")
    if shutil.which("openssl") is None:
        pytest.skip("NOT TESTED: TLS identities, for lack of the openssl command")
    files = ["-keyout", f"{folder}/key.pem", "-out", f"{folder}/cert.pem", "-addext", "subjectAltName=IP:127.0.0.1"]
    subprocess.run([*OPENSSL, *files], check=True, capture_output=True)
    (folder / "both.pem").write_text((folder / "key.pem").read_text() + (folder / "cert.pem").read_text())
    return folder


def shaken_hands(client: ssl.SSLContext, identity: Path, server_name: str = "127.0.0.1") -> str:
    """What happens when `client` greets a server of this identity that wants to know the client: "ok" or the error."""
    server = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    server.load_cert_chain(identity / "both.pem")
    server.load_verify_locations(identity / "cert.pem")
    server.verify_mode = ssl.CERT_REQUIRED
    ours, theirs = socket.socketpair()
    thread = threading.Thread(target=_serve, args=(server, theirs))
    thread.start()
    try:
        with client.wrap_socket(ours, server_hostname=server_name) as connection:
            return connection.recv(2).decode()
    except (ssl.SSLError, ConnectionError) as error:
        return type(error).__name__
    finally:
        ours.close()
        thread.join(WITHIN_SECONDS)


def _serve(server: ssl.SSLContext, connection: socket.socket) -> None:
    try:
        with server.wrap_socket(connection, server_side=True) as accepted:
            accepted.sendall(b"ok")
    except (ssl.SSLError, ConnectionError):
        connection.close()


@pytest.mark.slow
def test_an_identity_in_files_is_known_to_the_server(identity: Path) -> None:
    context = tls_context(ca_file=str(identity / "cert.pem"), key_file=str(identity / "both.pem"))
    assert shaken_hands(context, identity) == "ok"


def test_an_identity_in_place_is_known_to_the_server(identity: Path) -> None:
    certificate, key = (identity / "cert.pem").read_text(), (identity / "key.pem").read_text()
    context = tls_context(ca_pem=certificate, key_pem=key, chain_pem=certificate)
    assert shaken_hands(context, identity) == "ok"


def test_a_server_nobody_vouches_for_is_not_spoken_to(identity: Path) -> None:
    context = tls_context(key_file=str(identity / "both.pem"))
    assert shaken_hands(context, identity) == "SSLCertVerificationError"


def test_a_server_of_another_name_is_spoken_to_only_unchecked(identity: Path) -> None:
    def context(*, check_hostname: bool) -> ssl.SSLContext:
        certificate, both = str(identity / "cert.pem"), str(identity / "both.pem")
        return tls_context(ca_file=certificate, key_file=both, check_hostname=check_hostname)

    assert shaken_hands(context(check_hostname=True), identity, "kafka.example") == "SSLCertVerificationError"
    assert shaken_hands(context(check_hostname=False), identity, "kafka.example") == "ok"


@pytest.mark.parametrize("check_hostname", [True, False])
def test_certificates_are_checked_whether_names_are_or_not(identity: Path, check_hostname: bool) -> None:
    certificate, both = str(identity / "cert.pem"), str(identity / "both.pem")
    for ca_file in (certificate, None):
        context = tls_context(ca_file=ca_file, key_file=both, check_hostname=check_hostname)
        assert (context.protocol, context.verify_mode, context.check_hostname) == (
            ssl.PROTOCOL_TLS_CLIENT,
            ssl.CERT_REQUIRED,
            check_hostname,
        )
        assert context.minimum_version >= ssl.TLSVersion.TLSv1_2
    assert shaken_hands(context, identity) == "SSLCertVerificationError"


def test_a_key_file_without_a_key_is_named(identity: Path) -> None:
    with pytest.raises(
        UsageError, match=r"ssl\.keystore in --command-config: .*cert\.pem cannot be used: it holds no PEM private key"
    ):
        tls_context(key_file=str(identity / "cert.pem"))


def test_a_file_that_is_not_there_is_named() -> None:
    with pytest.raises(
        UsageError, match=r"ssl\.truststore in --command-config: /absent\.pem cannot be used: No such file"
    ):
        tls_context(ca_file="/absent.pem")


def locked(identity: Path) -> str:
    """The private key under a password, in place."""
    command = ["openssl", "pkcs8", "-topk8", "-in", f"{identity}/key.pem", "-passout", "pass:secret"]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def test_a_key_under_a_password_is_read_with_it_alone(identity: Path) -> None:
    certificate, key = (identity / "cert.pem").read_text(), locked(identity)
    context = tls_context(ca_pem=certificate, key_pem=key, chain_pem=certificate, key_password="secret")  # noqa: S106
    assert shaken_hands(context, identity) == "ok"
    in_place = r"ssl\.keystore in --command-config: the PEM given in place cannot be used: "
    with pytest.raises(UsageError, match=f"{in_place}the private key is encrypted, and ssl.key.password is missing"):
        tls_context(key_pem=key, chain_pem=certificate)
    with pytest.raises(UsageError, match=f"{in_place}it holds no PEM private key and its certificate, or ssl.key.pass"):
        tls_context(key_pem=key, chain_pem=certificate, key_password="wrong")  # noqa: S106


@pytest.mark.slow
def test_a_key_of_another_certificate_is_named(identity: Path, tmp_path: Path) -> None:
    files = ["-keyout", f"{tmp_path}/other.pem", "-out", f"{tmp_path}/unused.pem"]
    subprocess.run([*OPENSSL, *files], check=True, capture_output=True)
    both = tmp_path / "both.pem"
    both.write_text((tmp_path / "other.pem").read_text() + (identity / "cert.pem").read_text())
    with pytest.raises(UsageError, match=r"both\.pem cannot be used: its private key does not belong to its first"):
        tls_context(key_file=str(both))


def test_a_key_in_place_is_left_in_no_file(identity: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    certificate, key = (identity / "cert.pem").read_text(), (identity / "key.pem").read_text()
    tls_context(key_pem=key, chain_pem=certificate)
    with pytest.raises(UsageError):
        tls_context(key_pem="none", chain_pem=certificate)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("joined", [" ", "", "\n  "])
def test_white_space_in_pem_has_no_meaning_in_place_and_in_a_file(identity: Path, tmp_path: Path, joined: str) -> None:
    def rewritten(name: str) -> str:
        *lines, end = (identity / name).read_text().splitlines()
        return f"before {lines[0]} {joined.join(lines[1:])}{joined}{end} after"

    certificate, key = rewritten("cert.pem"), rewritten("key.pem")
    context = tls_context(ca_pem=certificate, key_pem=key, chain_pem=certificate)
    assert shaken_hands(context, identity) == "ok"
    ca_file, key_file = tmp_path / "ca.pem", tmp_path / "both.pem"
    ca_file.write_text(certificate)
    key_file.write_text(f"{key}\n{certificate}")
    assert shaken_hands(tls_context(ca_file=str(ca_file), key_file=str(key_file)), identity) == "ok"
    assert not is_plain(str(ca_file))


def test_pem_in_lines_stays_as_it_is(identity: Path) -> None:
    both = (identity / "both.pem").read_text()
    assert pem_lines(both) == both.strip()
    assert pem_lines("no PEM") == "no PEM"
    old = "-----BEGIN RSA PRIVATE KEY-----\nProc-Type: 4,ENCRYPTED\n\nAAAA\n-----END RSA PRIVATE KEY-----"
    assert pem_lines(old) == old
    assert is_plain(str(identity / "both.pem"))
    assert is_plain("/absent.pem")


@pytest.mark.slow
def test_a_certificate_that_is_not_self_signed_is_trusted_in_a_truststore(tmp_path: Path) -> None:
    root = authority(tmp_path, "root")
    server = root.identity("server")
    (tmp_path / "both.pem").write_text(server.store.read_text())
    (tmp_path / "cert.pem").write_text(root.certificate.read_text())
    context = tls_context(ca_file=str(server.certificate), key_file=str(server.store))
    assert shaken_hands(context, tmp_path) == "ok"


NEWEST = ["TLS_AES_256_GCM_SHA384", "TLS_CHACHA20_POLY1305_SHA256", "TLS_AES_128_GCM_SHA256"]
OLDER = "TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256"


@pytest.mark.parametrize(
    ("given", "limits"),
    [
        ({}, TlsLimits()),
        ({"protocol": "TLSv1.2"}, TlsLimits(("TLSv1.2",))),
        ({"enabled_protocols": ["TLSv1.3", "TLSv1.1"]}, TlsLimits(("TLSv1.3",))),
        ({"cipher_suites": [OLDER]}, TlsLimits(("TLSv1.2",), ("ECDHE-RSA-AES128-GCM-SHA256",))),
        ({"cipher_suites": NEWEST}, TlsLimits(("TLSv1.3",))),
        ({"cipher_suites": [*NEWEST, OLDER]}, TlsLimits(ciphers=("ECDHE-RSA-AES128-GCM-SHA256",))),
        ({"cipher_suites": [*NEWEST, OLDER], "enabled_protocols": ["TLSv1.3"]}, TlsLimits(("TLSv1.3",))),
    ],
)
def test_settings_of_java_limit_versions_and_suites_together(given: dict[str, Any], limits: TlsLimits) -> None:
    assert tls_limits(**given) == limits


@pytest.mark.parametrize(
    "given",
    [
        {"protocol": "TLSv1.2", "enabled_protocols": ["TLSv1.3"]},
        {"cipher_suites": [OLDER], "enabled_protocols": ["TLSv1.3"]},
        {"cipher_suites": NEWEST[:2]},
    ],
)
def test_limits_that_leave_nothing_or_a_part_of_the_newest_suites_are_refused(given: dict[str, Any]) -> None:
    with pytest.raises(UsageError, match=r"(leave no version of TLS to use|with all of its suites or not at all)"):
        tls_limits(**given)


def test_a_context_has_the_limits_that_it_is_given() -> None:
    context = tls_context(limits=TlsLimits(("TLSv1.2",), ("ECDHE-RSA-AES128-GCM-SHA256",)))
    assert (context.minimum_version, context.maximum_version) == (ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_2)
    older = [cipher["name"] for cipher in context.get_ciphers() if cipher["protocol"] != "TLSv1.3"]
    assert older == ["ECDHE-RSA-AES128-GCM-SHA256"]


def test_cipher_suites_are_named_as_openssl_names_them() -> None:
    lines = openssl("ciphers", "-stdname", "ALL").splitlines()
    # Lines such as: TLS_RSA_WITH_AES_128_GCM_SHA256 - AES128-GCM-SHA256 TLSv1.2 …
    standard = {line.split()[2]: line.split()[0] for line in lines}
    accepted = {}
    for name, expected in standard.items():
        with suppress(UsageError):
            accepted[openssl_cipher(expected)] = name
    assert len(accepted) >= 20
    assert all(ours == name for ours, name in accepted.items())
