"""One guarded partition of a Kafka cluster behind the guard, on a virtual clock: followers freeze, the ISR shrinks, samples are late.

The leader acknowledges by the ISR of its last AlterPartition response. Its metadata, which samples show, is behind that by up to
`metadata_lag`. Judges look at the logs and at the time of samples, never at the guard's own state.
"""

import heapq
from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import count
from random import Random

from rackspan.acks.min_insync_racks import Thresholds, rack_bits
from rackspan.gateway.core.acknowledgement.guard import (
    AcknowledgementGuard,
    Hold,
    Partition,
    PartitionIsr,
    Requirement,
    Sample,
)
from rackspan.gateway.core.acknowledgement.rules import GuardRules, GuardSettings
from rackspan.model import Broker, BrokerId, RackId

LEADER = 1
RACKS = {1: "a", 2: "b", 3: "c"}
PARTITION: Partition = ("orders", 0)
LAG_MAX = 2.0
"""replica.lag.time.max.ms, in seconds."""


@dataclass
class Follower:
    """What one follower has of the log, and when it last had all of it."""

    end: int = 0
    caught_up_at: float = 0.0
    frozen: bool = False


@dataclass(eq=False)
class Produce:
    """One request, from the client's view. `offset` is that of its record, None before the append."""

    offset: int | None = None
    hold: Hold | None = None
    outcome: str | None = None


@dataclass
class Violation:
    what: str
    at: float


