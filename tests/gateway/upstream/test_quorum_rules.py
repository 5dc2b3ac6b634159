"""What a reader of the metadata log requests, and which responses it believes, by connections of few lines without a network."""

import asyncio
from types import SimpleNamespace
from typing import Any, cast

import pytest

from rackspan.client.login import Login
from rackspan.errors import ClusterUnreachable, RackspanError
from rackspan.gateway.core.metadata_log import CommittedImage
from rackspan.gateway.upstream.quorum import TOPIC_ID, MetadataQuorum, _Quorum
from rackspan.wire.apis import ApiKey
from rackspan.wire.messages.fetch import FetchableTopicResponse, FetchResponseData, FetchResponsePartitionData


class Connection:
    """Responds to each Fetch with these errors, of the whole and of the partition, and keeps what was requested."""

    def __init__(self, error: int = 0, of_partition: int = 0) -> None:
        self.errors = error, of_partition
        self.requests: list[tuple[int, int, Any]] = []

    def version(self, _key: ApiKey, most: int) -> int:
        return most

    async def call(self, key: ApiKey, request: Any, version: int, _seconds: float) -> FetchResponseData:
        self.requests.append((key, version, request))
        error, of_partition = self.errors
        partition = FetchResponsePartitionData(error_code=of_partition, high_watermark=9)
        return FetchResponseData(error_code=error, responses=[FetchableTopicResponse(partitions=[partition])])


ONE_VOTER = _Quorum(0, 5, {0: ("c", 0)})


def reader(*connections: Connection | Exception, cluster_id: str | None = None) -> MetadataQuorum:
    """Its Nth controller is at ("c", N), and is connected to by the Nth of these."""
    made = MetadataQuorum((), Login(), cluster_id)

    async def connection(address: tuple[str, int], *_: object) -> Any:
        found = connections[address[1]]
        if isinstance(found, Exception):
            raise found
        return found

    cast("Any", made)._connection = connection
    return made


def test_a_fetch_continues_where_the_last_one_ended_and_never_waits_for_records() -> None:
    connection = Connection()
    made = reader(connection, cluster_id="a-cluster")
    made.image = CommittedImage(9, 4)
    asyncio.run(made._fetch(cast("Any", connection), 5))
    ((key, version, request),) = connection.requests
    assert (key, version, request.cluster_id) == (1, 17, "a-cluster")
    assert (request.max_wait, request.min_bytes, request.max_bytes) == (0, 0, 8_388_608)
    (topic,) = request.topics
    assert (topic.topic, topic.topic_id) == ("__cluster_metadata", TOPIC_ID)
    assert topic.topic_id.int == 1
    (partition,) = topic.partitions
    assert (partition.partition, partition.current_leader_epoch, partition.partition_max_bytes) == (0, 5, 8_388_608)
    assert (partition.fetch_offset, partition.last_fetched_epoch) == (9, 4)


@pytest.mark.parametrize(
    ("error", "of_partition", "confirms"),
    [(0, 0, True), (0, 6, True), (0, 76, True), (0, 74, False), (0, 31, False), (0, 3, False), (6, 0, False)],
)
def test_a_voter_confirms_by_its_own_epoch_or_an_earlier_one(error: int, of_partition: int, confirms: bool) -> None:
    """NOT_LEADER_OR_FOLLOWER and UNKNOWN_LEADER_EPOCH are no sign of a later leader; FENCED_LEADER_EPOCH is."""
    made = reader(Connection(error, of_partition))
    assert asyncio.run(made._has_no_later(ONE_VOTER, 0)) is confirms


@pytest.mark.parametrize("error", [OSError("gone"), TimeoutError(), RackspanError("no login")])
def test_a_voter_that_cannot_be_reached_confirms_nothing(error: Exception) -> None:
    assert not asyncio.run(reader(error)._has_no_later(ONE_VOTER, 0))


