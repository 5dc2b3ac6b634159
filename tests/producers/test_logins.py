"""Logins of the guard's own connections: what each library's settings make of them."""

from pathlib import Path

import pytest

from rackspan.errors import UsageError
from rackspan.producers.logins import kafka_python_login, librdkafka_login
from tests.certificates import Identity, authority

SASL = {"sasl_mechanism": "PLAIN", "sasl_plain_username": "u", "sasl_plain_password": "p"}


@pytest.fixture
def identity(tmp_path: Path) -> Identity:
    return authority(tmp_path, "brokers").identity("client")


def tls_settings(identity: Identity, **others: str) -> dict[str, str]:
    return {
        "security.protocol": "ssl",
        "ssl.ca.location": str(identity.key.parent / "brokers.pem"),
        "ssl.certificate.location": str(identity.certificate),
        "ssl.key.location": str(identity.key),
        **others,
    }


def test_a_login_is_used_over_sasl_only() -> None:
    assert kafka_python_login({"security_protocol": "SASL_PLAINTEXT", **SASL}).mechanism == "PLAIN"
    assert kafka_python_login({"security_protocol": "PLAINTEXT", **SASL}).mechanism is None


@pytest.mark.slow
@pytest.mark.parametrize(("algorithm", "checked"), [("", True), ("https", True), ("none", False)])
def test_tls_trusts_the_authority_and_checks_names_unless_that_is_switched_off(
    identity: Identity, algorithm: str, checked: bool
) -> None:
    others = {"ssl.endpoint.identification.algorithm": algorithm} if algorithm else {}
    tls = librdkafka_login(tls_settings(identity, **others)).tls
    assert tls is not None
    assert tls.check_hostname is checked
    assert len(tls.get_ca_certs()) == 1


@pytest.mark.slow
def test_a_key_that_cannot_be_read_is_refused(identity: Identity) -> None:
    with pytest.raises(UsageError, match="the TLS files cannot be used"):
        librdkafka_login(tls_settings(identity, **{"ssl.key.location": "/no/such/key"}))
