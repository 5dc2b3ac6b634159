"""Constraints on losses: at the loss that a topic has to survive, each partition stays online and takes acks=all.

A pair of constraints for each kind of loss. Where the cluster has no second rack, nothing survives the loss of one: that is
one finding about the cluster (`too_few_racks`), and none about its partitions.
"""

from collections.abc import Callable, Iterator
from typing import Final

import numpy as np

from rackspan.audit.batch import ClusterMembers, PartitionBatch
from rackspan.audit.constraints import remedies
from rackspan.audit.constraints.constraint import PartitionConstraint
from rackspan.audit.constraints.wording import broker_list, by_rack, failed_words, held_by_rack, live_isr, staying
from rackspan.audit.findings import Finding, Severity
from rackspan.audit.loads import BrokerLoads
from rackspan.audit.policy import SURVIVE_CODES, Survive
from rackspan.audit.survival import RACK_CODE
from rackspan.model import Bools, RackId, shown
from rackspan.text import count_noun

SURVIVES_RACK_LOSS: Final = "survives-rack-loss"


def _judged(batch: PartitionBatch, survive: Survive) -> Bools:
    possible = survive is not Survive.RACK or len(batch.members.rack_map.racks) > 1
    return np.asarray((batch.required.survive == SURVIVE_CODES.index(survive)) & possible)


def _goes_offline(survive: Survive) -> Callable[[PartitionBatch], Bools]:
    def broken(batch: PartitionBatch) -> Bools:
        placed, now = batch.worst_loss_placed, batch.worst_loss_now
        return np.asarray(_judged(batch, survive) & (placed.offline | (~placed.harmed & now.offline)))

    return broken


def _refuses(survive: Survive) -> Callable[[PartitionBatch], Bools]:
    def broken(batch: PartitionBatch) -> Bools:
        placed, now = batch.worst_loss_placed, batch.worst_loss_now
        return np.asarray(_judged(batch, survive) & (placed.refused | (~placed.harmed & now.refused)))

    return broken


def _offline_reason(batch: PartitionBatch, row: int) -> str:
    return f"{_when(batch, row)}{_of_what(batch, row)} takes it offline ({_in_sync(batch, row)})"


def _refused_reason(batch: PartitionBatch, row: int) -> str:
    replicas, racks = int(batch.required.min_insync_replicas[row]), int(batch.required.min_insync_racks[row])
    required = f"min.insync.replicas {replicas}" + (f", min.insync.racks {racks}" if racks > 1 else "")
    return f"{_when(batch, row)}{_of_what(batch, row)} leaves too few in sync for acks=all ({_in_sync(batch, row)}; {required})"


def _when(batch: PartitionBatch, row: int) -> str:
    """Whether a partition that is being reassigned is harmed in its present state, by its target, or both."""
    if not batch.reassigning[row]:
        return ""
    placed, now = bool(batch.worst_loss_placed.harmed[row]), bool(batch.worst_loss_now.harmed[row])
    if placed and now:
        return "now and once its reassignment has ended, "
    return "once its reassignment has ended, " if placed else "until its reassignment has ended, "


def _of_what(batch: PartitionBatch, row: int) -> str:
    if batch.required.survive[row] != RACK_CODE:
        return "the loss of one broker"
    racks = _harmful_racks(batch, row)
    return f"the loss of rack {' or '.join(map(shown, racks))}" if racks else "the loss of any rack"


def _in_sync(batch: PartitionBatch, row: int) -> str:
    if batch.worst_loss_placed.harmed[row]:
        return by_rack(batch, row)
    absent = broker_list(remedies.missing(batch, row))
    return f"{absent} not in sync; in sync {held_by_rack(batch, live_isr(batch, row))}{failed_words(batch, row)}"


def _harmful_racks(batch: PartitionBatch, row: int) -> list[RackId]:
    """The racks whose loss, each by itself, does harm; by name."""
    value, rack_of = int(batch.required.min_insync_replicas[row]), batch.members.rack_map.rack_of
    if batch.worst_loss_placed.harmed[row]:
        held, min_isr = staying(batch, row), min(value, int(batch.replication_factor[row]))
    else:
        held, min_isr = live_isr(batch, row), int(batch.min_isr[row])
    racks = [rack_of[broker] for broker in held if broker in rack_of]
    distinct, required = set(racks), int(batch.required.min_insync_racks[row])
    too_few = required > 1 and len(distinct) - 1 < required
    return sorted(rack for rack in distinct if too_few or len(racks) - racks.count(rack) < max(1, min_isr))


def too_few_racks(members: ClusterMembers, loads: BrokerLoads) -> Iterator[Finding]:
    """One finding where partitions have to survive the loss of a rack and the cluster has no second one."""
    racks, partitions = members.rack_map.racks, int(loads.by_survive[RACK_CODE])
    if len(racks) < 2 and partitions:
        has = f"has one rack, {shown(racks[0])}" if racks else "has no rack"
        rackless = any(broker.rack is None for broker in members.brokers)
        where = f"{'set broker.rack on every broker, or ' if rackless else ''}add brokers in another rack"
        yield Finding(
            constraint=SURVIVES_RACK_LOSS,
            severity=Severity.VIOLATION,
            reason=f"{count_noun(partitions, 'partition', ',')} must survive the loss of a rack, and the cluster {has}",
            remedy=f'{where}; or require less: survive = "broker" or "none" in rackspan.toml',
        )


SURVIVAL_CONSTRAINTS: Final = tuple(
    constraint
    for survive in (Survive.RACK, Survive.BROKER)
    for constraint in (
        PartitionConstraint(f"survives-{survive}-loss", _goes_offline(survive), _offline_reason, remedies.survive_loss),
        PartitionConstraint(
            f"accepts-writes-after-{survive}-loss", _refuses(survive), _refused_reason, remedies.survive_loss
        ),
    )
)

SURVIVAL_NAMES: Final = frozenset(constraint.name for constraint in SURVIVAL_CONSTRAINTS)
