"""A broker's process in its event loop: what it holds back while paused, and what it forgets."""

import asyncio
from collections.abc import Awaitable, Callable
from random import Random
from unittest.mock import MagicMock

import pytest

from rackspan.cluster.core import messages
from rackspan.cluster.core.configs import ConfigSource, ConfigValue, broker_values
from rackspan.cluster.core.ids import CLIENT
from rackspan.cluster.core.settings import ClusterSettings
from rackspan.cluster.host.assembly import Assembly
from rackspan.errors import UsageError
from rackspan.kafka_bytes.error_codes import ErrorCode
from rackspan.model.ids import BrokerId, RackId, TopicPartition
from tests.waiting import WITHIN_SECONDS

ONE, TWO = BrokerId(1), BrokerId(2)


def run(scene: Callable[[Assembly], Awaitable[None]], settings: ClusterSettings | None = None) -> None:
    async def started() -> None:
        assembly = Assembly({one: RackId(f"r{one}") for one in (ONE, TWO)}, settings or ClusterSettings(), Random(1))
        try:
            await assembly.start(10)
            await scene(assembly)
        finally:
            assembly.stop()

    asyncio.run(started())


def test_a_request_without_a_response_is_forgotten_after_its_timeout(monkeypatch: pytest.MonkeyPatch) -> None:
    async def scene(assembly: Assembly) -> None:
        runner = assembly.hosts[ONE].runner
        pending = runner._shared.pending_responses
        verification = messages.VerifyTransaction(0, "t", 1, 0, TopicPartition("orders", 0), adds=False)
        assembly.network.cut((ONE, TWO))
        before = len(pending)
        timer = MagicMock(wraps=asyncio.get_running_loop().call_later)
        monkeypatch.setattr(asyncio.get_running_loop(), "call_later", timer)
        runner._execute([messages.SendRequest(TWO, verification, 1, timeout_ms=5)])
        assert timer.call_args.args[0] == 0.005
        assert len(pending) == before + 1
        await assembly.wait_for(lambda: len(pending) <= before, WITHIN_SECONDS)

    run(scene)


def test_messages_to_a_frozen_broker_are_handled_in_order_when_it_thaws(monkeypatch: pytest.MonkeyPatch) -> None:
    async def scene(assembly: Assembly) -> None:
        runner, handled = assembly.hosts[ONE].runner, list[int]()

        def on_message(_now: int, _source: int, message: object) -> list[messages.Effect]:
            handled.append(message)  # type: ignore[arg-type]
            return []

        monkeypatch.setattr(runner._process, "on_message", on_message)
        assembly.hosts[ONE].pause()
        for number in range(3):
            runner.receive(CLIENT, number)  # type: ignore[arg-type]
        assert handled == []
        assembly.hosts[ONE].resume()
        assert handled[:3] == [0, 1, 2]

    run(scene)


def test_a_frozen_broker_does_not_notice_the_time() -> None:
    async def scene(assembly: Assembly) -> None:
        assembly.hosts[TWO].pause()
        await assembly.wait_for(lambda: not assembly.is_active(TWO), WITHIN_SECONDS)
        assembly.hosts[TWO].resume()
        assert not assembly.hosts[TWO].paused
        await assembly.wait_for(lambda: assembly.is_active(TWO), WITHIN_SECONDS)

    run(scene, ClusterSettings(session_timeout_ms=500, heartbeat_interval_ms=50))


def test_a_broker_that_is_started_while_it_is_frozen_starts_frozen() -> None:
    async def scene(assembly: Assembly) -> None:
        host = assembly.hosts[TWO]
        host.kill()
        host.pause()
        await host.start()
        assert host.runner.paused
        host.resume()
        await assembly.wait_for(lambda: assembly.is_active(TWO), WITHIN_SECONDS)
        assembly.stop()
        assert assembly._next_tick is not None
        assert assembly._next_tick.cancelled(), "no time passes in a cluster that has stopped"

    run(scene, ClusterSettings(session_timeout_ms=500, heartbeat_interval_ms=50))


def test_a_broker_that_has_stopped_is_no_context_for_a_request() -> None:
    async def scene(assembly: Assembly) -> None:
        runner = assembly.hosts[ONE].runner
        assembly.hosts[ONE].kill()
        with pytest.raises(asyncio.CancelledError, match="broker 1 is not running"):
            _ = runner.core
        with pytest.raises(asyncio.CancelledError, match="broker 1 is not running"):
            _ = assembly.hosts[ONE].runner
        runner.receive(CLIENT, messages.ShutDown())
        assert not assembly.hosts[ONE].running

    run(scene)


