"""A key of security that no client has is refused with the nearest one, and those of Kafka's other clients and tools are ignored."""

from pathlib import Path

import pytest

from rackspan.client.config.keys import KEYS, KeyUse, verdict_on
from tests.compat.client_files import DIFFERENCES, MISSPELT


@pytest.mark.parametrize("name", MISSPELT)
def test_a_misspelt_key_of_security_is_refused_with_the_nearest(name: str) -> None:
    verdict = verdict_on(name)
    assert verdict.use is KeyUse.REFUSED
    assert "did you mean s" in verdict.reason or name == "ssl.ca"


@pytest.mark.parametrize(
    "name",
    [
        *("acks", "session.timeout.ms", "schema.registry.url", "basic.auth.credentials.source", "application.id"),
        *("producer.security.protocol", "admin.sasl.jaas.config", "schema.registry.ssl.truststore.location"),
        *("confluent.monitoring.interceptor.sasl.mechanism", "listener.name.internal.ssl.keystore.location"),
        *("ssl.client.auth", "security.inter.broker.protocol", "sasl.enabled.mechanisms", "plugin.path", ""),
    ],
)
def test_what_other_clients_and_brokers_have_is_ignored_and_named(name: str) -> None:
    verdict = verdict_on(name)
    assert (verdict.use, verdict.is_foreign) == (KeyUse.IGNORED, True)


def test_every_key_of_the_table_is_used_or_ignored_with_a_reason() -> None:
    verdicts = [verdict_on(name) for name in KEYS]
    assert all((verdict.use is KeyUse.USED) is (verdict.reason == "") for verdict in verdicts)
    assert not any(verdict.is_foreign or verdict.use is KeyUse.REFUSED for verdict in verdicts)


@pytest.mark.parametrize(
    ("name", "instead"),
    [
        ("sasl.username", "take the login from sasl.jaas.config"),
        ("ssl.ca.location", "take PEM from ssl.truststore"),
        ("ssl.keystore.password", "a PEM store has no password"),
        ("security.providers", "classes that only Java can load"),
        ("sasl.oauthbearer.assertion.file", "rackspan signs no JWT"),
    ],
)
def test_what_cannot_be_carried_out_is_refused_with_what_to_do(name: str, instead: str) -> None:
    verdict = verdict_on(name)
    assert verdict.use is KeyUse.REFUSED
    assert instead in verdict.reason


def test_the_page_names_every_difference_from_kafkas_classes() -> None:
    page = Path("docs/security.md").read_text(encoding="utf-8")
    part = page.partition("### Where a file is read in another way than by Kafka's tools\n")[2].partition("\n## ")[0]
    assert [line.removeprefix("- ") for line in part.splitlines() if line.startswith("- ")] == [*DIFFERENCES.values()]
