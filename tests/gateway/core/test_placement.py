"""New partitions of one request: placed by the load of all before them, and not more than Kafka creates at once."""

from random import Random

from rackspan.gateway.core.placement import PlacedCounts, place
from rackspan.kafka_bytes.error_codes import ErrorCode
from rackspan.model import Broker, BrokerId, RackId
from rackspan.placement.cluster_placer import NEW_PARTITIONS_MAX, ClusterPlacer
from rackspan.placement.registry import PLACER_CLASS_CONFIG, configured_placer

BROKERS = [Broker(BrokerId(number), RackId(f"r{number % 3}")) for number in range(1, 7)]


def placer(name: str, **configs: str) -> ClusterPlacer:
    return ClusterPlacer({PLACER_CLASS_CONFIG: name, **configs}, lambda configs: configured_placer(configs, Random(1)))


def test_topics_of_one_request_are_placed_by_the_load_of_those_before_them() -> None:
    counts = PlacedCounts([(1, 2, 3)])
    balanced = placer("balanced", level="cluster")
    for _ in range(5):
        assert len(place(balanced, BROKERS, counts, 0, 1, 1)) == 1
    # Six leaders on six brokers, the cluster's own among them, and its followers.
    assert dict(counts.leaders) == dict.fromkeys(range(1, 7), 1)
    assert counts.partitions == 5
    assert sum(counts.replicas.values()) == 8


def test_one_request_adds_no_more_partitions_than_kafka_creates() -> None:
    counts = PlacedCounts([])
    striped = placer("striped")
    assert len(place(striped, BROKERS, counts, 0, NEW_PARTITIONS_MAX - 1, 1)) == NEW_PARTITIONS_MAX - 1
    refused = place(striped, BROKERS, counts, 0, 2, 1)
    assert refused == (ErrorCode.POLICY_VIOLATION, "2 partitions: one request may add 10,000 at most")
    assert len(place(striped, BROKERS, counts, 0, 1, 1)) == 1
