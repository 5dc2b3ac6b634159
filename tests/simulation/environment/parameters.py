"""What one seed's world looks like: racks, brokers, thresholds, timers. Drawn once, then never touched."""

from dataclasses import dataclass
from random import Random
from typing import Final

from rackspan.cluster.core.settings import ClusterSettings
from rackspan.kafka_bytes.record_batch import HEADER_BYTES
from rackspan.model import RACK_AWARE_SELECTOR
from rackspan.model.ids import BrokerId, RackId
from tests.simulation.kinds import WorldKind

FAULTS_MS: Final = 3_500
HEALING_MS: Final = 2_500
LONG_HEALING_MS: Final = 4_500
"""After the last fault everything heals; then one leader and equal logs are required. The long one is for transactions, whose timeouts and markers follow."""

RACKS: Final = tuple(RackId(name) for name in "abc")


@dataclass(frozen=True, slots=True)
class Parameters:
    """One partition `orders-0` on all `brokers`; `racks` is the rack of each. Times in milliseconds."""

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


def draw_parameters(kind: WorldKind, rng: Random) -> Parameters:
    racks = _racks(kind, rng)
    named = len({rack or "" for rack in racks.values()})
    tick = rng.randint(20, 50)
    slow_controller = rng.random() < 0.3
    # Heartbeats over a slow link arrive in bunches: a short session would never last.
    session = rng.randint(600, 900) if slow_controller else rng.randint(150, 900)
    return Parameters(
        kind=kind,
        racks=racks,
        min_insync_replicas=rng.randint(1, 2),
        min_insync_racks=rng.randint(1 if rng.random() < 0.4 else 2, max(2, named)) if named > 1 else 1,
        producers=rng.randint(1, 4),
        settings=_settings(kind, rng, tick, session),
        network_ms=(1, rng.choice((2, 5, 20))),
        controller_ms=(100, 700) if slow_controller else (1, 10),
        duplicates=0.02,
        flush_every_ms=rng.randint(100, 1_000),
    )


def _racks(kind: WorldKind, rng: Random) -> dict[BrokerId, RackId | None]:
    """Two or three racks of one or two brokers. With one broker a rack, counting brokers would be counting racks."""
    names = RACKS[: rng.randint(2, 3)]
    racks: dict[BrokerId, RackId | None] = {}
    for name in names:
        for _ in range(rng.randint(1, 2)):
            racks[BrokerId(len(racks) + 1)] = name
    if kind.unnamed:
        for _ in range(rng.randint(1, 2)):
            racks[BrokerId(len(racks) + 1)] = None
    return racks


def _settings(kind: WorldKind, rng: Random, tick: int, session: int) -> ClusterSettings:
    wait = rng.randint(20, 60)
    return ClusterSettings(
        session_timeout_ms=session,
        heartbeat_interval_ms=max(tick, session // 4),
        tick_interval_ms=tick,
        replica_lag_time_max_ms=rng.randint(60, 300),
        fetch_max_wait_ms=wait,
        fetch_retry_ms=wait + rng.randint(30, 120),
        fetch_backoff_ms=rng.randint(5, 30),
        metadata_max_wait_ms=rng.randint(50, 200),
        metadata_retry_ms=rng.randint(250, 400),
        alter_partition_retry_ms=rng.randint(60, 300),
        registration_retry_ms=rng.randint(60, 200),
        unclean_leader_election=kind.unclean,
        auto_create_topics=False,
        elr=kind.elr,
        replica_selector_class=RACK_AWARE_SELECTOR,
        fetch_max_partition_bytes=rng.choice((1, 5 * HEADER_BYTES, 1024 * 1024)),
    )
