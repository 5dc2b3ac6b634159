"""A config topic of a Kafka cluster, and two gateways that hold leases on it, on a virtual clock: one value is raised again and again.

Brokers are cut off from the others and still respond to gateways, a leader is deposed, the topic is reassigned, metadata is late, links
are half-open, gateways and brokers are suspended, clocks of the date are set. The judge has the values that were acknowledged to who raised
them, and the value by which each gateway acknowledges; it reads no lease.
"""

import heapq
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from itertools import count
from random import Random

from rackspan.gateway.core.config_lease import (
    LEASE_SECONDS,
    SETTLE_SECONDS,
    ConfigLease,
    EndReading,
    LeaseRules,
    replicas_to_hold,
)

Entry = tuple[int, int]
"""Leader epoch and value."""

BROKERS = (1, 2, 3, 4, 5)
MIN_INSYNC = 2
LAG_SECONDS, SESSION_SECONDS, RAISE_SECONDS = 1.0, 1.0, 15.0


@dataclass(frozen=True)
class View:
    """The partition as the controller has committed it, or as a broker last received it."""

    epoch: int
    leader: int
    replicas: frozenset[int]
    isr: frozenset[int]
    offset: int = 0
    """In the controllers' log: a broker applies it in order."""


@dataclass
class Replica:
    """One broker: its log, None without a replica, and what it last received of the partition."""

    view: View
    log: list[Entry] | None
    watermark: int = 0
    cut: bool = False
    """It reaches neither controller nor brokers; gateways reach it."""
    late_seconds: float = 0.05
    """How late its metadata is."""
    suspended_until: float = 0.0
    epoch_start: int = 0
    """Of its log when it received the leader epoch."""
    known_ends: dict[int, int] = field(default_factory=dict)
    fetched_at: dict[int, float] = field(default_factory=dict)


@dataclass
class Raise:
    value: int
    began_at: float
    leader: int = 0
    offset: int = -1
    entry: Entry = (0, 0)
    settles_at: float | None = None


@dataclass
class Gateway:
    name: str
    lease: ConfigLease
    offset: float
    """Of its clock."""
    rate: float
    date_jump: float = 0.0
    view: View | None = None
    replayed: int = 0
    value: int = 0
    suspended_until: float = 0.0
    half_open: dict[int, float] = field(default_factory=dict)
    """Until when each broker gets no request."""
    slow_until: float = 0.0
    slow_seconds: float = 0.0
    raising: Raise | None = None
    acknowledged: int = 0
    refused: int = 0


