"""Whatever clients, brokers and the log do: the coordinator keeps its promises. The judge reads responses alone."""

import json
from collections import defaultdict

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from rackspan.cluster.core.batch import Marker
from rackspan.cluster.core.groups.requests import (
    CommittedOffset,
    GroupRequest,
    Heartbeat,
    HeartbeatResponse,
    JoinGroup,
    JoinGroupResponse,
    LeaveGroup,
    LeavingMember,
    OffsetCommit,
    OffsetCommitResponse,
    OffsetFetch,
    Protocol,
    SyncGroup,
    SyncGroupResponse,
    TxnOffsetCommit,
)
from rackspan.kafka_bytes.error_codes import ErrorCode
from rackspan.model.ids import TopicPartition
from tests.cluster.core.groups.world import World
from tests.depth import examples

PARTITIONS = [TopicPartition("orders", number) for number in range(3)]
CLIENTS = st.integers(0, 4)
PROTOCOLS = [Protocol("range", b""), Protocol("roundrobin", b"")]
AFTER_APPEND = [ErrorCode.REQUEST_TIMED_OUT, ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND]
SESSION_MS, REBALANCE_MS = 6_000, 9_000


class Client:
    """A consumer as far as it goes: its last responses, and the one request it waits on. Clients 3 and 4 are static."""

    def __init__(self, number: int) -> None:
        self.instance_id = f"i{number}" if number >= 3 else None
        self.member_id = ""
        self.joined: JoinGroupResponse | None = None
        self.correlation_id: int | None = None

    @property
    def generation(self) -> int:
        return self.joined.generation if self.joined else -1


