"""What repairs a broken constraint: a command that works, or work on the cluster that no command of rackspan can do.

A remedy that begins with `rackspan` or with a tool of Kafka is a command. Any other is for the operator: brokers to bring
back where they are down, replicas to wait for where they are alive, racks or brokers to add. Test: tests/audit/test_remedies.py follows them on generated clusters.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

import numpy as np

from rackspan.audit.batch import PartitionBatch
from rackspan.audit.constraints.cancel import cancel_reason
from rackspan.audit.constraints.wording import (
    broker_list,
    down_list,
    failed_replicas,
    live_isr,
    out_of_sync,
    staying,
    unlisted,
    unlisted_in_sync,
)
from rackspan.audit.findings import BOOTSTRAP_SERVER, PlanCommand, PlanRemedy, Remedy, or_else
from rackspan.audit.policy import SURVIVE_CODES, Survive
from rackspan.audit.survival import Demand, Reachable, reachable, value_for
from rackspan.model import MIN_INSYNC_RACKS, MIN_INSYNC_REPLICAS, Bools, Int64s, any_in_row

END_OF_REASSIGNMENT: Final = "wait for the reassignment to end"
PLACE_ANEW: Final = 'take survive = "none" for the topic out of rackspan.toml'
"""No plan moves a topic whose placement is left alone."""
REACH: Final = "give the address of a listener that every broker has"
CANCEL: Final = "rackspan reassign cancel --in-flight"

ACCEPT: Final = 'or accept it with survive = "{weaker}" for the topic in rackspan.toml'


def repair(batch: PartitionBatch, row: int) -> Remedy:
    """Spread the replicas of the topic evenly."""
    return move(batch, row, int(batch.replication_factor[row]))


def survive_loss(batch: PartitionBatch, row: int) -> Remedy:
    """Bring one partition to a placement, and then to a min.insync.replicas, that survive."""
    if not batch.worst_loss_placed.harmed[row]:
        return bring_back_missing(batch, row)
    if unknown := _without_rack(batch, row):
        return _name_racks(unknown)
    wanted, sizes = demand(batch, row), batch.members.rack_sizes
    target = _reachable(batch, row, wanted)
    if target is None:
        return _out_of_reach(batch, row)
    moves = target.replication_factor != wanted.replication_factor or not _is_even(batch, row)
    lowers = target.min_insync_replicas < wanted.min_insync_replicas
    # A plan never brings a partition under its min.insync.replicas.
    if lowers and (not moves or target.replication_factor < wanted.min_insync_replicas):
        return set_min_insync_replicas(batch, row, target.min_insync_replicas)
    command = move(batch, row, target.replication_factor)
    lower = value_for(sizes, wanted)
    if target.replication_factor > wanted.replication_factor and lower is not None and _is_even(batch, row):
        return or_else(command, f"lower {MIN_INSYNC_REPLICAS} to {lower}")
    return command


def target_that_survives(batch: PartitionBatch, row: int, topic_factor: int = 0) -> Remedy:
    """Instead of a planned target that does not survive: the plan that does, from wherever the replicas are now.

    `topic_factor`: the largest replication factor of the topic's partitions that the batch does not hold.
    """
    if unknown := _without_rack(batch, row):
        return _name_racks(unknown)
    wanted = demand(batch, row)
    target = _reachable(batch, row, wanted, topic_factor)
    if target is None:
        return _out_of_reach(batch, row)
    if target.min_insync_replicas < wanted.min_insync_replicas:
        return set_min_insync_replicas(batch, row, target.min_insync_replicas)
    return PlanRemedy(PlanCommand(batch.topic(row), target.replication_factor))


def make_racks_satisfiable(batch: PartitionBatch, row: int) -> Remedy:
    """Bring one partition onto as many racks as it requires, and one more where it has to survive the loss of one."""
    if unknown := _without_rack(batch, row):
        return _name_racks(unknown)
    wanted = demand(batch, row)
    target = _reachable(batch, row, wanted) or _reachable(batch, row, replace(wanted, survive=Survive.NONE))
    if target is None:
        return _out_of_reach(batch, row)
    command = move(batch, row, target.replication_factor)
    raised = target.replication_factor > wanted.replication_factor and wanted.min_insync_racks > 1
    return or_else(command, f"lower {MIN_INSYNC_RACKS}") if raised else command


def harden(batch: PartitionBatch, row: int) -> Remedy:
    """Force the racks by min.insync.replicas; first by a placement with which that value survives the loss, if need be."""
    wanted = demand(batch, row)
    if not wanted.forced:
        value = int(batch.forcing_value[row])
        return f"nothing on brokers that enforce {MIN_INSYNC_RACKS}; {MIN_INSYNC_REPLICAS}={value} on others"
    # A value that allows for replicas in no rack is higher than an even spread survives.
    if unknown := _without_rack(batch, row):
        return _name_racks(unknown)
    if first := before_hardening(batch, int(batch.rows.topic[row])):
        return first
    target = _reachable(batch, row, wanted)
    if target is None:
        return _out_of_reach(batch, row)
    if target.replication_factor != wanted.replication_factor or not _is_even(batch, row):
        return move(batch, row, target.replication_factor)
    topic = batch.topic(row)
    # A topic's own minimum is in rackspan.toml; one for all topics has to be repeated on the command line.
    own = topic in batch.members.policy.topic_min_insync_racks
    flag = "" if own else f" --min-insync-racks {wanted.min_insync_racks}"
    return f"rackspan acks harden --topic {topic}{flag}"


def before_hardening(batch: PartitionBatch, topic: int) -> Remedy:
    """What has to be done before the value that forces a topic's racks is set; nothing where it stops nothing."""
    known = batch.known_before_hardening
    if topic not in known:
        known[topic] = _before_hardening(batch, topic)
    return known[topic]


