"""What one seed's world looks like: racks, brokers, thresholds, timers. Drawn once, then never touched."""

from dataclasses import dataclass
from random import Random
from typing import Final

from rackspan.cluster.core.settings import ClusterSettings
from rackspan.model.ids import BrokerId, RackId
from rackspan.wire.record_batch import HEADER_BYTES
from tests.simulation.kinds import WorldKind

FAULTS_MS: Final = 3_500
HEALING_MS: Final = 2_500
"""After the last fault everything heals; then one leader and equal logs are asked for."""

RACKS: Final = tuple(RackId(name) for name in "abc")


@dataclass(frozen=True, slots=True)
class Shape:
    """One partition `orders-0` on all `brokers`, told by rack. Milliseconds."""

    kind: WorldKind
    racks: dict[BrokerId, RackId | None]
    min_insync_replicas: int
    min_insync_racks: int
    producers: int
    settings: ClusterSettings
    network_ms: tuple[int, int]
    controller_ms: tuple[int, int]
    duplicates: float
    flush_every_ms: int

    @property
    def brokers(self) -> tuple[BrokerId, ...]:
        return tuple(sorted(self.racks))


def draw_shape(kind: WorldKind, dice: Random) -> Shape:
    racks = _racks(kind, dice)
    named = len({rack or "" for rack in racks.values()})
    tick = dice.randint(20, 50)
    slow_controller = dice.random() < 0.3
    # Heartbeats over a slow link arrive in bunches: a short session would never last.
    session = dice.randint(600, 900) if slow_controller else dice.randint(150, 900)
    return Shape(
        kind=kind,
        racks=racks,
        min_insync_replicas=dice.randint(1, 2),
        min_insync_racks=dice.randint(1 if dice.random() < 0.4 else 2, max(2, named)) if named > 1 else 1,
        producers=dice.randint(1, 4),
        settings=_settings(kind, dice, tick, session),
        network_ms=(1, dice.choice((2, 5, 20))),
        controller_ms=(100, 700) if slow_controller else (1, 10),
        duplicates=0.02,
        flush_every_ms=dice.randint(100, 1_000),
    )


def _racks(kind: WorldKind, dice: Random) -> dict[BrokerId, RackId | None]:
    """Two or three racks of one or two brokers; one broker a rack never tells brokers from racks."""
    names = RACKS[: dice.randint(2, 3)]
    racks: dict[BrokerId, RackId | None] = {}
    for name in names:
        for _ in range(dice.randint(1, 2)):
            racks[BrokerId(len(racks) + 1)] = name
    if kind.unnamed:
        for _ in range(dice.randint(1, 2)):
            racks[BrokerId(len(racks) + 1)] = None
    return racks


def _settings(kind: WorldKind, dice: Random, tick: int, session: int) -> ClusterSettings:
    wait = dice.randint(20, 60)
    return ClusterSettings(
        session_timeout_ms=session,
        heartbeat_interval_ms=max(tick, session // 4),
        tick_interval_ms=tick,
        replica_lag_time_max_ms=dice.randint(60, 300),
        fetch_max_wait_ms=wait,
        fetch_retry_ms=wait + dice.randint(30, 120),
        fetch_backoff_ms=dice.randint(5, 30),
        metadata_max_wait_ms=dice.randint(50, 200),
        metadata_retry_ms=dice.randint(250, 400),
        alter_partition_retry_ms=dice.randint(60, 300),
        registration_retry_ms=dice.randint(60, 200),
        unclean_leader_election=kind.unclean,
        auto_create_topics=False,
        elr=kind.elr,
        fetch_max_partition_bytes=dice.choice((1, 5 * HEADER_BYTES, 1024 * 1024)),
    )
