"""Log ends read from brokers: what each response is taken for, and that a broker without a response holds up nobody else."""

import asyncio
import logging
from collections.abc import Iterable, Sequence
from random import Random
from types import SimpleNamespace
from typing import Any, cast

import pytest

from rackspan.acks.isr_samples import LogEnd, LogEnds, LogRead, Sample, SampledPartition
from rackspan.acks.min_insync_racks import Thresholds, rack_bits
from rackspan.acks.verification import Requirement
from rackspan.client.identity import IdentityMode
from rackspan.client.login import Login
from rackspan.gateway.core.acknowledgement.guard import AcknowledgementGuard, GuardSettings, Hold
from rackspan.gateway.core.policies import FilePolicies, Policies
from rackspan.gateway.upstream import guard_readers
from rackspan.gateway.upstream.cluster import UpstreamCluster
from rackspan.gateway.upstream.guard_readers import BrokerMetadata, BrokerRead, IsrSampler, IsrSource, LogEndReader
from rackspan.model import Broker, BrokerId, RackId
from rackspan.wire.messages.fetch import (
    FetchResponsePartitionData,
)
from tests.client.fake_broker import ProvingBroker
from tests.client.test_observations import END, ORDERS, TOPIC_ID, data, responding
from tests.waiting import WITHIN_SECONDS

BITS = rack_bits([Broker(BrokerId(one), RackId(rack)) for one, rack in {1: "a", 2: "b", 3: "c"}.items()])


def sample(requested_at: float) -> Sample:
    state = SampledPartition(1, 5, (BrokerId(1), BrokerId(2), BrokerId(3)))
    return Sample(1, requested_at, BITS, frozenset({"orders"}), {ORDERS: state}, {"orders": TOPIC_ID})


async def completed_by(
    *responses: FetchResponsePartitionData | None,
    seconds: float,
    placed: Sequence[int] = (2, 3),
    identity: IdentityMode = IdentityMode.PROVED,
) -> list[Hold]:
    """Of one hold with brokers 2 and 3 to read, at whose addresses those of `placed` respond.

    None: the broker takes connections and gives no response to a Fetch.
    """
    fakes = [ProvingBroker(broker) for broker in placed]
    cluster = UpstreamCluster("127.0.0.1:1", Login(), Random(1), identity=identity)
    cluster.cluster_id, loop = "c", asyncio.get_running_loop()
    for number, (fake, response) in enumerate(zip(fakes, responses, strict=True), 2):
        await fake.start()
        cluster.record(number, "127.0.0.1", fake.port)
        if response is not None:
            responding(fake, response)
    guard = AcknowledgementGuard(GuardSettings())
    done: list[Hold] = []

    def completed(holds: Iterable[Hold]) -> None:
        done.extend(holds)
        reader.wake()

    reader = LogEndReader(guard, cluster, completed)
    # Not fresh any more when the record is acknowledged, so that the leader's own log need not be read.
    guard.observe(sample(loop.time() - 1))
    hold = guard.forwarded(1, {ORDERS: Requirement(Thresholds(1, 2))}, until=30.0)
    assert hold is not None
    guard.acknowledged(hold, {ORDERS: END}, loop.time())
    completed(guard.observe(sample(loop.time())))
    until = loop.time() + seconds
    while not done and loop.time() < until:
        await asyncio.sleep(0.01)
    reader.close()
    cluster.close()
    for fake in fakes:
        await fake.close()
    return done


def test_a_broker_that_does_not_respond_holds_up_nobody() -> None:
    (hold,) = asyncio.run(completed_by(None, data(epoch=5, end=END), seconds=1.5))
    assert not hold.refusals


@pytest.mark.parametrize("identity", list(IdentityMode))
def test_the_log_of_the_leader_at_a_followers_address_completes_nothing(
    identity: IdentityMode, caplog: pytest.LogCaptureFixture
) -> None:
    done = asyncio.run(completed_by(None, data(epoch=5, end=END), seconds=0.5, placed=(2, 1), identity=identity))
    by_address = identity is IdentityMode.ADDRESS
    assert [hold.refusals for hold in done] == ([{}] if by_address else [])
    assert (
        any("another one responds at the address of broker 3" in one.message for one in caplog.records)
        is not by_address
    )


def test_a_right_that_is_missing_is_logged_with_what_to_grant(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.ERROR)
    assert asyncio.run(completed_by(data(error=29), data(error=29), seconds=0.5)) == []
    assert sorted(one.message for one in caplog.records if one.name == guard_readers.__name__) == [
        f"broker {one} refuses to let the gateway read topic orders, so that nothing is acknowledged on it: "
        "grant READ on it to the principal of command.config"
        for one in (2, 3)
    ]


