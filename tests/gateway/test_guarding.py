"""The parts behind acknowledgements that read the cluster: the controllers' log at start, and min.insync.replicas."""

import asyncio
from types import SimpleNamespace
from typing import Any, cast
from uuid import UUID

import pytest

from rackspan.acks.min_insync_racks import Thresholds
from rackspan.acks.verification import Requirement
from rackspan.errors import ClusterUnauthorized, ClusterUnreachable, RackspanError
from rackspan.gateway import guarding
from rackspan.gateway.backend import Backend
from rackspan.gateway.config import parse_config
from rackspan.gateway.core.acknowledgement.guard import AcknowledgementMode, GuardSettings
from rackspan.gateway.core.config_lease import LEASE_SECONDS
from rackspan.gateway.core.policies import Entry, FilePolicies, Policies, Scope, TopicPolicy, record
from rackspan.gateway.guarding import Guarding
from rackspan.gateway.handlers.produce import AdvisingHandler, ProduceHandler
from rackspan.gateway.upstream.guard_readers import BrokerMetadata, CommittedMetadata
from rackspan.kafka_bytes.config_resources import ConfigResourceType
from rackspan.wire.apis import ApiKey
from rackspan.wire.messages.configs import (
    DescribeConfigsResourceResult,
    DescribeConfigsResponseData,
    DescribeConfigsResult,
)
from rackspan.wire.messages.metadata import MetadataRequestData, MetadataResponseData, MetadataResponseTopic
from tests.gateway.core.addresses import renamed
from tests.gateway.running import document
from tests.gateway.sleeps import Sleeps
from tests.waiting import WITHIN_SECONDS


class Quorum:
    """Controllers that respond, or fail with this."""

    def __init__(self, error: BaseException | None) -> None:
        self._error = error
        self.closed = False

    async def current(self) -> None:
        if self._error is not None:
            raise self._error

    def close(self) -> None:
        self.closed = True


def opened(quorum: Quorum, **controllers: str) -> object:
    config = parse_config(document("127.0.0.1:1", **controllers))
    backend = SimpleNamespace(config=config, quorum=lambda: quorum)
    return asyncio.run(guarding._open_quorum(cast("Backend", backend)))


STRICT = {"controllers.bootstrap.servers": "127.0.0.1:2"}


def test_the_controllers_log_is_read_in_mode_strict_alone() -> None:
    quorum = Quorum(None)
    assert opened(quorum, **STRICT) is quorum
    assert not quorum.closed
    assert opened(quorum) is None


@pytest.mark.parametrize(
    ("error", "raised", "words"),
    [
        (TimeoutError(), ClusterUnreachable, "the controllers' log cannot be read: TimeoutError"),
        (ConnectionRefusedError("refused"), ClusterUnreachable, "the controllers' log cannot be read: refused"),
        (ClusterUnauthorized("no right"), ClusterUnauthorized, "no right"),
        (asyncio.CancelledError(), asyncio.CancelledError, ""),
    ],
)
def test_a_controllers_log_that_cannot_be_read_ends_the_start(
    error: BaseException, raised: type[BaseException], words: str
) -> None:
    quorum = Quorum(error)
    with pytest.raises(raised, match=f"^{words}$"):
        opened(quorum, **STRICT)
    assert quorum.closed


def made_of(quorum: Quorum | None = None, config_topic: object = None, **tables: Any) -> Guarding:
    """On the running loop."""
    backend = Backend(parse_config(document("127.0.0.1:1", **tables)))
    return Guarding(backend, renamed(), cast("Any", config_topic), cast("Any", quorum))


@pytest.mark.parametrize(
    ("tables", "quorum", "handler", "source", "has_isr"),
    [
        ({}, None, ProduceHandler, BrokerMetadata, False),
        ({"listen": {"http": "127.0.0.1:0"}}, None, ProduceHandler, BrokerMetadata, True),
        ({"acknowledgements": {"mode": "pre"}}, None, ProduceHandler, BrokerMetadata, False),
        ({"acknowledgements": {"mode": "advisory"}}, None, AdvisingHandler, BrokerMetadata, False),
        (STRICT, Quorum(None), ProduceHandler, CommittedMetadata, False),
    ],
)
def test_each_mode_has_its_parts(
    tables: dict[str, Any], quorum: Quorum | None, handler: type, source: type, has_isr: bool
) -> None:
    async def scenario() -> None:
        made = made_of(quorum, **tables)
        assert (type(made.produce), type(made._source)) == (handler, source)
        assert (made.isr is not None, made.quorum) == (has_isr, quorum)
        made.close()
        assert quorum is None or quorum.closed

    asyncio.run(scenario())


def test_a_record_has_to_meet_what_its_topic_requires_by_then() -> None:
    async def scenario() -> None:
        made = made_of(topics={"orders": {"min": {"insync": {"racks": 2}}}})
        policies = made._backend.policies
        hold = made.guard.forwarded(1, {("orders", 0): Requirement(Thresholds(1, 3))}, until=30.0)
        assert hold is not None
        assert not made.guard.acknowledged(hold, {("orders", 0): 5}, 0.0)
        assert (
            hold.waiting["orders", 0].requirement == policies.requirement("orders", 1) == Requirement(Thresholds(1, 2))
        )

    asyncio.run(scenario())


