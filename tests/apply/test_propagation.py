"""Waiting for brokers to show a change, against brokers with scripted responses."""

import asyncio
from collections.abc import Sequence
from types import SimpleNamespace as Response
from typing import Any

from kafka.errors import KafkaConnectionError

from rackspan.apply.propagation import until_everywhere

WANTED = {"orders": {"min.insync.replicas": "3"}}


class Brokers:
    """A conversation with brokers 1, 2, …, each of which shows its values in turn, the last one for good."""

    remaining_seconds = 30.0

    def __init__(self, *shown: Sequence[str | None], error_code: int = 0) -> None:
        self._shown = [list(values) for values in shown]
        self._error_code = error_code
        self.requests = [0] * len(shown)
        self.pauses = 0

    async def send(self, _request: Any) -> Any:
        return Response(brokers=[Response(node_id=broker + 1) for broker in range(len(self._shown))])

    async def send_to_broker(self, broker_id: int, _request: Any, _seconds: float) -> Any:
        values = self._shown[broker_id - 1]
        value = values[min(self.requests[broker_id - 1], len(values) - 1)]
        self.requests[broker_id - 1] += 1
        if value is None:
            raise KafkaConnectionError("gone")
        configs = [Response(name="min.insync.replicas", value=value)]
        return Response(results=[Response(resource_name="orders", error_code=self._error_code, configs=configs)])

    async def sleep(self, _seconds: float) -> None:
        self.pauses += 1


def wait(brokers: Any) -> None:
    asyncio.run(until_everywhere(brokers, WANTED))


def test_every_broker_is_waited_for() -> None:
    brokers = Brokers(["3"], ["2", "2", "3"], ["2", "3"])
    wait(brokers)
    assert (brokers.requests, brokers.pauses) == ([1, 3, 2], 3)


def test_a_broker_that_goes_away_ends_the_wait_and_is_no_error() -> None:
    brokers = Brokers(["2", None], ["3"])
    wait(brokers)
    assert brokers.requests == [2, 0]


def test_a_topic_without_describe_right_is_not_waited_for() -> None:
    brokers = Brokers(["2"], error_code=29)
    wait(brokers)
    assert brokers.pauses == 0


def test_nobody_waits_longer_than_there_is_time() -> None:
    brokers = Brokers(["2"])
    brokers.remaining_seconds = 0.0
    wait(brokers)
    assert brokers.pauses == 0
