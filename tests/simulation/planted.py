"""Which planted mistake is looked for in which world, and how soon it must be found."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from rackspan.cluster.core.broker import BrokerRules
from rackspan.cluster.core.controller import ControllerRules
from tests.simulation import mistakes
from tests.simulation.world import Build


@dataclass(frozen=True, slots=True)
class Planted:
    """`world` is the kind in which it is looked for, `mean` the measured mean number of seeds it took, `rules` who spoke."""

    build: Build
    world: str
    mean: float
    rules: frozenset[str]

    @property
    def seeds(self) -> int:
        """Five times the mean: missing it in so many is one chance in 150."""
        return max(5, round(5 * self.mean))


def _broker(rules: type[BrokerRules], world: str, mean: float, *speak: str) -> Planted:
    return Planted(Build(broker_rules=rules), world, mean, frozenset(speak))


def _controller(rules: type[ControllerRules], world: str, mean: float, *speak: str) -> Planted:
    return Planted(Build(controller_rules=rules), world, mean, frozenset(speak))


PLANTED: Final[Mapping[str, Planted]] = {
    "the proposal as written": _broker(mistakes.ProposalAsWritten, "clean", 2.2, "I1", "I5"),
    "only the check after": _broker(mistakes.OnlyTheCheckAfter, "clean", 2.2, "I5"),
    "a pending member counted": _broker(mistakes.CountsThePending, "clean", 60, "I1", "I5"),
    "brokers counted, not racks": _broker(mistakes.CountsBrokers, "clean", 7, "I1", "I5"),
    "unnamed brokers counted as several racks": _broker(mistakes.CountsUnnamedAsSeveral, "unnamed", 6, "I1", "I5"),
    "rack map kept from first sight": _broker(mistakes.KeepsFirstRackMap, "moving", 32, "I1", "I5"),
    "acknowledged before the watermark": _broker(mistakes.AcknowledgesBeforeWatermark, "clean", 1, "I1", "I2", "I5"),
    "watermark ignores the slowest member": _broker(mistakes.IgnoresSlowestMember, "clean", 1.4, "I2", "I5"),
    "smaller ISR used before agreed": _broker(mistakes.ShrinksBeforeAgreed, "clean", 3, "I2", "I5"),
    "pending member ignored by the watermark": _broker(mistakes.IgnoresPendingMember, "restless", 33, "I2", "I5"),
    "duplicate answered at once": _broker(mistakes.DuplicateAnsweredAtOnce, "clean", 8, "I1", "I2"),
    "idempotent retry appended twice": _broker(mistakes.AppendsRetries, "clean", 2, "I5"),
    "producers forgotten with the leadership": _broker(mistakes.ForgetsProducers, "clean", 5, "I5"),
    "acknowledged on resigning": _broker(mistakes.AcknowledgesOnResigning, "clean", 9, "I1"),
    "joins two records early": _broker(mistakes.JoinsEarly, "restless", 5, "I2", "I5"),
    "joins at the watermark": _broker(mistakes.JoinsAtWatermark, "restless", 89, "I2"),
    "reverts on every error": _broker(mistakes.RevertsOnError, "restless", 71, "I2", "I5"),
    "heeds answers that outrun the thresholds": _broker(
        mistakes.HeedsOutrunAnswers, "restless-dynamic", 1000, "I2", "I5"
    ),
    "any process counted for its broker": _broker(mistakes.CountsAnyProcess, "restless-moving", 1000, "I1", "I5"),
    "partition epoch ignored": _controller(mistakes.IgnoresPartitionEpoch, "restless", 36, "I2", "I5"),
    "old attempts taken": _controller(mistakes.TakesOldAttempts, "restless-dynamic", 1000, "I2"),
    "broker epochs ignored": _controller(mistakes.IgnoresBrokerEpoch, "restless-lossy", 1000, "I2"),
    "no truncation": _broker(mistakes.NeverTruncates, "clean", 3, "I7"),
    "truncation to the watermark": _broker(mistakes.TruncatesToWatermark, "clean", 1.5, "I4"),
    "anybody alive elected": _controller(mistakes.ElectsAnybody, "restless", 7, "I2", "I3"),
    "unclean shutdown forgotten": _controller(mistakes.ForgetsUnclean, "lossy", 30, "I2", "I3", "I4"),
    "ELR emptied where nobody is in sync": _controller(mistakes.EmptiesElrOfNobody, "dynamic", 50, "I6", "I7"),
    "roles taken before registered": _broker(mistakes.ActsBeforeKnown, "clean", 50, "I3"),
}