def test_the_settings_of_the_guard_are_those_of_the_config_and_a_reload_takes_them_over() -> None:
    async def scenario() -> None:
        times = {"max": {"staleness": {"ms": 250}}, "hold": {"memory": {"bytes": 70_000}}}
        made = made_of(acknowledgements=times)
        verified = AcknowledgementMode.VERIFIED
        assert made.guard.settings == GuardSettings(verified, max_staleness_seconds=0.25, hold_memory_bytes=70_000)
        made.reload(parse_config(document("127.0.0.1:1")))
        assert made.guard.settings == GuardSettings(verified, max_staleness_seconds=1.0, hold_memory_bytes=33_554_432)

    asyncio.run(scenario())


class Ends:
    """The reader of a config topic's log ends; how long it was waited for."""

    def __init__(self) -> None:
        self.began: list[float] = []
        self.renewed = lambda: None

    async def begin(self, seconds: float) -> None:
        self.began.append(seconds)

    async def follow(self) -> None: ...

    def is_current(self) -> bool:
        return False


class Topic:
    """A config topic whose start ends with this; what was done with it."""

    def __init__(self, error: BaseException | None = None) -> None:
        self._error = error
        self.done: list[str] = []
        self.ends = Ends()

    async def start(self) -> None:
        self.done.append("start")
        if self._error is not None:
            raise self._error

    async def follow(self) -> None:
        self.done.append("follow")

    def close(self) -> None:
        self.done.append("close")


def test_everything_that_is_read_again_is_read_until_the_end() -> None:
    async def scenario() -> None:
        topic = Topic()
        of_none, of_all = made_of(), made_of(config_topic=topic, listen={"http": "127.0.0.1:0"})
        found = []
        for made in (of_none, of_all):
            tasks = list(made.tasks())
            found.append([cast("Any", task).__qualname__ for task in tasks])
            for task in tasks:
                task.close()
        own = ["Guarding._follow_replicas", "UnenforcedValues.follow", "Guarding._end_log_periods"]
        assert found == [own, ["Topic.follow", "Ends.follow", "GuardedIsr.follow", *own]]
        closed = list[str]()
        of_all.produce = cast("Any", SimpleNamespace(close=lambda: closed.append("produce")))
        of_all._source = cast("Any", SimpleNamespace(close=lambda: closed.append("source")))
        of_all.close()
        assert (closed, topic.done) == (["produce", "source"], ["close"])

    asyncio.run(scenario())


@pytest.mark.parametrize(("mode", "reads"), [("advisory", False), ("pre", True), ("verified", True)])
def test_log_ends_of_the_config_topic_are_read_where_something_is_refused_by_its_values(mode: str, reads: bool) -> None:
    async def scenario() -> None:
        made = made_of(config_topic=Topic(), acknowledgements={"mode": mode})
        assert (made.ends is not None, made.guard.is_leased()) == (reads, not reads)
        for task in made.tasks():
            task.close()

    asyncio.run(scenario())


@pytest.mark.parametrize(
    ("start", "quorum", "done"),
    [
        (None, None, ["start"]),
        (ClusterUnreachable("no leader"), None, ["start", "close"]),
        (None, ClusterUnauthorized("no right"), ["start", "close"]),
        (None, asyncio.CancelledError(), ["start", "close"]),
    ],
)
def test_a_config_topic_is_read_at_the_start_and_closed_if_that_fails(
    start: BaseException | None, quorum: BaseException | None, done: list[str]
) -> None:
    async def scenario() -> None:
        backend: Any = Backend(parse_config(document("127.0.0.1:1", **STRICT)))
        topic, controllers, names = Topic(start), Quorum(quorum), list[str]()

        def config_topic(name: str) -> Topic:
            names.append(name)
            return topic

        backend.config_topic, backend.quorum = config_topic, lambda: controllers
        opening = guarding.open_guarding(backend, renamed())
        if done == ["start"]:
            made: Any = await opening
            assert (made.config_topic, made.quorum) == (topic, controllers)
            assert topic.ends.began == [LEASE_SECONDS]
            assert made.guard.is_leased() is False
            assert topic.ends.renewed == made.produce.leased
        else:
            with pytest.raises((ClusterUnreachable, ClusterUnauthorized, asyncio.CancelledError)):
                await opening
        assert (names, topic.done) == (["__rackspan_configs"], done)

    asyncio.run(scenario())


class Describing:
    """A cluster, and a connection to it, that describes the topics' configs, or fails with this."""

    def __init__(self, *results: DescribeConfigsResult) -> None:
        self.results = results
        self.requested: list[tuple[int, str, list[str]]] = []
        self.error: Exception | None = None

    async def any_connection(self) -> "Describing":
        if self.error is not None:
            raise self.error
        return self

    async def call(self, _key: int, request: Any) -> DescribeConfigsResponseData:
        self.requested = [(one.resource_type, one.resource_name, one.configuration_keys) for one in request.resources]
        return DescribeConfigsResponseData(results=self.results)


