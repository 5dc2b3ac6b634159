"""The policies of a run as a document of `runs`, and which rows the newest run made in another way than this one would: they are made again."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from rackspan.audit.policy import ClusterPolicies, FleetPolicy, RackPolicy, Survive
from rackspan.model import RackId, UnrackedPolicy
from rackspan.pipeline.landing.markers import Markers, StoredSnapshot
from rackspan.pipeline.runs import Run, made_by
from rackspan.pipeline.schemas import TABLES

CLUSTERS: Final = "clusters"
"""The key of the policies of single clusters, by cluster id, in the policy of a run."""


def policies_document(policies: ClusterPolicies) -> dict[str, Any]:
    """The policy of every cluster as JSON, and under CLUSTERS those of single clusters, where they are others."""
    if isinstance(policies, RackPolicy):
        return policy_document(policies)
    general = policy_document(policies.general)
    own = {cluster_id: policy_document(policy) for cluster_id, policy in policies.by_cluster.items()}
    differing = {cluster_id: document for cluster_id, document in sorted(own.items()) if document != general}
    return {**general, **({CLUSTERS: differing} if differing else {})}


def document_of(document: Mapping[str, Any], cluster_id: str) -> Mapping[str, Any]:
    """The policy of one cluster, from a document of `policies_document`."""
    own: Mapping[str, Any] | None = document.get(CLUSTERS, {}).get(cluster_id)
    return {name: value for name, value in document.items() if name != CLUSTERS} if own is None else own


def policy_document(policy: RackPolicy) -> dict[str, Any]:
    """A policy as JSON; two of them are equal exactly if the policies are."""
    return {
        "unracked": policy.unracked.value,
        "min_insync_racks": policy.min_insync_racks,
        "topic_min_insync_racks": dict(policy.topic_min_insync_racks),
        "controller_racks": {str(controller): rack for controller, rack in policy.controller_racks.items()},
        # Absent where there are none, or where nothing but the default is required, as in documents of an earlier rackspan.
        **({"excluded_brokers": sorted(policy.excluded_brokers)} if policy.excluded_brokers else {}),
        **({} if policy.survive is Survive.RACK else {"survive": policy.survive.value}),
        **(
            {"topic_survive": {topic: str(survive) for topic, survive in policy.topic_survive.items()}}
            if policy.topic_survive
            else {}
        ),
        **(
            {"topic_leader_racks": {topic: list(racks) for topic, racks in policy.topic_leader_racks.items()}}
            if policy.topic_leader_racks
            else {}
        ),
        **({"require_controllers": True} if policy.require_controllers else {}),
        **({"different_racks": sorted(policy.different_racks)} if policy.different_racks else {}),
    }


def policies_of(document: Mapping[str, Any]) -> ClusterPolicies:
    """The policies that a document of `policies_document` states."""
    own = {cluster_id: _policy_of(policy) for cluster_id, policy in document.get(CLUSTERS, {}).items()}
    general = _policy_of({name: value for name, value in document.items() if name != CLUSTERS})
    return FleetPolicy(general, own) if own else general


def _policy_of(document: Mapping[str, Any]) -> RackPolicy:
    return RackPolicy(
        unracked=UnrackedPolicy(document["unracked"]),
        min_insync_racks=document["min_insync_racks"],
        topic_min_insync_racks=document["topic_min_insync_racks"],
        controller_racks={int(controller): RackId(rack) for controller, rack in document["controller_racks"].items()},
        excluded_brokers=frozenset(document.get("excluded_brokers", ())),
        survive=Survive(document.get("survive", Survive.RACK)),
        topic_survive={topic: Survive(survive) for topic, survive in document.get("topic_survive", {}).items()},
        topic_leader_racks={
            topic: tuple(map(RackId, racks)) for topic, racks in document.get("topic_leader_racks", {}).items()
        },
        require_controllers=document.get("require_controllers", False),
        different_racks=frozenset(map(RackId, document.get("different_racks", ()))),
    )


_ABSENT: Final = {"survive": Survive.RACK.value, "require_controllers": False}
"""What a key means that a document of a policy leaves out; of lists and tables, that they are empty."""


def policy_warnings(run: Run, policies: ClusterPolicies, cluster_ids: Collection[str]) -> list[str]:
    """A warning where the tables of a cluster were made with another policy than this one, with the differences."""
    given = policies_document(policies)
    clusters: dict[str, list[str]] = {}
    for cluster_id in cluster_ids:
        theirs, ours = document_of(run.policy, cluster_id), document_of(given, cluster_id)
        differing = [name for name in {**ours, **theirs} if theirs.get(name) != ours.get(name)]
        if differing:
            made, shown = (
                ", ".join(f"{name} {policy_values.get(name, _ABSENT.get(name, 'none'))}" for name in differing)
                for policy_values in (theirs, ours)
            )
            difference = f"the tables were made with {made}, the verdicts on the page with {shown}"
            clusters.setdefault(difference, []).append(cluster_id)
    return [
        _whose(named, cluster_ids) + f"{difference}; give run and report the same policy"
        for difference, named in clusters.items()
    ]


def _whose(named: Collection[str], cluster_ids: Collection[str]) -> str:
    """The clusters that a line is about, unless it is about all of them."""
    return "" if len(named) == len(cluster_ids) else f"{', '.join(named)}: "


@dataclass(frozen=True, slots=True)
class Outdated:
    """What the newest run made in another way than this one: all rows of `tables`, and those of clusters with another policy."""

    tables: frozenset[str]
    policies_before: Mapping[str, Any]
    policies: Mapping[str, Any]
    rebuilt: frozenset[str] = frozenset()
    """Those of `tables` that are made again because they were damaged, or on request."""
    returned: frozenset[str] = frozenset()
    """Ids of snapshots that could not be judged by the last run."""

    def __bool__(self) -> bool:
        return bool(self.tables) or self.policies_before != self.policies

    def with_another_policy(self, stored: Sequence[StoredSnapshot]) -> list[StoredSnapshot]:
        """Those of the snapshots whose clusters are judged by another policy than before."""
        clusters = {
            cluster_id
            for cluster_id in {snapshot.cluster_id for snapshot in stored}
            if document_of(self.policies_before, cluster_id) != document_of(self.policies, cluster_id)
        }
        return [snapshot for snapshot in stored if snapshot.cluster_id in clusters]

    def of_table(self, name: str, again: Sequence[StoredSnapshot]) -> list[StoredSnapshot]:
        """The snapshots whose rows in a table are made again."""
        if name in self.tables:
            return list(again)
        changed = {snapshot.snapshot_id for snapshot in self.with_another_policy(again)} | self.returned
        return [snapshot for snapshot in again if snapshot.snapshot_id in changed]

    def others(self, markers: Markers, new: Sequence[StoredSnapshot]) -> list[StoredSnapshot]:
        """The snapshots that the tables have, and that are judged again."""
        if not self:
            return []
        ids = {snapshot.snapshot_id for snapshot in new}
        found = [snapshot for snapshot in markers.of_days(markers.count_by_day()) if snapshot.snapshot_id not in ids]
        return found if self.tables else self.with_another_policy(found)

    def reason(self, again: Sequence[StoredSnapshot]) -> str:
        """Why snapshots are judged again."""
        if not self:
            return "their data files are whole again"
        if self.tables and self.tables == self.rebuilt:
            return f"a rebuild of {', '.join(name for name in TABLES if name in self.tables)}"
        if self.tables:
            return f"another version of {', '.join(name for name in TABLES if name in self.tables)}"
        single = {*self.policies_before.get(CLUSTERS, ()), *self.policies.get(CLUSTERS, ())}
        clusters = sorted({snapshot.cluster_id for snapshot in again})
        return f"another policy of {', '.join(clusters)}" if single.issuperset(clusters) else "another policy"


def outdated_rows(last: Run | None, policies: Mapping[str, Any], rebuilt: Collection[str]) -> Outdated:
    """What a run with these policies makes in another way than the newest one. All rows of `rebuilt` are made again."""
    if last is None:
        return Outdated(frozenset(), policies, policies)
    same_versions = made_by(last.policy)
    tables = frozenset(name for name in TABLES if last.made_by.get(name) != same_versions[name])
    return Outdated(tables | set(rebuilt), last.policy, policies, frozenset(rebuilt))