def test_a_broker_that_shuts_down_stops_and_a_refused_one_says_why() -> None:
    async def scene(assembly: Assembly) -> None:
        host = assembly.hosts[TWO]
        host.shut_down()
        await assembly.wait_for(lambda: not host.running, WITHIN_SECONDS)
        assert host.start_error is None
        await host.start()
        host.runner._execute([messages.StartRefused("no such rack")])
        assert not host.running
        assert str(host.start_error) == "no such rack"
        with pytest.raises(UsageError, match="broker 2 refuses to start: no such rack"):
            assembly._has_started(TWO)
        await assembly.start_brokers([TWO], 10)
        assert host.start_error is None

    run(scene)


def test_each_process_of_a_broker_has_an_incarnation_of_its_own() -> None:
    async def scene(assembly: Assembly) -> None:
        assert [assembly.image.brokers[one].incarnation for one in (ONE, TWO)] == [1, 1]
        assembly.hosts[TWO].kill()
        await assembly.start_brokers([TWO], 10)
        assert assembly.image.brokers[TWO].incarnation == 2

    run(scene)


def test_a_broker_whose_port_does_not_open_is_not_running(monkeypatch: pytest.MonkeyPatch) -> None:
    async def scene(assembly: Assembly) -> None:
        host = assembly.hosts[TWO]
        host.kill()

        async def in_use(_: object) -> None:
            raise OSError("in use")

        monkeypatch.setattr(host.server, "open", in_use)
        with pytest.raises(OSError, match="in use"):
            await host.start()
        assert not host.running

    run(scene)


def test_a_slow_disk_delays_only_the_responses_to_a_followers_fetches(monkeypatch: pytest.MonkeyPatch) -> None:
    async def scene(assembly: Assembly) -> None:
        host, received = assembly.hosts[ONE], list[object]()
        monkeypatch.setattr(host.runner, "receive", lambda _source, message: received.append(message))
        fetched, other = messages.ReplicaFetchResponse(1, 0, ErrorCode.NONE), messages.ShutDown()
        host._receive(TWO, fetched)
        host.slow_disk_ms = 60_000
        for message in (fetched, other):
            host._receive(TWO, message)
        assert received == [fetched, other]

    run(scene)


def test_a_request_that_waits_for_metadata_goes_on_when_its_broker_has_it() -> None:
    async def scene(assembly: Assembly) -> None:
        updates, before = assembly.hosts[ONE].runner.metadata_updates, assembly.image.offset
        waiting = asyncio.ensure_future(updates.wait_for(lambda image: image.offset > before, 600_000))
        await asyncio.sleep(0)
        assembly.controller.fence(TWO)
        assert await asyncio.wait_for(waiting, WITHIN_SECONDS)

    run(scene)


def test_what_a_broker_is_started_with_is_its_config_whatever_it_registers() -> None:
    async def scene(assembly: Assembly) -> None:
        for number, host in assembly.hosts.items():
            image, settings = host.runner.image, host.runner.settings
            described = {one.key: host.runner.own_config(one) for one in broker_values(image, settings, number)}
            assert described["node.id"].value == str(number)
            assert described["advertised.listeners"].value == "PLAINTEXT://{}:{}".format(*host.server.address)
            assert described["min.insync.replicas"].value == "1"
            # Old protocol versions register none.
            rack = host.runner.own_config(ConfigValue("broker.rack", None, ConfigSource.DEFAULT, ()))
            assert (rack.value, rack.source) == (f"r{number}", ConfigSource.STATIC)
            assert rack.synonyms == (("broker.rack", rack.value, ConfigSource.STATIC),)

    run(scene)


def test_ids_of_members_follow_from_the_seed_and_differ_from_broker_to_broker() -> None:
    drawn: list[list[int]] = []

    async def scene(assembly: Assembly) -> None:
        drawn.append([host.runner.groups._context.rng.getrandbits(64) for host in assembly.hosts.values()])

    run(scene)
    run(scene)
    assert drawn[0] == drawn[1]
    assert drawn[0][0] != drawn[0][1]
