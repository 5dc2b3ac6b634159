"""One guarded partition of a Kafka cluster behind the guard, on a virtual clock: followers freeze, lag and crash, samples are late.

The leader acknowledges by the ISR of its last AlterPartition response. Its metadata, which samples show, is behind that by up to
`metadata_lag`. Judges look at the logs, at the time of samples and at requests' own timeouts, never at the guard's own state.
"""

import heapq
from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import count
from random import Random
from uuid import UUID

from rackspan.acks.isr_samples import LogEnd, LogEnds, LogRead, Partition, Sample, SampledPartition
from rackspan.acks.min_insync_racks import Thresholds, rack_bits
from rackspan.acks.produce_errors import Cause
from rackspan.acks.verification import Requirement, VerificationRules
from rackspan.gateway.core.acknowledgement.guard import AcknowledgementGuard, GuardSettings, Hold
from rackspan.model import Broker, BrokerId, RackId
from tests.gateway.core.acknowledgement.replicas import Entry, Follower, log_end

LEADER = 1
PARTITION: Partition = ("orders", 0)
LAG_MAX = 2.0
"""replica.lag.time.max.ms, in seconds."""

READ_TIMEOUT = 2.0
AT_ONCE = 2
"""Requests of the gateway on one connection."""

EXPIRY_SECONDS = 0.05
"""Between two looks at the timeouts of what is held."""

SHOWN_SECONDS = 1.0
"""A record that its racks hold for so long, and for as long as a read takes that was begun before, is not refused."""


@dataclass(eq=False)
class Produce:
    """One request, from the client's view. `offset` is that of its record, None before the append."""

    offset: int | None = None
    entry: Entry | None = None
    topic: int = 0
    hold: Hold | None = None
    repeats: "Produce | None" = None
    until: float = 0.0
    """The end of its own timeout."""
    responded_at: float = 0.0
    held_since: float | None = None
    """Since when members of the ISR in enough racks hold its record; None while they do not."""
    had_it: set[int] = field(default_factory=set)
    """Followers that held the record after it was acknowledged, and lost it with their disks."""


@dataclass
class InFlight:
    """Requests on one connection, at most two: when they were sent, and when the last response is received. Responses come in order."""

    sent: list[float] = field(default_factory=list)
    received_at: float = 0.0
    timer_at: float = float("inf")
    """When the next request is to be sent, if it is known."""

    @property
    def covered(self) -> float:
        return self.sent[-1] if self.sent else float("-inf")


@dataclass
class Violation:
    what: str
    at: float


