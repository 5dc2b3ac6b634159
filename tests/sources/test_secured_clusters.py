"""A real cluster with TLS, client certificates, PLAIN and SCRAM: valid logins work, others get the reason in one line."""

import re
import shutil
import subprocess
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

from rackspan.client.cluster import ClusterConnection, ConnectionSettings
from rackspan.client.config.translation import kafka_python_settings
from rackspan.errors import RackspanError, UsageError
from rackspan.model import ClusterSnapshot
from rackspan.sources.live.cluster import read_cluster
from rackspan.wire.apis import ApiKey
from rackspan.wire.messages.metadata import MetadataRequestData
from tests.certificates import KEY_PASSWORD
from tests.kafka_fixtures import client_properties
from tests.secured_fixtures import SHORT_LOGIN_MS, Secured, scram_login
from tests.token_server import CLIENT_ID, CLIENT_SECRET, TokenServer, unsecured_token

pytestmark = pytest.mark.kafka

STORE_PASSWORD = "store-secret"  # noqa: S105 - of files that live as long as the test

TRUST = "in --command-config to a PEM file of the one that signed it"
NAMES = "(ssl.endpoint.identification.algorithm= in --command-config leaves names unchecked)"
REFUSED = "refused the login: user, password or mechanism {} is wrong; check sasl.mechanism and sasl.jaas.config in --command-config"
UNKNOWN = (
    "does not accept the client certificate of --command-config: it has expired, or no authority that the broker trusts "
    "signed it; look with: openssl x509 -noout -dates -issuer -in FILE"
)
UNSHOWN = "requires a client certificate; set ssl.keystore.location in --command-config to a PEM file of a key and its certificates"
NO_TLS = "it does not speak TLS; set security.protocol in --command-config to PLAINTEXT or SASL_PLAINTEXT, or name its TLS port"
UNAUTHORIZED = "shows this user no topic; it needs Describe on Topic (each one, or *) and Describe on Cluster: add them with kafka-acls"

Properties = Callable[[Secured], dict[str, str]]


def read(address: str, properties: dict[str, str]) -> ClusterSnapshot:
    return read_cluster(ConnectionSettings(address, properties, 20.0)).snapshot


def over_tls(secured: Secured, login: dict[str, str]) -> dict[str, str]:
    return {**secured.trusting(), **login, "security.protocol": "SASL_SSL"}


def in_place(secured: Secured) -> dict[str, str]:
    """The same PEMs as text in the properties, where no file is wanted."""
    return {
        "security.protocol": "SSL",
        "ssl.truststore.type": "PEM",
        "ssl.truststore.certificates": secured.authority.certificate.read_text(),
        "ssl.keystore.type": "PEM",
        "ssl.keystore.key": secured.alice.key.read_text(),
        "ssl.keystore.certificate.chain": secured.alice.certificate.read_text(),
    }


@pytest.mark.parametrize(
    ("listener", "properties"),
    [
        ("TLS", lambda it: it.trusting()),
        ("MISNAMED", lambda it: {**it.trusting(), "ssl.endpoint.identification.algorithm": ""}),
        ("SCRAM", lambda _: scram_login("admin", "SCRAM-SHA-256")),
        ("SCRAM", lambda _: scram_login("admin", "SCRAM-SHA-512")),
        ("LOGINTLS", lambda it: over_tls(it, scram_login("admin", "SCRAM-SHA-256"))),
        ("LOGINTLS", lambda it: over_tls(it, scram_login("admin", "SCRAM-SHA-512"))),
        ("LOGINTLS", lambda it: over_tls(it, client_properties("admin"))),
    ],
    ids=["TLS", "names unchecked", "SCRAM-256", "SCRAM-512", "SCRAM-256 in TLS", "SCRAM-512 in TLS", "PLAIN in TLS"],
)
def test_a_user_who_can_log_in_reads_the_whole_cluster(secured: Secured, listener: str, properties: Properties) -> None:
    whole = read(secured.at(listener), properties(secured))
    assert whole.partial == ()
    addresses = ",".join(f"{one.host}:{one.port}" for one in whole.brokers)
    assert addresses == secured.cluster.bootstrap_servers_of(listener)


@pytest.mark.parametrize("listener", ["MUTUAL", "MUTUAL12"])
@pytest.mark.parametrize(
    "properties",
    [
        lambda it: it.known_by(it.alice.store),
        lambda it: it.known_by(it.alice.locked_store, KEY_PASSWORD),
        in_place,
    ],
    ids=["a file", "a file under a password", "in place"],
)
def test_a_client_certificate_is_accepted_and_needs_rights(
    secured: Secured, listener: str, properties: Properties
) -> None:
    # alice has none. An error that names the missing rights shows that the broker accepted her certificate.
    with pytest.raises(RackspanError) as error:
        read(secured.at(listener), properties(secured))
    assert str(error.value) == f"{secured.at(listener)} {UNAUTHORIZED}"


