"""The metadata log of real Kafka, read as an observer, beside what brokers report of the same cluster; and controllers that are broken."""

import asyncio
import logging
from typing import Any, cast
from uuid import uuid4

import pytest
from confluent_kafka.admin import AdminClient

from rackspan.client.brokers import addresses
from rackspan.client.login import Login
from rackspan.errors import ClusterRequestFailed, ClusterUnauthorized, ClusterUnreachable, CorruptRecords
from rackspan.gateway.core.metadata_log import CommittedImage
from rackspan.gateway.upstream import quorum
from rackspan.gateway.upstream.quorum import TOPIC, TOPIC_ID, MetadataQuorum
from rackspan.kafka_bytes import NO_TAGS, ByteReader, compact_array, compact_string, int32, int64
from rackspan.kafka_bytes.primitives import int16, unsigned_varint
from rackspan.kafka_bytes.record_batch import stamp, write_batch
from rackspan.kafka_process import KafkaCluster
from rackspan.wire.apis import ApiKey
from rackspan.wire.messages.describe_quorum import (
    DescribeQuorumResponseData,
    DescribeQuorumResponseListener,
    DescribeQuorumResponseNode,
    DescribeQuorumResponsePartitionData,
    DescribeQuorumResponseReplicaState,
    DescribeQuorumResponseTopicData,
)
from rackspan.wire.messages.fetch import (
    FetchableTopicResponse,
    FetchResponseData,
    FetchResponseEpochEndOffset,
    FetchResponsePartitionData,
    SnapshotId,
)
from tests.client.fake_broker import FakeBroker, api_versions
from tests.gateway.core.test_metadata_log import partition, register, topic
from tests.gateway.upstream.test_config_topic import dead_port
from tests.kafka_fixtures import create_topic
from tests.waiting import WITHIN_SECONDS, eventually

FETCH_SNAPSHOT = 59


def read(cluster: KafkaCluster, cluster_id: str | None = None) -> CommittedImage:
    async def scenario() -> CommittedImage:
        quorum = MetadataQuorum(addresses("controllers", cluster.bootstrap_controllers), Login(), cluster_id)
        try:
            await quorum.current()
            # The second read begins where the first ended.
            return await quorum.current()
        finally:
            quorum.close()

    return asyncio.run(scenario())


def reported(cluster: KafkaCluster) -> dict[str, dict[int, tuple[int, list[int]]]]:
    """Leader and ISR of every partition as brokers report them."""
    admin = AdminClient({"bootstrap.servers": cluster.bootstrap_servers, "log_level": 0})
    return {
        name: {number: (one.leader, sorted(one.isrs)) for number, one in topic.partitions.items()}
        for name, topic in admin.list_topics(timeout=WITHIN_SECONDS).topics.items()
    }


def replayed(image: CommittedImage) -> dict[str, dict[int, tuple[int, list[int]]]]:
    return {
        name: {number: (one.leader, sorted(one.isr)) for number, one in image.topic(name).items()}
        for name in image.topic_ids
    }


def same(cluster: KafkaCluster) -> bool:
    return replayed(read(cluster)) == reported(cluster)


@pytest.mark.kafka
def test_three_controllers_confirm_what_brokers_report(kafka: KafkaCluster) -> None:
    name = f"quorum-{uuid4().hex[:8]}"
    create_topic(kafka, name, partitions=6, replication_factor=3)
    eventually(lambda: same(kafka), "the log has what brokers report")
    assert read(kafka).racks == {number: f"r{(number - 1) % 3 + 1}" for number in range(1, 7)}
    kafka.kill(6)
    try:
        eventually(
            lambda: same(kafka) and not any(6 in one.isr for one in read(kafka).topic(name).values()), "6 is out"
        )
        assert read(kafka).racks[6] == "r3"
    finally:
        kafka.restart(6)


@pytest.mark.kafka
def test_kafka_3_is_read_as_well(kafka3: KafkaCluster) -> None:
    create_topic(kafka3, f"quorum-{uuid4().hex[:8]}", partitions=3, replication_factor=2)
    eventually(lambda: same(kafka3), "the log has what brokers report")