@pytest.mark.parametrize(
    ("confirmed", "enough"),
    [
        ("", True),
        ("0", False),
        ("1", True),
        ("00", False),
        ("01", True),
        ("010", False),
        ("110", True),
        ("0100", False),
        ("1010", True),
    ],
)
def test_a_leader_and_as_many_others_as_make_more_than_half_are_a_majority(confirmed: str, enough: bool) -> None:
    voters = {number: ("c", number) for number in range(1 + len(confirmed))}

    async def scenario() -> None:
        async def confirmation(one: str) -> bool:
            return one == "1"

        tasks = [asyncio.create_task(confirmation(one)) for one in confirmed]
        await reader()._confirm(_Quorum(0, 5, voters), tasks)

    if enough:
        asyncio.run(scenario())
        return
    with pytest.raises(
        ClusterUnreachable, match=f"confirm that 0 leads the quorum, expected at least {len(voters) // 2 + 1}"
    ):
        asyncio.run(scenario())


class Reads:
    """Stands in for a reader's reads: each ends when the test lets it, with the next of these."""

    def __init__(self, *ends: CommittedImage | Exception) -> None:
        self._ends = list(ends)
        self.begun = 0
        self.may_end = asyncio.Event()

    async def __call__(self) -> CommittedImage:
        self.begun += 1
        await self.may_end.wait()
        end = self._ends.pop(0)
        if isinstance(end, Exception):
            raise end
        return end


def test_calls_during_a_read_share_the_next_one_which_begins_behind_it() -> None:
    """What was committed after a read began need not be in it."""

    async def scenario() -> None:
        made, first, second = reader(), CommittedImage(1, 1), CommittedImage(2, 1)
        reads = made._read = Reads(first, second)  # type: ignore[method-assign]
        early = [asyncio.ensure_future(made.current()) for _ in range(2)]
        for _ in range(3):
            await asyncio.sleep(0)
        assert reads.begun == 1
        late = [asyncio.ensure_future(made.current()) for _ in range(3)]
        for _ in range(3):
            await asyncio.sleep(0)
        assert reads.begun == 1
        reads.may_end.set()
        assert {(await one).offset for one in early} == {1}
        assert {(await one).offset for one in late} == {2}
        assert reads.begun == 2

    asyncio.run(scenario())


def test_a_caller_that_gives_up_leaves_the_read_to_the_others() -> None:
    async def scenario() -> None:
        made = reader()
        reads = made._read = Reads(CommittedImage(1, 1))  # type: ignore[method-assign]
        one, other = (asyncio.ensure_future(made.current()) for _ in range(2))
        await asyncio.sleep(0)
        one.cancel()
        await asyncio.sleep(0)
        reads.may_end.set()
        assert (await other).offset == 1

    asyncio.run(scenario())


def test_after_a_read_that_failed_the_leader_is_looked_for_anew() -> None:
    async def scenario() -> None:
        made = reader()
        quorum = made._quorum = _Quorum(0, 5, {0: ("c", 0)})
        reads = made._read = Reads(CommittedImage(1, 1), OSError("gone"))  # type: ignore[method-assign]
        reads.may_end.set()
        await made.current()
        assert made._quorum is quorum
        with pytest.raises(OSError, match="gone"):
            await made.current()
        assert made._quorum is None

    asyncio.run(scenario())


def test_a_close_ends_the_read_that_waits_and_every_connection() -> None:
    async def scenario() -> None:
        made, closed = reader(), list[int]()
        made._read = Reads()  # type: ignore[method-assign]
        for number in range(2):
            known = SimpleNamespace(close=lambda number=number: closed.append(number))
            made._connections[("c", number), None] = cast("Any", known)
        waiting = asyncio.ensure_future(made.current())
        await asyncio.sleep(0)
        made.close()
        for _ in range(3):
            await asyncio.sleep(0)
        assert waiting.cancelled()
        assert closed == [0, 1]

    asyncio.run(scenario())
