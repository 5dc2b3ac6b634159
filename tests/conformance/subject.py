"""The cluster a behaviour is tried on: embedded or Apache Kafka, with one interface.

Three brokers, 1 to 3, in racks r1 to r3; topics never come by themselves; broker 3 may be lost and comes back.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Final
from uuid import uuid4

from rackspan.testing import READS_IN_RACK
from tests.conformance.wire import Body, batch, send, send_raw
from tests.waiting import eventually

RACKS: Final = {1: "r1", 2: "r2", 3: "r3"}
BROKERS: Final = tuple(RACKS)
LOST: Final = 3
"""The broker that is taken away where a behaviour is about that."""

CONFIG: Final = {
    "auto.create.topics.enable": "false",
    # Tests write records of long ago and want to read them.
    "log.retention.check.interval.ms": "86400000",
    "log.cleaner.backoff.ms": "200",
    **READS_IN_RACK,
}


@dataclass(frozen=True)
class Subject:
    """`lose` kills broker 3 and returns at once; `restore` returns when it has registered again.

    `settled` returns when every broker acts on what has been committed by now.
    """

    name: str
    bootstrap_servers: str
    lose: Callable[[], None]
    restore: Callable[[], None]
    settled: Callable[["Subject"], None] = lambda subject: None

    def address(self, broker: int) -> str:
        return self.bootstrap_servers.split(",")[broker - 1]

    # One request, one response.

    def request(self, api: str, version: int, *, broker: int = 1, **body: Any) -> Body:
        return send(self.address(broker), api, version, body)

    def request_raw(self, request: bytes, broker: int = 1) -> bytes | None:
        return send_raw(self.address(broker), request)

    # Topics.

    def topic(
        self,
        partitions: int = 1,
        factor: int = 3,
        *,
        replicas: Sequence[Sequence[int]] = (),
        **configs: object,
    ) -> str:
        """A new topic with leaders, present in the metadata of every broker. Configs are written with _ for the dot."""
        name = fresh("topic")
        (response,) = self.create(new_topic(name, partitions, factor, replicas, **configs))
        assert response["error_code"] == 0, response
        self.await_led(name, partitions=len(replicas) or abs(partitions))
        self.settle()
        return name

    def create(self, *topics: Body, validate_only: bool = False, version: int = 7) -> list[Body]:
        body: Body = {"topics": topics, "timeout_ms": 20_000, "validate_only": validate_only}
        responses: list[Body] = self.request("CreateTopics", version, **body)["topics"]
        return responses

    def await_led(self, topic: str, partitions: int = 1) -> None:
        for partition in range(partitions):
            eventually(partial(self._is_led, topic, partition), f"{topic}-{partition} is led")

    def _is_led(self, topic: str, partition: int) -> bool:
        return self.end(topic, partition) is not None

    def partition(self, topic: str, partition: int = 0, broker: int = 1) -> Body:
        """As one broker's metadata has it; {} where it has not."""
        (response,) = self.request(
            "Metadata", 9, broker=broker, topics=[{"name": topic}], allow_auto_topic_creation=False
        )["topics"]
        return next((one for one in response["partitions"] if one["partition_index"] == partition), {})

    def leader(self, topic: str, partition: int = 0) -> int:
        return int(self.partition(topic, partition).get("leader_id", -1))

    def await_isr(self, topic: str, *brokers: int) -> None:
        wanted = sorted(brokers or BROKERS)
        eventually(lambda: sorted(self.partition(topic).get("isr_nodes", ())) == wanted, f"ISR of {topic} is {wanted}")
        self.settle()

    def settle(self) -> None:
        self.settled(self)

    def end(self, topic: str, partition: int = 0, *, timestamp: int = -1) -> int | None:
        """The leader's high watermark; None while nobody responses for the partition."""
        leader = self.leader(topic, partition)
        if leader < 0:
            return None
        response = self.offsets(topic, timestamp, partition=partition, broker=leader)
        return None if response["error_code"] else int(response["offset"])

    def offsets(self, topic: str, timestamp: int, *, partition: int = 0, broker: int | None = None, version: int = 7, isolation: int = 0) -> Body:  # fmt: skip
        one = {"partition_index": partition, "current_leader_epoch": -1, "timestamp": timestamp}
        requested = [{"name": topic, "partitions": [one]}]
        leader = broker or self.leader(topic, partition)
        body = {"replica_id": -1, "isolation_level": isolation, "topics": requested}
        response: Body = self.request("ListOffsets", version, broker=leader, **body)["topics"][0]["partitions"][0]
        return response

    # Records.

    def produce(
        self,
        topic: str,
        records: bytes = b"",
        *,
        partition: int = 0,
        acks: int = -1,
        broker: int | None = None,
        version: int = 9,
        transactional_id: str | None = None,
    ) -> Body:
        """The partition's part of the response."""
        one = {"index": partition, "records": records or batch(b"one")}
        response = self.request(
            "Produce",
            version,
            broker=broker or self.leader(topic, partition),
            transactional_id=transactional_id,
            acks=acks,
            timeout_ms=10_000,
            topic_data=[{"name": topic, "partition_data": [one]}],
        )
        return {} if acks == 0 else response["responses"][0]["partition_responses"][0]

    def fetch(
        self,
        topic: str,
        offset: int = 0,
        *,
        partition: int = 0,
        broker: int | None = None,
        rack: str = "",
        isolation: int = 0,
        max_wait_ms: int = 300,
        min_bytes: int = 1,
        max_bytes: int = 1 << 24,
        partition_max_bytes: int = 1 << 20,
        leader_epoch: int = -1,
        last_fetched_epoch: int = -1,
    ) -> Body:
        """The partition's part of the response to version 12, the last that goes by names."""
        response = self.fetch_session(
            {topic: {partition: offset}},
            broker=broker or self.leader(topic, partition),
            rack=rack,
            isolation=isolation,
            max_wait_ms=max_wait_ms,
            min_bytes=min_bytes,
            max_bytes=max_bytes,
            partition_max_bytes=partition_max_bytes,
            leader_epoch=leader_epoch,
            last_fetched_epoch=last_fetched_epoch,
        )
        return dict(response["responses"][0]["partitions"][0])

    def fetch_session(
        self,
        wanted: dict[str, dict[int, int]],
        *,
        broker: int,
        session: tuple[int, int] = (0, -1),
        rack: str = "",
        isolation: int = 0,
        max_wait_ms: int = 300,
        min_bytes: int = 1,
        max_bytes: int = 1 << 24,
        partition_max_bytes: int = 1 << 20,
        leader_epoch: int = -1,
        last_fetched_epoch: int = -1,
    ) -> Body:
        """A whole response. `wanted` is offset by partition by topic, `session` its id and epoch."""

        def one(partition: int, offset: int) -> Body:
            return {
                "partition": partition,
                "fetch_offset": offset,
                "current_leader_epoch": leader_epoch,
                "last_fetched_epoch": last_fetched_epoch,
                "partition_max_bytes": partition_max_bytes,
            }

        return self.request(
            "Fetch",
            12,
            broker=broker,
            replica_id=-1,
            max_wait_ms=max_wait_ms,
            min_bytes=min_bytes,
            max_bytes=max_bytes,
            isolation_level=isolation,
            session_id=session[0],
            session_epoch=session[1],
            topics=[
                {"topic": topic, "partitions": [one(*item) for item in offsets.items()]}
                for topic, offsets in wanted.items()
            ],
            rack_id=rack,
        )

    # Coordinators and producers.

    def coordinator(self, key: str, key_type: int = 0) -> int:
        """Waits until there is one."""
        found: list[int] = []

        def requested() -> bool:
            response = self.request("FindCoordinator", 3, key=key, key_type=key_type)
            found[:] = [response["node_id"]]
            return bool(response["error_code"] == 0)

        eventually(requested, f"{key} has a coordinator")
        return found[0]

    def producer_id(self, transactional_id: str | None = None, timeout_ms: int = 30_000) -> tuple[int, int]:
        """A producer's id and epoch."""
        broker = 1 if transactional_id is None else self.coordinator(transactional_id, 1)
        response: Body = {}

        def requested() -> bool:
            response.update(
                self.request(
                    "InitProducerId",
                    4,
                    broker=broker,
                    transactional_id=transactional_id,
                    transaction_timeout_ms=timeout_ms,
                    producer_id=-1,
                    producer_epoch=-1,
                )
            )
            return bool(response["error_code"] == 0)

        eventually(requested, "a producer has its id")
        return response["producer_id"], response["producer_epoch"]


def new_topic(
    name: str, partitions: int = 1, factor: int = 3, replicas: Sequence[Sequence[int]] = (), **configs: object
) -> Body:
    """One topic of a CreateTopics request; replicas by hand take the place of the two numbers."""
    return {
        "name": name,
        "num_partitions": -1 if replicas else partitions,
        "replication_factor": -1 if replicas else factor,
        "assignments": [{"partition_index": index, "broker_ids": list(row)} for index, row in enumerate(replicas)],
        "configs": [{"name": key.replace("_", "."), "value": str(value)} for key, value in configs.items()],
    }


def fresh(kind: str) -> str:
    return f"{kind}-{uuid4().hex[:10]}"
