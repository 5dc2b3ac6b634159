"""Kafka's own placements and refusals, of its controller instead of its placers: registered brokers, requests, responses."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from random import Random
from typing import Any

import pytest

from rackspan.cluster.core.admin_messages import (
    AdminRequest,
    AdminResponse,
    CreatePartitions,
    CreateTopics,
    MorePartitions,
    NewTopic,
)
from rackspan.cluster.core.controller import ControllerCore
from rackspan.cluster.core.ids import CLIENT, NO_EPOCH
from rackspan.cluster.core.messages import BrokerHeartbeat, BrokerRegistration, Respond
from rackspan.cluster.core.settings import ClusterSettings
from rackspan.errors import InvalidReplicationFactor
from rackspan.kafka_bytes.error_codes import ErrorCode
from rackspan.model.ids import BrokerId, RackId
from rackspan.placement import CheckedPlacer, TopicAssignment, UsableBroker
from rackspan.placement.kafka.rack_alternated import assign_replicas
from rackspan.placement.kafka.striped import StripedReplicaPlacer
from rackspan.placement.usable_brokers import refuse_factor
from tests.placement.test_vectors import as_expected, first_partition, rng_of

CASES = {
    case["id"]: case
    for case in json.loads((Path(__file__).parents[3] / "vectors" / "placement.json").read_text())["cases"]
}
PLACING = [case for case in CASES.values() if "job" in case and case["job"]["algo"] != "alternate"]
PLACED = [case["id"] for case in PLACING if "error" not in case["expect"]]
REFUSED = [case["id"] for case in PLACING if "error" in case["expect"]]
CONTROLLERS = [name for name in CASES if name.startswith("ctl-")]
KAFKA_CALLS_IT = {
    "InvalidPartitionsException": ErrorCode.INVALID_PARTITIONS,
    "InvalidReplicationFactorException": ErrorCode.INVALID_REPLICATION_FACTOR,
    "AdminOperationException": ErrorCode.REPLICA_PLACEMENT_FAILED,
}


class AdminUtils:
    """Kafka's ZooKeeper-era placement with the case's rng and start, behind the contract of KIP-660."""

    def __init__(self, job: dict[str, Any]) -> None:
        self._rng = rng_of(job)
        self._start = job["startIndex"] if job["startIndex"] >= 0 else None

    def configure(self, configs: Mapping[str, str]) -> None:
        pass

    def place(self, start: int, count: int, factor: int, brokers: Sequence[UsableBroker]) -> TopicAssignment:
        return assign_replicas(brokers, count, factor, self._rng, self._start, start)

    def close(self) -> None:
        pass


def controller_of(job: dict[str, Any], settings: ClusterSettings | None = None) -> ControllerCore:
    """The job's brokers registered, those that are not fenced in office, and its placer."""
    placer = StripedReplicaPlacer(rng_of(job)) if job["algo"] == "striped" else AdminUtils(job)
    controller = ControllerCore(
        settings or ClusterSettings(),
        Random(0),
        placer_of=lambda configs, rng: CheckedPlacer(job["algo"], placer),
    )
    for one in job["brokers"]:
        register(controller, one["id"], one.get("rack"), fenced=one["fenced"])
    return controller


def register(controller: ControllerCore, number: int, rack: str | None, *, fenced: bool = False) -> None:
    broker = BrokerId(number)
    named = None if rack is None else RackId(rack)
    controller.on_message(0, broker, BrokerRegistration(broker, 1, named, "h", 1, NO_EPOCH))
    epoch = controller.image.brokers[broker].broker_epoch
    if not fenced:
        controller.on_message(0, broker, BrokerHeartbeat(broker, epoch, epoch + 1))


def requested(controller: ControllerCore, request: AdminRequest) -> AdminResponse:
    responses = [one.response for one in controller.on_message(0, CLIENT, request) if isinstance(one, Respond)]
    assert isinstance(responses[0], tuple)
    result: AdminResponse = responses[0][0]
    return result


def create(controller: ControllerCore, name: str, partitions: int, factor: int) -> AdminResponse:
    return requested(controller, CreateTopics(1, (NewTopic(name, partitions, factor),)))


def by_hand(controller: ControllerCore, name: str, *rows: Sequence[int]) -> AdminResponse:
    given = {index: tuple(map(BrokerId, row)) for index, row in enumerate(rows)}
    return requested(controller, CreateTopics(1, (NewTopic(name, assignments=given),)))