@pytest.mark.kafka
def test_controllers_of_another_cluster_are_refused(kafka3: KafkaCluster) -> None:
    with pytest.raises(ClusterRequestFailed, match="another cluster"):
        read(kafka3, "AAAAAAAAAAAAAAAAAAAAAA")


class Controller(FakeBroker):
    """Controller 101 leads a quorum of itself in epoch 5, and responds to each Fetch with the next of these, the last one for good."""

    def __init__(self, *fetched: FetchResponsePartitionData) -> None:
        super().__init__()
        self._fetched = list(fetched)
        self.handles |= {ApiKey.DESCRIBE_QUORUM: self._describe, ApiKey.FETCH: self._fetch}
        self.errors = 0, 0
        """Of a response to DescribeQuorum, and of the partition in it."""
        self.voters = [101]
        self.unreachable: list[int] = []
        """Voters whose addresses it names, and that do not respond."""
        self.leader = 101

    async def _describe(self, _: object) -> DescribeQuorumResponseData:
        voters = [DescribeQuorumResponseReplicaState(replica_id=voter) for voter in self.voters]
        error, of_partition = self.errors
        quorum = DescribeQuorumResponsePartitionData(
            error_code=of_partition, leader_id=self.leader, leader_epoch=5, current_voters=voters
        )
        ports = {101: self.port, **dict.fromkeys(self.unreachable, dead_port())}
        return DescribeQuorumResponseData(
            error_code=error,
            topics=[DescribeQuorumResponseTopicData(topic_name=TOPIC, partitions=[quorum])],
            nodes=[
                DescribeQuorumResponseNode(
                    node_id=node,
                    listeners=[DescribeQuorumResponseListener(name="CONTROLLER", host="127.0.0.1", port=port)],
                )
                for node, port in ports.items()
            ],
        )

    async def _fetch(self, _: object) -> FetchResponseData:
        fetched = self._fetched.pop(0) if len(self._fetched) > 1 else self._fetched[0]
        of_log = FetchableTopicResponse(topic=TOPIC, topic_id=TOPIC_ID, partitions=[fetched])
        return FetchResponseData(responses=[of_log])


def read_from(
    controller: Controller, known: CommittedImage, cluster_id: str | None = None, first_port: int | None = None
) -> CommittedImage:
    """What a reader that has `known` reads from the controller. Errors: those of MetadataQuorum.current.

    `first_port` is of another controller that is tried first.
    """

    async def scenario() -> CommittedImage:
        await controller.start()
        ports = (controller.port,) if first_port is None else (first_port, controller.port)
        quorum = MetadataQuorum(tuple(("127.0.0.1", port) for port in ports), Login(), cluster_id)
        quorum.image = known
        try:
            async with asyncio.timeout(WITHIN_SECONDS):
                return await quorum.current()
        finally:
            quorum.close()
            await controller.close()

    return asyncio.run(scenario())


def refused(fetched: FetchResponsePartitionData, image: CommittedImage) -> str:
    """The error of a read from a controller that responds with this to every Fetch, after `image` was read."""
    with pytest.raises(ClusterUnreachable) as error:
        read_from(Controller(fetched), image)
    return str(error.value)


OFFER = FetchResponsePartitionData(high_watermark=20, snapshot_id=SnapshotId(end_offset=20, epoch=5))
AFTER = FetchResponsePartitionData(high_watermark=20)


class Snapshots:
    """Responds to FetchSnapshot with at most so many bytes of a snapshot; `requests` are what each requests."""

    def __init__(self, data: bytes, part_bytes: int, error: int = 0) -> None:
        self.requests: list[tuple[int, int, int, int, dict[int, bytes]]] = []
        self._data, self._part_bytes, self._error = data, part_bytes, error

    def respond(self, request: ByteReader) -> bytes:
        assert (request.int32(), request.int32()) == (-1, 8 * 1024 * 1024)
        assert (request.compact_length(), request.compact_string(), request.compact_length()) == (1, TOPIC, 1)
        index, epoch = request.int32(), request.int32()
        assert index == 0
        end, end_epoch = request.int64(), request.int32()
        request.tagged_fields()
        position = request.int64()
        request.tagged_fields()
        request.tagged_fields()
        self.requests.append((epoch, end, end_epoch, position, request.tagged_fields()))
        part = self._data[position : position + self._part_bytes]
        of_partition = int32(0) + int16(self._error) + int64(end) + int32(end_epoch) + NO_TAGS
        of_partition += int64(len(self._data)) + int64(position) + unsigned_varint(len(part) + 1) + part + NO_TAGS
        of_topic = compact_string(TOPIC) + compact_array([of_partition]) + NO_TAGS
        return int32(0) + int16(0) + compact_array([of_topic]) + NO_TAGS


