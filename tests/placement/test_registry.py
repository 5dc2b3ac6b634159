import tomllib
from collections.abc import Mapping, Sequence
from importlib.metadata import EntryPoint
from pathlib import Path
from random import Random

import pytest

from rackspan.errors import RackspanError, ReplicaPlacementException, UsageError
from rackspan.model import BrokerId, RackId
from rackspan.placement import TopicAssignment, UsableBroker, configured_placer, placer_named
from rackspan.placement.kafka.rack_alternated import RackAlternatedReplicaPlacer
from rackspan.placement.kafka.striped import StripedReplicaPlacer
from rackspan.placement.registry import ENTRY_POINT_GROUP, PLACERS, installed_placers

BROKERS = [UsableBroker(BrokerId(broker), RackId("ab"[broker % 2]), False) for broker in range(4)]
PYPROJECT = Path(__file__).parents[2] / "pyproject.toml"


class FirstBrokers:
    """A user's placer: always the same brokers."""

    configs: Mapping[str, str] = {}

    def configure(self, configs: Mapping[str, str]) -> None:
        if "refuse" in configs:
            raise ReplicaPlacementException("refuse: it was asked to")
        self.configs = configs
        int(configs.get("number", "1"))

    def place(
        self, start_partition: int, num_partitions: int, num_replicas: int, brokers: Sequence[UsableBroker]
    ) -> TopicAssignment:
        return TopicAssignment.of([[broker.id for broker in brokers[:num_replicas]]] * num_partitions)

    def close(self) -> None:
        pass


class NeedsDisks(FirstBrokers):
    def __init__(self, disks: int) -> None:
        self.disks = disks


class NoClose:
    configure = place = FirstBrokers.configure


HERE = f"{__name__}:FirstBrokers"


def none_installed() -> list[EntryPoint]:
    return []


@pytest.mark.parametrize(
    ("name", "kind"), [("rack-alternated", RackAlternatedReplicaPlacer), ("striped", StripedReplicaPlacer)]
)
def test_our_placers_are_found_by_their_short_names_and_get_the_rng(name: str, kind: type) -> None:
    guard = placer_named(name, {}, Random(3), none_installed)
    assert isinstance(guard.placer, kind)
    again = placer_named(name, {}, Random(3), none_installed)
    assert guard.place(0, 9, 2, BROKERS).replicas.tolist() == again.place(0, 9, 2, BROKERS).replicas.tolist()


def test_a_broker_without_the_config_is_striped() -> None:
    assert configured_placer({}, Random(1), none_installed).name == "striped"


def test_a_placer_is_found_by_module_and_class_and_gets_all_configs() -> None:
    configs = {"replica.placer.class.name": HERE, "broker.rack": "a"}
    guard = configured_placer(configs, Random(1), none_installed)
    assert isinstance(guard.placer, FirstBrokers)
    assert guard.placer.configs == configs
    assert guard.place(0, 1, 2, BROKERS)[0].replicas == (0, 1)


def test_a_placer_is_found_by_its_entry_point() -> None:
    installed = [EntryPoint("first", HERE, ENTRY_POINT_GROUP)]
    assert isinstance(placer_named("first", {}, Random(1), lambda: installed).placer, FirstBrokers)


def test_an_entry_point_cannot_take_the_name_of_one_of_ours() -> None:
    installed = [EntryPoint("striped", HERE, ENTRY_POINT_GROUP)]
    assert isinstance(placer_named("striped", {}, Random(1), lambda: installed).placer, StripedReplicaPlacer)


def test_our_placers_are_entry_points_too() -> None:
    declared = tomllib.loads(PYPROJECT.read_text())["project"]["entry-points"][ENTRY_POINT_GROUP]
    assert declared == dict(PLACERS)
    assert {one.name: one.value for one in installed_placers()}.items() >= declared.items()


@pytest.mark.parametrize(
    ("name", "configs", "kind", "line"),
    [
        (
            "stripes",
            {},
            UsageError,
            "replica.placer.class.name is 'stripes', but there is no such placer; choose balanced, rack-alternated, striped or write module:Class",
        ),
        (
            "no_such_module:Placer",
            {},
            UsageError,
            "replica.placer.class.name is 'no_such_module:Placer', but module no_such_module cannot be imported: ModuleNotFoundError: No module named 'no_such_module'; install it or correct the name",
        ),
        (
            ":Placer",
            {},
            UsageError,
            "replica.placer.class.name is ':Placer', but module '' cannot be imported: ValueError: Empty module name; install it or correct the name",
        ),
        (
            "json:Placer",
            {},
            UsageError,
            "replica.placer.class.name is 'json:Placer', but module json has no Placer; correct the name",
        ),
        (
            "json:JSONDecoder",
            {},
            UsageError,
            "replica.placer.class.name is 'json:JSONDecoder', but json:JSONDecoder is not a placer class: it has no configure, place, close; see the contract ReplicaPlacer",
        ),
        (
            f"{__name__}:NoClose",
            {},
            UsageError,
            f"replica.placer.class.name is '{__name__}:NoClose', but {__name__}:NoClose is not a placer class: it has no close; see the contract ReplicaPlacer",
        ),
        (
            f"{__name__}:NeedsDisks",
            {},
            ReplicaPlacementException,
            f"{__name__}:NeedsDisks could not be made and configured: TypeError: NeedsDisks.__init__() missing 1 required positional argument: 'disks'; correct the placer, or choose another",
        ),
        (
            HERE,
            {"number": "x"},
            ReplicaPlacementException,
            f"{HERE} could not be made and configured: ValueError: invalid literal for int() with base 10: 'x'; correct the placer, or choose another",
        ),
        (HERE, {"refuse": ""}, ReplicaPlacementException, "refuse: it was asked to"),
    ],
)
def test_a_name_that_leads_to_no_placer_is_refused_in_one_line(
    name: str, configs: dict[str, str], kind: type[RackspanError], line: str
) -> None:
    with pytest.raises(kind) as refusal:
        placer_named(name, configs, Random(1), none_installed)
    assert str(refusal.value) == line