def _before_hardening(batch: PartitionBatch, topic: int) -> Remedy:
    rows = batch.rows_of(topic)
    if bool(batch.misplaced_to_harden[rows].any()):
        return plan_before_hardening(batch, rows)
    refused = rows[(batch.refused_by_hardening | batch.stopped_by_hardening)[rows]]
    return bring_back_missing(batch, int(refused[0])) if len(refused) else ""


def plan_before_hardening(batch: PartitionBatch, rows: Int64s) -> Remedy:
    """The plan for the whole topic after which the value that forces the racks stops nothing that continues now.

    `rows` are all of the topic's. The first of them that blocks the plan is named.
    """
    first = int(rows[0])
    factor = factor_to_harden(batch, first)
    if factor is not None:
        blocking = any_in_row(batch.uncounted[rows]) | batch.reassigning[rows] | _is_blocked(batch, rows, factor)
        first = int(rows[blocking.argmax()])
    if unknown := _without_rack(batch, first):
        return _name_racks(unknown)
    return _out_of_reach(batch, first) if factor is None else move(batch, first, factor, whole_topic=True)


def move_topic(batch: PartitionBatch, rows: Sequence[int], factor: int) -> Remedy:
    """The plan that brings all partitions of a topic to a replication factor; before it, what would block it for the first that it does."""
    plan = PlanCommand(batch.topic(rows[0]), factor)
    ends = [end_of_reassignment(batch, row) for row in rows if batch.reassigning[row]]
    if ends:
        # Of several the first that does not end by itself is named.
        return f"{next((end for end in ends if end != END_OF_REASSIGNMENT), END_OF_REASSIGNMENT)}; then {plan}"
    for row in rows:
        if batch.leaderless[row]:
            return f"{bring_back_last_in_sync(batch, row)}; then {plan}"
        if unlisted(batch, row):
            return f"{' and '.join(_listed_again(batch, row))}; then {plan}"
    blocked = _is_blocked(batch, np.array(rows), factor)
    return move(batch, rows[int(blocked.argmax())], factor, whole_topic=True)


def name_uncounted(batch: PartitionBatch, topic: int) -> str:
    """The brokers to give a rack before a plan can move a replica of the topic's first partition that has one there."""
    rows = batch.rows_of(topic)
    held = rows[any_in_row(batch.uncounted[rows])]
    return _name_racks(_without_rack(batch, int(held[0]))) if len(held) else ""