def snapshot_of(*records: bytes) -> bytes:
    return write_batch([(None, record) for record in records], 0)


def controller_with(snapshots: Snapshots) -> Controller:
    controller = Controller(OFFER, AFTER)
    controller.raw_handles[FETCH_SNAPSHOT] = snapshots.respond
    return controller


@pytest.mark.parametrize("part_bytes", [50, 10_000])
@pytest.mark.parametrize("cluster_id", [None, "MkU3OEVBNTcwNTJENDM2Qg"])
def test_a_snapshot_is_read_in_parts_and_replaces_what_was_known(part_bytes: int, cluster_id: str | None) -> None:
    data = snapshot_of(topic(), partition((1, 2)), register(1, "r1"))
    snapshots = Snapshots(data, part_bytes)
    image = read_from(controller_with(snapshots), CommittedImage(9, 4, racks={7: "r7"}), cluster_id)
    assert (image.offset, image.epoch, image.racks) == (20, 5, {1: "r1"})
    assert image.topic("orders")[0].isr == (1, 2)
    tags = {} if cluster_id is None else {0: compact_string(cluster_id)}
    assert snapshots.requests == [(5, 20, 5, position, tags) for position in range(0, len(data), part_bytes)]


def test_a_snapshot_that_ends_early_is_an_error() -> None:
    snapshots = Snapshots(snapshot_of(topic()), 0)
    with pytest.raises(ClusterRequestFailed, match=r"a snapshot of the metadata log ends after 0 of \d+ bytes"):
        read_from(controller_with(snapshots), CommittedImage(9, 4))
    assert len(snapshots.requests) == 1


@pytest.mark.parametrize(
    ("code", "error"), [(31, ClusterUnauthorized), (104, ClusterRequestFailed), (6, ClusterUnreachable)]
)
def test_a_snapshot_that_is_refused_is_an_error(code: int, error: type[Exception]) -> None:
    with pytest.raises(error):
        read_from(controller_with(Snapshots(snapshot_of(topic()), 100, code)), CommittedImage(9, 4))


def test_a_controller_whose_log_always_differs_is_reported() -> None:
    diverging = FetchResponsePartitionData(
        high_watermark=7, diverging_epoch=FetchResponseEpochEndOffset(epoch=1, end_offset=0)
    )
    # Once it is read again from its beginning.
    assert "controller 101 reports that its metadata log differs" in refused(diverging, CommittedImage(9, 4))


def test_a_log_that_differs_from_what_was_read_is_read_again_from_its_beginning_and_logged(
    caplog: pytest.LogCaptureFixture,
) -> None:
    diverging = FetchResponsePartitionData(
        high_watermark=1, diverging_epoch=FetchResponseEpochEndOffset(epoch=4, end_offset=0)
    )
    records = bytearray(snapshot_of(register(1, "r1")))
    stamp(records, base_offset=0, leader_epoch=5)
    controller = Controller(diverging, FetchResponsePartitionData(high_watermark=1, records=memoryview(records)))
    image = read_from(controller, CommittedImage(9, 4, racks={7: "r7"}))
    assert (image.offset, image.racks) == (1, {1: "r1"})
    warned = [(entry.name, entry.getMessage()) for entry in caplog.records if entry.levelno == logging.WARNING]
    assert warned == [
        (quorum.__name__, "the metadata log differs from what was read; it is read again from its beginning")
    ]


class Timed:
    """A connection to a controller that never responds, as long as it would be waited for."""

    def __init__(self) -> None:
        self.seconds: list[float] = []

    def version(self, _api_key: ApiKey, most: int) -> int:
        return most

    async def call(self, _api_key: ApiKey, _request: object, _version: int, seconds: float) -> None:
        self.seconds.append(seconds)
        raise TimeoutError


