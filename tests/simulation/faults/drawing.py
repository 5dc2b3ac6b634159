"""What goes wrong in a world: a list of values, drawn up front.

A fault names its target in words ("leader-rack"); who that is, is looked up when it strikes. So a list may be shortened
without changing what the others mean, and shrinking is taking faults out.
"""

from dataclasses import dataclass
from enum import Enum
from random import Random
from typing import Final

from tests.simulation.environment.parameters import FAULTS_MS, Parameters
from tests.simulation.kinds import WorldKind


class FaultKind(Enum):
    """Each is undone after its duration."""

    CRASH = "crash"
    """The process is killed; its log stays, written or not, for the machine lives on."""
    SHUT_DOWN = "shut-down"
    """In order: leaderships are given up and the clean-shutdown mark is written."""
    FREEZE = "freeze"
    """Neither reads nor ticks, and wakes up believing what it believed (SIGSTOP)."""
    CUT = "cut"
    """No message passes between the target and other brokers, nor the controller."""
    CUT_BROKERS = "cut-brokers"
    """Messages to and from other brokers are lost; its heartbeats still reach the controller."""
    CUT_CONTROLLER = "cut-controller"
    """Messages to and from the controller are lost; its followers still fetch."""
    DEAF = "deaf"
    """Receives no message; what it sends arrives."""
    SLOW = "slow"
    """Every message of its links takes 50 to 400 ms longer."""
    LAG = "lag"
    """Messages to and from other brokers take 20 to 150 ms longer; the controller and clients are near."""
    STALE = "stale"
    """Heartbeats pass, metadata does not: it acts on an old image."""
    POWER = "power"
    """Lossy: the machine stops and what was not flushed is gone."""
    DISK = "disk"
    """Lossy: comes back with an empty disk."""
    MOVE = "move"
    """Restarts in another rack."""
    THRESHOLDS = "thresholds"
    """min.insync.racks or min.insync.replicas of the topic is set to something else, and back."""
    PREFERRED = "preferred"
    """A preferred leader election is requested."""
    REASSIGN = "reassign"
    """A replica is moved from one broker to another; half of them are cancelled when the fault ends."""
    RELOCATE = "relocate"
    """All replicas are reassigned to other brokers; some of these reassignments are cancelled, some replaced before they end."""
    DELAY_ISR = "delay-isr"
    """AlterPartition requests travel 100 to 500 ms, while the rest is quick."""


class Target(Enum):
    """Who is struck, as of then."""

    ANY = "any"
    LEADER = "leader"
    FOLLOWER = "follower"
    JOINER = "joiner"
    """The broker that has just been proposed for the ISR, else a follower."""
    RACK = "rack"
    LEADER_RACK = "leader-rack"
    OTHER_RACKS = "other-racks"
    """Every rack but the leader's: what a check before the append alone never notices."""


@dataclass(frozen=True, slots=True)
class Fault:
    """`choice` settles what the target leaves open (which follower, which rack): taken modulo the number there is."""

    at_ms: int
    duration_ms: int
    kind: FaultKind
    target: Target
    choice: int

    def __str__(self) -> str:
        return f"{self.at_ms} ms: {self.kind.value} {self.target.value} for {self.duration_ms} ms ({self.choice})"


PLAIN: Final = (
    FaultKind.CRASH,
    FaultKind.SHUT_DOWN,
    FaultKind.FREEZE,
    FaultKind.CUT,
    FaultKind.CUT_BROKERS,
    FaultKind.CUT_CONTROLLER,
    FaultKind.DEAF,
    FaultKind.SLOW,
    FaultKind.STALE,
    FaultKind.PREFERRED,
    FaultKind.DELAY_ISR,
    FaultKind.LAG,
)

RESTLESS: Final = (
    FaultKind.CRASH,
    FaultKind.FREEZE,
    FaultKind.CUT_BROKERS,
    FaultKind.CUT_CONTROLLER,
    FaultKind.SLOW,
    FaultKind.STALE,
    FaultKind.DELAY_ISR,
    FaultKind.LAG,
)
"""What makes members leave the ISR and come back."""


def draw_faults(parameters: Parameters, rng: Random) -> tuple[Fault, ...]:
    """A swarm: each seed enables about half of the kinds its world allows."""
    kinds = [kind for kind in _allowed(parameters.kind) if rng.random() < 0.5] or [FaultKind.FREEZE]
    count = rng.randint(20, 40) if parameters.kind.restless else rng.randint(2, 14)
    return tuple(sorted((_fault(parameters, kinds, rng) for _ in range(count)), key=lambda fault: fault.at_ms))


def _allowed(kind: WorldKind) -> list[FaultKind]:
    lossy = [FaultKind.POWER, FaultKind.DISK] if kind.lossy else []
    moving = [FaultKind.MOVE] * 3 if kind.moving else []
    dynamic = [FaultKind.THRESHOLDS] * 4 if kind.dynamic else []
    reassigning = [FaultKind.REASSIGN] * 4 if kind.reassigning else []
    relocating = [FaultKind.RELOCATE] * 6 if kind.relocating else []
    plain = RESTLESS if kind.restless else PLAIN
    return [*plain, *lossy, *moving, *dynamic, *reassigning, *relocating]


def _fault(parameters: Parameters, kinds: list[FaultKind], rng: Random) -> Fault:
    return Fault(
        at_ms=rng.randint(300, FAULTS_MS - 200),
        duration_ms=_duration(parameters, rng),
        kind=rng.choice(kinds),
        target=rng.choice(tuple(Target)),
        choice=rng.randint(0, 59),
    )


def _duration(parameters: Parameters, rng: Random) -> int:
    """Half of all durations lie within one tick of the lag or session limit, where races are."""
    if rng.random() < 0.5:
        return rng.randint(20, 400 if parameters.kind.restless else 1_500)
    limit = rng.choice((parameters.settings.replica_lag_time_max_ms, parameters.settings.session_timeout_ms))
    return max(10, limit + rng.randint(-1, 1) * parameters.settings.tick_interval_ms)
