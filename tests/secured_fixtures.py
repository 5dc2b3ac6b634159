"""A real cluster behind many listeners: logins, TLS, client certificates, and certificates that are wrong.

Every listener is a listener of the same brokers, so all of them cost no more processes than one.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import pytest
from confluent_kafka.admin import AdminClient
from confluent_kafka.admin._scram import (
    ScramCredentialInfo,
    ScramMechanism,
    UserScramCredentialAlteration,
    UserScramCredentialUpsertion,
)

from rackspan.kafka_process import KafkaCluster
from tests.certificates import Authority, Identity, authority
from tests.kafka_fixtures import SECURED, USERS, started
from tests.kafka_versions import KAFKA
from tests.waiting import WITHIN_SECONDS

LISTENERS = {
    "TLS": "SSL",
    "MUTUAL": "SSL",
    "MUTUAL12": "SSL",
    "MISNAMED": "SSL",
    "EXPIRED": "SSL",
    "LOGINTLS": "SASL_SSL",
    "SCRAM": "SASL_PLAINTEXT",
    "OAUTH": "SASL_PLAINTEXT",
}

SHORT_LOGIN_MS = 2_500
"""The lifetime of a login by PLAIN at the listener SCRAM."""

_SCRAM = (ScramMechanism.SCRAM_SHA_256, ScramMechanism.SCRAM_SHA_512)


@dataclass
class Secured:
    """The cluster, who vouches for it, and who knocks."""

    cluster: KafkaCluster
    folder: Path
    authority: Authority
    stranger: Authority
    """Vouches for nobody the brokers know."""

    def at(self, listener: str) -> str:
        """One broker, so that one line is about one address."""
        return self.cluster.bootstrap_servers_of(listener).split(",")[0]

    def for_admin(self) -> AdminClient:
        return admin_client(self.cluster)

    @cached_property
    def alice(self) -> Identity:
        """Known to the brokers as User:alice."""
        return self.authority.identity("alice")

    def trusting(self, authority: Authority | None = None) -> dict[str, str]:
        """Client properties: TLS, and whom to believe."""
        return {
            "security.protocol": "SSL",
            "ssl.truststore.type": "PEM",
            "ssl.truststore.location": str((authority or self.authority).certificate),
        }

    def known_by(self, store: Path, password: str | None = None) -> dict[str, str]:
        """Client properties: TLS, and who we are."""
        password_setting = {} if password is None else {"ssl.key.password": password}
        return {**self.trusting(), "ssl.keystore.type": "PEM", "ssl.keystore.location": str(store), **password_setting}


def scram_login(user: str, mechanism: str, password: str | None = None) -> dict[str, str]:
    module = "org.apache.kafka.common.security.scram.ScramLoginModule"
    return {
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism": mechanism,
        "sasl.jaas.config": f'{module} required username="{user}" password="{password or USERS[user]}";',
    }


@pytest.fixture(scope="session")
def secured(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Secured]:
    """Two brokers in two racks, all listeners open; `USERS` may log in by PLAIN and SCRAM, and of them only admin may do everything."""
    folder = tmp_path_factory.mktemp("secured")
    ours, strangers = authority(folder / "ours", "ours"), authority(folder / "strangers", "strangers")
    cluster = KafkaCluster(
        racks=("r1", "r2"), brokers=2, version=KAFKA, listeners=LISTENERS, config={**SECURED, **_listeners(ours)}
    )
    for one in started(cluster):
        _add_scram_users(one)
        yield Secured(one, folder, ours, strangers)


def _listeners(ours: Authority) -> dict[str, str]:
    good = ours.identity("broker")
    stores = {
        "TLS": good,
        "MUTUAL": good,
        "MUTUAL12": good,
        "LOGINTLS": good,
        "MISNAMED": ours.identity("misnamed", alternative="DNS:kafka.example"),
        "EXPIRED": ours.identity("expired", days=-1),
    }
    protocols = {"CLIENT": "SASL_PLAINTEXT", "CONTROLLER": "PLAINTEXT", **LISTENERS}
    config = {
        "listener.security.protocol.map": ",".join(f"{name}:{protocol}" for name, protocol in protocols.items()),
        "listener.name.mutual12.ssl.enabled.protocols": "TLSv1.2",
    }
    for listener in ("mutual", "mutual12"):
        config[f"listener.name.{listener}.ssl.client.auth"] = "required"
        config[f"listener.name.{listener}.ssl.truststore.type"] = "PEM"
        config[f"listener.name.{listener}.ssl.truststore.location"] = str(ours.certificate)
        config[f"listener.name.{listener}.ssl.principal.mapping.rules"] = "RULE:^CN=(.*)$/$1/"
    for listener, identity in stores.items():
        config[f"listener.name.{listener.lower()}.ssl.keystore.type"] = "PEM"
        config[f"listener.name.{listener.lower()}.ssl.keystore.location"] = str(identity.store)
    config["listener.name.oauth.sasl.enabled.mechanisms"] = "OAUTHBEARER"
    # Without a validator of its own the broker takes tokens without a signature, whose claims it checks.
    config["listener.name.oauth.oauthbearer.sasl.jaas.config"] = (
        "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule required "
        'unsecuredLoginStringClaim_sub="admin";'
    )
    for listener in ("scram", "logintls"):
        config[f"listener.name.{listener}.sasl.enabled.mechanisms"] = "PLAIN,SCRAM-SHA-256,SCRAM-SHA-512"
        for mechanism in ("scram-sha-256", "scram-sha-512"):
            module = "org.apache.kafka.common.security.scram.ScramLoginModule required;"
            config[f"listener.name.{listener}.{mechanism}.sasl.jaas.config"] = module
        plain = SECURED["listener.name.client.plain.sasl.jaas.config"]
        config[f"listener.name.{listener}.plain.sasl.jaas.config"] = plain
    # After so long a broker takes no request of a connection that has logged in once.
    config["listener.name.scram.plain.connections.max.reauth.ms"] = str(SHORT_LOGIN_MS)
    return config


def admin_client(cluster: KafkaCluster) -> AdminClient:
    """The cluster's admin, who may do everything, by librdkafka."""
    return AdminClient({**admin_config(cluster)})


def admin_config(cluster: KafkaCluster) -> dict[str, str]:
    """The admin's login in librdkafka's words."""
    return {
        "bootstrap.servers": cluster.bootstrap_servers,
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism": "PLAIN",
        "sasl.username": "admin",
        "sasl.password": USERS["admin"],
    }


def _add_scram_users(cluster: KafkaCluster) -> None:
    """Kept by name, `admin`: librdkafka drops what is requested for once its client is gone. A user stands once a request."""
    admin = admin_client(cluster)
    for mechanism in _SCRAM:
        wanted: list[UserScramCredentialAlteration] = [
            UserScramCredentialUpsertion(user, ScramCredentialInfo(mechanism, 4096), password.encode())
            for user, password in USERS.items()
        ]
        for future in admin.alter_user_scram_credentials(wanted).values():
            future.result(WITHIN_SECONDS)