def test_a_controller_is_waited_for_five_seconds_at_each_read() -> None:
    async def scenario() -> None:
        connection, reader = Timed(), MetadataQuorum((), Login(), None)
        with pytest.raises(TimeoutError):
            await reader._fetch(cast("Any", connection), 5)
        assert connection.seconds == [5.0]

    asyncio.run(scenario())


@pytest.mark.parametrize("end", [0, 8, 9])
def test_a_controller_that_offers_a_snapshot_of_what_was_read_is_reported(end: int) -> None:
    offer = FetchResponsePartitionData(high_watermark=20, snapshot_id=SnapshotId(end_offset=end, epoch=4))
    error = refused(offer, CommittedImage(9, 4))
    assert f"controller 101 offers a snapshot up to offset {end} to a reader at 9" in error


NOT_LEADER, UNAUTHORIZED, OTHER_CLUSTER = 6, 31, 104


AN_ELECTION = "no controller of controllers.bootstrap.servers leads the quorum (an election is under way); does it name all of them?"
NO_RIGHT = (
    "controller at {address} refuses the metadata log; grant the gateway's principal CLUSTER_ACTION and DESCRIBE on the "
    "cluster, or use acknowledgements.mode verified"
)
ANOTHER = "controller at {address} is of another cluster than bootstrap.servers; see controllers.bootstrap.servers"


@pytest.mark.parametrize(
    ("errors", "error", "words"),
    [
        ((NOT_LEADER, 0), ClusterUnreachable, AN_ELECTION),
        ((0, NOT_LEADER), ClusterUnreachable, AN_ELECTION),
        ((UNAUTHORIZED, 0), ClusterUnauthorized, NO_RIGHT),
        ((0, UNAUTHORIZED), ClusterUnauthorized, NO_RIGHT),
        ((OTHER_CLUSTER, 0), ClusterRequestFailed, ANOTHER),
        ((0, OTHER_CLUSTER), ClusterRequestFailed, ANOTHER),
    ],
)
def test_a_controller_that_does_not_describe_a_quorum_of_its_own_is_reported(
    errors: tuple[int, int], error: type[Exception], words: str
) -> None:
    controller = Controller(AFTER)
    controller.errors = errors
    with pytest.raises(error) as raised:
        read_from(controller, CommittedImage(9, 4))
    assert str(raised.value) == words.format(address=f"127.0.0.1:{controller.port}")


@pytest.mark.parametrize("errors", [(3, 0), (0, 3)])
def test_the_last_controller_that_reports_an_error_is_named_where_none_leads(errors: tuple[int, int]) -> None:
    controller = Controller(AFTER)
    controller.errors = errors
    with pytest.raises(ClusterUnreachable) as raised:
        read_from(controller, CommittedImage(9, 4))
    reason = f"controller at 127.0.0.1:{controller.port}: error 3 for the metadata log"
    assert str(raised.value) == AN_ELECTION.replace("an election is under way", reason)


def test_a_controller_is_read_over_another_connection_once_the_login_of_one_expires() -> None:
    async def scenario() -> None:
        controller = Controller(AFTER)
        await controller.start()
        address = "127.0.0.1", controller.port
        quorum = MetadataQuorum((address,), Login(), None)
        expired = await quorum._connection(address)
        assert await quorum._connection(address) is expired
        expired._expires_at = 0.0
        assert await quorum._connection(address) is not expired
        assert expired.closed
        quorum.close()
        await controller.close()

    asyncio.run(scenario())


def test_a_controller_that_is_gone_is_passed_over() -> None:
    gone = dead_port()
    assert (
        read_from(controller_with(Snapshots(snapshot_of(topic()), 100)), CommittedImage(9, 4), None, gone).offset == 20
    )
    controller = Controller(AFTER)
    controller.errors = NOT_LEADER, 0
    with pytest.raises(ClusterUnreachable, match=r"leads the quorum \(.*; does it name all of them"):
        read_from(controller, CommittedImage(9, 4), None, gone)


@pytest.mark.parametrize(("voters", "leader"), [([101, 102], 101), ([101], 102)])
def test_a_quorum_with_a_voter_whose_address_is_not_known_is_refused(voters: list[int], leader: int) -> None:
    controller = Controller(AFTER)
    controller.voters, controller.leader = voters, leader
    with pytest.raises(ClusterRequestFailed, match="do not name the addresses of all voters; strict cannot be exact"):
        read_from(controller, CommittedImage(9, 4))


