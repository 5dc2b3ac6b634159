"""Produce requests while the gateway has no lease on the values of the config topic."""

import asyncio

import pytest

from rackspan.acks.produce_errors import Cause
from tests.gateway.handlers.test_produce_rules import NONE, PRE, STRICT, Client, Made, outcomes, received, response, run

UNREAD = "the gateway cannot read the end of its config topic, so that a higher min.insync.racks may hold"


class Lease:
    """A lease on the values of the config topic that a test begins and ends. Topic `lenient` cannot be raised."""

    def __init__(self, *, current: bool) -> None:
        self.current = current

    def is_current(self) -> bool:
        return self.current

    def is_raisable(self, topic: str, _broker: int) -> bool:
        return topic != "lenient"


def test_without_a_lease_a_request_waits_and_is_then_refused_before_the_append() -> None:
    async def scenario() -> None:
        made, client = Made(PRE, {("orders", 0): [1, 2]}, Lease(current=False)), Client("orders", "plain")
        await made.sent(client, {"orders": [0], "plain": [0], "lenient": [0]})
        assert (client.forwarded, client.responses) == ([], [])
        for timer in made.timers:
            timer()
        for _ in range(10):
            await asyncio.sleep(0)
        assert client.forwarded == [({"lenient": [0]}, True)]
        expected = {(topic, 0, Cause.CONFIG, False, ""): 1 for topic in ("orders", "plain")}
        assert made.handler.refusals.counts == expected
        assert made.handler.refusals.rack_check_failures == {}

    run(scenario)


def test_a_request_that_waits_is_judged_when_the_lease_begins() -> None:
    async def scenario() -> None:
        lease = Lease(current=False)
        made, client = Made(STRICT, {("orders", 0): [1]}, lease), Client("orders", "plain")
        await made.sent(client, {"orders": [0], "plain": [0]})
        lease.current = True
        made.handler.leased()
        for _ in range(10):
            await asyncio.sleep(0)
        assert client.forwarded == [({"plain": [0]}, True)]

    run(scenario)


def test_a_lapse_is_waited_for_once_and_not_by_each_request() -> None:
    """One after another they would wait for as long each, and what is behind them on the connection too."""

    async def scenario() -> None:
        lease = Lease(current=False)
        made, client = Made(PRE, {("orders", 0): [1, 2]}, lease), Client("plain")
        await made.sent(client, {"plain": [0]})
        made.now += made.guard.settings.sample_timeout_seconds
        await made.sent(client, {"plain": [0]})
        assert [outcomes(one) for one in client.responses] == [{("plain", 0): (19, f"plain-0: {UNREAD}")}]
        # The next lapse is another one.
        lease.current = True
        made.handler.leased()
        await asyncio.sleep(0.01)
        lease.current = False
        await made.sent(client, {"plain": [0]})
        assert (len(client.responses), len(client.forwarded)) == (1, 1)

    run(scenario)


@pytest.mark.parametrize("acks", [0, 1])
def test_what_no_value_applies_to_needs_no_lease(acks: int) -> None:
    async def scenario() -> None:
        made, client = Made(STRICT, {("orders", 0): [1, 2]}, Lease(current=False)), Client()
        await made.sent(client, {"orders": [0], "plain": [0]}, acks=acks)
        await made.sent(client, {"lenient": [0]})
        assert len(client.forwarded) == 2

    run(scenario)


def test_an_acknowledgement_without_a_lease_is_held_on_every_topic_until_it_begins() -> None:
    async def scenario() -> None:
        lease = Lease(current=True)
        made, client = Made(STRICT, {("orders", 0): [1, 2]}, lease), Client()
        exchange = await made.sent(client, {"plain": [0]})
        lease.current = False
        made.now = 101.0
        assert received(exchange, response({"plain": {0: 0}})) is None
        lease.current, made.now = True, 103.0
        made.handler.leased()
        assert [outcomes(one) for one in client.responses] == [{("plain", 0): NONE}]
        assert (made.handler.holds.sum_seconds, made.handler.verified) == (2.0, 1)

    run(scenario)


def test_an_acknowledgement_that_gets_no_lease_in_time_is_refused_with_the_reason() -> None:
    async def scenario() -> None:
        lease = Lease(current=True)
        made, client = Made(STRICT, {("orders", 0): [1, 2]}, lease), Client()
        exchange = await made.sent(client, {"plain": [0], "lenient": [0]})
        lease.current = False
        assert received(exchange, response({"plain": {0: 0}, "lenient": {0: 0}})) is None
        # The request's own timeout.
        made.now += 30.1
        made.handler._complete(made.guard.expire(made.now))
        assert [outcomes(one) for one in client.responses] == [
            {("plain", 0): (20, f"plain-0: {UNREAD}"), ("lenient", 0): NONE}
        ]

    run(scenario)