@dataclass
class LeaseWorld:
    """A run of one seed: `run` returns the violations. The planted mistakes are `rules` and the three fields from `by_date` on."""

    seed: int
    rules: LeaseRules = field(default_factory=LeaseRules)
    seconds: float = 40.0
    by_date: bool = False
    second_lease_seconds: float = LEASE_SECONDS
    settle_seconds: float = SETTLE_SECONDS
    faults: bool = True
    violations: list[str] = field(default_factory=list)
    raised: int = 0
    """The largest value that was acknowledged to who set it."""
    raises: int = 0
    slowest_raise: float = 0.0

    def __post_init__(self) -> None:
        self.rng = Random(self.seed)
        self.now = 0.0
        first = frozenset({1, 2, 3})
        self.state = View(1, 1, first, first)
        self.target: frozenset[int] | None = None
        self.leader_lost_at: float | None = None
        self.brokers = {one: Replica(self.state, [] if one in first else None) for one in BROKERS}
        self.gateways = [
            Gateway(name, ConfigLease(self.rules, seconds), self.rng.uniform(0, 1e6), self.rng.uniform(0.999, 1.001))
            for name, seconds in (("a", LEASE_SECONDS), ("b", self.second_lease_seconds))
        ]
        self.values = count(1)
        self._events: list[tuple[float, int, Callable[[], None]]] = []
        self._numbers = count()

    def later(self, seconds: float, event: Callable[[], None]) -> None:
        heapq.heappush(self._events, (self.now + seconds, next(self._numbers), event))

    def every(self, low: float, high: float, event: Callable[[], None]) -> None:
        def again() -> None:
            event()
            self.later(self.rng.uniform(low, high), again)

        self.later(self.rng.uniform(0, high), again)

    def run(self) -> list[str]:
        for broker in BROKERS:
            self.every(0.02, 0.05, lambda broker=broker: self.replicate(broker))  # type: ignore[misc]
        self.every(0.05, 0.1, self.control)
        for gateway in self.gateways:
            for broker in BROKERS:
                self.every(0.3, 0.7, lambda g=gateway, b=broker: self.read_end(g, b))  # type: ignore[misc]
            self.every(0.05, 0.15, lambda g=gateway: self.fetch_leader(g))  # type: ignore[misc]
            self.every(0.02, 0.06, lambda g=gateway: self.produce(g))  # type: ignore[misc]
            self.every(0.05, 0.1, lambda g=gateway: self.raise_value(g))  # type: ignore[misc]
        if self.faults:
            self.every(0.5, 3.0, self.fault)
        while self._events and self._events[0][0] < self.seconds and not self.violations:
            self.now, _, event = heapq.heappop(self._events)
            event()
        return self.violations

    # The cluster.

    def replicate(self, broker: int) -> None:
        """A follower fetches from the leader of its view, which takes that for progress if it is of the same epoch."""
        own = self.brokers[broker]
        leader = self.brokers.get(own.view.leader)
        if own.log is None or self.now < own.suspended_until or leader is None:
            return
        if leader is own:
            self.lead(broker)
            return
        apart = own.cut or leader.cut or self.now < leader.suspended_until
        if apart or leader.log is None or (leader.view.epoch, leader.view.leader) != (own.view.epoch, own.view.leader):
            return
        common = next(
            (at for at, pair in enumerate(zip(own.log, leader.log, strict=False)) if pair[0] != pair[1]), None
        )
        del own.log[min(len(own.log), len(leader.log)) if common is None else common :]
        # What a follower has is known to the leader from its next fetch on.
        leader.known_ends[broker], leader.fetched_at[broker] = len(own.log), self.now
        own.log.extend(leader.log[len(own.log) :])
        own.watermark = min(leader.watermark, len(own.log))

    def lead(self, broker: int) -> None:
        """Move the high watermark by the ISR that is committed as the leader has it, and change that through the controller."""
        own = self.brokers[broker]
        assert own.log is not None
        isr = own.view.isr
        if len(isr) >= MIN_INSYNC:
            own.watermark = max(
                own.watermark, min([len(own.log), *(own.known_ends.get(one, 0) for one in isr - {broker})])
            )
        if own.cut or (self.state.epoch, self.state.leader) != (own.view.epoch, broker):
            return
        recent = {one for one in own.view.replicas if self.now - own.fetched_at.get(one, -9) < LAG_SECONDS}
        needed = max(own.watermark, own.epoch_start)
        caught_up = {one for one in recent if own.known_ends.get(one, -1) >= needed}
        newest = frozenset({broker} | (set(isr) & recent) | caught_up) & self.state.replicas
        if newest != self.state.isr:
            self.commit(View(self.state.epoch, broker, self.state.replicas, newest))
            own.view = self.state

    def commit(self, state: View) -> None:
        """The controller commits a state; each broker that it reaches receives it later."""
        state = self.state = replace(state, offset=self.state.offset + 1)
        for broker, own in self.brokers.items():
            self.later(self.rng.uniform(0, own.late_seconds), lambda broker=broker: self.apply(broker, state))  # type: ignore[misc]

    def apply(self, broker: int, state: View) -> None:
        own = self.brokers[broker]
        if own.cut or self.now < own.suspended_until:
            return
        if state.offset <= own.view.offset:
            return
        if state.epoch > own.view.epoch:
            own.known_ends, own.fetched_at = {}, dict.fromkeys(state.replicas, self.now)
            own.epoch_start = len(own.log or ())
        own.view = state
        if broker in state.replicas:
            own.log = [] if own.log is None else own.log
        else:
            own.log, own.watermark = None, 0

    def control(self) -> None:
        """Elect, end a reassignment, and repeat the state to brokers that were cut off."""
        state = self.state
        for broker, own in self.brokers.items():
            if own.view != state and own.late_seconds < 1:
                self.apply(broker, state)
        up = {one for one, own in self.brokers.items() if not own.cut and self.now >= own.suspended_until}
        if state.leader not in up:
            self.leader_lost_at = self.now if self.leader_lost_at is None else self.leader_lost_at
            if self.now - self.leader_lost_at > SESSION_SECONDS:
                left = state.isr - {state.leader} or state.isr
                eligible = sorted(state.isr & up)
                leader = eligible[0] if eligible else -1
                if leader != state.leader:
                    self.commit(View(state.epoch + 1, leader, state.replicas, left if leader >= 0 else state.isr))
        else:
            self.leader_lost_at = None
        state = self.state
        if self.target is not None and self.target <= state.isr and state.leader >= 0:
            eligible = sorted(self.target & up)
            if eligible:
                leader = state.leader if state.leader in self.target else eligible[0]
                self.commit(View(state.epoch + 1, leader, self.target, self.target))
                self.target = None

    # Gateways.

    def clock(self, gateway: Gateway) -> float:
        boot = gateway.offset + self.now * gateway.rate
        return boot + gateway.date_jump if self.by_date else boot

    def reaches(self, gateway: Gateway, broker: int) -> bool:
        return self.now >= gateway.half_open.get(broker, 0.0)

    def exchange(
        self, gateway: Gateway, broker: int, respond: Callable[[Replica], object], receive: Callable[[object], None]
    ) -> None:
        """A request and its response, which wait while broker or gateway are suspended."""
        if self.now < gateway.suspended_until or not self.reaches(gateway, broker):
            return
        own = self.brokers[broker]

        def at_broker() -> None:
            if self.now < own.suspended_until:
                self.later(own.suspended_until - self.now, at_broker)
                return
            response = respond(own)
            held = gateway.slow_seconds if self.now < gateway.slow_until else 0.0
            self.later(held + self.rng.uniform(0.0005, 0.03), lambda: at_gateway(response))

        def at_gateway(response: object) -> None:
            if self.now < gateway.suspended_until:
                self.later(gateway.suspended_until - self.now, lambda: at_gateway(response))
            elif self.reaches(gateway, broker) and response is not None:
                receive(response)

        self.later(self.rng.uniform(0.0005, 0.03), at_broker)

    def read_end(self, gateway: Gateway, broker: int) -> None:
        if gateway.lease.replicas and broker not in gateway.lease.replicas:
            return
        sent_at = self.clock(gateway)

        def respond(own: Replica) -> EndReading | None:
            if own.log is None:
                return None
            return EndReading(
                broker, sent_at, len(own.log), None, own.view.epoch, own.view.replicas, broker in own.view.isr
            )

        def receive(reading: object) -> None:
            assert isinstance(reading, EndReading)
            view = self.brokers[broker].view
            if gateway.view is None or view.epoch >= gateway.view.epoch:
                gateway.view = view
            gateway.lease.observe(reading, self.clock(gateway))
            if broker in gateway.lease.unread_replicas():
                self.fetch(gateway, broker)

        self.exchange(gateway, broker, respond, receive)

    def fetch_leader(self, gateway: Gateway) -> None:
        if gateway.view is None:
            gateway.view = self.state
        if gateway.view.leader in self.brokers:
            self.fetch(gateway, gateway.view.leader)

    def fetch(self, gateway: Gateway, broker: int) -> None:
        at = gateway.replayed

        def respond(own: Replica) -> list[Entry] | None:
            return None if own.log is None or len(own.log) < at else own.log[at : own.watermark]

        def receive(entries: object) -> None:
            assert isinstance(entries, list)
            if gateway.replayed <= at + len(entries):
                gateway.replayed = at + len(entries)
                gateway.value = max([gateway.value, *(value for _, value in entries)])
                gateway.lease.replayed(None, gateway.replayed)

        self.exchange(gateway, broker, respond, receive)

    def produce(self, gateway: Gateway) -> None:
        """A client's record, judged by the value that the gateway has."""
        if self.now < gateway.suspended_until:
            return
        if not gateway.lease.is_current(self.clock(gateway)):
            gateway.refused += 1
            return
        gateway.acknowledged += 1
        if gateway.value < self.raised:
            self.violations.append(
                f"{self.now:.2f} s: gateway {gateway.name} acknowledged by {gateway.value}, and {self.raised} was acknowledged"
            )

    def raise_value(self, gateway: Gateway) -> None:
        """One step of who sets a value, as ConfigWriter and ConfigTopic.write do it."""
        if self.now < gateway.suspended_until:
            return
        if gateway.raising is None:
            if self.rng.random() < 0.1:
                gateway.raising = Raise(next(self.values), self.now)
            return
        raising = gateway.raising
        if self.now - raising.began_at > RAISE_SECONDS:
            gateway.raising = None
        elif raising.settles_at is not None:
            if self.clock(gateway) >= raising.settles_at:
                self.raised, self.raises = max(self.raised, raising.value), self.raises + 1
                self.slowest_raise = max(self.slowest_raise, self.now - raising.began_at)
                gateway.raising = None
        elif raising.offset < 0:
            self.append(gateway, raising)
        else:
            self.verify(gateway, raising)

    def append(self, gateway: Gateway, raising: Raise) -> None:
        leader = gateway.view.leader if gateway.view is not None else -1
        own = self.brokers.get(leader)
        if own is None or own.log is None or own.view.leader != leader or not self._responds(gateway, leader):
            return
        if len(own.view.isr) >= MIN_INSYNC:
            raising.leader, raising.offset, raising.entry = leader, len(own.log), (own.view.epoch, raising.value)
            own.log.append(raising.entry)

    def verify(self, gateway: Gateway, raising: Raise) -> None:
        """The leader acknowledges, logs show the record, no broker shows a removed replica without it, and it is replayed."""
        own = self.brokers[raising.leader]
        is_leader = own.view.leader == raising.leader and own.view.epoch == raising.entry[0]
        if not is_leader or own.log is None:
            raising.offset = -1
        elif self._responds(gateway, raising.leader) and own.watermark > raising.offset:
            read = [one for one in BROKERS if self._responds(gateway, one) and self.brokers[one].log is not None]
            holders = [one for one in read if self._has(one, raising)]
            others = set(read) - set(holders) - own.view.replicas
            held = len(own.view.isr & set(holders)) >= replicas_to_hold(len(own.view.replicas))
            if held and not others and gateway.replayed > raising.offset:
                raising.settles_at = self.clock(gateway) + self.settle_seconds

    def _has(self, broker: int, raising: Raise) -> bool:
        log = self.brokers[broker].log or []
        return log[raising.offset : raising.offset + 1] == [raising.entry]

    def _responds(self, gateway: Gateway, broker: int) -> bool:
        return self.reaches(gateway, broker) and self.now >= self.brokers[broker].suspended_until

    # Faults.

    def fault(self) -> None:
        rng, gateway, own = self.rng, self.rng.choice(self.gateways), self.brokers[self.rng.choice(BROKERS)]
        kind, seconds = rng.randrange(9), rng.uniform(0.5, 10)
        if kind == 0:
            gateway.suspended_until = self.now + seconds
        elif kind == 1:
            for broker in rng.sample(BROKERS, rng.choice((1, 2))):
                gateway.half_open[broker] = self.now + seconds
        elif kind in (2, 3):
            # A leader is deposed; in the second case a gateway reaches it and no other broker.
            self.cut(self.brokers.get(self.state.leader, own), seconds)
            if kind == 3:
                gateway.half_open |= dict.fromkeys(set(BROKERS) - {self.state.leader}, self.now + seconds)
        elif kind == 4:
            own.suspended_until = self.now + seconds / 2
        elif kind == 5:
            gateway.half_open |= dict.fromkeys(BROKERS, self.now + seconds)
            self.later(rng.uniform(2, 4), lambda: self.set_clock(gateway, rng.uniform(-4, -1)))
        elif kind == 6:
            # Every response is held for seconds.
            gateway.slow_until, gateway.slow_seconds = self.now + seconds, rng.uniform(2, 6)
        elif self.target is None and self.state.leader >= 0:
            # The brokers that lose their replicas receive that late.
            others = [one for one in BROKERS if one not in self.state.replicas]
            self.target = frozenset([*others, *rng.sample(sorted(self.state.replicas), 3)][:3])
            for broker in self.state.replicas - self.target:
                self.brokers[broker].late_seconds = rng.choice((0.05, 8.0))
            state = self.state
            self.commit(View(state.epoch, state.leader, state.replicas | self.target, state.isr))
            return
        for late in self.brokers.values():
            late.late_seconds = rng.uniform(1, 6) if rng.random() < 0.1 else 0.05

    def cut(self, own: Replica, seconds: float) -> None:
        own.cut = True

        def heal() -> None:
            own.cut = False

        self.later(seconds, heal)

    def set_clock(self, gateway: Gateway, seconds: float) -> None:
        gateway.date_jump += seconds