@pytest.mark.parametrize(
    ("last", "words"),
    [
        ({ApiKey.DESCRIBE_QUORUM: 1}, "do not name the voters' addresses; strict needs Kafka 3.9 or later"),
        ({ApiKey.FETCH: 12}, "Fetch names no topic ids; strict needs Kafka 3.9 or later"),
    ],
)
def test_controllers_that_are_too_old_are_reported(last: dict[ApiKey, int], words: str) -> None:
    controller = Controller(AFTER)
    controller.handles[ApiKey.API_VERSIONS] = api_versions(last)
    with pytest.raises(ClusterRequestFailed, match=words):
        read_from(controller, CommittedImage(9, 4))


def test_a_read_counts_only_by_the_voters_that_the_log_has_now() -> None:
    """Two voters were added: the leader alone is no majority any more, and a later leader may have been elected without it."""
    records = bytearray(snapshot_of(register(1, "r1")))
    stamp(records, base_offset=0, leader_epoch=5)
    added = bytearray(write_batch([(int16(0) + int16(6), b"who they are")], 0, control=True))
    stamp(added, base_offset=1, leader_epoch=5)
    fetched = [
        FetchResponsePartitionData(high_watermark=end, records=memoryview(data))
        for end, data in ((1, records), (2, added), (2, b""))
    ]
    controller = Controller(*fetched)

    async def scenario() -> None:
        await controller.start()
        quorum = MetadataQuorum((("127.0.0.1", controller.port),), Login(), None)
        try:
            assert (await quorum.current()).racks == {1: "r1"}
            controller.voters, controller.unreachable = [101, 102, 103], [102, 103]
            with pytest.raises(ClusterUnreachable, match="1 of 3 controllers confirm that 101 leads the quorum"):
                await quorum.current()
        finally:
            quorum.close()
            await controller.close()

    asyncio.run(scenario())


def test_a_log_without_the_records_up_to_its_high_watermark_is_reported() -> None:
    empty = FetchResponsePartitionData(high_watermark=20, records=memoryview(b""))
    assert refused(empty, CommittedImage(9, 5)) == "controller 101 has no record at offset 9 of 20"


def test_a_log_that_comes_in_parts_is_read_to_its_high_watermark() -> None:
    parts = [bytearray(snapshot_of(register(number, f"r{number}"))) for number in (1, 2)]
    for offset, part in enumerate(parts):
        stamp(part, base_offset=offset, leader_epoch=5)
    fetched = [FetchResponsePartitionData(high_watermark=2, records=memoryview(part)) for part in parts]
    image = read_from(Controller(*fetched), CommittedImage())
    assert (image.offset, image.racks) == (2, {1: "r1", 2: "r2"})


def test_a_leader_that_has_committed_nothing_in_its_epoch_is_reported() -> None:
    """Records that an earlier leader committed may be behind its high watermark."""
    nothing = FetchResponsePartitionData(high_watermark=9, records=memoryview(b""))
    assert refused(nothing, CommittedImage(9, 4)) == "controller 101 has committed nothing in its epoch yet"
    assert read_from(Controller(nothing), CommittedImage(9, 5)).offset == 9


def test_after_records_that_cannot_be_read_the_log_is_read_from_its_beginning() -> None:
    records = bytearray(snapshot_of(register(1, "r1")))
    stamp(records, base_offset=0, leader_epoch=5)
    corrupt = bytearray(records)
    corrupt[-1] ^= 1
    fetched = [FetchResponsePartitionData(high_watermark=1, records=memoryview(data)) for data in (corrupt, records)]
    controller, known = Controller(*fetched), CommittedImage(0, 5, racks={7: "r7"})

    async def scenario() -> CommittedImage:
        await controller.start()
        quorum = MetadataQuorum((("127.0.0.1", controller.port),), Login(), None)
        quorum.image = known
        try:
            with pytest.raises(CorruptRecords):
                await quorum.current()
            assert quorum.image == CommittedImage()
            return await quorum.current()
        finally:
            quorum.close()
            await controller.close()

    assert asyncio.run(scenario()).racks == {1: "r1"}
