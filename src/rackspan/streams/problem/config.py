"""The configs of rack-aware assignment, with Kafka's names and defaults, and validation that Kafka does not do."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from types import MappingProxyType
from typing import Final

from rackspan.errors import UsageError
from rackspan.model.ids import INT32_MAX, INT64_MAX


class Strategy(StrEnum):
    """`rack.aware.assignment.strategy`."""

    NONE = "none"
    MIN_TRAFFIC = "min_traffic"
    BALANCE_SUBTOPOLOGY = "balance_subtopology"


STRATEGY_NAMES: Final[Mapping[str, Strategy]] = MappingProxyType(
    {
        **{strategy.value: strategy for strategy in Strategy},
        # The names in KIP-925 itself, which has them in capitals too.
        "NONE": Strategy.NONE,
        "min_cost": Strategy.MIN_TRAFFIC,
        "MIN_COST": Strategy.MIN_TRAFFIC,
        "balanced_min_cost": Strategy.BALANCE_SUBTOPOLOGY,
        "BALANCED_MIN_COST": Strategy.BALANCE_SUBTOPOLOGY,
    }
)

MAX_RACK_AWARE_TAGS: Final = 5
"""StreamsConfig refuses more (KIP-708)."""
MAX_TAG_KEY_LENGTH: Final = 20
MAX_TAG_VALUE_LENGTH: Final = 30

ALL_CAUGHT_UP: Final = INT64_MAX
"""`acceptable.recovery.lag` at Java's Long.MAX_VALUE: every client is caught up, so there are no warm-ups."""

MIN_PROBING_INTERVAL_MS: Final = 60_000


@dataclass(frozen=True, slots=True)
class Costs:
    """The cost of one partition read across racks, and of one task that leaves its client (KIP-925, 4.B.III)."""

    traffic: int
    non_overlap: int


HIGH_AVAILABILITY_COSTS: Final = Costs(traffic=10, non_overlap=1)
STICKY_COSTS: Final = Costs(traffic=1, non_overlap=10)
STATELESS_COSTS: Final = Costs(traffic=1, non_overlap=0)
"""Whatever the configs: a stateless task has nothing to restore."""


@dataclass(frozen=True, slots=True)
class AssignmentConfigs:
    """One group's configs. Checked once, here; a cost of None stands for the assignor's default.

    Kafka does not validate the costs. With a negative one more traffic or more moves would be cheaper, so it is refused here.
    """

    strategy: Strategy = Strategy.NONE
    enabled: bool = True
    traffic_cost: int | None = None
    non_overlap_cost: int | None = None
    num_standbys: int = 0
    max_warmup_replicas: int = 2
    acceptable_recovery_lag: int = 10_000
    probing_rebalance_interval_ms: int = 600_000
    rack_aware_assignment_tags: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        _refuse_outside("rack.aware.assignment.traffic_cost", self.traffic_cost, 0, INT32_MAX)
        _refuse_outside("rack.aware.assignment.non_overlap_cost", self.non_overlap_cost, 0, INT32_MAX)
        _refuse_outside("num.standby.replicas", self.num_standbys, 0, INT32_MAX)
        _refuse_outside("max.warmup.replicas", self.max_warmup_replicas, 1, INT32_MAX)
        _refuse_outside("acceptable.recovery.lag", self.acceptable_recovery_lag, 0, INT64_MAX)
        _refuse_outside(
            "probing.rebalance.interval.ms", self.probing_rebalance_interval_ms, MIN_PROBING_INTERVAL_MS, INT64_MAX
        )
        _check_tag_keys(self.rack_aware_assignment_tags)

    def costs(self, default: Costs) -> Costs:
        """The configured costs of stateful tasks, with `default` for a cost of None."""
        return Costs(
            traffic=default.traffic if self.traffic_cost is None else self.traffic_cost,
            non_overlap=default.non_overlap if self.non_overlap_cost is None else self.non_overlap_cost,
        )


def strategy_named(name: str) -> Strategy:
    """A strategy by its name in Kafka or in KIP-925. Errors: UsageError."""
    if name not in STRATEGY_NAMES:
        raise UsageError(
            f"rack.aware.assignment.strategy is {name!r}; choose none, min_traffic (min_cost in KIP-925) or "
            "balance_subtopology (balanced_min_cost)"
        )
    return STRATEGY_NAMES[name]


def check_client_tags(path: str, tags: Mapping[str, str]) -> None:
    """KIP-708's limits on one client's `client.tag.*`. Errors: UsageError."""
    if len(tags) > MAX_RACK_AWARE_TAGS:
        raise UsageError(f"{path}: {len(tags)} client tags, but Kafka allows {MAX_RACK_AWARE_TAGS}; drop some")
    for key, value in tags.items():
        if len(key) > MAX_TAG_KEY_LENGTH or len(value) > MAX_TAG_VALUE_LENGTH:
            raise UsageError(
                f"{path}: client.tag.{key} is too long; a key has at most {MAX_TAG_KEY_LENGTH} characters, a value {MAX_TAG_VALUE_LENGTH}"
            )


def _refuse_outside(key: str, value: int | None, least: int, most: int) -> None:
    if value is not None and not least <= value <= most:
        raise UsageError(f"{key} is {value}, outside {least} to {most}; fix it in the file")


def _check_tag_keys(keys: tuple[str, ...]) -> None:
    if len(keys) > MAX_RACK_AWARE_TAGS:
        raise UsageError(
            f"rack.aware.assignment.tags names {len(keys)} tags, but Kafka allows {MAX_RACK_AWARE_TAGS}; drop some"
        )
    if len(set(keys)) < len(keys):
        raise UsageError(f"rack.aware.assignment.tags names a tag twice: {', '.join(keys)}; leave one of them out")