def test_a_topic_that_is_refused_all_the_time_is_logged_once_a_minute(caplog: pytest.LogCaptureFixture) -> None:
    async def scenario() -> None:
        cluster = UpstreamCluster("127.0.0.1:1", Login(), Random(1))
        reader = LogEndReader(AcknowledgementGuard(GuardSettings()), cluster, lambda _: None)
        clock = SimpleNamespace(now=1000.0)
        reader._loop = SimpleNamespace(time=lambda: clock.now)  # type: ignore[assignment]
        for second in range(121):
            clock.now = 1000.0 + second
            reader._log_refused(1, {LogRead(ORDERS, TOPIC_ID, 5): 29})
            reader._log_refused(2, {LogRead(("pay", 0), TOPIC_ID, 5): 3})
        reader.close()
        cluster.close()

    asyncio.run(scenario())
    lines = [record.getMessage() for record in caplog.records]
    assert len([line for line in lines if line.startswith("broker 1 refuses to let")]) == 3
    assert lines.count("broker 2: the log of topic pay could not be read: error 3") == 3


class Holding:
    """A guard that holds responses until so many of them have expired, and whose metadata is ahead of the logs."""

    def __init__(self, holds: int) -> None:
        self.held = holds
        self.settings = GuardSettings()

    def next_sample_at(self, _broker: int, _covered: float) -> None:
        return None

    def expire(self, _now: float) -> Sequence[str]:
        self.held -= 1
        return [f"hold {self.held}"]

    def disagreement(self, _now: float) -> str:
        return "late records"


