"""The cluster's own loop, and what its brokers owe to it."""

import asyncio
import re
import time
from random import Random

import pytest

from rackspan.cluster.core.settings import ClusterSettings
from rackspan.cluster.host.assembly import Assembly, _cluster_id
from rackspan.errors import UsageError
from rackspan.model.ids import BrokerId, RackId
from tests.waiting import WITHIN_SECONDS


def test_a_cluster_id_is_one_of_kafkas_and_no_option_of_a_command() -> None:
    ids = [_cluster_id(Random(seed)) for seed in range(300)]
    assert all(re.fullmatch(r"\w[\w-]{21}", cluster_id, re.ASCII) for cluster_id in ids)
    assert len(set(ids)) == 300


def test_no_broker_is_fenced_after_a_suspended_process_resumes() -> None:
    async def stopped_for_several_sessions() -> None:
        settings = ClusterSettings(session_timeout_ms=1_000, heartbeat_interval_ms=100)
        assembly = Assembly({BrokerId(one): RackId(f"r{one}") for one in (1, 2)}, settings, Random(1))
        await assembly.start(10)
        try:
            before = assembly.image.offset
            time.sleep(2.5)  # The loop itself is kept.

            await asyncio.sleep(0.3)
            assert assembly.image.offset == before
        finally:
            assembly.stop()

    asyncio.run(stopped_for_several_sessions())


def test_timeouts_are_kept_after_a_tick_that_failed(monkeypatch: pytest.MonkeyPatch) -> None:
    """A clock that failed once left transactions open and the members of groups in place for good."""

    async def failed_once() -> None:
        settings = ClusterSettings(session_timeout_ms=1_000, heartbeat_interval_ms=100)
        assembly = Assembly({BrokerId(one): RackId(f"r{one}") for one in (1, 2)}, settings, Random(1))
        await assembly.start(10)
        errors: list[object] = []
        asyncio.get_running_loop().set_exception_handler(lambda _, context: errors.append(context["exception"]))
        try:
            with monkeypatch.context() as patch:
                patch.setattr(assembly.controller, "tick", lambda _now: 1 // 0)
                async with asyncio.timeout(WITHIN_SECONDS):
                    while not errors:
                        await asyncio.sleep(0.01)
            assembly.hosts[BrokerId(2)].kill()
            await assembly.wait_for(lambda: not assembly.is_active(BrokerId(2)), WITHIN_SECONDS)
        finally:
            assembly.stop()
        assert {type(error) for error in errors} == {ZeroDivisionError}

    asyncio.run(failed_once())


def test_a_placer_that_cannot_be_loaded_keeps_the_cluster_from_starting() -> None:
    async def scene() -> None:
        settings = ClusterSettings(extra_configs={"replica.placer.class.name": "nowhere:Placer"})
        assembly = Assembly({}, settings, Random(1))
        try:
            with pytest.raises(UsageError, match="nowhere"):
                await assembly.start(10)
        finally:
            assembly.stop()

    asyncio.run(scene())


def test_a_condition_is_checked_again_soon() -> None:
    async def scene() -> None:
        assembly = Assembly({}, ClusterSettings(), Random(1))
        checked = iter([False] * 5 + [True])
        await assembly.wait_for(lambda: next(checked), WITHIN_SECONDS)
        # A cluster that could not be started is stopped too.
        assembly.stop()

    asyncio.run(scene())