def factor_to_harden(batch: PartitionBatch, row: int) -> int | None:
    """The replication factor that a row's topic can be hardened with: what most partitions have, if that will do.

    Not where a partition would end in fewer racks by it: a plan refuses that without --allow-fewer-racks.
    """
    code, sizes, wanted = int(batch.rows.topic[row]), batch.members.rack_sizes, demand(batch, row)
    usual, most = int(batch.usual_replication_factor[code]), int(batch.topic_replication_factor[code])
    for start in (usual, most):
        target = reachable(sizes, replace(wanted, replication_factor=start))
        if target is not None and min(target.replication_factor, len(sizes)) >= min(most, len(sizes)):
            return target.replication_factor
    return None if target is None else target.replication_factor


def lower_min_insync_replicas(batch: PartitionBatch, row: int) -> Remedy:
    """The remedy that adds as many replicas as min.insync.replicas requires, or requires fewer."""
    value, brokers = int(batch.required.min_insync_replicas[row]), sum(batch.members.rack_sizes)
    # No partition of the topic loses replicas by it.
    factor = max(value, int(batch.topic_replication_factor[batch.rows.topic[row]]))
    if factor > brokers or batch.required.left_alone[row]:
        return set_min_insync_replicas(batch, row, int(batch.replication_factor[row]))
    return or_else(move(batch, row, factor), f"lower {MIN_INSYNC_REPLICAS}")


def set_min_insync_replicas(batch: PartitionBatch, row: int, value: int) -> str:
    """The command of Kafka that sets the config of a topic."""
    return (
        f"kafka-configs.sh {BOOTSTRAP_SERVER} --alter --entity-type topics --entity-name {batch.topic(row)} "
        f"--add-config {MIN_INSYNC_REPLICAS}={value}"
    )


def move(batch: PartitionBatch, row: int, factor: int, whole_topic: bool = False) -> Remedy:
    """The plan that brings the topic to a replication factor, evenly spread; before it, whatever would block it.

    `whole_topic`: the factor is for all partitions, and not only the one that this partition needs.
    """
    changes = whole_topic or factor != int(batch.replication_factor[row])
    plan = PlanCommand(batch.topic(row), factor if changes else None)
    if batch.required.left_alone[row]:
        return f"{PLACE_ANEW}; then {plan}"
    if batch.reassigning[row]:
        return f"{end_of_reassignment(batch, row)}; then {plan}"
    blocking = _blocking(batch, row, factor)
    if not blocking:
        return PlanRemedy(plan)
    members = batch.members
    fenced = [broker for broker in blocking if broker not in members.excluded_ids]
    cordoned = [broker for broker in blocking if broker in members.cordoned]
    excluded = [broker for broker in blocking if broker in members.policy.excluded_brokers]
    first = [f"bring back {down_list(members, fenced)}"] if fenced else []
    first += [f"uncordon {broker_list(cordoned)}"] if cordoned else []
    first += [f"stop excluding {broker_list(excluded)}"] if excluded else []
    # A registration that was left behind, of what is no broker any more, never comes back.
    or_more = ", or add brokers" if fenced else ""
    return f"{' and '.join(first)}; then {plan}{or_more}"


def _reachable(batch: PartitionBatch, row: int, wanted: Demand, topic_factor: int = 0) -> Reachable | None:
    """What to bring one partition to; where its replication factor has to rise, no partition of the topic loses replicas."""
    sizes = batch.members.rack_sizes
    most = max(topic_factor, int(batch.topic_replication_factor[batch.rows.topic[row]]))
    target = reachable(sizes, wanted)
    if target is None or not wanted.replication_factor < target.replication_factor < most:
        return target
    of_all = reachable(sizes, replace(wanted, replication_factor=most))
    return target if of_all is None or of_all.replication_factor < most else of_all


def bring_back_missing(batch: PartitionBatch, row: int) -> str:
    """Every replica in sync again."""
    absent = _not_copied(batch, row, missing(batch, row))
    return _bring_back(batch, row, absent) if absent else end_of_reassignment(batch, row)


def bring_back_out_of_sync(batch: PartitionBatch, row: int) -> str:
    # Fewer in sync than min.insync.replicas, which counts at most all replicas: one at least is missing.
    absent = _not_copied(batch, row, out_of_sync(batch, row))
    return _bring_back(batch, row, absent) if absent else end_of_reassignment(batch, row)


def bring_back_racks(batch: PartitionBatch, row: int) -> Remedy:
    # The rack of a broker that is in sync and not listed may be one that seems to be missing.
    if unlisted_in_sync(batch, row):
        return bring_back_or_drain(batch, row)
    if not out_of_sync(batch, row):
        return make_racks_satisfiable(batch, row)
    return bring_back_out_of_sync(batch, row)