def wrong(secured: Secured, name: str, days: int = 2) -> dict[str, str]:
    signer = secured.authority if days < 0 else secured.stranger
    return secured.known_by(signer.identity(name, days=days).store)


@pytest.mark.parametrize(
    ("listener", "properties", "line"),
    [
        ("TLS", lambda it: it.trusting(it.stranger), f"no broker can be spoken to: {{at}}: its certificate is signed by no authority that is trusted here; set ssl.truststore.location {TRUST}"),
        ("TLS", lambda _: {"security.protocol": "SSL"}, f"no broker can be spoken to: {{at}}: its certificate is signed by no authority that is trusted here; set ssl.truststore.location {TRUST}"),
        ("MISNAMED", lambda it: it.trusting(), f"no broker can be spoken to: {{at}}: its certificate is for another host name; name the broker in --bootstrap-server as its certificate does {NAMES}"),
        ("EXPIRED", lambda it: it.trusting(), "no broker can be spoken to: {at}: its certificate has expired; have it renewed on the broker"),
        ("MUTUAL", lambda it: it.trusting(), f"{{at}} {UNSHOWN}"),
        ("MUTUAL12", lambda it: it.trusting(), f"{{at}} {UNSHOWN}"),
        ("MUTUAL", lambda it: wrong(it, "mallory"), f"{{at}} {UNKNOWN}"),
        ("MUTUAL12", lambda it: wrong(it, "mallory"), f"{{at}} {UNKNOWN}"),
        ("MUTUAL", lambda it: wrong(it, "late", days=-1), f"{{at}} {UNKNOWN}"),
        ("TLS", lambda _: {}, "no broker responded: {at}: it closed the connection at the first request; is it Kafka's port, and does it require TLS or a login (--command-config)?"),
        ("SCRAM", lambda it: it.trusting(), f"no broker can be spoken to: {{at}}: {NO_TLS}"),
        ("SCRAM", lambda _: scram_login("admin", "SCRAM-SHA-512", "wrong"), f"{{at}} {REFUSED.format('SCRAM-SHA-512')}"),
        ("SCRAM", lambda _: scram_login("ghost", "SCRAM-SHA-256", "wrong"), f"{{at}} {REFUSED.format('SCRAM-SHA-256')}"),
        ("LOGINTLS", lambda it: over_tls(it, client_properties("admin", "wrong")), f"{{at}} {REFUSED.format('PLAIN')}"),
        ("LOGINTLS", lambda it: it.trusting(), "{at} requires a login; set security.protocol, sasl.mechanism and sasl.jaas.config in --command-config"),
        ("LOGINTLS", lambda _: client_properties("admin"), "no broker responded: {at}: it closed the connection at the first request; is it Kafka's port, and does it require TLS or a login (--command-config)?"),
    ],
    ids=["another authority", "the system's authorities", "another host name", "expired", "no client certificate", "none in TLS 1.2", "a stranger's certificate", "a stranger's in TLS 1.2", "an expired client certificate", "no TLS", "TLS where there is none", "wrong password", "no such user", "wrong password in TLS", "no login", "no TLS to a login"],
)  # fmt: skip
def test_a_refused_login_names_the_part_that_is_wrong(
    secured: Secured, listener: str, properties: Properties, line: str
) -> None:
    with pytest.raises(RackspanError) as error:
        read(secured.at(listener), properties(secured))
    assert str(error.value) == line.format(at=secured.at(listener))


def test_a_login_the_listener_does_not_offer_is_refused_by_its_name(secured: Secured) -> None:
    at = secured.cluster.bootstrap_servers.split(",")[0]
    with pytest.raises(RackspanError) as error:
        read(at, scram_login("admin", "SCRAM-SHA-256"))
    assert str(error.value) == f"{at} {REFUSED.format('SCRAM-SHA-256')}"


def commands_in(refusal: UsageError) -> str:
    error = re.search(r"make a PEM copy with: (.*); then set", str(refusal))
    assert error, refusal
    return error[1]


def keytool(*words: object) -> None:
    command = shutil.which("keytool")
    if command is None:
        pytest.skip("NOT TESTED: JKS and PKCS12 stores, for lack of keytool")
    subprocess.run([command, *map(str, words)], check=True, capture_output=True)


def with_passwords(command: str) -> str:
    """As a person would type it, the passwords given as words: a test has no terminal."""
    command = command.replace(
        "-srckeystore", f"-srcstorepass {STORE_PASSWORD} -deststorepass {STORE_PASSWORD} -srckeystore"
    )
    command = command.replace("-list", f"-list -storepass {STORE_PASSWORD}")
    return command.replace("pkcs12 -nodes", f"pkcs12 -passin pass:{STORE_PASSWORD} -nodes")  # fmt: skip


