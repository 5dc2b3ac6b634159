"""A user's placer in the broker, and the response when it fails (KIP-660, Public Interfaces 3 and 4)."""

from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from rackspan.cluster import EmbeddedCluster
from rackspan.errors import ReplicaPlacementException
from rackspan.placement import TopicAssignment, UsableBroker
from tests.conformance.subject import Subject, fresh, new_topic

MINE = {"replica.placer.class.name": f"{__name__}:OddBrokersOnly"}
UNKNOWN_SERVER_ERROR, REPLICA_PLACEMENT_FAILED = -1, 1003
NO_ODD_BROKER = "no odd broker is left; add one"


class OddBrokersOnly:
    def configure(self, configs: Mapping[str, str]) -> None:
        assert configs["replica.placer.class.name"] == MINE["replica.placer.class.name"]

    def place(self, start: int, count: int, factor: int, brokers: Sequence[UsableBroker]) -> TopicAssignment:
        odd = [broker.id for broker in brokers if broker.id % 2]
        if len(odd) < factor:
            raise ReplicaPlacementException(NO_ODD_BROKER)
        return TopicAssignment.of([odd[:factor]] * count)

    def close(self) -> None:
        pass


def subject(cluster: EmbeddedCluster) -> Subject:
    return Subject("embedded", cluster.bootstrap_servers, lambda: None, lambda: None)


@pytest.mark.parametrize(("extended", "code"), [("false", UNKNOWN_SERVER_ERROR), ("true", REPLICA_PLACEMENT_FAILED)])
def test_every_client_gets_the_message_and_only_extended_error_codes_the_code(extended: str, code: int) -> None:
    with EmbeddedCluster(3, 3, config={**MINE, "extended.error.codes": extended}) as cluster:
        client = subject(cluster)
        (response,) = client.create(new_topic(fresh("t"), 1, 3))
        assert (response["error_code"], response["error_message"]) == (code, NO_ODD_BROKER)
        topic = client.topic(1, 2)
        assert cluster.replicas(topic, 0) == (1, 3)
        body: dict[str, Any] = {"topics": [{"name": topic, "count": 2, "assignments": None}], "timeout_ms": 9_000}
        (grown,) = client.request("CreatePartitions", 3, validate_only=False, **body)["results"]
        assert grown["error_code"] == 0
        assert cluster.replicas(topic, 1) == (1, 3)


def test_the_striped_placer_is_the_default() -> None:
    with EmbeddedCluster(3, 3) as cluster:
        resource = {"resource_type": 4, "resource_name": "1", "configuration_keys": ["replica.placer.class.name"]}
        body: dict[str, Any] = {"resources": [resource], "include_synonyms": False, "include_documentation": False}
        (response,) = subject(cluster).request("DescribeConfigs", 4, **body)["results"]
        assert [config["value"] for config in response["configs"]] == ["striped"]
