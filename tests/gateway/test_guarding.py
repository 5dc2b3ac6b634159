"""The parts behind acknowledgements that read the cluster: the controllers' log at start, and min.insync.replicas."""

import asyncio
from types import SimpleNamespace
from typing import Any, cast

import pytest

from rackspan.errors import ClusterUnauthorized, ClusterUnreachable, RackspanError
from rackspan.gateway import guarding
from rackspan.gateway.backend import Backend
from rackspan.gateway.config import parse_config
from rackspan.gateway.core.policies import FilePolicies, Policies, TopicPolicy
from rackspan.gateway.guarding import Guarding
from rackspan.kafka_bytes.config_resources import ConfigResourceType
from rackspan.wire.messages.configs import (
    DescribeConfigsResourceResult,
    DescribeConfigsResponseData,
    DescribeConfigsResult,
)
from tests.gateway.running import document
from tests.gateway.sleeps import Sleeps


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
        async with asyncio.timeout(10):
            while policies.min_insync_replicas != {"orders": 3}:
                await asyncio.sleep(0.001)
        following.cancel()

    asyncio.run(scenario())
    assert set(caplog.messages) == {"min.insync.replicas could not be read: gone"}
