"""The operator's settings for an audit: how racks are counted, the racks required in sync, and the losses to survive."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final, TypeAlias

from rackspan.errors import UsageError
from rackspan.model import Broker, RackId, UnrackedPolicy

LEADER_RACKS: Final = "leader.racks"
"""The racks in which the preferred leaders of a topic should be, the first before the second. Not a config of Kafka."""


class Survive(StrEnum):
    """The loss that a topic, or the controller quorum, has to survive (`survive`)."""

    RACK = "rack"
    """Any one rack. The default."""
    BROKER = "broker"
    """Any one broker or controller."""
    NONE = "none"
    """None."""


SURVIVE_CODES: Final = (Survive.NONE, Survive.BROKER, Survive.RACK)
"""Goals by their code in columns, the weakest first."""


@dataclass(frozen=True, slots=True)
class RackPolicy:
    """How racks are counted and how many are required.

    `topic_min_insync_racks` applies to a topic, then `min_insync_racks`. A topic whose config holds a higher
    `min.insync.racks` is judged by that, since its brokers enforce it. `controller_racks` gives the racks of controllers,
    which no broker registration contains. `excluded_brokers` are being retired or maintained: nothing new is placed on them,
    and they are not expected to hold their share.

    `survive` is the loss that every topic has to survive, internal ones included, unless `topic_survive` names another for
    it: online, and open to acks=all. A topic of which that is none by its own name keeps its placement: it may be in one rack on
    purpose, so that it need not be spread, and no plan moves it elsewhere. The controller quorum has to survive whatever any topic has to: without it no leader
    is elected. `require_controllers`: a cluster whose controllers are not known survives no loss; managed Kafka shows none.

    `topic_leader_racks`: where preferred leaders of a topic should be. Each should be in the first of these racks that has
    a replica of its partition; where none has, in any rack.

    `different_racks`: racks that are different from each other, however much their names are alike. `different_racks_by`
    says where that is written, in words. It decides nothing.
    """

    unracked: UnrackedPolicy = UnrackedPolicy.SHARED
    min_insync_racks: int = 1
    topic_min_insync_racks: Mapping[str, int] = field(default_factory=dict)
    controller_racks: Mapping[int, RackId] = field(default_factory=dict)
    excluded_brokers: frozenset[int] = frozenset()
    survive: Survive = Survive.RACK
    topic_survive: Mapping[str, Survive] = field(default_factory=dict)
    topic_leader_racks: Mapping[str, tuple[RackId, ...]] = field(default_factory=dict)
    require_controllers: bool = False
    different_racks: frozenset[RackId] = frozenset()
    different_racks_by: str = field(default="the policy", compare=False)

    def __post_init__(self) -> None:
        for topic, value in (("", self.min_insync_racks), *self.topic_min_insync_racks.items()):
            if value < 1:
                whose = f"topic {topic!r}: " if topic else ""
                raise UsageError(f"{whose}min.insync.racks is {value}, expected at least 1")
        for topic, racks in self.topic_leader_racks.items():
            if not racks or len(set(racks)) < len(racks):
                raise UsageError(
                    f"topic {topic!r}: {LEADER_RACKS} is {list(racks)}; name at least one rack, and each once, the best first"
                )

    def of_cluster(self, _cluster_id: str) -> "RackPolicy":
        """This policy: it is the same for every cluster. FleetPolicy has one for each."""
        return self

    def excluded_of(self, brokers: Iterable[Broker]) -> frozenset[int]:
        """The brokers that get nothing new: those that the policy excludes, and those whose log directories are all cordoned."""
        return self.excluded_brokers | {int(broker.id) for broker in brokers if broker.cordoned}

    def declares_different(self, racks: Iterable[RackId]) -> bool:
        """Whether all of these racks are different on the word of the policy."""
        return self.different_racks.issuperset(racks)

    def min_insync_racks_of(self, topic: str) -> int:
        """The racks that the policy requires in sync for a topic. The general number is not for one whose placement it leaves alone."""
        general = 1 if self.leaves_alone(topic) else self.min_insync_racks
        return self.topic_min_insync_racks.get(topic, general)

    def leaves_alone(self, topic: str) -> bool:
        """Whether the placement of a topic is left as it is: its own `survive` is none, so that it may be in one rack on purpose."""
        return self.topic_survive.get(topic) is Survive.NONE

    def survive_of(self, topic: str) -> Survive:
        """The loss that a topic has to survive."""
        return self.topic_survive.get(topic, self.survive)

    def requires(self, survive: Survive) -> bool:
        """Whether any topic, and so the controller quorum, has to survive this loss."""
        return survive in (self.survive, *self.topic_survive.values())


@dataclass(frozen=True, slots=True)
class FleetPolicy:
    """The policy of each cluster of a fleet: `by_cluster` by cluster id, `general` for every other cluster."""

    general: RackPolicy = field(default_factory=RackPolicy)
    by_cluster: Mapping[str, RackPolicy] = field(default_factory=dict)

    def of_cluster(self, cluster_id: str) -> RackPolicy:
        """The policy that a cluster is judged by."""
        return self.by_cluster.get(cluster_id, self.general)


ClusterPolicies: TypeAlias = RackPolicy | FleetPolicy
"""The policies of many clusters: one for all of them, or one for each."""
