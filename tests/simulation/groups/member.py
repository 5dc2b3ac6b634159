"""A member of a consumer group, with no memory but its own: it joins, owns, commits, and now and then sleeps too long.

One request at a time. A member that sleeps wakes up believing what it believed, and so commits in a generation that may
be over (a garbage collection that outlasts its session).
"""

from collections.abc import Callable
from dataclasses import dataclass
from random import Random
from typing import Final

from rackspan.cluster.core.groups.requests import (
    CommittedOffset,
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
)
from rackspan.kafka_bytes.error_codes import ErrorCode
from rackspan.model.ids import TopicPartition
from tests.simulation.clients.request import Request, Then
from tests.simulation.environment.clock import Clock

GROUP: Final = "readers"
READ: Final = tuple(TopicPartition("orders", number) for number in range(3))
"""What the group divides."""

REQUEST_MS: Final = 350
BACKOFF_MS: Final = 40
MOST_LATE_MS: Final = 400
PROTOCOLS: Final = (Protocol("range", b""),)


@dataclass(slots=True)
class Member:
    """One member. `send` puts a request on the network to the broker that seems to coordinate; a response may never come.

    `generation` and `owned` are the member's view. `turn` numbers its requests, so that a late response is dropped.
    """

    name: str
    clock: Clock
    rng: Random
    send: Callable[[Request, Then], None]
    next_value: Callable[[], int]
    session_ms: int
    rebalance_ms: int
    stop_at: int
    member_id: str = ""
    generation: int = -1
    owned: tuple[int, ...] = ()
    turn: int = 0
    sleeps_until: int = 0

    def start(self) -> None:
        self._join()

    # One request.

    def _request(self, request: Request, then: Then, timeout_ms: int = REQUEST_MS) -> None:
        self.turn += 1
        turn = self.turn
        self.send(request, lambda response: self._awake(lambda: then(response) if self.turn == turn else None))
        self.clock.after(timeout_ms, lambda: self._awake(lambda: self._gave_up(turn)))

    def _gave_up(self, turn: int) -> None:
        if self.turn == turn:
            self._next()

    def _awake(self, then: Callable[[], None]) -> None:
        """At once, or when it wakes."""
        if self.sleeps_until > self.clock.now:
            self.clock.at(self.sleeps_until, then)
        else:
            then()

    def _soon(self, then: Callable[[], None]) -> None:
        """After a little while, unless something else was begun meanwhile."""
        self.turn += 1
        turn = self.turn
        wait = self.rng.randint(1, 2 * BACKOFF_MS)
        self.clock.after(wait, lambda: self._awake(lambda: then() if self.turn == turn else None))

    # Joining.

    def _join(self) -> None:
        if self.clock.now >= self.stop_at:
            return
        self.generation = -1
        request = JoinGroup(
            GROUP, "consumer", PROTOCOLS, self.session_ms, self.rebalance_ms, self.member_id, client_id=self.name
        )
        self._request(request, self._joined, self.rebalance_ms + REQUEST_MS)

    def _joined(self, response: object) -> None:
        assert isinstance(response, JoinGroupResponse)
        if response.error is ErrorCode.NONE:
            self.member_id = response.member_id
            self._sync(response)
        elif response.error is ErrorCode.MEMBER_ID_REQUIRED:
            self.member_id = response.member_id
            self._join()
        else:
            self._refused(response.error)

    def _sync(self, joined: JoinGroupResponse) -> None:
        """The leader deals the partitions in turn."""
        members = sorted(member.member_id for member in joined.members)
        dealt = {one: bytes(range(at, len(READ), len(members))) for at, one in enumerate(members)}
        self._request(
            SyncGroup(GROUP, joined.generation, joined.member_id, assignments=dealt),
            lambda response: self._synced(joined.generation, response),
        )

    def _synced(self, generation: int, response: object) -> None:
        assert isinstance(response, SyncGroupResponse)
        if response.error is not ErrorCode.NONE:
            self._refused(response.error)
            return
        self.generation, self.owned = generation, tuple(response.assignment)
        self._request(OffsetFetch(GROUP, tuple(READ[number] for number in self.owned)), lambda _: self._next())

    def _refused(self, error: ErrorCode) -> None:
        """Join anew; under a new name where the old one is unknown."""
        if error is ErrorCode.REBALANCE_IN_PROGRESS and self.generation >= 0 and self.owned:
            self._commit_late()
        if error is ErrorCode.UNKNOWN_MEMBER_ID:
            self.member_id = ""
        self._soon(self._join)

    # Being a member.

    def _next(self) -> None:
        if self.clock.now >= self.stop_at:
            return
        self._soon(self._join if self.generation < 0 else self._act)

    def _act(self) -> None:
        drawn = self.rng.random()
        if drawn < 0.04:
            self._sleep()
        elif drawn < 0.06:
            self._leave()
        elif drawn < 0.14:
            self._request(OffsetFetch(GROUP, READ), lambda _: self._next())
        elif drawn < 0.45 or not self.owned:
            self._request(Heartbeat(GROUP, self.generation, self.member_id), self._beat)
        else:
            self._commit()

    def _sleep(self) -> None:
        self.sleeps_until = self.clock.now + self.rng.randint(self.session_ms // 2, 3 * self.session_ms)
        self._awake(self._commit if self.owned else self._next)

    def _leave(self) -> None:
        left = LeaveGroup(GROUP, (LeavingMember(self.member_id),))
        self.member_id, self.generation, self.owned = "", -1, ()
        self._request(left, lambda _: self._next())

    def _commit(self) -> None:
        self._request(self._commit_of_one(), self._committed)

    def _commit_late(self) -> None:
        """What was read by then another thread commits, at its leisure: the next generation may have begun."""
        request = self._commit_of_one()
        self.clock.after(self.rng.randint(0, MOST_LATE_MS), lambda: self.send(request, lambda _: None))

    def _commit_of_one(self) -> OffsetCommit:
        partition = READ[self.rng.choice(self.owned)]
        return OffsetCommit(GROUP, {partition: CommittedOffset(self.next_value())}, self.generation, self.member_id)

    def _beat(self, response: object) -> None:
        assert isinstance(response, HeartbeatResponse)
        self._go_on(response.error)

    def _committed(self, response: object) -> None:
        assert isinstance(response, OffsetCommitResponse)
        (error,) = response.errors.values()
        self._go_on(error)

    def _go_on(self, error: ErrorCode) -> None:
        """Joins again on the errors that require it. The coordinator's other errors are no reason to."""
        if error in _REJOIN:
            self._refused(error)
        else:
            self._next()


_REJOIN: Final = frozenset({ErrorCode.ILLEGAL_GENERATION, ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.REBALANCE_IN_PROGRESS})
