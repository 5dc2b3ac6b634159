"""Client quotas, credentials and throttles are kept until a reset; a warning says once that nothing is delayed by them."""

import logging
from collections.abc import Iterator

import pytest

from rackspan.cluster import EmbeddedCluster
from rackspan.cluster.core.configs import ConfigSource
from rackspan.wire.apis import ApiKey
from rackspan.wire.messages.configs import (
    DescribeConfigsRequestData,
    DescribeConfigsResource,
    IncrementalAlterConfigsRequestAlterableConfig,
    IncrementalAlterConfigsRequestAlterConfigsResource,
    IncrementalAlterConfigsRequestData,
)
from rackspan.wire.messages.quotas import (
    AlterClientQuotasRequestData,
    AlterClientQuotasRequestEntityData,
    AlterClientQuotasRequestEntryData,
    DescribeClientQuotasRequestData,
    OpData,
)
from rackspan.wire.messages.scram_credentials import (
    AlterUserScramCredentialsRequestData,
    DescribeUserScramCredentialsRequestData,
    ScramCredentialUpsertion,
)
from tests.cluster.raw import response_to

BROKER, GROUP = 4, 32


@pytest.fixture(scope="module")
def cluster() -> Iterator[EmbeddedCluster]:
    with EmbeddedCluster(racks=1, brokers=1) as cluster:
        yield cluster


def _set_quota(cluster: EmbeddedCluster, user: str, rate: float) -> None:
    entity = AlterClientQuotasRequestEntityData(entity_type="user", entity_name=user)
    entry = AlterClientQuotasRequestEntryData(entity=[entity], ops=[OpData(key="producer_byte_rate", value=rate)])
    response_to(cluster.address(1), ApiKey.ALTER_CLIENT_QUOTAS, 1, AlterClientQuotasRequestData(entries=[entry]))


def _set_config(cluster: EmbeddedCluster, resource_type: int, name: str, key: str, value: str) -> None:
    resource = IncrementalAlterConfigsRequestAlterConfigsResource(
        resource_type=resource_type,
        resource_name=name,
        configs=[IncrementalAlterConfigsRequestAlterableConfig(name=key, value=value)],
    )
    request = IncrementalAlterConfigsRequestData(resources=[resource])
    response = response_to(cluster.address(1), ApiKey.INCREMENTAL_ALTER_CONFIGS, 1, request)
    assert response.responses[0].error_code == 0


def _kept(cluster: EmbeddedCluster) -> list[int]:
    """How many entities have quotas, how many users credentials, and how many values the group has of its own."""
    address = cluster.address(1)
    quotas = response_to(address, ApiKey.DESCRIBE_CLIENT_QUOTAS, 1, DescribeClientQuotasRequestData())
    users = response_to(address, ApiKey.DESCRIBE_USER_SCRAM_CREDENTIALS, 0, DescribeUserScramCredentialsRequestData())
    resource = DescribeConfigsResource(resource_type=GROUP, resource_name="readers", configuration_keys=None)
    configs = response_to(address, ApiKey.DESCRIBE_CONFIGS, 4, DescribeConfigsRequestData(resources=[resource]))
    own = [config for config in configs.results[0].configs if config.config_source == ConfigSource.GROUP]
    return [len(quotas.entries), len(users.results), len(own)]


def test_a_quota_warns_once_that_it_is_not_enforced(cluster: EmbeddedCluster, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING, "rackspan"):
        for rate in (1000.0, 2000.0):
            _set_quota(cluster, "jane", rate)
    assert sum("this cluster delays no client" in record.message for record in caplog.records) == 1


def test_a_replication_throttle_warns_once_that_it_is_not_enforced(
    cluster: EmbeddedCluster, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.WARNING, "rackspan"):
        for rate in ("1000", "2000"):
            _set_config(cluster, BROKER, "1", "leader.replication.throttled.rate", rate)
    assert sum("this cluster delays no replication" in record.message for record in caplog.records) == 1


def test_a_reset_leaves_no_quotas_credentials_and_group_configs(cluster: EmbeddedCluster) -> None:
    _set_quota(cluster, "jane", 1000.0)
    for mechanism in (1, 2):
        upsertion = ScramCredentialUpsertion(
            name="jane", mechanism=mechanism, iterations=4096, salt=b"salt", salted_password=b"password"
        )
        request = AlterUserScramCredentialsRequestData(upsertions=[upsertion])
        response_to(cluster.address(1), ApiKey.ALTER_USER_SCRAM_CREDENTIALS, 0, request)
    _set_config(cluster, GROUP, "readers", "consumer.session.timeout.ms", "50000")
    before = _kept(cluster)
    cluster.reset()
    assert [before, _kept(cluster)] == [[1, 1, 1], [0, 0, 0]]
