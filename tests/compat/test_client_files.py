"""Client files read by Kafka's own classes and by rackspan: they lead to the same logins, certificates, TLS and addresses."""

import hashlib
import json
import os
import ssl
import subprocess
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import pytest
from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient

from rackspan.client.brokers import addresses
from rackspan.client.config.keys import verdict_on
from rackspan.client.config.translation import kafka_python_settings, librdkafka_settings, read_properties
from rackspan.errors import RackspanError, UsageError
from rackspan.java import find_java
from rackspan.kafka_process import DEFAULT_VERSION, KafkaVersion, resolve_jars
from tests.certificates import KEY_PASSWORD, authority, openssl
from tests.compat.client_files import DIFFERENCES, FILES

pytestmark = pytest.mark.java

_SOURCE: Final = Path(__file__).parent / "java" / "KafkaClientFiles.java"
_HOSTS: Final = ("broker.example", "other.example")
_VERSIONS: Final = {"TLSv1.2": ssl.TLSVersion.TLSv1_2, "TLSv1.3": ssl.TLSVersion.TLSv1_3}
_PASSWORD: Final = "from-the-environment"  # noqa: S105 - of files that live as long as the test


@dataclass(frozen=True, slots=True)
class Read:
    """The files in a folder, what Kafka's classes make of them, and the servers to connect to."""

    folder: Path
    by_kafka: Mapping[str, Any]
    server: Path
    ca: Path


@pytest.fixture(scope="module")
def read(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Read]:
    folder = tmp_path_factory.mktemp("client-files")
    replacements, server, ca = _pem(folder)
    for file in FILES:
        text = file.text
        for name, value in replacements.items():
            text = text.replace(f"{{{name}}}", value)
        (folder / f"{file.name}.properties").write_text(text, encoding="latin-1")
    java, jars = find_java(), resolve_jars(KafkaVersion.parse(DEFAULT_VERSION))
    options = (
        "-Xmx256m",
        "-XX:+UseSerialGC",
        "-XX:TieredStopAtLevel=1",
        "-Dorg.slf4j.simpleLogger.defaultLogLevel=off",
    )
    command = [*map(str, (java.executable, *options, "-cp", f"{jars}/*", _SOURCE, folder, server, ca))]
    environment = {**os.environ, "CLIENT_FILES_PASSWORD": _PASSWORD}
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, timeout=300, check=True, env=environment)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("CLIENT_FILES_PASSWORD", _PASSWORD)
        # A login at a Kerberos server is not tried.
        patch.setattr("rackspan.client.config.translation.find_spec", lambda _: object())
        yield Read(folder, json.loads(done.stdout), server, ca)