def bring_back_last_in_sync(batch: PartitionBatch, row: int) -> str:
    last = batch.partition(row).isr or batch.partition(row).replicas
    down, failed = _down(batch, last), [broker for broker in failed_replicas(batch, row) if broker in last]
    if failed:
        return _repair_last_in_sync(batch, row, down, failed)
    if not down:
        one = len(last) == 1
        return f"see the {'log' if one else 'logs'} of {broker_list(last)}, which {'is' if one else 'are'} alive"
    return f"bring back {broker_list(down)}" if len(down) == 1 else f"bring back one of {broker_list(down)}"


def _repair_last_in_sync(batch: PartitionBatch, row: int, down: Sequence[int], failed: Sequence[int]) -> str:
    """What brings a partition back whose last replicas in sync are in failed log directories; what loses records comes last."""
    it, its = ("it", "its") if len(failed) == 1 else ("them", "their")
    back = f"bring back {broker_list(down)}, or " if down else ""
    first = f"{back}repair the disk of {broker_list(failed)} with what is on {it if len(failed) == 1 else 'each'}, and restart {it}"
    isr = batch.partition(row).isr
    if not isr or live_isr(batch, row):
        return first
    lost = f"if {its} {'disk is' if len(failed) == 1 else 'disks are'} lost for good{' and ' + broker_list(down) + ' too' if down else ''}"
    held = failed_replicas(batch, row)
    others = [
        broker
        for broker in staying(batch, row)
        if broker in batch.members.alive and broker not in held and broker not in isr
    ]
    if not others:
        return f"{first}; {lost}, so are the records of the partition"
    lack = "lacks" if len(others) == 1 else "lack"
    return (
        f"{first}; only {lost}: an unclean election (kafka-leader-election.sh --election-type unclean), which loses the records that "
        f"{broker_list(others)} {lack}"
    )


def bring_back_or_drain(batch: PartitionBatch, row: int) -> str:
    hidden = unlisted_in_sync(batch, row)
    down = [broker for broker in unlisted(batch, row) if broker not in hidden]
    return " and ".join([*([REACH] if hidden else []), *([_bring_back(batch, row, down)] if down else [])])


def _listed_again(batch: PartitionBatch, row: int) -> list[str]:
    """What has to be done so that the cluster lists all brokers of a partition."""
    hidden = unlisted_in_sync(batch, row)
    down = [broker for broker in unlisted(batch, row) if broker not in hidden]
    return [*([REACH] if hidden else []), *_brought_back(batch, row, down)]


def end_or_cancel(batch: PartitionBatch, row: int) -> str:
    """How a reassignment ends. The cancel is another way only where it harms nothing."""
    end = f"{_before_its_end(batch, row)}wait for it"
    return end if cancel_reason(batch, row) else f"{end}, or {CANCEL}"


def end_of_reassignment(batch: PartitionBatch, row: int) -> str:
    """How a reassignment ends that has to end first."""
    return f"{_before_its_end(batch, row)}{END_OF_REASSIGNMENT}"


def _before_its_end(batch: PartitionBatch, row: int) -> str:
    """What a reassignment waits for that does not come by itself: brokers that are down, and failed log directories.

    Before 4.3 Kafka ends it once every replica of its target is in sync; 4.3 too, if fewer are added than removed. Without a
    leader nothing is copied.
    """
    partition = batch.partition(row)
    first = f"{bring_back_last_in_sync(batch, row)}; then " if batch.leaderless[row] else ""
    waited_for = [broker for broker in staying(batch, row) if broker not in partition.isr]
    back = _brought_back(batch, row, waited_for)
    return first + (f"{' and '.join(back)} and " if back else "")


def demand(batch: PartitionBatch, row: int) -> Demand:
    """What one partition has, and what is required of it."""
    return Demand(
        int(batch.replication_factor[row]),
        int(batch.required.min_insync_replicas[row]),
        int(batch.required.min_insync_racks[row]),
        not bool(batch.required.enforced[row]),
        SURVIVE_CODES[int(batch.required.survive[row])],
    )


def missing(batch: PartitionBatch, row: int) -> list[int]:
    """The replicas of one partition that stay but are not in sync, or are on a fenced broker."""
    in_sync = live_isr(batch, row)
    return [broker for broker in staying(batch, row) if broker not in in_sync]


