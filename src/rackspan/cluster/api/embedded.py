"""EmbeddedCluster: a Kafka cluster with racks inside this process, for tests in ordinary Python.

One thread runs one asyncio event loop with all brokers. Every method runs its work in that thread and waits for it.
"""

import asyncio
import logging
import threading
from collections.abc import Coroutine, Mapping, Sequence
from concurrent.futures import Future
from random import Random
from types import TracebackType
from typing import TYPE_CHECKING, Any, Final

from rackspan.cluster.api.administration import Administration
from rackspan.cluster.api.blocking import T
from rackspan.cluster.api.broker_configs import apply_broker_configs, check_start
from rackspan.cluster.api.faults import Faults, rack_id
from rackspan.cluster.api.inspection_methods import InspectionMethods
from rackspan.cluster.core.metadata import NO_LEADER, MetadataImage, PartitionState
from rackspan.cluster.core.settings import ClusterSettings
from rackspan.cluster.host.assembly import Assembly
from rackspan.ends import joined_within
from rackspan.errors import UsageError
from rackspan.model.ids import BrokerId, RackId, TopicPartition

if TYPE_CHECKING:
    from rackspan.prometheus_metrics.server import MetricsServer

log = logging.getLogger(__name__)

START_SECONDS: Final = 60.0
"""A start takes a fraction of a second where the machine has nothing else to do."""


CALL_SECONDS: Final = 120.0
"""For one method. All brokers start in a fraction of a second where the machine has nothing else to do."""