def _pem(folder: Path) -> tuple[dict[str, str], Path, Path]:
    """The texts that the files name in braces, the identity of the servers, and the authority that they trust."""
    root = authority(folder / "pem", "root")
    server = root.identity("server", alternative="DNS:broker.example")
    client = root.identity("client", alternative="DNS:client.example")
    between, key, issued = (folder / "pem" / name for name in ("between.pem", "issued.key", "issued.pem"))
    request = folder / "pem" / "request"
    openssl("req", "-new", "-newkey", "rsa:2048", "-nodes", "-subj", "/CN=between", "-addext", "basicConstraints=CA:true",
            "-keyout", between.with_suffix(".key"), "-out", request)  # fmt: skip
    openssl(
        "x509",
        "-req",
        "-in",
        request,
        "-CA",
        root.certificate,
        "-CAkey",
        root.key,
        "-days",
        2,
        "-copy_extensions",
        "copy",
        "-out",
        between,
    )
    openssl("req", "-new", "-newkey", "rsa:2048", "-nodes", "-subj", "/CN=issued", "-keyout", key, "-out", request)
    openssl(
        "x509",
        "-req",
        "-in",
        request,
        "-CA",
        between,
        "-CAkey",
        between.with_suffix(".key"),
        "-days",
        2,
        "-out",
        issued,
    )
    pkcs1 = folder / "pem" / "pkcs1.pem"
    pkcs1.write_text(openssl("rsa", "-in", client.key, "-traditional") + client.certificate.read_text())
    locked = folder / "pem" / "locked.pem"
    # The only encryption of a key that Java 17 and OpenSSL 3 both read.
    locked.write_text(openssl("pkcs8", "-topk8", "-v1", "PBE-SHA1-3DES", "-in", client.key, "-passout", f"pass:{KEY_PASSWORD}")
                      + client.certificate.read_text())  # fmt: skip
    secrets = folder / "secrets"
    (secrets / "sub").mkdir(parents=True)
    (secrets / "login.properties").write_text("user=al\\u00efce\npassword=from a file\n")
    (secrets / "user").write_text("bob")
    (folder / "pem" / "empty.pem").write_text("")
    ca, chain = root.certificate.read_text(), issued.read_text() + between.read_text()
    files = {"ca_one_line": " ".join(ca.split()), "store_one_line": " ".join(client.store.read_text().split()),
             "ca_indented": "".join(f"  {line}\n" for line in ca.splitlines())}  # fmt: skip
    for name, text in files.items():
        (folder / "pem" / f"{name}.pem").write_text(text)
    p12, jks = folder / "pem" / "trust.p12", folder / "pem" / "trust.jks"
    for store, kind in ((p12, "PKCS12"), (jks, "JKS")):
        tool = find_java().executable.with_name("keytool")
        subprocess.run([tool, "-importcert", "-noprompt", "-alias", "root", "-file", root.certificate, "-keystore", store,
                        "-storetype", kind, "-storepass", "changeit"], check=True, capture_output=True)  # fmt: skip
    replaced = {
        "ca": root.certificate, "store": client.store, "locked": locked, "locked_pbes2": client.locked_store, "pkcs1": pkcs1, "p12": p12, "jks": jks,
        "server": server.certificate, "secrets": secrets, "empty": folder / "pem" / "empty.pem",
        **{f"{name}_file": folder / "pem" / f"{name}.pem" for name in files},
        **_in_place("ca", ca), **_in_place("key", client.key.read_text()), **_in_place("chain", client.certificate.read_text()),
        **_in_place("issued", key.read_text()), **_in_place("between", chain),
    }  # fmt: skip
    return {name: str(value) for name, value in replaced.items()}, server.store, root.certificate


def _in_place(name: str, pem: str) -> dict[str, str]:
    """PEM on one line, continued over lines, and with its line breaks escaped."""
    lines = pem.splitlines()
    return {
        f"{name}_line": " ".join(lines),
        f"{name}_continued": " \\\n".join(lines),
        f"{name}_escaped": "\\n".join(lines),
    }


@dataclass(frozen=True, slots=True)
class Meaning:
    """What a client of a file does."""

    protocol: str
    mechanism: str | None
    login: Mapping[str, str]
    client_id: str | None
    times: tuple[int | None, ...]
    addresses: list[tuple[str, int]]
    tls: Mapping[tuple[str, str], object] | None
    ignored: frozenset[str]


def _of_kafka(found: Mapping[str, Any]) -> Meaning:
    values, options = found["values"], found.get("options", {})
    protocol = values.get("security.protocol", "PLAINTEXT").upper()
    own = "sasl.oauthbearer.client.credentials.client."
    by_module = {
        "PlainLoginModule": {"user": options.get("username"), "password": options.get("password")},
        "ScramLoginModule": {"user": options.get("username"), "password": options.get("password")},
        "OAuthBearerLoginModule": {
            "id": values.get(f"{own}id", options.get("clientId")),
            "secret": values.get(f"{own}secret", options.get("clientSecret")),
            "scope": values.get("sasl.oauthbearer.scope", options.get("scope")),
            "url": values.get("sasl.oauthbearer.token.endpoint.url"),
            "extensions": {name[10:]: value for name, value in options.items() if name.startswith("extension_")},
            "urlencode": values.get("sasl.oauthbearer.header.urlencode", False),
        },
        "Krb5LoginModule": {"service": values.get("sasl.kerberos.service.name", options.get("serviceName"))},
    }
    tls = found.get("tls")
    idle = values.get("connections.max.idle.ms")
    return Meaning(
        protocol,
        values.get("sasl.mechanism") if "SASL" in protocol else None,
        by_module[found["module"].rpartition(".")[2]] if "SASL" in protocol else {},
        values.get("client.id"),
        (values.get("request.timeout.ms"), values.get("socket.connection.setup.timeout.ms"), None if idle == -1 else idle),
        [(host, port) for host, port in found["addresses"]],
        None if tls is None else {(host, version): tls[host][version] and tls[host][version][1:2] for host in _HOSTS for version in _VERSIONS},
        frozenset(found["unknown"]),
    )  # fmt: skip