class Groups(RuleBasedStateMachine):
    @initialize()
    def begin(self) -> None:
        self.world = World()
        self.clients = [Client(number) for number in range(5)]
        self.owners: dict[tuple[int, int], dict[int, str]] = defaultdict(dict)
        self.leaders: dict[tuple[int, int], str] = {}
        self.protocols: dict[tuple[int, int], str | None] = {}
        self.synced_generation = 0
        self.sent = 0
        self.acked = dict.fromkeys(PARTITIONS, -1)
        self.commits: dict[int, tuple[TopicPartition, int, int | None]] = {}
        self.in_transaction: dict[int, dict[TopicPartition, int]] = defaultdict(dict)
        self.deleted: set[int] = set()

    def send(self, client: Client, request: GroupRequest) -> None:
        client.correlation_id = self.world.send(request)
        self.read_responses()

    # What clients do.

    @rule(number=CLIENTS, flipped=st.booleans(), restarted=st.booleans())
    def join(self, number: int, flipped: bool, restarted: bool) -> None:
        client = self.clients[number]
        if restarted and client.instance_id:
            client.member_id = ""
        protocols = tuple(reversed(PROTOCOLS) if flipped else PROTOCOLS)
        request = JoinGroup(
            *("g", "consumer", protocols, SESSION_MS, REBALANCE_MS, client.member_id, client.instance_id),
            can_skip_assignment=flipped,
        )
        self.send(client, request)

    @rule(number=CLIENTS, turn=st.integers(0, 2))
    def sync(self, number: int, turn: int) -> None:
        client = self.clients[number]
        members = [member.member_id for member in client.joined.members] if client.joined else []
        given: dict[str, list[int]] = {member_id: [] for member_id in members}
        for partition in range(len(PARTITIONS) if members else 0):
            given[members[(partition + turn) % len(members)]].append(partition)
        assignments = {member_id: json.dumps(each).encode() for member_id, each in given.items()}
        self.send(
            client, SyncGroup("g", client.generation, client.member_id, client.instance_id, assignments=assignments)
        )

    @rule(numbers=st.sets(CLIENTS, min_size=1), turn=st.integers(0, 2))
    def gather(self, numbers: set[int], turn: int) -> None:
        """These join, and all present members join with them: a generation begins, which single joins rarely reach."""
        known = {number for number, client in enumerate(self.clients) if client.joined}
        for number in [*sorted(numbers), *sorted(numbers | known)]:
            if self.clients[number].correlation_id is None:
                self.join(number, flipped=False, restarted=False)
        if any(client.correlation_id is not None for client in self.clients):
            self.time_passes(REBALANCE_MS)
        self.everybody_syncs(turn, safe=turn > 0)

    @rule(turn=st.integers(0, 2), safe=st.booleans())
    def everybody_syncs(self, turn: int, safe: bool) -> None:
        for number in range(len(self.clients)):
            self.sync(number, turn)
        if safe:
            self.world.settle()
            self.read_responses()

    @rule(number=CLIENTS)
    def heartbeat(self, number: int) -> None:
        client = self.clients[number]
        correlation_id = self.world.send(Heartbeat("g", client.generation, client.member_id, client.instance_id))
        error = self.world.response(correlation_id, HeartbeatResponse).error
        if error in (ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.FENCED_INSTANCE_ID):
            self.clients[number] = Client(number)

    @rule(number=CLIENTS)
    def leave(self, number: int) -> None:
        client = self.clients[number]
        self.world.send(LeaveGroup("g", (LeavingMember(client.member_id, client.instance_id),)))
        self.clients[number] = Client(number)
        self.read_responses()

    @rule(number=CLIENTS, partition=st.sampled_from(PARTITIONS), outside=st.booleans())
    def commit(self, number: int, partition: TopicPartition, outside: bool) -> None:
        client = Client(0) if outside else self.clients[number]
        self.sent += 1
        offsets = {partition: CommittedOffset(self.sent)}
        correlation_id = self.world.send(
            OffsetCommit("g", offsets, client.generation, client.member_id, client.instance_id)
        )
        self.commits[correlation_id] = (partition, self.sent, None)
        self.read_responses()

    @rule(producer=st.integers(7, 8), partition=st.sampled_from(PARTITIONS))
    def commit_in_transaction(self, producer: int, partition: TopicPartition) -> None:
        self.sent += 1
        correlation_id = self.world.send(TxnOffsetCommit("g", producer, 0, {partition: CommittedOffset(self.sent)}))
        self.commits[correlation_id] = (partition, self.sent, producer)
        self.read_responses()

    @rule(producer=st.integers(7, 8), committed=st.booleans())
    def end_transaction(self, producer: int, committed: bool) -> None:
        """A producer ends its transaction when all its requests have a response, as real ones do."""
        if any(p == producer and self.world.waits(t) for t, (_, _, p) in self.commits.items()):
            return
        self.world.end_transaction(producer, Marker.COMMIT if committed else Marker.ABORT)
        for partition, offset in self.in_transaction.pop(producer, {}).items():
            if committed:
                self.acked[partition] = max(self.acked[partition], offset)

    # What befalls them.

    @rule(milliseconds=st.sampled_from([1, 500, 1_000, SESSION_MS]))
    def time_passes(self, milliseconds: int) -> None:
        self.world.passes(milliseconds)
        self.read_responses()

    @precondition(lambda self: self.world.in_flight)
    @rule()
    def a_write_is_safe(self) -> None:
        self.world.acknowledge()
        self.read_responses()

    @precondition(lambda self: self.world.in_flight)
    @rule(error=st.sampled_from([*AFTER_APPEND, ErrorCode.NOT_ENOUGH_REPLICAS]))
    def a_write_fails(self, error: ErrorCode) -> None:
        self.world.acknowledge(error, kept=error in AFTER_APPEND)
        self.read_responses()

    @rule(kept=st.integers(0, 3))
    def the_coordinator_is_lost(self, kept: int) -> None:
        self.world.fail_over(kept)
        assert all(not self.world.waits(correlation_id) for correlation_id in range(1, self.world.request_count + 1))
        self.read_responses()

    # The judge.

    def read_responses(self) -> None:
        for client in self.clients:
            if client.correlation_id is not None and not self.world.waits(client.correlation_id):
                correlation_id, client.correlation_id = client.correlation_id, None
                self.read_response(client, self.world.responses[correlation_id])
        for correlation_id in [
            correlation_id for correlation_id in self.commits if not self.world.waits(correlation_id)
        ]:
            self.read_commit(
                *self.commits.pop(correlation_id), self.world.response(correlation_id, OffsetCommitResponse)
            )

    def read_response(self, client: Client, response: object) -> None:
        if getattr(response, "error", None) in (ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.FENCED_INSTANCE_ID):
            client.member_id, client.joined = "", None
        if isinstance(response, JoinGroupResponse):
            self.read_join(client, response)
        if isinstance(response, SyncGroupResponse) and response.error is ErrorCode.NONE:
            self.read_assignment(client, response)

    def read_join(self, client: Client, response: JoinGroupResponse) -> None:
        if response.error in (ErrorCode.NONE, ErrorCode.MEMBER_ID_REQUIRED):
            client.member_id = response.member_id
        if response.error is ErrorCode.NONE:
            client.joined = response
            assert response.generation >= self.synced_generation, "generations only rise"
            generation = self.world.epoch, response.generation
            assert self.protocols.setdefault(generation, response.protocol) == response.protocol
            # A static member that restarts has a new member id in the same generation, and leads on if it led.
            instance, _, _ = response.leader.partition("-")
            leader = instance or response.leader
            assert self.leaders.setdefault(generation, leader) == leader
            is_leader = response.leader == response.member_id
            assert is_leader or not response.members, "only the leader gets the list of members"

    def read_assignment(self, client: Client, response: SyncGroupResponse) -> None:
        generation = client.generation
        assert generation >= self.synced_generation, "an assignment of a generation that is over"
        self.synced_generation = generation
        for partition in json.loads(response.assignment or b"[]"):
            identity = client.instance_id or client.member_id
            owner = self.owners[0, generation].setdefault(partition, identity)
            assert owner == identity, f"partition {partition} is owned twice in generation {generation}"

    def read_commit(
        self, partition: TopicPartition, offset: int, producer: int | None, response: OffsetCommitResponse
    ) -> None:
        if response.errors[partition] is not ErrorCode.NONE:
            return
        if producer is None:
            self.acked[partition] = max(self.acked[partition], offset)
        else:
            self.in_transaction[producer][partition] = offset

    @invariant()
    def what_was_committed_is_found(self) -> None:
        response = self.world.coordinator.fetch_offsets(OffsetFetch("g", tuple(PARTITIONS)))
        for partition, fetched in response.offsets.items():
            assert self.acked[partition] <= fetched.offset <= self.sent

    def teardown(self) -> None:
        """No request waits for ever: in the end each has its response."""
        if not hasattr(self, "world"):
            return
        for _ in range(4):
            self.world.settle()
            self.world.passes(400_000)
        self.world.settle()
        assert [t for t in range(1, self.world.request_count + 1) if self.world.waits(t)] == []


TestGroups = Groups.TestCase
TestGroups.settings = examples(0.8, stateful_step_count=40)
