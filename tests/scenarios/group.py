"""The words of a page about one consumer group: its coordinator in the embedded cluster, its members and offsets, on a clock of the page.

group group_max_size=2     a group without members; Kafka's configs of the broker, with _ for the dots
join anna session=10000    a client joins, or joins again; instance=i: as that static member
sync anna                  as the leader it gives every member its own name
heartbeat anna
wait 9000                  milliseconds
commit 50 by=anna          for orders-0; without `by` a client outside the group; metadata=text
offset                     what is committed for orders-0
members                    the group as its description shows it
log refuses                what is written from now on; `log accepts`
deleted orders             the topic
broker_lost                another broker leads the group's partition of `__consumer_offsets`
made_again                 that topic was deleted and made again, with nothing in it

After each line stand the responses that it brought, to earlier requests too.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final
from uuid import UUID

from rackspan.cluster.core.groups.requests import (
    CommittedOffset,
    GroupRequest,
    Heartbeat,
    HeartbeatResponse,
    JoinGroup,
    JoinGroupResponse,
    OffsetCommit,
    OffsetCommitResponse,
    OffsetFetch,
    SyncGroup,
    SyncGroupResponse,
)
from rackspan.cluster.host.broker_runner import group_settings
from rackspan.kafka_bytes.error_codes import ErrorCode
from rackspan.model.ids import TopicPartition
from tests.cluster.core.groups.world import RANGE, World

ORDERS: Final = TopicPartition("orders", 0)
NO_UUID: Final = UUID(int=0)
REFUSED: Final = {"accepts": ErrorCode.NONE, "refuses": ErrorCode.NOT_ENOUGH_REPLICAS}


@dataclass
class Group:
    """`joined`: the latest generation of each client. `instances`: of static members. `waiting`: whose each open request is."""

    world: World
    writes: ErrorCode = ErrorCode.NONE
    joined: dict[str, JoinGroupResponse] = field(default_factory=dict)
    instances: dict[str, str] = field(default_factory=dict)
    waiting: dict[int, str] = field(default_factory=dict)

    @classmethod
    def begun(cls, **configs: str) -> "Group":
        names = {key.replace("_", "."): value for key, value in configs.items()}
        return cls(World(settings=group_settings({**names, "offsets.topic.num.partitions": "1"})))

    def send(self, client: str, request: GroupRequest) -> Iterator[str]:
        self.waiting[self.world.send(request)] = client
        yield from self.received()

    def received(self) -> Iterator[str]:
        """What the responses say that have come, in the order of their requests."""
        while self.world.in_flight:
            self.world.acknowledge(self.writes, kept=self.writes is ErrorCode.NONE)
        for correlation_id in [one for one in self.waiting if one in self.world.responses]:
            client = self.waiting.pop(correlation_id)
            yield f"{client}: {self._words(client, self.world.responses[correlation_id])}"

    def _words(self, client: str, response: object) -> str:
        match response:
            case JoinGroupResponse(error=ErrorCode.NONE):
                self.joined[client] = response
                others = [self.name(member.member_id) for member in response.members]
                leads = f", and leads {', '.join(others)}" if others else f", led by {self.name(response.leader)}"
                return f"joined generation {response.generation}{leads}"
            case SyncGroupResponse(error=ErrorCode.NONE, assignment=assignment):
                return f"has the assignment of {assignment.decode() or 'nobody'}"
            case HeartbeatResponse(error=ErrorCode.NONE):
                return "is a member"
            case OffsetCommitResponse(errors=errors):
                return "committed" if errors[ORDERS] is ErrorCode.NONE else f"commit refused, {errors[ORDERS].name}"
            case JoinGroupResponse(error=error) | SyncGroupResponse(error=error) | HeartbeatResponse(error=error):
                if error is ErrorCode.UNKNOWN_MEMBER_ID:
                    self.joined.pop(client, None)
                return f"refused, {error.name}"
        raise AssertionError(response)

    def name(self, member_id: str) -> str:
        """The client that joined with that id, or what the id begins with: the client, or a static member's instance."""
        names = {joined.member_id: client for client, joined in self.joined.items()}
        return names.get(member_id, member_id[: -len("-") - len(str(NO_UUID))])


def join(group: Group, client: str, *, session: str = "10000", instance: str | None = None) -> Iterator[str]:
    if instance is not None:
        group.instances[client] = instance
    known = group.joined.get(client)
    request = JoinGroup(
        *("g", "consumer", RANGE, int(session), 60_000),
        "" if known is None else known.member_id,
        group.instances.get(client),
        client_id=client,
        # Clients before Kafka 2.2 join with one request; the two requests of later ones change nothing here.
        require_known_member_id=False,
    )
    yield from group.send(client, request)


def sync(group: Group, client: str) -> Iterator[str]:
    joined = group.joined[client]
    assignments = {member.member_id: group.name(member.member_id).encode() for member in joined.members}
    instance = group.instances.get(client)
    yield from group.send(
        client, SyncGroup("g", joined.generation, joined.member_id, instance, assignments=assignments)
    )


def heartbeat(group: Group, client: str) -> Iterator[str]:
    joined = group.joined[client]
    yield from group.send(client, Heartbeat("g", joined.generation, joined.member_id, group.instances.get(client)))


def wait(group: Group, milliseconds: str) -> Iterator[str]:
    group.world.passes(int(milliseconds))
    yield from group.received()


def commit(group: Group, offset: str, *, by: str | None = None, metadata: str = "") -> Iterator[str]:
    request = OffsetCommit("g", {ORDERS: CommittedOffset(int(offset), metadata=metadata)})
    if by is not None:
        joined = group.joined[by]
        request = OffsetCommit("g", request.offsets, joined.generation, joined.member_id, group.instances.get(by))
    yield from group.send(by or "a client outside the group", request)


def offset(group: Group) -> Iterator[str]:
    response = group.world.coordinator.fetch_offsets(OffsetFetch("g", (ORDERS,)))
    if response.error is not ErrorCode.NONE:
        yield f"orders-0: {response.error.name}"
    else:
        committed = response.offsets[ORDERS].offset
        yield f"orders-0: {'nothing is committed' if committed < 0 else f'{committed} is committed'}"


def members(group: Group) -> Iterator[str]:
    described = group.world.coordinator.describe("g")
    yield f"{described.state}: {', '.join(group.name(one.member_id) for one in described.members) or 'no members'}"


def log(group: Group, state: str) -> Iterator[str]:
    group.writes = REFUSED[state]
    yield from ()


def deleted(group: Group, topic: str) -> Iterator[str]:
    group.world.took(group.world.coordinator.on_topics_deleted(group.world.now, [topic]))
    yield from group.received()


def broker_lost(group: Group) -> Iterator[str]:
    group.world.fail_over()
    yield from group.received()


def made_again(group: Group) -> Iterator[str]:
    world = group.world
    world.took(world.coordinator.on_resigned(world.now, 0))
    world.log.clear()
    world.took(world.coordinator.on_elected(world.now, 0, 1, ()))
    yield from group.received()


WORDS: Final[Mapping[str, Callable[..., Iterator[str]]]] = {
    "join": join,
    "sync": sync,
    "heartbeat": heartbeat,
    "wait": wait,
    "commit": commit,
    "offset": offset,
    "members": members,
    "log": log,
    "deleted": deleted,
    "broker_lost": broker_lost,
    "made_again": made_again,
}