def _of_rackspan(read: Read, name: str) -> Meaning:
    """Errors: RackspanError."""
    properties = read_properties(read.folder / f"{name}.properties")
    settings = kafka_python_settings(properties)
    protocol = settings.get("security_protocol", "PLAINTEXT")
    mechanism = settings.get("sasl_mechanism") if "SASL" in protocol else None
    login: dict[str, Any] = {}
    if mechanism == "OAUTHBEARER":
        tokens = settings["sasl_oauth_token_provider"]
        login = {"id": tokens._client_id, "secret": tokens._client_secret, "scope": tokens._scope, "url": tokens._url,
                 "extensions": tokens.extensions(), "urlencode": tokens._urlencode}  # fmt: skip
    elif mechanism == "GSSAPI":
        login = {"service": settings.get("sasl_kerberos_service_name")}
    elif mechanism:
        login = {"user": settings["sasl_plain_username"], "password": settings["sasl_plain_password"]}
    context = settings.get("ssl_context")
    times = ("request_timeout_ms", "socket_connection_setup_timeout_ms", "connections_max_idle_ms")
    return Meaning(
        protocol,
        mechanism,
        login,
        settings.get("client_id"),
        tuple(settings.get(name) for name in times),
        list(addresses("bootstrap.servers", properties.get("bootstrap.servers", "localhost:9092"))),
        None if context is None else {(host, version): _shaken(context, host, version, read) for host in _HOSTS for version in _VERSIONS},
        frozenset(name for name in properties if verdict_on(name).is_foreign),
    )  # fmt: skip


