"""The JSON document of `place create` and `place extend`: that of `place plan`, and the load of the whole cluster.

As a file of `--out` it is read back by `--plan`: what was shown is what is made.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Final, TypeAlias

from msgspec import Meta, Struct

from rackspan import json_text
from rackspan.documents import InvalidDocument, RangeDocument, convert
from rackspan.errors import UsageError
from rackspan.json_text import shown
from rackspan.model import INT32_MAX, ClusterSnapshot, Int64s, TopicName
from rackspan.placement.exclusion import Exclusion
from rackspan.placement.new_partitions import Proposal, brokers_for_placer, refuse_name, shape_of, topic_replica_counts
from rackspan.placement.placer import TopicAssignment
from rackspan.placement.replica_counts import ReplicaCounts, least_maximum, no_replicas, replica_counts
from rackspan.placement.spec import LevelsDocument, PlacementDocument
from rackspan.placement.usable_brokers import usable
from rackspan.text import count_noun

VERSION: Final = 1

ANEW: Final = "make it again with --out"

_Id: TypeAlias = Annotated[int, Meta(ge=0, le=INT32_MAX)]


@dataclass(frozen=True, slots=True, eq=False)
class PlacementPlan:
    """A proposal as its file holds it. `cluster_id` None where the snapshot had none. `configs`: of a new topic."""

    topic: str
    cluster_id: str | None
    start_partition: int
    assignment: TopicAssignment
    configs: Mapping[str, str]
    by_rack: bool


class ProposalDocument(PlacementDocument):
    """Partitions added to a topic: their placement, and whether it was applied."""

    topic: str
    applied: bool
    of_topic: Annotated[LevelsDocument, Meta(description="The same over all partitions of the topic.")]
    cluster: Annotated[LevelsDocument, Meta(description="The same over all topics.")]


class NewTopicDocument(ProposalDocument):
    """A new topic: its placement, and whether it was applied."""

    config: Annotated[dict[str, str], Meta(description="Configs of the topic.")]


def placement_plan_document(
    proposal: Proposal, snapshot: ClusterSnapshot, configs: Mapping[str, str]
) -> dict[str, object]:
    """The document of a proposal, with what it takes to make it later. `read_placement_plan` reads it."""
    return {
        "version": VERSION,
        "cluster_id": snapshot.cluster_id,
        "start_partition": proposal.start_partition,
        "by_rack": proposal.by_rack,
        **proposal_document(proposal, applied=False),
        "config": dict(configs),
    }


class _PlanFile(Struct):
    topic: str
    start_partition: _Id
    assignments: Annotated[dict[str, Annotated[list[_Id], Meta(min_length=1)]], Meta(min_length=1)]
    cluster_id: str | None = None
    config: dict[str, str] = {}
    by_rack: bool = True


def read_placement_plan(content: bytes) -> PlacementPlan:
    """Errors: UsageError, NotJson."""
    top = json_text.parse(content)
    if not isinstance(top, dict) or top.get("version") != VERSION or "assignments" not in top:
        raise UsageError(f"not a plan of rackspan place create or extend; {ANEW}")
    try:
        given = convert(top, _PlanFile, "plan", ANEW)
    except InvalidDocument as error:
        raise UsageError(str(error)) from None
    assignment = _assignment(given.assignments, given.start_partition)
    return PlacementPlan(given.topic, given.cluster_id, given.start_partition, assignment, given.config, given.by_rack)


def _assignment(listed: Mapping[str, list[int]], start: int) -> TopicAssignment:
    names = [str(partition) for partition in range(start, start + len(listed))]
    if set(names) != set(listed):
        raise UsageError(f"assignments does not hold partitions {names[0]} to {names[-1]}; {ANEW}")
    for name in names:
        replicas = listed[name]
        if len(set(replicas)) < len(replicas):
            raise UsageError(f"partition {name}: {shown(replicas)} names a broker twice; {ANEW}")
        if len(replicas) != len(listed[names[0]]):
            raise UsageError(
                f"partition {name} has {count_noun(len(replicas), 'replica')}, partition {names[0]} {len(listed[names[0]])}; {ANEW}"
            )
    return TopicAssignment.of(listed[name] for name in names)


def planned_proposal(
    snapshot: ClusterSnapshot, plan: PlacementPlan, exclusion: Exclusion, *, new_topic: bool
) -> Proposal:
    """The proposal of a plan, on the cluster as it is now. `new_topic`: the plan is for place create.

    Errors: UsageError where it was made for the other command or another cluster, or where it can no longer be made.
    """
    if new_topic != (plan.start_partition == 0):
        made, other = ("extend", "create") if new_topic else ("create", "extend")
        raise UsageError(
            f"the plan is one of rackspan place {made}; run rackspan place {made} --plan, or {other} again"
        )
    if None not in (plan.cluster_id, snapshot.cluster_id) and plan.cluster_id != snapshot.cluster_id:
        raise UsageError(f"the plan is for cluster {plan.cluster_id}, and this is {snapshot.cluster_id}; name that one")
    if new_topic:
        refuse_name(snapshot, plan.topic)
    else:
        _refuse_other_topic(snapshot, plan)
    fenced = {int(broker.id): broker.fenced for broker in snapshot.brokers}
    leaders = set(plan.assignment.replicas[:, 0].tolist())
    for broker in sorted({int(broker) for row in plan.assignment.replicas.tolist() for broker in row}):
        if broker in exclusion.brokers:
            raise UsageError(f"the plan places replicas on broker {broker}, which is excluded; {ANEW}")
        if broker not in fenced:
            raise UsageError(f"the plan places replicas on broker {broker}, which is gone; bring it back, or {ANEW}")
        if fenced[broker] and broker in leaders:
            raise UsageError(f"the plan has broker {broker} lead, which is fenced; bring it back, or {ANEW}")
    brokers, by_rack = brokers_for_placer(exclusion.offered(usable(snapshot.brokers)), not plan.by_rack)
    before, topic_before = replica_counts(snapshot), topic_replica_counts(snapshot, plan.topic)
    return Proposal(
        TopicName(plan.topic), plan.start_partition, plan.assignment, brokers, before, topic_before, by_rack
    )


def _refuse_other_topic(snapshot: ClusterSnapshot, plan: PlacementPlan) -> None:
    existing, factor = shape_of(snapshot, plan.topic)
    if existing != plan.start_partition:
        raise UsageError(
            f"topic '{plan.topic}' has {count_noun(existing, 'partition')}, and the plan begins at {plan.start_partition}; {ANEW}"
        )
    if factor != plan.assignment.replicas.shape[1]:
        raise UsageError(
            f"topic '{plan.topic}' has {count_noun(factor, 'replica')} a partition, and the plan {plan.assignment.replicas.shape[1]}; {ANEW}"
        )


def proposal_document(proposal: Proposal, applied: bool) -> ProposalDocument:
    """`leaders` and `replicas` count the new partitions alone; under `of_topic` they count all partitions of the topic, under
    `cluster` those of all topics. Excluded brokers are not counted.

    `bound` is the least possible maximum of replicas on one broker. `balanced` aims at
    the topic's, and at the cluster's with `level=cluster`.
    """
    rows = proposal.assignment.replicas
    alone = no_replicas(proposal.brokers)
    return {
        "topic": proposal.topic,
        "applied": applied,
        "assignments": {str(index): row for index, row in enumerate(rows.tolist(), proposal.start_partition)},
        **_levels(proposal, alone),
        "of_topic": _levels(proposal, proposal.topic_before),
        "cluster": _levels(proposal, proposal.before),
    }


def _levels(proposal: Proposal, before: ReplicaCounts) -> LevelsDocument:
    """How even the brokers are once what is proposed is added to `before`."""
    after = before.plus(proposal.assignment).on(proposal.brokers)
    partitions, factor = proposal.assignment.replicas.shape
    bound = least_maximum(before, proposal.brokers, proposal.by_rack, partitions, factor)
    return {"leaders": _range(after.leaders), "replicas": {**_range(after.replicas), "bound": bound}}


def _range(counts: Int64s) -> RangeDocument:
    return {"min": int(counts.min()), "max": int(counts.max())}
