"""Values of min.insync.racks at Kafka itself: what Kafka shows of them, and what becomes of it."""

import asyncio
import logging
from types import SimpleNamespace
from typing import Any, cast

import pytest

from rackspan.gateway.core.topic_configs import DELETE, SET
from rackspan.gateway.upstream import broker_configs
from rackspan.gateway.upstream.broker_configs import UnenforcedValues
from rackspan.gateway.upstream.cluster import UpstreamCluster
from rackspan.kafka_process import KafkaCluster
from rackspan.model import Broker, BrokerId
from rackspan.wire.messages.configs import (
    DescribeConfigsRequestData,
    DescribeConfigsResourceResult,
    DescribeConfigsResponseData,
    DescribeConfigsResult,
    DescribeConfigsSynonym,
)
from tests.conformance.wire import send
from tests.gateway.running import running
from tests.waiting import eventually

KEY = "min.insync.racks"
DEFAULT = (
    "the default of all brokers has min.insync.racks at Kafka itself, which does not know it, so that it guards nothing: delete it by "
    "kafka-configs.sh --bootstrap-server with a broker's own address, --entity-type brokers --entity-default --alter "
    "--delete-config min.insync.racks; set the value through the gateway"
)
OF_BROKER_2 = DEFAULT.replace("the default of all brokers", "broker 2").replace("entity-default", "entity-name 2")
OF_FILE_2 = (
    "the file of broker 2 has min.insync.racks at Kafka itself, which does not know it, so that it guards nothing: remove it there and "
    "restart the broker; set the value through the gateway"
)


def shown(*sources: int, value: str | None = None) -> list[DescribeConfigsResourceResult]:
    """As Kafka 4.3 describes a name that it does not know: without a value, as sensitive, with where it is set."""
    synonyms = [DescribeConfigsSynonym(name=KEY, value=value, source=source) for source in sources]
    return [DescribeConfigsResourceResult(name=KEY, value=value, is_sensitive=value is None, synonyms=synonyms)]


class Brokers:
    """A cluster, and a connection to each of its brokers, which describes these configs, or has an error."""

    def __init__(self, **described: list[DescribeConfigsResourceResult] | int) -> None:
        self.described = described
        self.by_id = [int(name.removeprefix("broker")) for name in described]
        self.registered_ids: list[int] = []

    async def registered(self, _holders: object) -> list[Broker]:
        if not self.registered_ids:
            raise ConnectionRefusedError
        return [Broker(BrokerId(broker), None) for broker in self.registered_ids]

    async def connection(self, broker: int) -> Any:
        async def call(_key: int, request: DescribeConfigsRequestData) -> DescribeConfigsResponseData:
            (resource,) = request.resources
            assert (resource.resource_name, resource.configuration_keys) == (str(broker), [KEY])
            configs = self.described[f"broker{broker}"]
            if isinstance(configs, int):
                return DescribeConfigsResponseData(results=[DescribeConfigsResult(error_code=configs)])
            return DescribeConfigsResponseData(results=[DescribeConfigsResult(configs=configs)])

        return SimpleNamespace(call=call)


def read(brokers: Brokers) -> UnenforcedValues:
    values = UnenforcedValues(cast("UpstreamCluster", brokers))
    asyncio.run(values.read())
    return values


@pytest.mark.parametrize(
    ("brokers", "count", "warnings"),
    [
        ({"broker1": [], "broker2": []}, 0, []),
        ({"broker1": shown(3), "broker2": shown(3)}, 1, [DEFAULT]),
        ({"broker1": shown(3), "broker2": shown(2, 3, 4)}, 3, [DEFAULT, OF_BROKER_2, OF_FILE_2]),
        ({"broker1": 31, "broker2": shown(2)}, 1, [OF_BROKER_2]),
        # A cluster that has the config shows its value, and enforces it.
        ({"broker1": shown(3, 5, value="2"), "broker2": []}, 0, []),
        ({"broker1": 31}, None, []),
    ],
)
def test_a_value_that_kafka_does_not_know_is_a_warning_for_each_place(
    brokers: dict[str, Any], count: int | None, warnings: list[str]
) -> None:
    values = read(Brokers(**brokers))
    assert (values.count, [*values.warnings()]) == (count, warnings)


def test_a_broker_that_does_not_respond_keeps_what_it_reported() -> None:
    brokers = Brokers(broker2=shown(2))
    values = read(brokers)
    brokers.described["broker2"] = 31
    asyncio.run(values.read())
    assert [*values.warnings()] == [OF_BROKER_2]
    brokers.described["broker2"] = []
    asyncio.run(values.read())
    assert values.count == 0


def test_a_new_one_is_logged_once(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.WARNING, broker_configs.__name__)
    brokers = Brokers(broker2=shown(2))
    reads = 0

    async def sleep(_seconds: float) -> None:
        nonlocal reads
        reads += 1
        if reads == 2:
            brokers.described["broker2"] = shown(2, 3)
        if reads == 3:
            raise asyncio.CancelledError

    monkeypatch.setattr(asyncio, "sleep", sleep)
    with pytest.raises(asyncio.CancelledError):
        asyncio.run(UnenforcedValues(cast("UpstreamCluster", brokers)).follow())
    assert caplog.messages == [OF_BROKER_2, DEFAULT]


@pytest.mark.parametrize(
    ("registered", "warnings"),
    [([1, 2], [OF_BROKER_2]), ([1], []), ([], [OF_BROKER_2])],
    ids=["down", "gone", "unknown"],
)
def test_a_broker_that_is_no_longer_registered_is_forgotten(registered: list[int], warnings: list[str]) -> None:
    brokers = Brokers(broker1=[], broker2=shown(2))
    values = read(brokers)
    assert [*values.warnings()] == [OF_BROKER_2]
    brokers.by_id, brokers.registered_ids = [1], registered
    asyncio.run(values.read())
    assert [*values.warnings()] == warnings


@pytest.mark.kafka
def test_kafka_accepts_a_value_of_all_brokers_and_the_gateway_names_it_until_it_is_deleted_there(
    kafka: KafkaCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(broker_configs, "READ_SECONDS", 0.5)
    broker = kafka.bootstrap_servers.split(",")[0]

    def altered(address: str, operation: int, value: str | None) -> tuple[int, str | None]:
        config = {"name": KEY, "config_operation": operation, "value": value}
        resource = {"resource_type": 4, "resource_name": "", "configs": [config]}
        request = {"resources": [resource], "validate_only": False}
        (response,) = send(address, "IncrementalAlterConfigs", 1, request)["responses"]
        return response["error_code"], response["error_message"]

    assert altered(broker, SET, "3")[0] == 0
    try:
        with running(kafka.bootstrap_servers) as gateway:
            warnings = gateway.gateway.backend.unenforced.warnings
            eventually(lambda: [*warnings()] == [DEFAULT], "the value is named")
            code, message = altered("{}:{}".format(*gateway.address(1)), DELETE, None)
            assert (code, "is deleted there, by kafka-configs.sh" in str(message)) == (40, True)
            # The remedy that is printed.
            assert altered(broker, DELETE, None)[0] == 0
            eventually(lambda: [*warnings()] == [], "the value is gone")
    finally:
        altered(broker, DELETE, None)
