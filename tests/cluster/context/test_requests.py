"""The requests of one run of a broker, and what becomes of their responses."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from rackspan.cluster.context import PendingResponses, Requests
from rackspan.cluster.core.groups.requests import DeleteGroup
from rackspan.cluster.core.ids import CLIENT, CONTROLLER
from rackspan.cluster.core.messages import FetchMetadata
from rackspan.model.ids import BrokerId

ONE = BrokerId(1)


class Broker:
    """The requests of broker 1, and where each was sent to."""

    def __init__(self) -> None:
        self.pending = PendingResponses()
        self.sent: list[tuple[Any, ...]] = []
        self.requests = Requests(
            ONE,
            self.pending,
            lambda message: self.sent.append(("core", message)),
            lambda correlation_id, request: self.sent.append((correlation_id, request)),
            lambda source, destination, message, *, signed=None: self.sent.append(
                (source, destination, message, signed)
            ),
        )


def build(correlation_id: int) -> FetchMetadata:
    return FetchMetadata(ONE, correlation_id, 0)


Method = Callable[..., Awaitable[Any]]


def method(broker: Broker, name: str) -> Method:
    found: Method = getattr(broker.requests, f"{name}_response")
    return found


@pytest.mark.parametrize("name", ["core", "controller"])
def test_the_first_response_is_the_one_that_counts(name: str) -> None:
    async def scene() -> None:
        broker = Broker()
        response = asyncio.ensure_future(method(broker, name)(build, 10_000, "default"))
        await asyncio.sleep(0)
        sent = ("core", build(1)) if name == "core" else (ONE, CONTROLLER, build(1), CLIENT)
        assert broker.sent == [sent]
        broker.pending.resolve(1, "first")
        broker.pending.resolve(1, "second")
        assert await response == "first"
        assert len(broker.pending) == 0

    asyncio.run(scene())


@pytest.mark.parametrize("name", ["core", "controller"])
def test_without_a_response_in_time_the_default_is_returned_and_a_late_one_is_ignored(name: str) -> None:
    async def scene() -> None:
        broker = Broker()
        assert await method(broker, name)(build, 1, "default") == "default"
        broker.pending.resolve(1, "late")
        assert len(broker.pending) == 0

    asyncio.run(scene())


def test_a_controller_that_does_not_respond_leaves_nothing_pending() -> None:
    async def scene() -> None:
        broker = Broker()
        await broker.requests.controller_response(build, 1, None)
        assert len(broker.pending) == 0

    asyncio.run(scene())


def test_a_coordinator_may_take_any_time_until_the_broker_stops() -> None:
    async def scene() -> None:
        broker = Broker()
        waits, another = (
            asyncio.ensure_future(broker.requests.coordinator_response(DeleteGroup(group))) for group in ("a", "b")
        )
        await asyncio.sleep(0)
        assert broker.sent == [(1, DeleteGroup("a")), (2, DeleteGroup("b"))]
        broker.pending.resolve(2, "deleted")
        assert await another == "deleted"
        broker.requests.drop_all()
        with pytest.raises(asyncio.CancelledError):
            await waits

    asyncio.run(scene())


def test_a_broker_that_stops_drops_its_own_requests_and_no_others() -> None:
    pending, got = PendingResponses(), list[tuple[str, str]]()
    owner, other = object(), object()
    first, second, third = (
        pending.register(lambda value, name=name: got.append((name, value)), owner=whose)  # type: ignore[misc]
        for name, whose in (("first", owner), ("second", other), ("third", owner))
    )
    pending.drop_all(owner)
    for correlation_id in (first, second, third):
        pending.resolve(correlation_id, "response")
    assert got == [("second", "response")]
    assert pending.register(lambda _: None) not in (first, second, third)
