"""The controllers' metadata log, followed as an observer: an ISR as the quorum has committed it, not as a broker shows it.

A read is exact. The leader of the quorum responds to it, after a majority of the voters has confirmed that they know of no later
leader, and after a record of this leader's own epoch is committed: then everything that was committed before the read began is in
it. A broker acts on a change of the ISR after it is committed, so a read that begins after an acknowledgement shows the ISR by
which the broker acknowledged, or a later one.
"""

import asyncio
import logging
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, cast
from uuid import UUID

from rackspan.client.connection import BrokerConnection, first
from rackspan.client.identity import IdentityMode, prove_server
from rackspan.client.login import Login
from rackspan.errors import (
    ClusterRequestFailed,
    ClusterUnauthorized,
    ClusterUnreachable,
    OtherBroker,
    RackspanError,
    UnprovableBroker,
)
from rackspan.gateway.core.metadata_log import CommittedImage
from rackspan.kafka_bytes import NO_TAGS, ByteReader, compact_array, compact_string, int32, int64, tagged_fields
from rackspan.text import count_noun
from rackspan.wire.apis import ApiKey
from rackspan.wire.messages.describe_quorum import (
    DescribeQuorumRequestData,
    DescribeQuorumRequestPartitionData,
    DescribeQuorumRequestTopicData,
    DescribeQuorumResponseData,
)
from rackspan.wire.messages.fetch import (
    FetchPartition,
    FetchRequestData,
    FetchResponseData,
    FetchResponsePartitionData,
    FetchTopic,
)

log = logging.getLogger(__name__)

TOPIC: Final = "__cluster_metadata"
TOPIC_ID: Final = UUID(int=1)
READ_SECONDS: Final = 5.0
"""Time limit of one read while the log is followed. The first, which reads all of it, has none while it makes progress."""

_FETCH_SNAPSHOT: Final = 59
_FETCH_VERSIONS: Final = range(13, 18)
"""From 13 the topic is named by its id; from 18 the request carries a watermark that this observer has no use for."""

_NODES_SINCE: Final = 2
"""The version of DescribeQuorum that names the voters' addresses (Kafka 3.9)."""

_MAX_BYTES: Final = 8 * 1024 * 1024
_NONE, _NOT_LEADER, _UNAUTHORIZED, _FENCED_EPOCH, _UNKNOWN_EPOCH, _OTHER_CLUSTER = 0, 6, 31, 74, 76, 104
_NO_LATER_LEADER: Final = frozenset({_NONE, _NOT_LEADER, _UNKNOWN_EPOCH})
"""Errors of a voter for a request with an epoch that is its own, or later than its own."""


@dataclass(frozen=True, slots=True)
class _Quorum:
    """The leader as it described itself. `voters` are addresses by id."""

    leader: int
    epoch: int
    voters: Mapping[int, tuple[str, int]]


