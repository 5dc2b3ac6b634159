"""Whatever producers, brokers and the log do: a transaction ends one way, everywhere. The judge reads responses and markers."""

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, precondition, rule

from rackspan.cluster.core.batch import Marker
from rackspan.cluster.core.transactions.requests import (
    AddPartitions,
    AddPartitionsResponse,
    EndTransaction,
    EndTransactionResponse,
    InitProducerId,
    InitProducerIdResponse,
    TransactionRequest,
)
from rackspan.kafka_bytes.error_codes import ErrorCode
from rackspan.model.ids import TopicPartition
from tests.cluster.core.transactions.world import World
from tests.depth import examples

PARTITIONS = [TopicPartition("orders", number) for number in range(3)]
TIMEOUT_MS = 5_000


class Transactions(RuleBasedStateMachine):
    """Two producers, `old` and `new`, of one transactional id; every request by either, in any order."""

    @initialize()
    def begin(self) -> None:
        self.world = World()
        self.known = [InitProducerIdResponse(ErrorCode.NONE)] * 2
        self.newest = (-1, -1)
        self.open: dict[int, tuple[int, TransactionRequest]] = {}
        self.added: set[TopicPartition] = set()
        self.ended: Marker | None = None
        self.marked = 0
        self.perhaps_added = False
        """A lost coordinator may have written an addition that its client takes for failed."""

    def send(self, producer: int, request: TransactionRequest) -> None:
        self.open[self.world.send(request)] = (producer, request)
        self.look()

    # What producers do.

    @rule(producer=st.integers(0, 1))
    def init(self, producer: int) -> None:
        self.world.producer_ids += 1
        self.send(producer, InitProducerId("t", TIMEOUT_MS, self.world.producer_ids))

    @rule(producer=st.integers(0, 1), again=st.booleans(), partitions=st.sets(st.sampled_from(PARTITIONS), min_size=1))
    def begin_a_transaction(self, producer: int, again: bool, partitions: set[TopicPartition]) -> None:
        """What single steps rarely reach: a producer that writes to several partitions."""
        if again or self.known[producer].producer_id < 0:
            self.init(producer)
            self.all_settles()
        for partition in sorted(partitions):
            self.add(producer, partition)
            self.all_settles()

    @rule(producer=st.integers(0, 1), partition=st.sampled_from(PARTITIONS))
    def add(self, producer: int, partition: TopicPartition) -> None:
        who = self.known[producer]
        self.send(producer, AddPartitions("t", who.producer_id, who.producer_epoch, frozenset({partition})))

    @rule(producer=st.integers(0, 1), commit=st.booleans(), bump=st.booleans())
    def end(self, producer: int, commit: bool, bump: bool) -> None:
        who = self.known[producer]
        self.world.producer_ids += 1
        fresh = self.world.producer_ids
        self.send(producer, EndTransaction("t", who.producer_id, who.producer_epoch, commit, bump, fresh))

    # What befalls them.

    @precondition(lambda self: self.world.in_flight)
    @rule(error=st.sampled_from([ErrorCode.NONE] * 3 + [ErrorCode.NOT_ENOUGH_REPLICAS]))
    def a_write_is_decided(self, error: ErrorCode) -> None:
        self.world.acknowledge(error, kept=error is ErrorCode.NONE)
        self.look()

    @precondition(lambda self: self.world.unwritten)
    @rule(error=st.sampled_from([ErrorCode.NONE, ErrorCode.NONE, ErrorCode.NOT_LEADER_OR_FOLLOWER]))
    def a_marker_is_decided(self, error: ErrorCode) -> None:
        self.world.mark(error)
        self.look()

    @rule()
    def all_settles(self) -> None:
        self.world.settle()
        self.look()

    @rule(milliseconds=st.sampled_from([100, 1_000, TIMEOUT_MS]))
    def time_passes(self, milliseconds: int) -> None:
        self.world.passes(milliseconds)
        self.look()

    @rule(kept=st.integers(0, 2))
    def the_coordinator_is_lost(self, kept: int) -> None:
        self.perhaps_added |= any(isinstance(request, AddPartitions) for _, request in self.open.values())
        self.world.fail_over(kept)
        self.look()

    # The judge.

    def look(self) -> None:
        # Markers first: they were written before these responses.
        for partition, _, _, marker in self.world.markers[self.marked :]:
            self.read_marker(partition, marker)
        self.marked = len(self.world.markers)
        for correlation_id in [
            correlation_id for correlation_id in self.open if correlation_id in self.world.responses
        ]:
            self.read_response(*self.open.pop(correlation_id), self.world.responses[correlation_id])

    def read_marker(self, partition: TopicPartition, marker: Marker) -> None:
        if self.ended is None or (self.perhaps_added and marker is not self.ended):
            self.begin_anew(marker)
        assert marker is self.ended, f"{partition} has {marker.name}, others {self.ended}"

    def read_response(self, producer: int, request: TransactionRequest, response: object) -> None:
        match response:
            case InitProducerIdResponse(error=ErrorCode.NONE):
                rank = (response.producer_id, response.producer_epoch)
                assert rank > self.newest, "no two producers have the same epoch"
                self.newest, self.known[producer] = rank, response
            case AddPartitionsResponse(error=ErrorCode.NONE):
                self.read_added(request)
            case EndTransactionResponse(error=ErrorCode.NONE):
                self.read_ended(producer, request, response)

    def read_added(self, request: TransactionRequest) -> None:
        assert isinstance(request, AddPartitions)
        if self.ended is not None:
            # Something is added again, so the last one is over: it was marked wherever it had written.
            self.added, self.ended = set(), None
        self.perhaps_added = False
        self.added |= request.partitions

    def begin_anew(self, marker: Marker) -> None:
        """The first marker of a transaction; of one whose additions are uncertain, what was added is not known."""
        if self.ended is not None:
            self.added = set()
        self.ended, self.perhaps_added = marker, False

    def read_ended(self, producer: int, request: TransactionRequest, response: EndTransactionResponse) -> None:
        assert isinstance(request, EndTransaction)
        wanted = Marker.COMMIT if request.commit else Marker.ABORT
        # An epoch may be bumped by ending a transaction that never began: nothing is marked then (KIP-890).
        empty = request.bump_epoch and not request.commit and self.ended is not None
        if self.added and not empty:
            if self.perhaps_added and self.ended not in (None, wanted):
                self.begin_anew(wanted)
            assert self.ended in (None, wanted), "a producer's response is the opposite of the markers"
            self.ended = wanted
        if request.bump_epoch:
            self.known[producer] = InitProducerIdResponse(ErrorCode.NONE, response.producer_id, response.producer_epoch)
            self.newest = max(self.newest, (response.producer_id, response.producer_epoch))

    def teardown(self) -> None:
        """In the end every request has its response and nothing is left half ended."""
        if not hasattr(self, "world"):
            return
        for _ in range(4):
            self.world.settle()
            self.look()
            self.world.passes(2 * TIMEOUT_MS)
        self.world.settle()
        self.look()
        assert [
            correlation_id
            for correlation_id in range(1, self.world.request_count + 1)
            if correlation_id not in self.world.responses
        ] == []
        assert self.world.state in ("", "Empty", "CompleteCommit", "CompleteAbort")
        last = {partition: marker for partition, _, _, marker in self.world.markers}
        assert all(last.get(partition) is self.ended for partition in self.added)


TestTransactions = Transactions.TestCase
TestTransactions.settings = examples(0.8, stateful_step_count=40)