def out_of_sync_and_staying(batch: PartitionBatch, row: int) -> list[int]:
    """The replicas of one partition that are not in the ISR, but for those that a reassignment is copying or removing."""
    held = staying(batch, row)
    return [broker for broker in _not_copied(batch, row, out_of_sync(batch, row)) if broker in held]


def being_copied(batch: PartitionBatch, row: int) -> list[int]:
    """The replicas of one partition that a reassignment is copying to live brokers."""
    added, failed = batch.partition(row).adding_replicas, failed_replicas(batch, row)
    return [
        broker
        for broker in out_of_sync(batch, row)
        if broker in added and broker in batch.members.alive and broker not in failed
    ]


def _not_copied(batch: PartitionBatch, row: int, brokers: Sequence[int]) -> list[int]:
    copied = being_copied(batch, row)
    return [broker for broker in brokers if broker not in copied]


def _bring_back(batch: PartitionBatch, row: int, ids: Sequence[int]) -> str:
    failed = failed_replicas(batch, row)
    behind = sorted(broker for broker in ids if broker in batch.members.alive and broker not in failed)
    parts = _brought_back(batch, row, ids)
    if behind:
        are = "is" if len(behind) == 1 else "are"
        parts.append(f"wait until {broker_list(behind)} {are} in sync")
    without = None if batch.reassigning[row] else _without_gone(batch, row, ids)
    return " and ".join(parts) + (f", or {without}" if without else "")


def _brought_back(batch: PartitionBatch, row: int, ids: Sequence[int]) -> list[str]:
    """What has to be done to those of these replicas that do not get in sync by themselves."""
    down, failed = sorted(_down(batch, ids)), sorted({*failed_replicas(batch, row)} & {*ids})
    parts = [f"bring back {down_list(batch.members, down)}"] if down else []
    if failed:
        disks, them = ("disk", "it") if len(failed) == 1 else ("disks", "them")
        parts.append(f"repair the {disks} of {broker_list(failed)} and restart {them}")
    return parts


def _without_gone(batch: PartitionBatch, row: int, ids: Sequence[int]) -> PlanCommand | None:
    """The plan that does without those of these brokers that may never be back, if there is one.

    A broker that the cluster does not list is replaced. One whose process is a controller only may have got replicas that no
    other broker can take: then as many are left as are elsewhere, if these survive what they have to.
    """
    if not live_isr(batch, row):
        # What is the last copy in sync is not replaced: there is nothing to copy it from.
        return None
    factor = int(batch.replication_factor[row])
    gone, failed = (sorted({*found(batch, row)} & {*ids}) for found in (unlisted, failed_replicas))
    if batch.required.left_alone[row]:
        able = len(gone) + len(failed) <= _takers_in_its_racks(batch, row)
    else:
        able = sum(batch.members.rack_sizes) >= factor and not _blocking(batch, row, factor)
    widest = int(batch.topic_replication_factor[batch.rows.topic[row]])
    able &= not failed or batch.members.spread_without(failed, widest)
    if gone or failed:
        topic = batch.topic(row) if failed else None
        return PlanCommand(topic, drain=tuple(sorted({*gone, *failed}))) if able else None
    kept = [broker for broker in staying(batch, row) if broker not in batch.members.controllers_only & {*ids}]
    others_can_take = int(np.count_nonzero(batch.members.receiving)) >= factor
    if not 0 < len(kept) < factor or others_can_take or batch.required.left_alone[row]:
        return None
    wanted = replace(demand(batch, row), replication_factor=len(kept))
    racks = {batch.members.rack_map.rack_of.get(broker) for broker in kept}
    # A plan that leaves a partition in fewer racks, or less able to lose one, is refused.
    enough = len(racks) == int(batch.replica_rack_count[row]) and all(
        reachable(batch.members.rack_sizes, replace(wanted, survive=survive))
        == Reachable(len(kept), wanted.min_insync_replicas)
        for survive in {wanted.survive, Survive.RACK}
    )
    return PlanCommand(batch.topic(row), len(kept)) if enough else None