def test_holds_expire_as_long_as_there_are_any_and_late_records_are_logged_now_and_then(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(guard_readers, "_EXPIRY_SECONDS", 0)

    async def scenario() -> list[object]:
        guard, expired = Holding(3), list[object]()
        sampler = IsrSampler(cast("AcknowledgementGuard", guard), cast("IsrSource", None), expired.extend)
        # The check ends with the last hold, and begins again with another.
        for further in (0, 1):
            guard.held += further
            sampler.wake(1)
            async with asyncio.timeout(WITHIN_SECONDS):
                while sampler._expiry is not None:
                    await asyncio.sleep(0.001)
        sampler.close()
        return expired

    assert asyncio.run(scenario()) == ["hold 2", "hold 1", "hold 0", "hold 0"]
    assert caplog.messages == ["late records"]


class Reading:
    """A guard that requires these log ends of replica 2, and a cluster with a connection to it."""

    def __init__(self, *due: LogRead) -> None:
        self.due = frozenset(due)
        self.observed: list[LogEnds] = []
        self.settings = GuardSettings()

    async def connection(self, broker: int) -> int:
        return broker

    def reads_due(self, _replica: BrokerId, _now: float) -> frozenset[LogRead]:
        return self.due

    def observe_log_ends(self, ends: LogEnds) -> list[str]:
        self.observed.append(ends)
        return ["complete"]

    def replicas_to_read(self) -> tuple[()]:
        return ()


def test_log_ends_that_are_due_are_read_within_two_seconds_counted_and_judged(monkeypatch: pytest.MonkeyPatch) -> None:
    read, end = LogRead(("orders", 0), None, 5), LogEnd(5, 9)
    requested: list[object] = []

    async def read_log_ends(connection: int, reads: frozenset[LogRead], seconds: float) -> object:
        requested.append((connection, reads, seconds))
        return {read: end}, {}

    async def scenario(guard: Reading) -> tuple[int, list[object]]:
        completed: list[object] = []
        reader = LogEndReader(cast("Any", guard), cast("Any", guard), completed.extend)
        await reader._read(2, BrokerRead())
        return reader.reads, completed

    monkeypatch.setattr(guard_readers, "read_log_ends", read_log_ends)
    guard = Reading(read)
    assert asyncio.run(scenario(guard)) == (1, ["complete"])
    assert requested == [(2, {read}, 2.0)]
    (observed,) = guard.observed
    assert observed == LogEnds(BrokerId(2), observed.requested_at, frozenset({read}), {read: end})
    assert asyncio.run(scenario(Reading())) == (0, [])
    assert len(requested) == 1


class Sampled:
    """A guard that requires samples of broker 1 as long as `due`, and counts what it observes."""

    def __init__(self) -> None:
        self.due = True
        self.held = 0
        self.observed: list[object] = []
        self.settings = GuardSettings()

    def next_sample_at(self, _broker: int, covered: float) -> float | None:
        return 0.0 if self.due and covered < 0 else None

    def topics_to_sample(self, _broker: int, _now: float) -> frozenset[str]:
        return frozenset({"orders"})

    def observe(self, sample: object) -> list[str]:
        self.observed.append(sample)
        self.due = False
        return ["complete"]


class Failing:
    """A source that fails so often, and then has a sample."""

    def __init__(self, *errors: Exception) -> None:
        self.errors = list(errors)
        self.topics: list[frozenset[str]] = []

    async def prepare(self, _broker: int) -> None:
        """Nothing takes long here."""

    async def sample(self, _broker: int, _requested_at: float, topics: frozenset[str]) -> str:
        self.topics.append(topics)
        if self.errors:
            raise self.errors.pop(0)
        return "sample"


def test_a_broker_that_cannot_be_sampled_is_logged_once_and_holds_up_no_request(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(guard_readers, "_BACKOFF_SECONDS", 0)

    async def scenario() -> None:
        guard, completed = Sampled(), list[object]()
        source = Failing(OSError("gone"), TimeoutError("late"), OSError("gone"))
        sampler = IsrSampler(cast("AcknowledgementGuard", guard), cast("IsrSource", source), completed.extend)
        async with asyncio.timeout(WITHIN_SECONDS):
            # Done at the first error: the request is refused or waits for others, it is not forgotten.
            await sampler.sampled(1, ["pay"])
            assert sampler.samples == 0
            assert sampler.failing
            while not completed:
                await asyncio.sleep(0.001)
        assert (sampler.samples, sampler.failures, sampler.failing) == (1, 3, False)
        assert (guard.observed, completed) == (["sample"], ["complete"])
        assert source.topics == [frozenset({"orders", "pay"}), *[frozenset({"orders"})] * 3]
        # Another failure after a success is another line.
        guard.due, source.errors = True, [ConnectionError("gone again")]
        sampler.wake(1)
        async with asyncio.timeout(WITHIN_SECONDS):
            while sampler.samples < 2:
                await asyncio.sleep(0.001)
        sampler.close()

    asyncio.run(scenario())
    assert caplog.messages == [
        "broker 1 could not be sampled: OSError: gone",
        # Another reason is another line: not the same one again.
        "broker 1 could not be sampled: TimeoutError: late",
        "broker 1 could not be sampled: ConnectionError: gone again",
    ]


class Slow:
    """A source whose samples come when they are let go."""

    def __init__(self) -> None:
        self.requested: list[set[str]] = []
        self.go_on = asyncio.Event()

    async def prepare(self, _broker: int) -> None:
        """Nothing takes long here."""

    async def sample(self, _broker: int, _requested_at: float, topics: frozenset[str]) -> str:
        self.requested.append(set(topics))
        await self.go_on.wait()
        return "sample"


def test_a_topic_is_sampled_anew_beside_a_sample_of_others_and_not_beside_one_of_its_own() -> None:
    """Else the next record of it waits for the response of a broker that is slow just now, and then for its own sample."""

    async def scenario() -> None:
        guard, source = Sampled(), Slow()
        guard.due = False
        guard.topics_to_sample = lambda _broker, _now: frozenset()  # type: ignore[method-assign]
        sampler = IsrSampler(cast("AcknowledgementGuard", guard), cast("IsrSource", source), lambda _: None)
        async with asyncio.timeout(WITHIN_SECONDS):
            sampler.renew(1, {"pay"})
            while source.requested != [{"pay"}]:
                await asyncio.sleep(0.001)
            sampler.renew(1, {"pay"})
            sampler.renew(1, {"pay", "orders"})
            while source.requested != [{"pay"}, {"orders"}]:
                await asyncio.sleep(0.001)
            sampler.renew(1, {"pay", "orders"})
            source.go_on.set()
            while sampler.samples < 2:
                await asyncio.sleep(0.001)
            sampler.renew(1, {"pay"})
            while sampler.samples < 3:
                await asyncio.sleep(0.001)
        assert source.requested == [{"pay"}, {"orders"}, {"pay"}]
        sampler.close()

    asyncio.run(scenario())


def test_a_connection_whose_metadata_could_not_be_read_is_closed(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is behind a request without a response waits with it."""
    closed: list[bool] = []
    connection = SimpleNamespace(close=lambda: closed.append(True))

    async def connected(_broker: int) -> object:
        return connection

    async def suspended(*_: object) -> None:
        raise TimeoutError

    monkeypatch.setattr(guard_readers, "read_metadata", suspended)
    source = BrokerMetadata(cast("UpstreamCluster", SimpleNamespace(connection=connected)), Policies(FilePolicies()))
    with pytest.raises(TimeoutError):
        asyncio.run(source.sample(1, 0.0, frozenset({"orders"})))
    assert closed == [True]


def test_log_ends_that_cannot_be_read_are_counted() -> None:
    class Reading:
        """A guard that requires log ends of broker 2, which is not known."""

        def replicas_to_read(self) -> list[int]:
            return [2]

        def next_read_at(self, _broker: int, covered: float) -> float | None:
            return 0.0 if covered < 0 else None

    async def scenario() -> int:
        cluster = UpstreamCluster("127.0.0.1:1", Login(), Random(1))
        reader = LogEndReader(cast("AcknowledgementGuard", Reading()), cluster, lambda _: None)
        reader.wake()
        async with asyncio.timeout(WITHIN_SECONDS):
            while reader.failures < 3:
                await asyncio.sleep(0.001)
        reader.close()
        return reader.reads

    assert asyncio.run(scenario()) == 0