def guarding_of(cluster: Describing, *topics: str) -> tuple[Guarding, Policies]:
    policies = Policies(FilePolicies(topics={topic: TopicPolicy(2) for topic in topics}))
    made = Guarding.__new__(Guarding)
    made._backend = cast("Backend", SimpleNamespace(cluster=cluster, policies=policies))
    return made, policies


def described(topic: str, value: str | None) -> DescribeConfigsResult:
    configs = [DescribeConfigsResourceResult(name="min.insync.replicas", value=value)]
    return DescribeConfigsResult(resource_name=topic, configs=configs)


def test_min_insync_replicas_of_guarded_topics_is_read() -> None:
    cluster = Describing(described("orders", "2"), described("pay", None))
    made, policies = guarding_of(cluster, "orders", "pay")
    asyncio.run(made._read_replicas())
    assert policies.min_insync_replicas == {"orders": 2}
    topic, keys = ConfigResourceType.TOPIC, ["min.insync.replicas"]
    assert sorted(cluster.requested) == [(topic, "orders", keys), (topic, "pay", keys)]


def test_without_a_guarded_topic_nothing_is_requested() -> None:
    cluster = Describing()
    cluster.error = ClusterUnreachable("not to be reached")
    asyncio.run(guarding_of(cluster)[0]._read_replicas())
    asyncio.run(guarding_of(cluster)[0]._read_topic_ids())


def test_the_ids_of_topics_with_lower_values_are_read_since_nothing_samples_those() -> None:
    """Such a topic requires one rack, so that no request of a client has it sampled; it may be created anew without that value."""
    policies = Policies(FilePolicies(min_insync_racks=2))
    policies.replay(*record(Scope.TOPIC, "scratch", Entry(1, UUID(int=1))))
    made = Guarding.__new__(Guarding)
    required: list[bool] = []
    reported = iter((1, 2))

    async def any_connection() -> Any:
        return connection

    async def call(key: int, request: MetadataRequestData, **_: float) -> MetadataResponseData:
        assert (key, [topic.name for topic in request.topics or ()]) == (ApiKey.METADATA, ["scratch"])
        return MetadataResponseData(topics=[MetadataResponseTopic(name="scratch", topic_id=UUID(int=next(reported)))])

    connection = SimpleNamespace(call=call)
    made._backend = cast(
        "Backend", SimpleNamespace(cluster=SimpleNamespace(any_connection=any_connection), policies=policies)
    )
    for _ in range(2):
        asyncio.run(made._read_topic_ids())
        required.append(policies.requirement("scratch", 1) is not None)
    assert required == [False, True]


def test_min_insync_replicas_is_read_every_five_seconds(monkeypatch: pytest.MonkeyPatch) -> None:
    sleeps = Sleeps(2)
    monkeypatch.setattr(asyncio, "sleep", sleeps)
    made, policies = guarding_of(Describing(described("orders", "2")), "orders")
    with pytest.raises(asyncio.CancelledError):
        asyncio.run(made._follow_replicas())
    assert (sleeps.seconds, policies.min_insync_replicas) == ([5.0, 5.0], {"orders": 2})


def test_the_lines_of_refusals_are_limited_anew_every_second(monkeypatch: pytest.MonkeyPatch) -> None:
    sleeps, ended = Sleeps(3), list[int]()
    monkeypatch.setattr(asyncio, "sleep", sleeps)
    made, _ = guarding_of(Describing())
    refusals = SimpleNamespace(end_period=lambda: ended.append(len(sleeps.seconds)))
    made.produce = cast("Any", SimpleNamespace(refusals=refusals))
    with pytest.raises(asyncio.CancelledError):
        asyncio.run(made._end_log_periods())
    assert (sleeps.seconds, ended) == ([1.0, 1.0, 1.0], [1, 2])


@pytest.mark.parametrize("error", [OSError("gone"), TimeoutError("gone"), RackspanError("gone")])
def test_min_insync_replicas_that_cannot_be_read_is_logged_and_read_again(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, error: Exception
) -> None:
    monkeypatch.setattr(guarding, "REPLICAS_SECONDS", 0)
    cluster = Describing(described("orders", "3"))
    made, policies = guarding_of(cluster, "orders")
    cluster.error = error

    async def scenario() -> None:
        following = asyncio.create_task(made._follow_replicas())
        await asyncio.sleep(0.01)
        cluster.error = None
        async with asyncio.timeout(WITHIN_SECONDS):
            while policies.min_insync_replicas != {"orders": 3}:
                await asyncio.sleep(0.001)
        following.cancel()

    asyncio.run(scenario())
    assert set(caplog.messages) == {"ids or min.insync.replicas of topics could not be read: gone"}
