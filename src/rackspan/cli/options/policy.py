"""The options of a rack policy: flags over rackspan.toml, for one cluster or for each of a fleet."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final, Self

from msgspec import convert

from rackspan.audit import ClusterMembers, FleetPolicy, RackPolicy
from rackspan.audit.policy import LEADER_RACKS, Survive
from rackspan.cli.options import settings_table
from rackspan.cli.options.given import Given, Level
from rackspan.cli.options.settings import Settings
from rackspan.cli.options.settings_file import Section
from rackspan.cli.options.settings_table import OF_POLICY, REQUIRE_CONTROLLERS, SURVIVE
from rackspan.cli.options.shared import MinInsyncRacks, RequireControllers, Survives, Unracked
from rackspan.model import MIN_INSYNC_RACKS, ClusterSnapshot, UnrackedPolicy, shown
from rackspan.text import nearest

_FIELDS: Final = {
    "topics": "topics",
    "controllers": "controllers",
    "brokers": "excluded_brokers",
    "racks": "different_racks",
}
"""The field of a Section that holds each table of [clusters.NAME]."""

DIFFERENT_RACKS: Final = "racks.different"

_OPTION_OF: Final = {MIN_INSYNC_RACKS: settings_table.MIN_INSYNC_RACKS.key, SURVIVE.key: SURVIVE.key}
"""The option for every topic that a key of [topics."NAME"] is for one. Other keys have none."""


def different_racks_arguments(settings: Settings) -> dict[str, Any]:
    """The arguments of a RackPolicy about racks that are different, whatever their names."""
    if (apart := settings.different_racks) is None:
        return {}
    section, racks = apart
    return {"different_racks": racks, "different_racks_by": f"{section.where}: {DIFFERENT_RACKS}"}


@dataclass(frozen=True, slots=True, kw_only=True)
class PolicyOptions:
    """How racks are counted, and how many are required."""

    unracked: Unracked = UnrackedPolicy.SHARED
    min_insync_racks: MinInsyncRacks = 1
    given: Given = field(default_factory=Given)

    def policy(self, excluded_brokers: frozenset[int] = frozenset()) -> RackPolicy:
        """The options, and rackspan.toml for single topics and controllers."""
        return RackPolicy(
            unracked=self.unracked,
            min_insync_racks=self.min_insync_racks,
            topic_min_insync_racks=self._of_topics(MIN_INSYNC_RACKS),
            controller_racks=self.given.settings.controller_racks,
            excluded_brokers=excluded_brokers,
            survive=self.to_survive,
            topic_survive={topic: Survive(value) for topic, value in self._of_topics(SURVIVE.key).items()},
            topic_leader_racks={topic: tuple(racks) for topic, racks in self._of_topics(LEADER_RACKS).items()},
            require_controllers=self.requires_controllers,
            **different_racks_arguments(self.given.settings),
        )

    def fleet_policy(self) -> FleetPolicy:
        """The same for a command that judges many clusters: each [clusters.NAME] with a cluster-id has a policy of its own."""
        own = {cluster_id: chosen._with_excluded() for cluster_id, chosen in self._of_clusters().items()}
        return FleetPolicy(self._with_excluded(), own)

    def _with_excluded(self) -> RackPolicy:
        return self.policy(self.given.settings.excluded_brokers)

    def _of_clusters(self) -> dict[str, Self]:
        """These options with the tables of each [clusters.NAME] that has a cluster-id, by that id; the first of two counts."""
        found: dict[str, Self] = {}
        for name in self.given.settings.cluster_names:
            chosen = self.given.settings.for_cluster(name)
            if chosen.cluster_id is not None:
                found.setdefault(chosen.cluster_id, self._of_cluster(chosen))
        return found

    def _of_cluster(self, chosen: Settings) -> Self:
        own = chosen.options()
        values = {
            setting.parameter: convert(own[setting.key], setting.kind)
            for setting in OF_POLICY
            if setting.key in own
            and hasattr(self, setting.parameter)
            and self.given.level(setting.parameter) <= Level.FILE
        }
        return replace(self, given=replace(self.given, settings=chosen), **values)

    @property
    def to_survive(self) -> Survive:
        """The loss to survive; without a flag for it, the value of rackspan.toml."""
        return Survive(self.given.settings.options().get(SURVIVE.key, Survive.RACK))

    @property
    def requires_controllers(self) -> bool:
        """Whether controllers must be known; without a flag for it, the value of rackspan.toml."""
        return bool(self.given.settings.options().get(REQUIRE_CONTROLLERS.key, False))

    def warnings(self, snapshot: ClusterSnapshot) -> list[str]:
        """A line for each setting that has no effect on this cluster."""
        return [
            *self._another_cluster(snapshot),
            *self._overruled(),
            *self._unknown(snapshot),
            *self._not_alike(snapshot),
            *self._enforced(snapshot),
        ]

    def fleet_warnings(self) -> list[str]:
        """A line for each setting that has no effect on a command that judges many clusters."""
        overruled = [line for options in (self, *self._of_clusters().values()) for line in options._overruled()]
        return list(dict.fromkeys((*overruled, *self._without_an_id(), *self._same_id())))

    def _without_an_id(self) -> Iterator[str]:
        """A line for each policy of a [clusters.NAME] whose cluster a warehouse cannot find."""
        settings = self.given.settings
        for name in settings.cluster_names:
            chosen = settings.for_cluster(name)
            for section in chosen.cluster_sections if chosen.cluster_id is None else ():
                tables = [f"[{what}]" for what, field_name in _FIELDS.items() if getattr(section, field_name)]
                for what in (*tables, *(setting.key for setting in OF_POLICY if setting.key in section.options)):
                    yield (
                        f"{section.where}: {what} has no effect here: a warehouse has clusters by their id; "
                        f'add cluster-id = "ID" (rackspan audit --cluster {name} -o json prints it)'
                    )

    def _same_id(self) -> Iterator[str]:
        first: dict[str, str] = {}
        for name in self.given.settings.cluster_names:
            chosen = self.given.settings.for_cluster(name)
            if chosen.cluster_id is not None and first.setdefault(chosen.cluster_id, name) != name:
                yield (
                    f"{chosen.cluster_sections[0].where}: has no effect here: [clusters.{first[chosen.cluster_id]}] "
                    "has the same cluster-id"
                )

    def _another_cluster(self, snapshot: ClusterSnapshot) -> Iterator[str]:
        """A line where the address leads to another cluster than the one that rackspan.toml names."""
        expected = self.given.settings.cluster_id
        if expected is not None and snapshot.cluster_id is not None and snapshot.cluster_id != expected:
            where = self.given.settings.cluster_sections[0].where
            yield f"{where}: cluster-id: expected {expected}, actual {snapshot.cluster_id}: it is another cluster"

    def _topics(self, key: str) -> Mapping[str, tuple[Section, Any]]:
        return self.given.settings.topic_values(key, _OPTION_OF.get(key, ""))

    def _of_topics(self, key: str) -> dict[str, Any]:
        """A key of [topics] by topic, none where a flag or variable counts for every topic."""
        by_file = self.given.level(_OPTION_OF.get(key, "").replace("-", "_")) <= Level.FILE
        return {topic: value for topic, (_, value) in self._topics(key).items()} if by_file else {}

    def _overruled(self) -> Iterator[str]:
        for key, option in _OPTION_OF.items():
            name = option.replace("-", "_")
            level = self.given.level(name)
            if level <= Level.FILE:
                continue
            by = f"--{option}" if level is Level.FLAG else f"RACKSPAN_{name.upper()}"
            for topic, (section, value) in self._topics(key).items():
                yield (
                    f'{section.where}: [topics."{topic}"] {key} = {value} has no effect: '
                    f"{by} {getattr(self, name)} counts for every topic"
                )

    def _unknown(self, snapshot: ClusterSnapshot) -> Iterator[str]:
        names = {str(topic.name) for topic in snapshot.topics}
        for section, topic in self.given.settings.topics():
            if topic not in names:
                yield f'{section.where}: [topics."{topic}"] has no effect: no such topic{nearest(topic, names)}'
        racks = {broker.rack for broker in snapshot.brokers if broker.rack is not None}
        for topic, (section, required) in self._topics(LEADER_RACKS).items():
            for rack in [rack for rack in required if topic in names and rack not in racks]:
                yield (
                    f'{section.where}: [topics."{topic}"] {LEADER_RACKS}: {shown(rack)} has no effect: '
                    f"no such rack; there are {', '.join(map(shown, sorted(racks))) or 'none'}"
                )
        controllers = {int(controller.id) for controller in snapshot.controllers}
        rack_of = {int(broker.id): broker.rack for broker in snapshot.brokers}
        for controller, rack in self.given.settings.controller_racks.items() if controllers else ():
            if controller not in controllers:
                listed = ", ".join(map(str, sorted(controllers)))
                yield f"[controllers] {controller} has no effect: no such controller; there are {listed}"
            elif (other := rack_of.get(controller)) not in (None, rack):
                yield f"[controllers] {controller} has no effect: it is in the process of broker {controller}, which is in rack {shown(other)}"

    def _not_alike(self, snapshot: ClusterSnapshot) -> Iterator[str]:
        """A line for racks that are declared to be different, if the cluster lacks them or no name is alike."""
        if (apart := self.given.settings.different_racks) is None:
            return
        section, racks = apart
        members = ClusterMembers(snapshot.brokers, snapshot.controllers, self.policy())
        alike = {rack for group in (*members.racks_declared_different, *members.racks_alike) for rack in group.names}
        for rack in sorted(racks - alike):
            why = "no other rack has a name like it" if rack in members.failure_racks else "no such rack"
            yield f"{section.where}: {DIFFERENT_RACKS}: {rack!a} has no effect: {why}"

    def _enforced(self, snapshot: ClusterSnapshot) -> Iterator[str]:
        """Topics whose brokers enforce more racks than is required here: a policy does not lower what brokers refuse."""
        if self.given.level("min_insync_racks") is Level.DEFAULT and not self._topics(MIN_INSYNC_RACKS):
            return
        policy = self.policy()
        lower = [
            str(topic.name)
            for topic in snapshot.topics
            if policy.min_insync_racks_of(topic.name) < topic.config_number(MIN_INSYNC_RACKS)
        ]
        if lower:
            shown = ", ".join(lower[:3]) + (f" and {len(lower) - 3} more" if len(lower) > 3 else "")
            yield f"{MIN_INSYNC_RACKS} of {shown} is higher in the cluster, whose brokers enforce it: that value counts"


@dataclass(frozen=True, slots=True, kw_only=True)
class SurvivalOptions(PolicyOptions):
    """The same, for commands that judge what the loss of a rack does."""

    survive: Survives = Survive.RACK
    require_controllers: RequireControllers = False

    @property
    def to_survive(self) -> Survive:
        return self.survive

    @property
    def requires_controllers(self) -> bool:
        return self.require_controllers
