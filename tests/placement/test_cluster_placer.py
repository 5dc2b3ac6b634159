"""The placer of a cluster: partial racks of topics that are created automatically, load, and its errors for clients."""

from collections.abc import Mapping, Sequence
from functools import partial
from random import Random

import pytest

from rackspan.errors import InvalidPartitions, InvalidReplicationFactor, PartialRacks, RackspanError
from rackspan.kafka_bytes.error_codes import ErrorCode
from rackspan.model import BrokerId, RackId
from rackspan.placement.cluster_placer import ClusterPlacer, refusal_of
from rackspan.placement.placer import CheckedPlacer, TopicAssignment
from rackspan.placement.registry import PLACER_CLASS_CONFIG, configured_placer
from rackspan.placement.usable_brokers import UsableBroker


class First:
    """A placer of the first brokers that it is offered."""

    def __init__(self) -> None:
        self.configured: list[Mapping[str, str]] = []
        self.racks: list[str | None] = []

    def configure(self, configs: Mapping[str, str]) -> None:
        self.configured.append(configs)

    def place(
        self, _start_partition: int, num_partitions: int, num_replicas: int, brokers: Sequence[UsableBroker]
    ) -> TopicAssignment:
        self.racks = [broker.rack for broker in brokers]
        return TopicAssignment.of([[broker.id for broker in brokers[:num_replicas]]] * num_partitions)

    def close(self) -> None:
        """It holds nothing."""


def made(first: First, name: str) -> ClusterPlacer:
    return ClusterPlacer({PLACER_CLASS_CONFIG: name}, lambda _: CheckedPlacer(name, first))


def brokers(*racks: str | None) -> list[UsableBroker]:
    return [
        UsableBroker(BrokerId(number), None if rack is None else RackId(rack), False)
        for number, rack in enumerate(racks)
    ]


@pytest.mark.parametrize(
    ("racks", "automatic", "offered"),
    [
        (("a", "b", None), True, [None, None, None]),
        (("a", "b", None), False, ["a", "b", None]),
        (("a", "b", "c"), True, ["a", "b", "c"]),
    ],
)
def test_only_automatic_creation_with_partial_racks_is_placed_without_racks(
    racks: tuple[str | None, ...], automatic: bool, offered: list[str | None]
) -> None:
    first = First()
    made(first, "first").place(0, 1, 2, brokers(*racks), dict, automatic=automatic)
    assert first.racks == offered


@pytest.mark.parametrize("name", ["rack-alternated", "balanced"])
@pytest.mark.parametrize("remedy", ["safe", "disabled", "racks"])
def test_a_placer_that_requires_racks_names_what_a_client_of_a_cluster_can_do(name: str, remedy: str) -> None:
    """Kafka's words name an option of a tool, which Kafka 4 does not have. Each remedy is carried out here."""

    def place(racks: tuple[str | None, ...], **configs: str) -> TopicAssignment:
        configs |= {PLACER_CLASS_CONFIG: name}
        placer = ClusterPlacer(configs, lambda configs: configured_placer(configs, Random(1)))
        return placer.place(0, 1, 2, brokers(*racks), dict, automatic=False)

    with pytest.raises(PartialRacks) as refused:
        place(("a", None, "b", None))
    assert str(refused.value) == (
        f"Not all brokers have rack information, and {name} requires it. No rack: brokers 1,3. Set broker.rack there, or "
        "replica.placer.rack.aware to safe or disabled where the placer is configured "
        "(placement.configs.replica.placer.rack.aware in a gateway's file)"
    )
    if remedy == "racks":
        assert place(("a", "c", "b", "c"))
    else:
        assert place(("a", None, "b", None), **{"replica.placer.rack.aware": remedy})


def test_the_load_is_passed_before_every_placement_to_the_placer_that_reads_it() -> None:
    for name, configured in (("balanced", [{"load": "1"}, {"load": "2"}]), ("first", [])):
        first = First()
        placer = made(first, name)
        for load in ("1", "2"):
            placer.place(0, 1, 1, brokers("a"), partial(dict, load=load), automatic=False)
        assert [{"load": configs["load"]} for configs in first.configured] == configured


def test_a_placer_that_cannot_be_closed_is_logged_and_no_more(caplog: pytest.LogCaptureFixture) -> None:
    """Else a gateway would read its config never again, and a cluster would keep its ports."""

    class Unclosed(First):
        def close(self) -> None:
            raise ValueError("its connection is gone")

    placer = made(Unclosed(), "first")
    placer.open()
    placer.close()
    placer.close()
    assert caplog.messages == ["first could not be closed"]
    assert "its connection is gone" in caplog.text


@pytest.mark.parametrize(
    ("error", "code", "message"),
    [
        (
            InvalidReplicationFactor("too few"),
            ErrorCode.INVALID_REPLICATION_FACTOR,
            "Unable to replicate the partition 3 time(s): too few",
        ),
        (InvalidPartitions("none"), ErrorCode.INVALID_PARTITIONS, "none"),
        (PartialRacks("some"), ErrorCode.REPLICA_PLACEMENT_FAILED, "some"),
    ],
)
def test_a_refusal_has_kafkas_code_if_kafka_has_one(error: RackspanError, code: ErrorCode, message: str) -> None:
    assert refusal_of(error, 3) == (code, message)
