"""Waiting for brokers to show a change, against brokers with scripted responses."""

import asyncio
from collections.abc import Sequence
from itertools import count
from typing import Any

import pytest

from rackspan.apply import changes
from rackspan.apply.changes import until_everywhere
from rackspan.wire.apis import ApiKey
from rackspan.wire.messages.base import WireStruct
from rackspan.wire.messages.configs import (
    DescribeConfigsResourceResult,
    DescribeConfigsResponseData,
    DescribeConfigsResult,
    IncrementalAlterConfigsResponseData,
)
from rackspan.wire.messages.metadata import MetadataResponseBroker, MetadataResponseData

REQUIRED = {"orders": {"min.insync.replicas": "3"}}


class Brokers:
    """A connection to brokers 1, 2, …, each of which shows its values in turn, the last one for good."""

    remaining_seconds = 30.0

    def __init__(self, *shown: Sequence[str | None], error_code: int = 0) -> None:
        self._shown = [list(values) for values in shown]
        self._error_code = error_code
        self.requests = [0] * len(shown)

    async def call(
        self, api_key: ApiKey, _request: WireStruct, _seconds: float | None = None, *, broker: int | None = None
    ) -> WireStruct:
        if broker is None:
            assert api_key is ApiKey.METADATA
            alive = [MetadataResponseBroker(node_id=number + 1) for number in range(len(self._shown))]
            return MetadataResponseData(brokers=alive)
        values = self._shown[broker - 1]
        value = values[min(self.requests[broker - 1], len(values) - 1)]
        self.requests[broker - 1] += 1
        if value is None:
            raise ConnectionResetError("gone")
        configs = [DescribeConfigsResourceResult(name="min.insync.replicas", value=value)]
        described = DescribeConfigsResult(resource_name="orders", error_code=self._error_code, configs=configs)
        return DescribeConfigsResponseData(results=[described])


def wait(brokers: Any) -> None:
    asyncio.run(until_everywhere(brokers, REQUIRED))


def test_every_broker_is_waited_for() -> None:
    brokers = Brokers(["3"], ["2", "2", "3"], ["2", "3"])
    wait(brokers)
    assert brokers.requests == [1, 3, 2]


def test_a_broker_that_goes_away_ends_the_wait_and_is_no_error() -> None:
    brokers = Brokers(["2", None], ["3"])
    wait(brokers)
    assert brokers.requests == [2, 0]


def test_a_topic_without_describe_right_is_not_waited_for() -> None:
    brokers = Brokers(["2"], error_code=29)
    wait(brokers)
    assert brokers.requests == [1]


def test_nobody_waits_longer_than_there_is_time() -> None:
    brokers = Brokers(["2"])
    brokers.remaining_seconds = 0.0
    wait(brokers)
    assert brokers.requests == [0]


def test_a_broker_that_lags_is_waited_for_some_seconds_at_most(monkeypatch: pytest.MonkeyPatch) -> None:
    """The change is made, and the connection has half a minute left."""
    monkeypatch.setattr(changes, "_PAUSE_SECONDS", 0.0)
    clock = count(100.0, 0.5)
    monkeypatch.setattr("rackspan.apply.changes.time.monotonic", lambda: next(clock))
    brokers = Brokers(["2"], ["2"])
    wait(brokers)
    assert 1 <= brokers.requests[0] <= 10
    assert brokers.requests[1] == 0


def test_configs_of_topics_are_validated_set_and_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    steps: list[object] = []

    class Connection:
        async def call(self, _key: ApiKey, request: Any) -> IncrementalAlterConfigsResponseData:
            steps.append(request.validate_only)
            return IncrementalAlterConfigsResponseData()

    async def everywhere(_connection: object, required: object) -> None:
        steps.append(required)

    monkeypatch.setattr(changes, "until_everywhere", everywhere)
    connection: Any = Connection()
    asyncio.run(changes._alter_topic_configs(connection, REQUIRED))
    assert steps == [True, False, REQUIRED]
