"""Elections: when a broker leaves or returns, on request (KIP-460), and to restore preferred leaders."""

from collections.abc import Callable, Iterable

from rackspan.cluster.core.admin_messages import AdminResponse, ElectLeaders
from rackspan.cluster.core.configs import topic_value
from rackspan.cluster.core.controller.context import ControllerContext
from rackspan.cluster.core.controller.partition_change import Election, PartitionChange
from rackspan.cluster.core.messages import Effect, Respond
from rackspan.cluster.core.metadata import NO_LEADER, PartitionSet, PartitionState
from rackspan.kafka_bytes.error_codes import ErrorCode
from rackspan.model.ids import BrokerId, TopicPartition

_OF = {False: Election.PREFERRED, True: Election.UNCLEAN}


def leave_isr(context: ControllerContext, broker: BrokerId, uncleanly: bool) -> None:
    """Remove a broker from every ISR, and elect others where it led.

    One that went uncleanly leaves the ELR too: the end of its log may be lost (KIP-966).
    """

    def change(state: PartitionState) -> PartitionChange | None:
        if broker not in state.isr and broker != state.leader and not (uncleanly and broker in state.elr):
            return None
        isr = tuple(member for member in state.isr if member != broker)
        return PartitionChange(isr=isr, shut_down_uncleanly=(broker,) if uncleanly else ())

    _change_each(context, change, without=broker)


def elect_where_leaderless(context: ControllerContext, broker: BrokerId) -> None:
    """Elect a leader wherever there is none and this broker, which may lead again, is a replica."""

    def change(state: PartitionState) -> PartitionChange | None:
        return PartitionChange() if state.leader == NO_LEADER and broker in state.replicas else None

    _change_each(context, change)


def _change_each(
    context: ControllerContext,
    change: Callable[[PartitionState], PartitionChange | None],
    without: BrokerId | None = None,
) -> None:
    records: list[PartitionSet] = []
    for partition, state in context.partitions():
        requested = change(state)
        if requested is not None:
            records.extend(_record(context, partition, state, requested, without))
    context.write_all(records)


def _record(
    context: ControllerContext,
    partition: TopicPartition,
    state: PartitionState,
    change: PartitionChange,
    without: BrokerId | None = None,
) -> Iterable[PartitionSet]:
    allowed = _allowed(context, partition.topic, change)
    record = context.change(partition, state, allowed, context.conditions(partition.topic, without))
    return () if record is None else (record,)


def _allowed(context: ControllerContext, topic: str, change: PartitionChange) -> PartitionChange:
    """Make the election unclean if the topic allows it."""
    text = topic_value(context.image, context.settings, topic, "unclean.leader.election.enable", None).value
    if change.election is Election.ONLINE and text == "true":
        return PartitionChange(
            isr=change.isr, election=Election.UNCLEAN, shut_down_uncleanly=change.shut_down_uncleanly
        )
    return change


def elect(context: ControllerContext, _now: int, message: ElectLeaders) -> list[Effect]:
    """ElectLeaders. Without a list of partitions, those that need no election are left out of the response, as in Kafka."""
    requested = message.partitions
    all_partitions = (partition for partition, _ in context.partitions())
    listed = dict.fromkeys(all_partitions if requested is None else requested)
    responses = [_elect_one(context, partition, _OF[message.unclean]) for partition in listed]
    if requested is None:
        responses = [response for response in responses if response.error is not ErrorCode.ELECTION_NOT_NEEDED]
    return [Respond(message.correlation_id, tuple(responses))]


def _elect_one(context: ControllerContext, partition: TopicPartition, election: Election) -> AdminResponse:
    state = context.image.partition(partition)
    if state is None:
        return AdminResponse(partition, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"No such partition {partition}")
    if _needless(state, election):
        return AdminResponse(partition, ErrorCode.ELECTION_NOT_NEEDED)
    record = context.change(partition, state, PartitionChange(election=election), context.conditions(partition.topic))
    if record is None or record.state.leader == NO_LEADER or not _reached(record.state, election):
        return AdminResponse(partition, _UNMET[election])
    context.write(record)
    return AdminResponse(partition, ErrorCode.NONE)


_UNMET = {
    Election.PREFERRED: ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE,
    Election.UNCLEAN: ErrorCode.ELIGIBLE_LEADERS_NOT_AVAILABLE,
}


def _needless(state: PartitionState, election: Election) -> bool:
    if election is Election.PREFERRED:
        return state.leader == state.preferred_leader
    return state.leader != NO_LEADER


def _reached(state: PartitionState, election: Election) -> bool:
    return election is Election.UNCLEAN or state.leader == state.preferred_leader


def restore_preferred_leaders(context: ControllerContext, now: int) -> None:
    """Elect preferred leaders again at intervals, if `auto.leader.rebalance.enable` is set."""
    if not context.settings.auto_leader_rebalance or now < context.next_rebalance:
        return
    context.next_rebalance = now + context.settings.leader_imbalance_check_interval_ms
    for partition in [partition for partition, _ in context.partitions()]:
        _elect_one(context, partition, Election.PREFERRED)