def _shaken(client: ssl.SSLContext, host: str, version: str, read: Read) -> list[str] | None:
    """The digest of the client's certificate, if it shows one, after a handshake in memory; None where there is no connection."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = context.maximum_version = _VERSIONS[version]
    context.load_cert_chain(read.server)
    context.load_verify_locations(read.ca)
    context.verify_mode = ssl.CERT_OPTIONAL
    to_server, to_client = ssl.MemoryBIO(), ssl.MemoryBIO()
    ends = [
        client.wrap_bio(to_client, to_server, server_hostname=host),
        context.wrap_bio(to_server, to_client, server_side=True),
    ]
    shaking = list(ends)
    for _ in range(20):
        for end in list(shaking):
            try:
                end.do_handshake()
                shaking.remove(end)
            except ssl.SSLWantReadError:
                continue
            except ssl.SSLError:
                return None
    shown = ends[1].getpeercert(binary_form=True)
    return None if shaking else [hashlib.sha256(shown).hexdigest()] if shown else []


def test_kafka_and_rackspan_read_the_same_in_every_file_but_where_a_difference_is_named(read: Read) -> None:
    found = {}
    for file in FILES:
        by_kafka = read.by_kafka[f"{file.name}.properties"]
        kafka: object = "refused" if "error" in by_kafka else _connecting(_of_kafka(by_kafka))
        try:
            ours: object = _connecting(_of_rackspan(read, file.name))
        except RackspanError as error:
            ours = "refused" if "\n" not in str(error) else str(error)
        if (kafka != ours) is (file.difference is None):
            found[file.name] = (file.difference, kafka, ours, by_kafka.get("error"))
    assert "\n\n".join(f"{name}: {difference}" for name, difference in found.items()) == ""
    assert len(FILES) >= 80
    assert {file.difference for file in FILES} - {None} == DIFFERENCES.keys()


def _connecting(meaning: Meaning) -> object:
    """Refused, if no server can be reached with it: Kafka finds that out when it connects, and rackspan may say so at once."""
    if meaning.tls is not None and all(shaken is None for shaken in meaning.tls.values()):
        return "refused"
    return meaning


def test_librdkafka_takes_the_same_login_and_certificates_or_is_refused_by_name(read: Read) -> None:
    accepted, refused = [], {}
    for file in FILES:
        by_kafka = read.by_kafka[f"{file.name}.properties"]
        if file.difference is not None or "error" in by_kafka or _connecting(_of_kafka(by_kafka)) == "refused":
            continue
        kafka = _of_kafka(by_kafka)
        try:
            settings = librdkafka_settings(read_properties(read.folder / f"{file.name}.properties"))
        except UsageError as error:
            refused[file.name] = str(error)
            continue
        assert (settings.get("security.protocol", "PLAINTEXT"), settings.get("client.id")) == (
            kafka.protocol,
            kafka.client_id,
        )
        if kafka.mechanism:
            assert settings["sasl.mechanism"] == kafka.mechanism, file.name
            assert [settings.get(name) for name in _LOGIN[kafka.mechanism]] == [
                *(value for name, value in kafka.login.items() if name not in {"extensions", "urlencode"})
            ], file.name
        if kafka.tls is not None:
            assert _digests(settings, "ssl.ca") == by_kafka["tls"].get("trusted", []), file.name
            shown: Any = next(shaken for shaken in kafka.tls.values() if shaken is not None)
            assert _digests(settings, "ssl.certificate")[: len(shown)] == shown or file.name == "tls-chain-escaped"
        if kafka.mechanism in {"GSSAPI", "OAUTHBEARER"}:
            # The library as Python packages it has no Kerberos, and would request a token.
            continue
        try:
            AdminClient({"bootstrap.servers": "127.0.0.1:1", "log_level": 0, **settings})
        except KafkaException:
            refused[file.name] = "librdkafka itself"
            continue
        accepted.append(file.name)
    assert len(accepted) > 50
    assert {name: line for name, line in refused.items() if "librdkafka" not in line} == {}
    assert refused.keys() == _NOT_OF_LIBRDKAFKA


_NOT_OF_LIBRDKAFKA: Final = {
    *("tls-1.2-protocol", "tls-1.2-enabled", "tls-1.3-enabled", "tls-ciphers-of-1.3"),
    "instaclustr",
    *("tls-cipher-of-1.2", "tls-cipher-cbc", "tls-cipher-chacha", "bearer-keys-of-4.1", "jaas-empty-password"),
}
"""One version of TLS, encoded client ids and empty passwords, for which librdkafka has no settings (docs/security.md)."""

_LOGIN: Final = {
    **dict.fromkeys(("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"), ("sasl.username", "sasl.password")),
    "OAUTHBEARER": tuple(
        f"sasl.oauthbearer.{name}" for name in ("client.id", "client.secret", "scope", "token.endpoint.url")
    ),
    "GSSAPI": ("sasl.kerberos.service.name",),
}


def _digests(settings: Mapping[str, Any], name: str) -> list[str]:
    """The digests of the certificates in a file or in place."""
    text = settings.get(f"{name}.pem") or (
        Path(settings[f"{name}.location"]).read_text() if f"{name}.location" in settings else ""
    )
    blocks = text.split("-----BEGIN CERTIFICATE-----")[1:]
    ders = (
        ssl.PEM_cert_to_DER_cert(
            f"-----BEGIN CERTIFICATE-----{block.partition('-----END')[0]}-----END CERTIFICATE-----"
        )
        for block in blocks
    )
    return sorted(hashlib.sha256(der).hexdigest() for der in ders)


@pytest.mark.parametrize(
    ("kind", "store"),
    [("JKS", "truststore"), ("PKCS12", "truststore"), ("JKS", "keystore"), ("PKCS12", "keystore")],
)
def test_the_command_that_a_refusal_prints_makes_the_pem_copy(kind: str, store: str, tmp_path: Path) -> None:
    tool, file = find_java().executable.with_name("keytool"), tmp_path / "a store"
    made = ("-genkeypair", "-keyalg", "RSA", "-alias", "me", "-dname", "CN=me", "-keypass", "changeit")
    subprocess.run(
        [str(tool), *made, "-keystore", str(file), "-storetype", kind, "-storepass", "changeit"],
        check=True,
        capture_output=True,
    )
    properties = {"security.protocol": "SSL", f"ssl.{store}.type": kind, f"ssl.{store}.location": str(file)}
    with pytest.raises(UsageError) as refused:
        kafka_python_settings(properties)
    command = str(refused.value).partition("make a PEM copy with: ")[2].partition("; then set")[0]
    environment = {**os.environ, "PATH": f"{tool.parent}{os.pathsep}{os.environ['PATH']}"}
    for part in command.split(" && "):
        # Without a terminal both programs read passwords from standard input.
        subprocess.run(
            ["sh", "-c", part],
            input="changeit\n" * 3,
            check=True,
            capture_output=True,
            text=True,
            env=environment,
            start_new_session=True,
        )
    copies = [path for path in tmp_path.iterdir() if path.suffix == ".pem"]
    assert len(copies) == 1
    copied = {"security.protocol": "SSL", f"ssl.{store}.type": "PEM", f"ssl.{store}.location": str(copies[0])}
    context = kafka_python_settings(copied)["ssl_context"]
    assert store == "keystore" or context.cert_store_stats()["x509"] == 1
