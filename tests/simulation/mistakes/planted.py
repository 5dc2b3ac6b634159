"""Which planted mistake is looked for in which world, and how soon it must be found."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from rackspan.cluster.core.broker import BrokerCore, BrokerRules
from rackspan.cluster.core.controller import ControllerRules
from rackspan.cluster.core.groups import GroupCoordinator
from tests.simulation.mistakes import groups, reassignment, replication, transactions, validation
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


def _coordinator(coordinator: type[GroupCoordinator], world: str, mean: float, *speak: str) -> Planted:
    return Planted(Build(coordinator=coordinator), world, mean, frozenset(speak))


def _broker_core(broker: type[BrokerCore], world: str, mean: float, *speak: str) -> Planted:
    return Planted(Build(broker=broker), world, mean, frozenset(speak))


def _transactions(build: Build, world: str, mean: float, *speak: str) -> Planted:
    return Planted(build, world, mean, frozenset(speak))


PLANTED: Final[Mapping[str, Planted]] = {
    "the proposal as written": _broker(replication.ProposalAsWritten, "clean", 1.8, "I1", "I5"),
    "only the check after": _broker(replication.OnlyTheCheckAfter, "clean", 1.8, "I5"),
    "a pending member counted": _broker(replication.CountsThePending, "clean", 3.1, "I1", "I2", "I5"),
    "brokers counted, not racks": _broker(replication.CountsBrokers, "clean", 2.7, "I1", "I5"),
    "unnamed brokers counted as several racks": _broker(replication.CountsUnnamedAsSeveral, "unnamed", 5.1, "I1", "I5"),
    "rack map kept from first sight": _broker(replication.KeepsFirstRackMap, "moving", 8.7, "I1", "I5"),
    "acknowledged before the watermark": _broker(replication.AcknowledgesBeforeWatermark, "clean", 1, "I1", "I2", "I5"),
    "watermark ignores the slowest member": _broker(replication.IgnoresSlowestMember, "clean", 1.1, "I2", "I5"),
    "smaller ISR used before agreed": _broker(replication.ShrinksBeforeAgreed, "clean", 2.2, "I2", "I5"),
    "pending member ignored by the watermark": _broker(replication.IgnoresPendingMember, "restless", 13.3, "I2", "I5"),
    "duplicate answered at once": _broker(replication.AcknowledgesDuplicatesAtOnce, "clean", 1.5, "I1", "I2"),
    "idempotent retry appended twice": _broker(replication.AppendsRetries, "clean", 1.2, "I5"),
    "producers forgotten with the leadership": _broker(replication.ForgetsProducers, "clean", 5.3, "I5"),
    "acknowledged on resigning": _broker(replication.AcknowledgesOnResigning, "clean", 4.1, "I1"),
    "joins two records early": _broker(replication.JoinsEarly, "restless", 25, "I2", "I5"),
    "joins at the watermark": _broker(replication.JoinsAtWatermark, "restless", 200, "I2"),
    "reverts on every error": _broker(replication.RevertsOnError, "restless", 400, "I2", "I5"),
    "heeds answers that outrun the thresholds": _broker(
        replication.AppliesOutrunResponses, "restless-dynamic", 80, "I2", "I5"
    ),
    "any process counted for its broker": _broker(replication.CountsAnyProcess, "restless-moving", 340, "I1", "I5"),
    "no truncation": _broker(replication.NeverTruncates, "clean", 3.4, "I7"),
    "truncation to the watermark": _broker(replication.TruncatesToWatermark, "clean", 2.6, "I4", "I5"),
    "anybody alive elected": _controller(replication.ElectsAnybody, "restless", 6.3, "I2", "I3", "I5", "RS1"),
    "unclean shutdown forgotten": _controller(replication.ForgetsUnclean, "lossy", 33, "I2", "I3", "I4"),
    "ELR emptied where nobody is in sync": _controller(replication.EmptiesElrOfNobody, "dynamic", 57, "I6", "I7"),
    "roles taken before registered": _broker(replication.ActsBeforeKnown, "clean", 1.9, "I3", "I4"),
    # Reassignments.
    "old replicas dropped first": _controller(reassignment.DropsOldFirst, "relocating", 1.6, "RS3"),
    "reassignment ended by the first in sync": _controller(reassignment.EndsWithTheFirst, "relocating", 8, "RS3"),
    "reassignment ended though those that stay are behind": _controller(
        reassignment.EndsWithTheAdded, "restless-relocating", 2.9, "RS3"
    ),
    "leader reassigned away and not replaced": _controller(reassignment.KeepsRemovedLeader, "relocating", 3.8, "RS1"),
    "removed replica not fenced": _controller(reassignment.FencesNobody, "relocating", 1.8, "RS4"),
    "removing never forgotten": _controller(reassignment.NeverForgets, "relocating", 2.3, "RS1", "RS2", "RS5"),
    "cancelled reassignment keeps what it added": _controller(reassignment.CancelsForward, "relocating", 3.4, "RS2"),
    "reassignment never ends": _controller(reassignment.NeverEnds, "relocating", 3.9, "RS2", "RS5"),
    # Groups.
    "commit acknowledged before replicated": _coordinator(groups.CommitsUnreplicated, "groups", 4.9, "GS2", "GS4"),
    "assignment handed out before replicated": _coordinator(
        groups.AssignsUnreplicated, "groups", 4.4, "GS1", "GS3", "GS4"
    ),
    "commit of any generation taken": _coordinator(groups.TakesAnyGeneration, "groups", 1, "GS4"),
    "commit of anybody taken": _coordinator(groups.TakesAnybody, "groups", 1, "GS4"),
    "coordinator does not read again": _coordinator(
        groups.KeepsOldLeadership, "groups-reassigning", 7.7, "GS1", "GS2", "GS3", "GS4"
    ),
    "coordinator reads the end of its log alone": _coordinator(
        groups.ReadsTheLastBatchAlone, "groups", 5.1, "GS1", "GS2", "GS3"
    ),
    "a partition assigned to two members": _coordinator(groups.GivesAllToEverybody, "groups", 1, "GS1"),
    "generations counted anew": _coordinator(groups.CountsAnew, "groups", 1.8, "GS1", "GS3"),
    "failed writes told as done": _coordinator(groups.ForgetsFailures, "groups", 1.5, "GS1", "GS2", "GS3", "GS4"),
    # Transactions.
    "commit decided before replicated": _transactions(
        Build(transactions=transactions.EndsUnreplicated), "transactions", 40.5, "TX1", "TX2", "TX4"
    ),
    "markers never sent again": _transactions(
        Build(transactions=transactions.NeverResendsMarkers), "transactions", 3.2, "TX1", "TX2", "TX5"
    ),
    "transaction complete with its first marker": _transactions(
        Build(transactions=transactions.CompletesAtOnce), "transactions", 4, "TX1", "TX2", "TX5"
    ),
    "epoch kept on fencing": _transactions(
        Build(transactions=transactions.KeepsEpochOnFencing), "transactions", 1.4, "TX1"
    ),
    "same epoch given twice": _transactions(
        Build(transactions=transactions.GivesTheSameEpoch), "transactions", 2, "TX4", "TX5", "I1"
    ),
    "timeout aborts a decided commit": _transactions(
        Build(transactions=transactions.TimesOutPrepared), "transactions", 2.4, "TX1", "TX2"
    ),
    "fenced end taken for a repetition": _transactions(
        Build(transactions=transactions.TakesFencedForRepeated), "transactions-restless", 75, "TX4"
    ),
    "transaction coordinator loads half of its log": _transactions(
        Build(transactions=transactions.LoadsHalfOfItsLog), "transactions", 1.6, "TX1", "I1"
    ),
    "decided transactions not finished by the next coordinator": _transactions(
        Build(transactions=transactions.ForgetsPrepared), "transactions", 2.6, "TX2", "TX5"
    ),
    "offsets of aborted transactions kept": _transactions(
        Build(coordinator=transactions.KeepsAbortedOffsets), "transactions", 1, "TX1"
    ),
    "markers ignored by the group": _transactions(
        Build(coordinator=transactions.IgnoresMarkers), "transactions", 1, "TX5"
    ),
    "open transactions shown": _transactions(
        Build(broker=transactions.IgnoresOpenTransactions), "transactions", 1, "TX1"
    ),
    "aborted transactions shown": _transactions(Build(broker=transactions.ForgetsAborted), "transactions", 1, "TX1"),
    "waiting fetches not woken": _transactions(Build(broker=transactions.WakesNobody), "transactions", 1, "TX6"),
    "unverified writes taken": _transactions(
        Build(process=transactions.TrustsSilence), "transactions", 2.6, "TX1", "TX2", "TX5"
    ),
    "late markers taken": _transactions(
        Build(process=transactions.TakesLateMarkers), "transactions-reassigning", 6.2, "TX1", "TX2"
    ),
    # Records as bytes.
    "configs of records kept from the first batch": _broker_core(validation.KeepsFirstConfigs, "wire", 1.8, "V1"),
    "keys not asked for": _broker_core(validation.ChecksNoKeys, "wire", 1.3, "V1"),
    "CRC not verified": _broker_core(validation.ChecksNoCrc, "wire", 1.2, "V1"),
    "records left in the receive buffer": _broker_core(validation.KeepsTheReceiveBuffer, "wire", 1, "V2"),
}


COVERED: Final[Mapping[str, Planted]] = {
    "partition epoch ignored": _controller(replication.IgnoresPartitionEpoch, "restless", 700),
    "old attempts taken": _controller(replication.TakesOldAttempts, "restless-dynamic", 700),
    "broker epochs ignored": _controller(replication.IgnoresBrokerEpoch, "restless-lossy", 700),
}
"""Not found in 700 seeds, for a second guard stands behind each: leader epochs, one request under way, and brokers that
leave the ISR before they register again. tests/cluster/core/controller/test_alter_partition.py holds each directly, and
so does tests/cluster/core/broker/test_follower.py a fetch of another leader epoch, which the comparison of logs covers."""