@dataclass
class World:
    """A run of one seed: `run` returns the violations."""

    seed: int
    rules: GuardRules
    settings: GuardSettings
    metadata_lag: float = 0.03
    seconds: float = 30.0
    pauses: bool = True
    """Whether clients pause for seconds, or have to because nothing can be sampled."""
    isr: set[int] = field(default_factory=lambda: {1, 2, 3})
    """By which the leader acknowledges."""
    end: int = 0
    violations: list[Violation] = field(default_factory=list)
    acknowledged: int = 0
    refused: int = 0

    def __post_init__(self) -> None:
        self.rng = Random(self.seed)
        self.now = 0.0
        self.guard = AcknowledgementGuard(self.settings, self.rules)
        self.followers = {2: Follower(), 3: Follower()}
        self.shown = frozenset(self.isr)
        """The ISR in the leader's metadata."""
        self.waiting: list[Produce] = []
        self.holds: dict[Hold, Produce] = {}
        self.requirement = Requirement(Thresholds(1, 2))
        self.sampling = False
        self.sampler_is_cut = False
        self.last_sample = float("-inf")
        self.unadmitted: list[Produce] = []
        self._events: list[tuple[float, int, Callable[[], None]]] = []
        self._numbers = count()

    def later(self, seconds: float, event: Callable[[], None]) -> None:
        heapq.heappush(self._events, (self.now + seconds, next(self._numbers), event))

    def run(self) -> list[Violation]:
        self.later(0.0, self.clients)
        self.later(0.0, self.fetch)
        self.later(0.0, self.check_lag)
        self.later(self.rng.uniform(0.5, 5), self.freeze)
        if self.pauses:
            self.later(self.rng.uniform(1, 8), self.cut_sampler)
        self.later(0.05, self.expire)
        while self._events and self._events[0][0] < self.seconds:
            self.now, _, event = heapq.heappop(self._events)
            event()
        return self.violations

    # Clients and the guard, as handlers/produce.py drives it.

    def clients(self) -> None:
        self.arrive(Produce())
        busy = not self.pauses or self.rng.random() < 0.9
        self.later(self.rng.expovariate(50) if busy else self.rng.uniform(0.5, 4), self.clients)

    def arrive(self, produce: Produce) -> None:
        admission = self.guard.admit(LEADER, {PARTITION: self.requirement}, self.now)
        if admission.unsampled:
            self.unadmitted.append(produce)
            self.later(self.settings.sample_timeout, lambda: self.admit(produce))
            self.sample()
        else:
            self.decide(produce, bool(admission.refusals))

    def admit(self, produce: Produce) -> None:
        if produce in self.unadmitted:
            self.unadmitted.remove(produce)
            admission = self.guard.admit(LEADER, {PARTITION: self.requirement}, self.now, final=True)
            self.decide(produce, bool(admission.refusals))

    def decide(self, produce: Produce, refused: bool) -> None:
        if refused and self.guard.refuses_before():
            self.refused += 1
            return
        if self.now - self.last_sample > self.settings.max_staleness:
            self.violations.append(Violation("forwarded without a fresh sample", self.now))
        produce.hold = self.guard.forwarded(LEADER, {PARTITION: self.requirement}, self.now)
        self.later(self.rng.uniform(0.0002, 0.002), lambda: self.append(produce))

    def release(self, produce: Produce, refused: bool) -> None:
        if refused:
            self.refused += 1
            return
        self.acknowledged += 1
        assert produce.offset is not None
        racks = {RACKS[LEADER], *(RACKS[one] for one, log in self.followers.items() if log.end > produce.offset)}
        if len(racks) < self.requirement.thresholds.min_insync_racks:
            self.violations.append(Violation(f"acknowledged and held in {sorted(racks)}", self.now))

    def complete(self, holds: list[Hold]) -> None:
        for hold in holds:
            self.release(self.holds.pop(hold), bool(hold.refusals))

    def expire(self) -> None:
        self.complete(self.guard.expire(self.now))
        self.later(0.05, self.expire)

    # Samples.

    def sample(self) -> None:
        if not self.sampling:
            self.sampling = True
            requested_at = self.now
            self.later(self.rng.uniform(0.0001, 0.003), lambda: self.respond_sample(requested_at))

    def respond_sample(self, requested_at: float) -> None:
        """The broker reads its metadata now; the response is received later."""
        if self.sampler_is_cut:
            self.later(0.05, self.sampled)
            return
        brokers = [Broker(BrokerId(one), RackId(rack)) for one, rack in RACKS.items()]
        state = PartitionIsr(LEADER, 7, tuple(map(BrokerId, sorted(self.shown))))
        sample = Sample(LEADER, requested_at, rack_bits(brokers), frozenset({"orders"}), {PARTITION: state})
        self.later(self.rng.uniform(0.0001, 0.003), lambda: self.observe(sample))

    def observe(self, sample: Sample) -> None:
        self.last_sample = sample.requested_at
        self.complete(self.guard.observe(sample))
        for produce in tuple(self.unadmitted):
            self.admit(produce)
        self.sampled()

    def sampled(self) -> None:
        self.sampling = False
        wanted_at = self.guard.wanted_at(LEADER)
        if wanted_at is not None:
            self.later(max(0.0, wanted_at - self.now), self.sample)
        elif self.unadmitted:
            self.sample()

    def cut_sampler(self) -> None:
        self.sampler_is_cut = not self.sampler_is_cut
        self.later(self.rng.uniform(0.5, 4) if self.sampler_is_cut else self.rng.uniform(2, 12), self.cut_sampler)

    # The broker.

    def append(self, produce: Produce) -> None:
        produce.offset, self.end = self.end, self.end + 1
        self.waiting.append(produce)
        self.advance()

    def advance(self) -> None:
        """Acknowledge what every member of the ISR has."""
        watermark = min([self.end, *(self.followers[one].end for one in self.isr - {LEADER})])
        while self.waiting and (self.waiting[0].offset or 0) < watermark:
            produce = self.waiting.pop(0)
            self.later(self.rng.uniform(0.0001, 0.001), lambda produce=produce: self.respond(produce))  # type: ignore[misc]

    def respond(self, produce: Produce) -> None:
        if produce.hold is None:
            self.release(produce, False)
            return
        self.holds[produce.hold] = produce
        if self.guard.acknowledged(produce.hold, [PARTITION], self.now):
            self.complete([produce.hold])
        else:
            self.sample()

    def fetch(self) -> None:
        for one, log in self.followers.items():
            if not log.frozen:
                log.end, log.caught_up_at = self.end, self.now
                if one not in self.isr:
                    self.alter(self.isr | {one})
        self.advance()
        self.later(0.005, self.fetch)

    def check_lag(self) -> None:
        late = {one for one in self.isr - {LEADER} if self.now - self.followers[one].caught_up_at > LAG_MAX}
        if late:
            self.alter(self.isr - late)
        self.later(LAG_MAX / 8, self.check_lag)

    def alter(self, isr: set[int]) -> None:
        """The controller has committed it; the leader acts at once, and shows it when its metadata has it."""
        self.isr = isr
        self.later(self.rng.uniform(0, self.metadata_lag), lambda: self.show(isr))
        self.advance()

    def show(self, isr: set[int]) -> None:
        if isr == self.isr:
            self.shown = frozenset(isr)

    def freeze(self) -> None:
        """One follower or both, for less or for more than it takes to leave the ISR."""
        frozen = [log for log in self.followers.values() if self.rng.random() < 0.8]
        for log in frozen:
            log.frozen = True
        self.later(self.rng.uniform(0.1, 3 * LAG_MAX), lambda: self.thaw(frozen))
        self.later(self.rng.uniform(3, 9), self.freeze)

    def thaw(self, frozen: list[Follower]) -> None:
        for log in frozen:
            log.frozen = False
