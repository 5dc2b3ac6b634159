"""A group coordinator, its log and its clients in one object, so that a test decides the order of events."""

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from random import Random
from typing import Any, TypeVar

from rackspan.cluster.core.batch import Marker, RecordBatch
from rackspan.cluster.core.coordination import Append, CoordinatorEffect, marker_batch
from rackspan.cluster.core.groups import GroupCoordinator, GroupSettings
from rackspan.cluster.core.groups.requests import GroupRequest, JoinGroup, JoinGroupResponse, Protocol, SyncGroup
from rackspan.cluster.core.messages import Respond
from rackspan.kafka_bytes.error_codes import ErrorCode

ONE_PARTITION = GroupSettings(offsets_topic_num_partitions=1)
RANGE = (Protocol("range", b"r"),)

T = TypeVar("T")


@dataclass
class World:
    """One partition of `__consumer_offsets`. `log` is what its replicas hold, `in_flight` what is not acknowledged."""

    settings: GroupSettings = ONE_PARTITION
    now: int = 1_000
    epoch: int = 0
    log: list[RecordBatch] = field(default_factory=list)
    in_flight: deque[Append] = field(default_factory=deque)
    responses: dict[int, object] = field(default_factory=dict)
    request_count: int = 0

    def __post_init__(self) -> None:
        self.elect()

    def elect(self) -> None:
        self.epoch += 1
        self.coordinator = GroupCoordinator(self.settings, Random(self.epoch))
        self.took(self.coordinator.on_elected(self.now, 0, self.epoch, list(self.log)))

    def took(self, effects: list[CoordinatorEffect]) -> None:
        for effect in effects:
            if isinstance(effect, Respond):
                assert effect.correlation_id not in self.responses, "a request gets one response"
                self.responses[effect.correlation_id] = effect.response
            else:
                self.in_flight.append(effect)

    # Requests.

    def send(self, request: GroupRequest) -> int:
        self.request_count += 1
        self.took(self.coordinator.on_request(self.now, self.request_count, request))
        return self.request_count

    def call(self, request: GroupRequest, response: type[T]) -> T:
        """The response, once every record is committed."""
        correlation_id = self.send(request)
        self.settle()
        return self.response(correlation_id, response)

    def response(self, correlation_id: int, response: type[T]) -> T:
        received = self.responses[correlation_id]
        assert isinstance(received, response)
        return received

    def waits(self, correlation_id: int) -> bool:
        return correlation_id not in self.responses

    def passes(self, milliseconds: int) -> None:
        self.now += milliseconds
        self.took(self.coordinator.on_tick(self.now))

    # The log.

    def append(self, batch: RecordBatch) -> int:
        offset = self.log[-1].last_offset + 1 if self.log else 0
        self.log.append(batch.stamped(offset, self.epoch))
        return offset

    def acknowledge(self, error: ErrorCode = ErrorCode.NONE, kept: bool = True) -> None:
        """The oldest append in flight is decided; one that failed may have been kept all the same."""
        append = self.in_flight.popleft()
        offset = self.append(append.batch) if kept else -1
        self.took(self.coordinator.on_appended(self.now, append.write, error, offset))

    def settle(self) -> None:
        while self.in_flight:
            self.acknowledge()

    def end_transaction(self, producer_id: int, marker: Marker) -> None:
        self.append(marker_batch(producer_id, 0, marker, 0, self.now))
        self.coordinator.on_marker(0, producer_id, marker)

    def fail_over(self, kept: int = 0) -> None:
        """The coordinator's broker is lost; of what was in flight, the first `kept` had reached the others."""
        in_flight = list(self.in_flight)
        self.in_flight.clear()
        self.took(self.coordinator.on_resigned(self.now, 0))
        assert not self.in_flight, "a coordinator that has resigned writes nothing"
        for append in in_flight[:kept]:
            self.append(append.batch)
        self.elect()

    # Members.

    def join(self, member_id: str = "", **fields: Any) -> int:
        """Any field of JoinGroup but the few that all members of group g have in common here."""
        request = JoinGroup("g", "consumer", RANGE, 10_000, 60_000, member_id, client_id="c")
        return self.send(replace(request, **fields))

    def new_member(self, **fields: Any) -> int:
        """Both rounds of a dynamic member's first join; the correlation id of the second."""
        first = self.response(self.join(**fields), JoinGroupResponse)
        assert first.error is ErrorCode.MEMBER_ID_REQUIRED
        return self.join(first.member_id, **fields)

    def joined(self, correlation_id: int) -> JoinGroupResponse:
        return self.response(correlation_id, JoinGroupResponse)

    def sync(self, joined: JoinGroupResponse, assign: Callable[[str], bytes] | None = None, group_id: str = "g") -> int:
        """A member's sync; a leader gives everybody what `assign` says, by default its own member id."""
        give = assign or str.encode
        assignments = {member.member_id: give(member.member_id) for member in joined.members}
        return self.send(SyncGroup(group_id, joined.generation, joined.member_id, assignments=assignments))

    def stable(self, members: int, group_id: str = "g") -> list[JoinGroupResponse]:
        """A group of so many members that has been synced; the leader first."""
        pending_responses = [self.new_member(group_id=group_id)]
        while len(pending_responses) < members:
            newcomer = self.new_member(group_id=group_id)
            pending_responses = [self.join(self.joined(t).member_id, group_id=group_id) for t in pending_responses] + [
                newcomer
            ]
        responses = sorted((self.joined(t) for t in pending_responses), key=lambda a: a.member_id != a.leader)
        for response in responses:
            self.sync(response, group_id=group_id)
        self.settle()
        return responses


def static(world: World, instance_id: str = "i", **fields: Any) -> int:
    """A static member joins. Returns the request's correlation id."""
    return world.join(group_instance_id=instance_id, **fields)


def stable_static(world: World) -> JoinGroupResponse:
    """A group of one static member, stable."""
    joined = world.joined(static(world))
    world.sync(joined)
    world.settle()
    return joined