class EmbeddedCluster(Faults, InspectionMethods):
    """A Kafka cluster in memory, for development and tests.

    `racks` is their number (named r1, r2 …) or their names, None for brokers without a rack. Brokers have the ids 1, 2 …
    and go to the racks in turn. `config` takes broker configs by Kafka's names, `settings` everything else.
    """

    def __init__(
        self,
        racks: int | Sequence[str | None] = 3,
        brokers: int = 3,
        *,
        config: Mapping[str, str] | None = None,
        settings: ClusterSettings | None = None,
        seed: int | None = None,
    ) -> None:
        names = rack_names(racks)
        if brokers < 1:
            raise UsageError(f"brokers {brokers}: a cluster has at least one")
        self.racks = names
        self._rack_of = {BrokerId(index + 1): names[index % len(names)] for index in range(brokers)}
        self._settings = apply_broker_configs(settings or ClusterSettings(), config or {}, brokers)
        check_start(self._settings, self._rack_of)
        self._rng = Random(seed)
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None
        self._assembly: Assembly | None = None
        self._metrics_server: MetricsServer | None = None
        self._serving = False

    # Start and end.

    def __enter__(self) -> "EmbeddedCluster":
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def start(self) -> None:
        """Returns when every broker is registered and listens on loopback. Errors: TimeoutError."""
        if self._thread is not None:
            raise UsageError("this cluster has been started already; make another one")
        ready: Future[None] = Future()
        self._thread = threading.Thread(target=self._run_loop, args=(ready,), name="rackspan-cluster", daemon=True)
        self._thread.start()
        try:
            ready.result(START_SECONDS + 5)
        except BaseException:
            self.close()
            raise
        log.info("embedded cluster for development and tests: %s", self.bootstrap_servers)

    def close(self) -> None:
        """Stop every broker and release the ports. All records are lost."""
        if self._metrics_server is not None:
            self._metrics_server.close()
            self._metrics_server = None
        # A cluster that did not start has ended its loop already.
        if self._loop is not None and self._serving:
            self._loop.call_soon_threadsafe(self._loop.stop)
        if self._thread is not None:
            joined_within("the embedded cluster", self._thread)

    def _run_loop(self, ready: "Future[None]") -> None:
        loop = self._loop = asyncio.new_event_loop()
        try:
            loop.run_until_complete(self._put_together())
            self._serving = True
            ready.set_result(None)
            loop.run_forever()
        except BaseException as error:
            # Raised by `start`, which waits for it.
            ready.set_exception(error)
        finally:
            self._serving = False
            if self._assembly is not None:
                self._assembly.stop()
            _close(loop)

    async def _put_together(self) -> None:
        self._assembly = Assembly(self._rack_of, self._settings, self._rng)
        self._administration = Administration(self._assembly)
        await self._assembly.start(START_SECONDS)

    def _run(self, coroutine: Coroutine[Any, Any, T], seconds: float = CALL_SECONDS) -> T:
        """Errors: TimeoutError."""
        # The loop may not run again yet when `start` returns; what it is given before that runs then.
        if self._loop is None or not self._serving:
            coroutine.close()
            raise UsageError("this cluster is not running; use it inside `with EmbeddedCluster(...) as cluster:`")
        running = asyncio.run_coroutine_threadsafe(coroutine, self._loop)
        try:
            return running.result(seconds)
        except TimeoutError:
            if running.done():
                raise
            running.cancel()
            raise TimeoutError(
                f"the cluster's thread had no result in {seconds:g} s; a call from its own thread never gets one"
            ) from None

    @property
    def _running(self) -> Assembly:
        if self._assembly is None:
            raise UsageError("this cluster is not running; use it inside `with EmbeddedCluster(...) as cluster:`")
        return self._assembly

    # Addresses and racks.

    @property
    def bootstrap_servers(self) -> str:
        """Every broker's address, for any Kafka client."""
        return ",".join(self.address(broker) for broker in self.brokers)

    @property
    def brokers(self) -> tuple[BrokerId, ...]:
        return tuple(self._rack_of)

    @property
    def cluster_id(self) -> str:
        return self._running.cluster_id

    def address(self, broker: int) -> str:
        """HOST:PORT of one broker, running or not."""
        host, port = self._host(broker).server.address
        return f"{host}:{port}"

    def rack(self, broker: int) -> RackId | None:
        return self._host(broker).rack

    # The controller's metadata.

    def leader(self, topic: str, partition: int) -> BrokerId | None:
        """None while no broker may lead the partition."""
        leader = self._partition(topic, partition).leader
        return None if leader == NO_LEADER else leader

    def isr(self, topic: str, partition: int) -> set[BrokerId]:
        """The in-sync replicas, as the controller has committed them."""
        return set(self._partition(topic, partition).isr)

    def replicas(self, topic: str, partition: int) -> tuple[BrokerId, ...]:
        return self._partition(topic, partition).replicas

    def _partition(self, topic: str, partition: int) -> PartitionState:
        state = self._running.image.partition(TopicPartition(topic, partition))
        if state is None:
            raise UsageError(f"{topic}-{partition}: no such partition in this cluster; create the topic first")
        return state

    def wait_for_isr(self, topic: str | None = None, *, seconds: float = 10.0) -> None:
        """Wait until all replicas of the topic's partitions, or of every partition, are in sync. Errors: TimeoutError."""
        waiting = self._running.wait_for(lambda: _in_sync(self._running.image, topic), seconds)
        self._run(waiting, seconds + CALL_SECONDS)

    # Administration, for tests without an admin client.

    def create_topic(
        self,
        topic: str,
        partitions: int = -1,
        replication_factor: int = -1,
        *,
        config: Mapping[str, str] | None = None,
        replicas: Sequence[Sequence[int]] | None = None,
    ) -> None:
        """-1 is the cluster's default; `replicas` lists each partition's brokers. Errors: UsageError with Kafka's reason."""
        self._run(self._administration.create(topic, partitions, replication_factor, config or {}, replicas or ()))

    def alter_topic(self, topic: str, **config: str | int | None) -> None:
        """Set configs, underscores for Kafka's dots; None removes the topic's own value. Errors: UsageError."""
        self._run(self._administration.alter(topic, config))

    def reset(self) -> None:
        """Undo all faults; delete all topics, groups, transactions and dynamic configs; count traffic and metrics from 0."""
        self.undo_faults()
        self._run(self._administration.delete_everything())


def rack_names(racks: int | Sequence[str | None]) -> tuple[RackId | None, ...]:
    """The names of a number of racks, r1, r2 …, or the names given. Errors: UsageError."""
    if isinstance(racks, str):
        raise UsageError(f"racks {racks!r}: a cluster has a number of racks, or a list of names; write [{racks!r}]")
    if isinstance(racks, int):
        names: tuple[RackId | None, ...] = tuple(RackId(f"r{index + 1}") for index in range(racks))
    else:
        names = tuple(map(rack_id, racks))
    if not names:
        raise UsageError("racks: a cluster has at least one; give a number or names, None for brokers without a rack")
    return names


def _in_sync(image: MetadataImage, topic: str | None) -> bool:
    topics = image.topics.values() if topic is None else [image.topics[topic]]
    return all(set(state.isr) == set(state.replicas) for topic_image in topics for state in topic_image.partitions)


def _close(loop: asyncio.AbstractEventLoop) -> None:
    # Requests taken in the last turn begin first: a task cancelled before it begins never awaits its handler.
    loop.run_until_complete(asyncio.sleep(0))
    for task in asyncio.all_tasks(loop):
        task.cancel()
    loop.run_until_complete(asyncio.sleep(0))
    loop.close()