class MetadataQuorum:
    """`image` is the state as of the last read."""

    def __init__(
        self,
        controllers: tuple[tuple[str, int], ...],
        login: Login,
        cluster_id: str | None,
        identity: IdentityMode = IdentityMode.ADDRESS,
    ) -> None:
        self._configured = controllers
        self._login = login
        self._cluster_id = cluster_id
        self._identity = identity
        self._connections: dict[tuple[tuple[str, int], int | None], BrokerConnection] = {}
        """By address, and by the voter that it was proved to be; None before the voters are known."""
        self._quorum: _Quorum | None = None
        self._unproved = ""
        """Why a voter of the last read does not count."""
        self._lock = asyncio.Lock()
        self._next: asyncio.Task[CommittedImage] | None = None
        self.image = CommittedImage()
        self.read_at: float | None = None

    async def current(self) -> CommittedImage:
        """The state with everything that was committed before this call. Errors: RackspanError, OSError, TimeoutError.

        Calls that wait for the read in flight share the next one.
        """
        if self._next is None:
            self._next = asyncio.get_running_loop().create_task(self._read_next())
            self._next.add_done_callback(_take_exception)
        return await asyncio.shield(self._next)

    async def _read_next(self) -> CommittedImage:
        async with self._lock:
            # A call from now on needs a read that begins later.
            self._next = None
            try:
                return await self._read()
            except BaseException:
                self._quorum = None
                raise

    async def _read(self) -> CommittedImage:
        while True:
            quorum = self._quorum = self._quorum or await self._find_leader()
            voters, self._unproved = self.image.voters, ""
            others = [voter for voter in quorum.voters if voter != quorum.leader]
            confirmations = [asyncio.create_task(self._has_no_later(quorum, voter)) for voter in others]
            try:
                await self._replay(quorum)
                if self.image.voters == voters:
                    await self._confirm(quorum, confirmations)
                    break
            finally:
                for confirmation in confirmations:
                    confirmation.cancel()
            # They were described before they changed (KIP-853), and a majority of those of then need not know of a later leader.
            self._quorum = None
        self.read_at = asyncio.get_running_loop().time()
        return self.image

    async def _confirm(self, quorum: _Quorum, confirmations: list["asyncio.Task[bool]"]) -> None:
        """Wait until a majority of the voters, the leader among them, has no later leader."""
        needed = len(quorum.voters) // 2 + 1
        confirmed, waiting = 1, set(confirmations)
        while waiting and confirmed < needed:
            done, waiting = await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
            confirmed += sum(confirmation.result() for confirmation in done)
        if confirmed < needed:
            raise ClusterUnreachable(
                f"{confirmed} of {count_noun(len(quorum.voters), 'controller')} confirm that {quorum.leader} leads the quorum, "
                f"expected at least {needed}{self._unproved}"
            )

    async def _has_no_later(self, quorum: _Quorum, voter: int) -> bool:
        try:
            partition = await self._fetch(await self._voter(quorum, voter), quorum.epoch)
        except (OtherBroker, UnprovableBroker) as error:
            self._unproved = f"; {error}"
            return False
        except (OSError, RackspanError):
            return False
        return partition.error_code in _NO_LATER_LEADER

    async def _replay(self, quorum: _Quorum) -> None:
        """Replay up to the high watermark that the leader reports now. Errors: ClusterUnreachable where that cannot be reached."""
        connection = await self._voter(quorum, quorum.leader)
        until: int | None = None
        has_diverged = False
        while True:
            partition = await self._fetch(connection, quorum.epoch)
            _check(partition.error_code, f"controller {quorum.leader}")
            if partition.diverging_epoch is not None and partition.diverging_epoch.end_offset >= 0:
                if has_diverged:
                    # What this leader sent in this epoch is its own log.
                    raise ClusterUnreachable(
                        f"controller {quorum.leader} reports that its metadata log differs from what it sent itself; restart it"
                    )
                has_diverged = True
                log.warning("the metadata log differs from what was read; it is read again from its beginning")
                self.image = CommittedImage()
                continue
            snapshot = partition.snapshot_id
            if snapshot is not None and snapshot.end_offset >= 0:
                if snapshot.end_offset <= self.image.offset:
                    raise ClusterUnreachable(
                        f"controller {quorum.leader} offers a snapshot up to offset {snapshot.end_offset} "
                        f"to a reader at {self.image.offset}; restart it"
                    )
                self.image = await self._snapshot(connection, quorum.epoch, snapshot.end_offset, snapshot.epoch)
                continue
            until = partition.high_watermark if until is None else until
            before, records = self.image.offset, cast("memoryview[int]", partition.records or b"")
            try:
                self.image.replay_batches(bytes(records), partition.high_watermark)
            except BaseException:
                # Half a batch may have been replayed.
                self.image = CommittedImage()
                raise
            if self.image.offset >= until:
                break
            if self.image.offset == before:
                raise ClusterUnreachable(f"controller {quorum.leader} has no record at offset {before} of {until}")
        if self.image.epoch != quorum.epoch:
            raise ClusterUnreachable(f"controller {quorum.leader} has committed nothing in its epoch yet")

    async def _fetch(self, connection: BrokerConnection, epoch: int) -> FetchResponsePartitionData:
        image = self.image
        partition = FetchPartition(
            partition=0,
            current_leader_epoch=epoch,
            fetch_offset=image.offset,
            last_fetched_epoch=image.epoch,
            partition_max_bytes=_MAX_BYTES,
        )
        request = FetchRequestData(
            cluster_id=self._cluster_id,
            max_wait=0,
            min_bytes=0,
            max_bytes=_MAX_BYTES,
            topics=[FetchTopic(topic=TOPIC, topic_id=TOPIC_ID, partitions=[partition])],
        )
        version = connection.version(ApiKey.FETCH, _FETCH_VERSIONS.stop - 1)
        if version < _FETCH_VERSIONS.start:
            raise ClusterRequestFailed("the controllers' Fetch names no topic ids; strict needs Kafka 3.9 or later")
        response: FetchResponseData = await connection.call(ApiKey.FETCH, request, version, READ_SECONDS)
        _check(response.error_code, "a controller")
        found: FetchResponsePartitionData = first(first(response.responses, "topic").partitions, "partition")
        return found

    async def _snapshot(self, connection: BrokerConnection, epoch: int, end: int, end_epoch: int) -> CommittedImage:
        """A snapshot: what the log no longer has."""
        data = bytearray()
        while True:
            reader = await connection.call_raw(
                _FETCH_SNAPSHOT, 0, self._snapshot_request(epoch, end, end_epoch, len(data))
            )
            size, part = _snapshot_part(reader)
            data += part
            if len(data) >= size:
                break
            if not part:
                raise ClusterRequestFailed(f"a snapshot of the metadata log ends after {len(data)} of {size} bytes")
        image = CommittedImage()
        image.replay_snapshot(bytes(data), end, end_epoch)
        log.info("read a snapshot of the metadata log, %d bytes up to offset %d", len(data), end)
        return image

    def _snapshot_request(self, epoch: int, end: int, end_epoch: int, position: int) -> bytes:
        snapshot = int64(end) + int32(end_epoch) + NO_TAGS
        partition = int32(0) + int32(epoch) + snapshot + int64(position) + NO_TAGS
        topic = compact_string(TOPIC) + compact_array([partition]) + NO_TAGS
        tags = NO_TAGS if self._cluster_id is None else tagged_fields({0: compact_string(self._cluster_id)})
        return int32(-1) + int32(_MAX_BYTES) + compact_array([topic]) + tags

    # The leader.

    async def _find_leader(self) -> _Quorum:
        """Errors: ClusterUnreachable, ClusterUnauthorized, ClusterRequestFailed."""
        failed: Exception | None = None
        for address in self._configured:
            try:
                found = await self._described(address)
            except (ClusterUnauthorized, ClusterRequestFailed):
                raise
            except (OSError, RackspanError) as error:
                failed = error
                continue
            if found is not None:
                return found
        raise ClusterUnreachable(
            f"no controller of controllers.bootstrap.servers leads the quorum ({failed or 'an election is under way'}); "
            "does it name all of them?"
        )

    async def _described(self, address: tuple[str, int]) -> _Quorum | None:
        """The quorum as a controller reports it; None if it is not the leader."""
        connection = await self._connection(address)
        topic = DescribeQuorumRequestTopicData(
            topic_name=TOPIC, partitions=[DescribeQuorumRequestPartitionData(partition_index=0)]
        )
        if connection.version(ApiKey.DESCRIBE_QUORUM) < _NODES_SINCE:
            raise ClusterRequestFailed(
                "the controllers do not name the voters' addresses; strict needs Kafka 3.9 or later"
            )
        response: DescribeQuorumResponseData = await connection.call(
            ApiKey.DESCRIBE_QUORUM, DescribeQuorumRequestData(topics=[topic])
        )
        if response.error_code == _NOT_LEADER:
            return None
        _check(response.error_code, f"controller at {address[0]}:{address[1]}")
        partition = first(first(response.topics, "topic").partitions, "partition")
        if partition.error_code == _NOT_LEADER:
            return None
        _check(partition.error_code, f"controller at {address[0]}:{address[1]}")
        listeners = {voter.node_id: voter.listeners for voter in response.nodes}
        voters = {
            voter.replica_id: (listeners[voter.replica_id][0].host, listeners[voter.replica_id][0].port)
            for voter in partition.current_voters
            if listeners.get(voter.replica_id)
        }
        if len(voters) < len(partition.current_voters) or partition.leader_id not in voters:
            raise ClusterRequestFailed(
                "the controllers do not name the addresses of all voters; strict cannot be exact"
            )
        # The address that responded is known to work; the one it names of itself may be another.
        voters[partition.leader_id] = address
        return _Quorum(partition.leader_id, partition.leader_epoch, voters)

    async def _voter(self, quorum: _Quorum, voter: int) -> BrokerConnection:
        """A connection that is proved to be the voter's, if that is required: a deposed leader at another's address would confirm itself."""
        if self._identity is IdentityMode.ADDRESS:
            return await self._connection(quorum.voters[voter])
        other = min(quorum.voters.keys() - {voter}, default=voter + 1)
        return await self._connection(quorum.voters[voter], voter, other)

    async def _connection(
        self, address: tuple[str, int], voter: int | None = None, other: int | None = None
    ) -> BrokerConnection:
        known = self._connections.get((address, voter))
        if known is None or known.is_over:
            if known is not None:
                known.close()
            known = await BrokerConnection.open(*address, self._login)
            if voter is not None and other is not None:
                try:
                    await prove_server(known, self._cluster_id, "controller", voter, other)
                except BaseException:
                    known.close()
                    raise
            self._connections[address, voter] = known
        return known

    def close(self) -> None:
        if self._next is not None:
            self._next.cancel()
        for connection in self._connections.values():
            connection.close()


def _check(error: int, who: str) -> None:
    if error == _UNAUTHORIZED:
        raise ClusterUnauthorized(
            f"{who} refuses the metadata log; grant the gateway's principal CLUSTER_ACTION and DESCRIBE on the cluster, "
            "or use acknowledgements.mode verified"
        )
    if error == _OTHER_CLUSTER:
        raise ClusterRequestFailed(
            f"{who} is of another cluster than bootstrap.servers; see controllers.bootstrap.servers"
        )
    if error != _NONE:
        raise ClusterUnreachable(f"{who}: error {error} for the metadata log")


def _snapshot_part(reader: ByteReader) -> tuple[int, bytes]:
    """Size of the snapshot and the bytes of one FetchSnapshot response, version 0."""
    reader.skip(4)  # Throttle time.
    _check(reader.int16(), "a controller")
    reader.compact_length()
    reader.compact_string()
    reader.compact_length()
    reader.int32()
    _check(reader.int16(), "a controller")
    reader.skip(8 + 4)
    reader.tagged_fields()
    size, _position = reader.int64(), reader.int64()
    return size, reader.compact_byte_string()


def _take_exception(task: "asyncio.Task[CommittedImage]") -> None:
    if not task.cancelled():
        task.exception()