def grow(controller: ControllerCore, name: str, total: int, *rows: Sequence[int]) -> AdminResponse:
    given = tuple(tuple(map(BrokerId, row)) for row in rows) or None
    return requested(controller, CreatePartitions(1, (MorePartitions(name, total, given),)))


def rows(controller: ControllerCore, name: str) -> list[list[int]]:
    return [list(state.replicas) for state in controller.image.topics[name].partitions]


def placed(job: dict[str, Any]) -> list[list[list[int]]]:
    controller = controller_of(job)
    if (start := first_partition(job)) > 0:
        factor = [one["id"] for one in job["brokers"] if not one["fenced"]][: job["rf"]]
        assert by_hand(controller, "t0", *[factor] * start).error is ErrorCode.NONE
        assert grow(controller, "t0", start + job["partitions"]).error is ErrorCode.NONE
        return [rows(controller, "t0")[start:]]
    names = [f"t{number}" for number in range(job.get("topics", 1))]
    for name in names:
        assert create(controller, name, job["partitions"], job["rf"]).error is ErrorCode.NONE
    return [rows(controller, name) for name in names]


@pytest.mark.parametrize("name", PLACED)
def test_the_controller_places_as_kafka_did(name: str) -> None:
    case = CASES[name]
    topics = placed(case["job"])
    for what, expected in case["expect"].items():
        assert as_expected(case, what, topics) == expected, what


@pytest.mark.parametrize("name", REFUSED)
def test_the_controller_refuses_what_kafka_refused(name: str) -> None:
    job, expected = CASES[name]["job"], CASES[name]["expect"]
    # In a request -1 is the default; nothing else below 1 is different.
    factor = -2 if job["rf"] == -1 else job["rf"]
    result = create(controller_of(job), "t0", job["partitions"], factor)
    assert result.error is KAFKA_CALLS_IT[expected["error_class"]]
    assert result.message


@pytest.mark.parametrize("name", [name for name in REFUSED if CASES[name]["job"]["algo"] == "striped"])
def test_the_factor_is_checked_before_any_placer_and_in_kafkas_words(name: str) -> None:
    job = CASES[name]["job"]
    brokers = [UsableBroker(BrokerId(one["id"]), None, one["fenced"]) for one in job["brokers"]]
    with pytest.raises(InvalidReplicationFactor) as refusal:
        refuse_factor(brokers, job["rf"])
    assert str(refusal.value) == CASES[name]["expect"]["error"]


def three(fenced: bool = False, **more: Any) -> ControllerCore:
    brokers = [{"id": one, "rack": None, "fenced": fenced} for one in range(3)]
    return controller_of({"algo": "striped", "brokers": brokers, "seed": 1, **more})


def in_shutdown() -> ControllerCore:
    """All on their way down: no placer sees that, and none of them may lead any more."""
    controller = three()
    for number in range(3):
        broker = BrokerId(number)
        epoch = controller.image.brokers[broker].broker_epoch
        controller.on_message(0, broker, BrokerHeartbeat(broker, epoch, 0, want_shut_down=True))
    return controller


def ctl_manual(*rows: Sequence[int]) -> AdminResponse:
    return by_hand(three(), "foo", *rows)


def ctl_added(name: str, before: int, total: int, *rows: Sequence[int]) -> AdminResponse:
    controller = three()
    by_hand(controller, name, *[[0, 1]] * before)
    return grow(controller, name, total, *rows)


CONTROLLER_CASES = {
    "ctl-too-few": lambda: create(three(), "foo", 1, 4),
    "ctl-fenced": lambda: create(three(fenced=True), "foo", 1, 3),
    "ctl-shutdown": lambda: create(in_shutdown(), "foo", 1, 3),
    "ctl-manual-0": lambda: ctl_manual([]),
    "ctl-manual-1": lambda: ctl_manual([1, 2, 3]),
    "ctl-manual-2": lambda: ctl_manual([1, 2, 2]),
    "ctl-manual-3": lambda: ctl_manual([0, 1, 2], [1, 2]),
    "ctl-add-same": lambda: ctl_added("foo", 2, 2),
    "ctl-add-fewer": lambda: ctl_added("bar", 4, 3),
    "ctl-add-manual-short": lambda: ctl_added("foo", 2, 4, [0, 1]),
}


@pytest.mark.parametrize("name", CONTROLLERS)
def test_the_controllers_errors_are_in_kafkas_words(name: str) -> None:
    result, expected = CONTROLLER_CASES[name](), CASES[name]["expect"]
    assert (result.error.name, result.message) == (expected["code"], expected["error"])