@pytest.mark.parametrize("kind", ["JKS", "PKCS12"])
def test_a_store_of_java_is_refused_with_the_commands_that_make_it_work(
    secured: Secured, tmp_path: Path, kind: str
) -> None:
    trust, keys, exchange = tmp_path / "trust.store", tmp_path / "keys.store", tmp_path / "exchange.p12"
    stored = ("-storetype", kind, "-storepass", STORE_PASSWORD)
    keytool("-importcert", "-noprompt", "-file", secured.authority.certificate, "-keystore", trust, *stored)
    export = f"openssl pkcs12 -export -in {secured.alice.store} -passout pass:{STORE_PASSWORD} -out {exchange}"
    subprocess.run(export, shell=True, check=True)  # noqa: S602 - words of our own
    passwords = ("-srcstorepass", STORE_PASSWORD, "-deststorepass", STORE_PASSWORD)
    keytool("-importkeystore", "-srckeystore", exchange, "-destkeystore", keys, "-deststoretype", kind, *passwords)
    java = {
        "security.protocol": "SSL",
        "ssl.truststore.type": kind,
        "ssl.truststore.location": str(trust),
        "ssl.truststore.password": STORE_PASSWORD,
        "ssl.keystore.type": kind,
        "ssl.keystore.location": str(keys),
        "ssl.keystore.password": STORE_PASSWORD,
    }
    for store in ("ssl.truststore", "ssl.keystore"):
        with pytest.raises(UsageError, match=rf"^{store}\.type in --command-config is {kind}, which") as refused:
            kafka_python_settings(java)
        subprocess.run(with_passwords(commands_in(refused.value)), shell=True, check=True, capture_output=True)  # noqa: S602
        java[f"{store}.type"] = "PEM"
        java[f"{store}.location"] += ".pem"
        del java[f"{store}.password"]
    with pytest.raises(RackspanError) as error:
        read(secured.at("MUTUAL"), java)
    assert str(error.value) == f"{secured.at('MUTUAL')} {UNAUTHORIZED}"


def by_token(**oauth: str) -> dict[str, str]:
    return {"security.protocol": "SASL_PLAINTEXT", "sasl.mechanism": "OAUTHBEARER", **oauth}


def client_credentials(url: str, secret: str = CLIENT_SECRET) -> dict[str, str]:
    module = "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule"
    return by_token(
        **{
            "sasl.oauthbearer.token.endpoint.url": url,
            "sasl.jaas.config": f'{module} required clientId="{CLIENT_ID}" clientSecret="{secret}";',
        }
    )


def test_a_token_of_a_token_endpoint_and_one_of_a_file_log_in(secured: Secured, tmp_path: Path) -> None:
    with TokenServer("admin").running() as server:
        assert len(read(secured.at("OAUTH"), client_credentials(server.url)).brokers) == 2
        assert server.requests == ["grant_type=client_credentials"], "one token for every connection"
    file = tmp_path / "token"
    file.write_text(unsecured_token("admin"))
    assert (
        len(read(secured.at("OAUTH"), by_token(**{"sasl.oauthbearer.token.endpoint.url": file.as_uri()})).brokers) == 2
    )


def test_a_token_that_has_expired_is_refused_in_one_line(secured: Secured, tmp_path: Path) -> None:
    file = tmp_path / "token"
    file.write_text(unsecured_token("admin", lifetime_seconds=-3600))
    with pytest.raises(RackspanError, match="refused the login: its token is not accepted"):
        read(secured.at("OAUTH"), by_token(**{"sasl.oauthbearer.token.endpoint.url": file.as_uri()}))


def test_a_client_that_the_endpoint_refuses_never_reaches_the_brokers(secured: Secured) -> None:
    with (
        TokenServer("admin").running() as server,
        pytest.raises(RackspanError, match=r"the token endpoint .* refused the client: HTTP 401"),
    ):
        read(secured.at("OAUTH"), client_credentials(server.url, "wrong"))


def test_a_connection_whose_login_is_about_to_expire_is_opened_anew(secured: Secured) -> None:
    """The broker closes it at the next request (KIP-368): a client that sends rarely would see every request fail."""
    login = {**client_properties("admin"), "security.protocol": "SASL_PLAINTEXT"}
    request = MetadataRequestData(topics=())
    with ClusterConnection(ConnectionSettings(secured.at("SCRAM"), login, 60.0)) as connection:
        began, requests = time.monotonic(), 0
        while time.monotonic() < began + 2 * SHORT_LOGIN_MS / 1000:
            for broker in (None, 1, 2):
                connection.run(partial(connection.call, ApiKey.METADATA, request, broker=broker))
                requests += 1
            time.sleep(0.1)
    assert requests > 30