def _takers_in_its_racks(batch: PartitionBatch, row: int) -> int:
    """How many brokers without a replica can receive one in the racks that the partition is in."""
    held = batch.replica_index[row][batch.replica_index[row] >= 0]
    codes = batch.members.rack_map.rack_codes
    takers = batch.members.receiving & np.isin(codes, codes[held])
    takers[held] = False
    return int(np.count_nonzero(takers))


def _down(batch: PartitionBatch, ids: Sequence[int]) -> list[int]:
    """Those of these brokers that are fenced, or not listed by the cluster."""
    return [broker for broker in ids if broker not in batch.members.alive]


def _is_even(batch: PartitionBatch, row: int) -> bool:
    return not batch.uneven[row]


def _without_rack(batch: PartitionBatch, row: int) -> list[int]:
    """The brokers of one partition that count in no rack, where others do. No plan moves replicas off them."""
    held: list[int] = batch.rows.replicas[row][batch.uncounted[row]].tolist()
    return held


def _name_racks(brokers: Sequence[int]) -> str:
    return f"set broker.rack on {broker_list(brokers)}: replicas there count in no rack"


def _out_of_reach(batch: PartitionBatch, row: int) -> str:
    wanted, racks = demand(batch, row), len(batch.members.rack_sizes)
    of_loss = wanted.survive is not Survive.NONE
    first = "add brokers"
    if wanted.min_insync_racks > 1 and racks < wanted.min_insync_racks + (wanted.survive is Survive.RACK):
        needed = wanted.min_insync_racks + of_loss
        fewer = range(min(racks, wanted.min_insync_racks - 1), 0, -1)
        least = next((k for k in fewer if reachable(batch.members.rack_sizes, replace(wanted, min_insync_racks=k))), 1)
        why = " to lose one" if of_loss else ""
        first = f"add racks ({MIN_INSYNC_RACKS} {wanted.min_insync_racks} needs {needed}{why}), or lower {MIN_INSYNC_RACKS} to {least}"
    elif wanted.min_insync_racks > 1:
        first = f"add brokers, or lower {MIN_INSYNC_RACKS}"
    weaker = SURVIVE_CODES[: SURVIVE_CODES.index(wanted.survive)]
    enough = (
        survive for survive in reversed(weaker) if reachable(batch.members.rack_sizes, replace(wanted, survive=survive))
    )
    accepted = next(enough, None)
    return first if accepted is None else f"{first}, {ACCEPT.format(weaker=accepted)}"


def _blocking(batch: PartitionBatch, row: int, factor: int) -> list[int]:
    """Fenced and excluded brokers without which no broker can receive what an even spread of `factor` replicas needs."""
    members = batch.members
    if members.every_one_receives:
        return []
    # The last entry is for replicas on brokers that are not listed, whose index is −1.
    waiting = np.append(~members.receiving, False)
    waiting[batch.replica_index[row][batch.staying[row]]] = False
    short = _lacking_racks(batch, np.array([row]), factor)[0]
    blocking = waiting[:-1] & np.append(short, False)[members.planned_racks.rack_codes]
    return [int(broker) for broker in members.rack_map.broker_ids[blocking]]


def _is_blocked(batch: PartitionBatch, rows: Int64s, factor: int) -> Bools:
    """Whether `_blocking` names a broker for each of these partitions. Shape (rows,)."""
    if batch.members.every_one_receives:
        return np.zeros(len(rows), dtype=np.bool_)
    return any_in_row(_lacking_racks(batch, rows, factor))


def _lacking_racks(batch: PartitionBatch, rows: Int64s, factor: int) -> Bools:
    """The racks whose fenced and excluded brokers each of these partitions needs to be spread evenly. Shape (rows, racks).

    A broker that holds the partition already need not receive it.
    """
    members, racks = batch.members, batch.members.planned_racks
    index = batch.replica_index[rows]
    held = np.where(batch.staying[rows] & ~np.append(members.receiving, False)[index], index, np.int32(-1))
    receiving = racks.rack_codes[members.receiving & (racks.rack_codes >= 0)]
    able = np.bincount(receiving, minlength=len(racks.racks)) + racks.counts_at(held)
    fewest, most = members.even_shares(factor)
    under = able < fewest
    at_all = any_in_row(under)[:, None]
    full = (np.minimum(able, most).sum(axis=1) < factor)[:, None] & (able < most)
    return np.asarray(np.where(at_all, under, full) & (able < racks.sizes))