@dataclass
class World:
    """A run of one seed: `run` returns the violations."""

    seed: int
    rules: VerificationRules
    settings: GuardSettings
    metadata_lag: float = 0.03
    seconds: float = 30.0
    pauses: bool = True
    """Whether clients pause for seconds, or have to because nothing can be sampled."""
    reads_by_name: bool = False
    """A reader's mistake: the log of an earlier topic counts."""
    forges: bool = False
    """Whether a client plays followers: it sends their fetches to the leader, past the gateway."""
    misplaces: bool = False
    """Whether another broker responds at the address of a follower that is away."""
    proves: bool = True
    """False, a reader's mistake: the broker that responds at an address counts as the one whose address it is."""
    end: int = 0
    violations: list[Violation] = field(default_factory=list)
    acknowledged: int = 0
    refused: int = 0
    waited: int = 0
    """Acknowledged after more than a second at the gateway: racks were missing."""

    def __post_init__(self) -> None:
        self.rng = Random(self.seed)
        self.racks = self.rng.choice(({1: "a", 2: "b", 3: "c"}, {1: "a", 2: "a", 3: "b"}))
        self.now = 0.0
        self.guard = AcknowledgementGuard(self.settings, self.rules)
        self.followers = {2: Follower(), 3: Follower()}
        self.at_address = {broker: broker for broker in self.racks}
        """Who responds at the address of each broker."""
        self.log: list[Entry] = []
        self.epoch, self.topic = 7, 0
        self.watermark = 0
        self.isr = {1, 2, 3}
        """By which the leader acknowledges."""
        self.shown = (self.topic, self.epoch, frozenset(self.isr))
        """Topic, leader epoch and ISR in the leader's metadata."""
        self.waiting: list[Produce] = []
        self.holds: dict[Hold, Produce] = {}
        self.done: list[Produce] = []
        self.requirement = Requirement(Thresholds(1, 2))
        self.sampling = InFlight()
        self.reading = {replica: InFlight() for replica in self.racks}
        self.sampler_is_cut = False
        self.uncut_since = 0.0
        self.last_sample = float("-inf")
        self.unadmitted: list[Produce] = []
        self._events: list[tuple[float, int, Callable[[], None]]] = []
        self._numbers = count()

    def later(self, seconds: float, event: Callable[[], None]) -> None:
        heapq.heappush(self._events, (self.now + seconds, next(self._numbers), event))

    def run(self) -> list[Violation]:
        self.later(0.0, self.clients)
        for broker in self.followers:
            self.later(0.0, lambda broker=broker: self.fetch(broker))  # type: ignore[misc]
        self.later(0.0, self.check_lag)
        self.later(self.rng.uniform(0.5, 5), self.fault)
        if self.pauses:
            self.later(self.rng.uniform(1, 8), self.cut_sampler)
        if self.forges:
            self.later(self.rng.uniform(0.5, 5), self.forge)
        if self.misplaces:
            self.later(0.0, self.misplace)
        self.later(EXPIRY_SECONDS, self.expire)
        while self._events and self._events[0][0] < self.seconds:
            self.now, _, event = heapq.heappop(self._events)
            event()
        return self.violations

    # Clients and the guard, as handlers/produce.py drives it.

    def clients(self) -> None:
        repeated = self.rng.choice(self.done[-20:]) if self.done and self.rng.random() < 0.02 else None
        self.arrive(Produce(repeats=repeated, until=self.now + self.rng.choice((0.5, 3.0, 10.0))))
        busy = not self.pauses or self.rng.random() < 0.98
        self.later(self.rng.expovariate(60) if busy else self.rng.uniform(0.5, 4), self.clients)

    def arrive(self, produce: Produce) -> None:
        admission = self.guard.admit(LEADER, {PARTITION: self.requirement}, self.now)
        if admission.unsampled:
            self.unadmitted.append(produce)
            self.later(self.settings.sample_timeout_seconds, lambda: self.admit(produce))
            self.sample()
        else:
            if admission.aging and not self.sampling.sent:
                self.sample()
            self.decide(produce, bool(admission.refusals))

    def admit(self, produce: Produce) -> None:
        if produce in self.unadmitted:
            self.unadmitted.remove(produce)
            admission = self.guard.admit(LEADER, {PARTITION: self.requirement}, self.now, final=True)
            self.decide(produce, bool(admission.refusals))

    def decide(self, produce: Produce, refused: bool) -> None:
        if refused and self.guard.settings.refuses_before:
            self.refused += 1
            return
        if self.now - self.last_sample > self.settings.max_staleness_seconds:
            self.violations.append(Violation("forwarded without a fresh sample", self.now))
        produce.hold = self.guard.forwarded(LEADER, {PARTITION: self.requirement}, produce.until)
        self.later(self.rng.uniform(0.0002, 0.002), lambda: self.append(produce))

    def release(self, produce: Produce, refused: bool) -> None:
        if self.now > max(produce.until, produce.responded_at) + 2 * EXPIRY_SECONDS:
            self.violations.append(Violation("decided after its timeout", self.now))
        if refused:
            self.refused += 1
            self.judge_refusal(produce)
            return
        self.acknowledged += 1
        self.waited += self.now - produce.responded_at > 1.0
        self.done.append(produce)
        assert produce.offset is not None
        if produce.topic != self.topic:
            # Deleted with its topic.
            return
        offset, entry = produce.offset, produce.entry
        holders = [one for one, of in self.followers.items() if of.log[offset : offset + 1] == [entry]]
        racks = {self.racks[one] for one in (LEADER, *holders, *produce.had_it)}
        if len(racks) < self.requirement.thresholds.min_insync_racks:
            self.violations.append(Violation(f"acknowledged and held in {sorted(racks)}", self.now))

    def judge_refusal(self, produce: Produce) -> None:
        """An appended record is refused at the end of its timeout, or when the leader it was sent to leads no more."""
        assert produce.hold is not None
        if {refusal.cause for refusal in produce.hold.refusals.values()} == {Cause.LEADER}:
            return
        if self.now < produce.until:
            self.violations.append(Violation("refused before its timeout", self.now))
        late = SHOWN_SECONDS + READ_TIMEOUT + self.metadata_lag
        if produce.held_since is not None and min(self.now - produce.held_since, self.now - self.uncut_since) > late:
            self.violations.append(Violation("refused although its racks hold it", self.now))

    def complete(self, holds: list[Hold]) -> None:
        for hold in holds:
            self.release(self.holds.pop(hold), bool(hold.refusals))
        for replica in self.guard.replicas_to_read():
            self.read(replica)

    def expire(self) -> None:
        self.complete(self.guard.expire(self.now))
        for produce in self.holds.values():
            if self.now > max(produce.until, produce.responded_at) + 2 * EXPIRY_SECONDS:
                self.violations.append(Violation("held after its timeout", self.now))
            self.look(produce)
        self.later(EXPIRY_SECONDS, self.expire)

    def look(self, produce: Produce) -> None:
        """Whether members of the ISR that respond hold the record."""
        offset, entry = produce.offset, produce.entry
        assert offset is not None
        holders = [
            one
            for one, of in self.followers.items()
            if one in self.isr and not of.frozen and of.log[offset : offset + 1] == [entry] and of.topic == self.topic
        ]
        is_held = len({self.racks[one] for one in (LEADER, *holders)}) >= 2
        produce.held_since = (produce.held_since or self.now) if is_held else None

    # Samples.

    def sample(self) -> None:
        if len(self.sampling.sent) < AT_ONCE:
            self.sampling.sent.append(self.now)
            requested_at = self.now
            self.later(self.rng.uniform(0.0001, 0.003), lambda: self.respond_sample(requested_at))

    def respond_sample(self, requested_at: float) -> None:
        """The broker reads its metadata now; the response is received later."""
        if self.sampler_is_cut:
            self.later(0.05, lambda: self.sampled(requested_at))
            return
        brokers = [Broker(BrokerId(one), RackId(rack)) for one, rack in self.racks.items()]
        topic, epoch, isr = self.shown
        state = SampledPartition(LEADER, epoch, tuple(map(BrokerId, sorted(isr))))
        topics = {"orders": UUID(int=topic)}
        sample = Sample(LEADER, requested_at, rack_bits(brokers), frozenset(topics), {PARTITION: state}, topics)
        self.received(self.sampling, self.rng.uniform(0.0001, 0.003), lambda: self.observe(sample))

    def observe(self, sample: Sample) -> None:
        self.last_sample = sample.requested_at
        self.complete(self.guard.observe(sample))
        for produce in tuple(self.unadmitted):
            self.admit(produce)
        self.sampled(sample.requested_at)

    def received(self, requests: InFlight, seconds: float, event: Callable[[], None]) -> None:
        requests.received_at = max(requests.received_at, self.now + seconds)
        self.later(requests.received_at - self.now, event)

    def set_timer(self, requests: InFlight, at: float, event: Callable[[], None]) -> None:
        def fire() -> None:
            if requests.timer_at == at:
                requests.timer_at = float("inf")
                event()

        if at < requests.timer_at:
            requests.timer_at = at
            self.later(at - self.now, fire)

    def sampled(self, requested_at: float) -> None:
        self.sampling.sent.remove(requested_at)
        self.sample_if_due()

    def sample_if_due(self) -> None:
        """What is due and not covered by a request on its way is requested, as upstream/guard_readers.py does."""
        due_at = self.guard.next_sample_at(LEADER, self.sampling.covered)
        if due_at is not None and due_at > self.now:
            self.set_timer(self.sampling, due_at, self.sample_if_due)
        elif due_at is not None or self.unadmitted:
            self.sample()

    def cut_sampler(self) -> None:
        self.sampler_is_cut = not self.sampler_is_cut
        self.uncut_since = float("inf") if self.sampler_is_cut else self.now
        self.later(self.rng.uniform(0.5, 4) if self.sampler_is_cut else self.rng.uniform(2, 12), self.cut_sampler)

    # Log ends.

    def read(self, replica: BrokerId) -> None:
        requests = self.reading[replica]
        due_at = self.guard.next_read_at(replica, requests.covered)
        if due_at is None or len(requests.sent) == AT_ONCE:
            return
        if due_at > self.now:
            self.set_timer(requests, due_at, lambda: self.read(replica))
            return
        reads, requested_at = self.guard.reads_due(replica, self.now), self.now
        requests.sent.append(requested_at)
        self.later(self.rng.uniform(0.0001, 0.002), lambda: self.respond_read(replica, reads, requested_at))

    def respond_read(self, replica: BrokerId, reads: frozenset[LogRead], requested_at: float) -> None:
        unread = LogEnds(replica, requested_at, frozenset(), {})
        responds = self.at_address[replica]
        if responds != replica and self.proves:
            self.later(self.rng.uniform(0.0001, 0.01), lambda: self.observe_read(unread))
            return
        if responds != LEADER and self.followers[responds].frozen:
            self.later(READ_TIMEOUT, lambda: self.observe_read(unread))
            return
        log, topic = (
            (self.log, self.topic)
            if responds == LEADER
            else (self.followers[responds].log, self.followers[responds].topic)
        )
        ends: dict[LogRead, LogEnd | None] = {
            read: log_end(log, read.leader_epoch)
            for read in reads
            if self.reads_by_name or read.topic_id == UUID(int=topic)
        }
        response = LogEnds(replica, requested_at, reads, ends)
        self.received(self.reading[replica], self.rng.uniform(0.0001, 0.01), lambda: self.observe_read(response))

    def observe_read(self, ends: LogEnds) -> None:
        self.reading[ends.replica].sent.remove(ends.requested_at)
        self.complete(self.guard.observe_log_ends(ends))
        self.sample_if_due()

    # The broker.

    def append(self, produce: Produce) -> None:
        repeated, produce.topic = produce.repeats, self.topic
        if repeated is not None and repeated.offset is not None and repeated.entry in self.log[repeated.offset :][:1]:
            produce.offset, produce.entry = repeated.offset, repeated.entry
        else:
            produce.offset, produce.entry = len(self.log), (self.epoch, next(self._numbers))
            self.log.append(produce.entry)
        self.waiting.append(produce)
        self.advance()

    def advance(self) -> None:
        """Acknowledge what every member of the ISR has."""
        ends = [self.followers[one].known_end for one in self.isr - {LEADER}]
        self.watermark = max(self.watermark, min([len(self.log), *ends]))
        for produce in tuple(self.waiting):
            if produce.offset is not None and produce.offset < self.watermark:
                self.waiting.remove(produce)
                self.later(self.rng.uniform(0.0001, 0.001), lambda produce=produce: self.respond(produce))  # type: ignore[misc]

    def respond(self, produce: Produce) -> None:
        if produce.hold is None:
            self.release(produce, False)
            return
        self.holds[produce.hold], produce.responded_at = produce, self.now
        assert produce.offset is not None
        end = None if produce.repeats is not None and self.rng.random() < 0.5 else produce.offset + 1
        if self.guard.acknowledged(produce.hold, {PARTITION: end}, self.now):
            self.complete([produce.hold])
        else:
            self.sample_if_due()
            self.complete([])

    def fetch(self, broker: int) -> None:
        """One fetch of a follower. It is received now; its records are appended when the next one is sent."""
        follower = self.followers[broker]
        if not follower.frozen and not follower.isolated:
            if follower.topic != self.topic:
                follower.topic, follower.log = self.topic, []
            follower.truncate_to(self.log)
            follower.fetched(len(self.log), self.now)
            if broker not in self.isr and follower.known_end >= self.watermark:
                self.alter(self.isr | {broker})
            self.advance()
            topic, at = self.topic, len(follower.log)
            records = self.log[at : at + follower.batch]
            self.later(follower.fetch_seconds, lambda: self.fetched(broker, topic, at, records))
        else:
            self.later(0.003, lambda: self.fetch(broker))

    def fetched(self, broker: int, topic: int, at: int, records: list[Entry]) -> None:
        follower = self.followers[broker]
        if not follower.frozen and not follower.isolated and (follower.topic, len(follower.log)) == (topic, at):
            follower.log.extend(records)
        self.fetch(broker)

    def forge(self) -> None:
        """A client fetches as a follower that does nothing meanwhile: the leader believes that it holds all that is before the offset."""
        for broker, follower in self.followers.items():
            if follower.frozen or follower.isolated:
                follower.fetched(len(self.log), self.now)
                follower.known_end = len(self.log)
                if broker not in self.isr and self.rng.random() < 0.1:
                    self.alter(self.isr | {broker})
        self.advance()
        self.later(0.003, self.forge)

    def misplace(self) -> None:
        """The address of a follower that does nothing is given to another broker, until the follower is back."""
        for broker, follower in self.followers.items():
            if not follower.frozen and not follower.isolated:
                self.at_address[broker] = broker
            elif self.at_address[broker] == broker:
                self.at_address[broker] = self.rng.choice(sorted(self.racks.keys() - {broker}))
        self.later(0.05, self.misplace)

    def check_lag(self) -> None:
        end = len(self.log)
        late = {one for one in self.isr - {LEADER} if self.followers[one].lags(end, self.now, LAG_MAX)}
        if late:
            self.alter(self.isr - late)
        self.later(LAG_MAX / 8, self.check_lag)

    def alter(self, isr: set[int]) -> None:
        """The controller has committed it; the leader acts at once, and shows it when its metadata has it."""
        self.isr = isr
        self.publish()
        self.advance()

    def publish(self) -> None:
        state = (self.topic, self.epoch, frozenset(self.isr))
        self.later(self.rng.uniform(0, self.metadata_lag), lambda: self.show(state))

    def show(self, state: tuple[int, int, frozenset[int]]) -> None:
        if state == (self.topic, self.epoch, frozenset(self.isr)):
            self.shown = state

    # Faults.

    def fault(self) -> None:
        """Of one follower or both, for less or for more than it takes to leave the ISR."""
        chosen = [one for one in self.followers if self.rng.random() < 0.8]
        often, others = (self.freeze, self.slow), (self.crash, self.contest, self.lose_tail, self.recreate)
        kind = self.rng.choice(often * 3 + others)
        kind(chosen)
        self.later(self.rng.uniform(0.1, 3 * LAG_MAX), lambda: self.recover(chosen))
        self.later(self.rng.uniform(3, 9), self.fault)

    def recover(self, chosen: list[int]) -> None:
        for one in chosen:
            self.followers[one].recover()

    def freeze(self, chosen: list[int]) -> None:
        for one in chosen:
            self.followers[one].frozen = True

    def slow(self, chosen: list[int]) -> None:
        for one in chosen:
            self.followers[one].slow_down(self.rng)

    def crash(self, chosen: list[int]) -> None:
        """Followers lose power and the ends of their logs, and are back at once; the controller takes them out of the ISR."""
        for one in chosen:
            follower = self.followers[one]
            lost = follower.log[-self.rng.randrange(1, 20) :]
            for produce in self.holds.values():
                if produce.entry in lost:
                    produce.had_it.add(one)
            del follower.log[len(follower.log) - len(lost) :]
            follower.isolated = True
        self.alter(self.isr - set(chosen))

    def contest(self, chosen: list[int]) -> None:
        """A follower led briefly, and has records of that epoch that nobody else has; the leader leads again."""
        self.epoch += 2
        for one in self.rng.sample(chosen, min(1, len(chosen))):
            if one in self.isr and self.followers[one].topic == self.topic:
                uncommitted = [(self.epoch - 1, next(self._numbers)) for _ in range(self.rng.randrange(20, 200))]
                self.followers[one].log.extend(uncommitted)
                self.followers[one].isolated = True
        self._lead_anew()
        self.publish()

    def lose_tail(self, chosen: list[int]) -> None:
        """A follower led briefly, and the leader lost what that one did not have; another one, cut off and out of the ISR at once, has it still."""
        led = min(self.followers, key=lambda one: (self.racks[one] != self.racks[LEADER], one))
        other = next(iter(self.followers.keys() - {led}))
        if {led, other} <= self.isr and self.followers[led].topic == self.followers[other].topic == self.topic:
            committed = self.log[: max(self.watermark, len(self.followers[led].log))]
            uncommitted = [(self.epoch, next(self._numbers)) for _ in range(self.rng.randrange(20, 200))]
            self.log, self.followers[other].log = committed, committed + uncommitted
            self.followers[other].isolated = True
            chosen.append(other)
            self.epoch += 2
            self._lead_anew()
            self.alter(self.isr - {other})

    def recreate(self, chosen: list[int]) -> None:
        """The topic is deleted and created anew, in the same epoch; these followers have not applied that yet."""
        self.topic += 1
        self.log, self.watermark, self.isr = [], 0, {1, 2, 3}
        # The leader's metadata is never behind its own leadership.
        self.shown = (self.topic, self.epoch, frozenset(self.isr))
        self.done.clear()
        for one in chosen:
            self.followers[one].isolated = True
        self._lead_anew()

    def _lead_anew(self) -> None:
        self.waiting.clear()
        self.shown = (self.topic, self.epoch, self.shown[2])
        for follower in self.followers.values():
            follower.known_end, follower.leader_end_at_last_fetch = 0, 0
            follower.last_fetch_at = follower.caught_up_at = self.now
