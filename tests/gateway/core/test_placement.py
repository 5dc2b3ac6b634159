"""New partitions of one request: placed by the load of all before them, and not more than Kafka creates at once."""

from random import Random

from rackspan.gateway.core.placement import NEW_PARTITIONS_MAX, PlacedCounts, place
from rackspan.model import Broker, BrokerId, RackId

BROKERS = [Broker(BrokerId(one), RackId(f"r{one % 3}")) for one in range(1, 7)]


def test_topics_of_one_request_are_placed_by_the_load_of_those_before_them() -> None:
    counts = PlacedCounts([(1, 2, 3)])
    for _ in range(5):
        placed = place("balanced", {"level": "cluster"}, BROKERS, counts, 0, 1, 1, Random(1))
        assert (placed.error, len(placed.replicas)) == (None, 1)
    # Six leaders on six brokers, the cluster's own among them, and its followers.
    assert dict(counts.leaders) == dict.fromkeys(range(1, 7), 1)
    assert counts.partitions == 5
    assert sum(counts.replicas.values()) == 8


def test_one_request_adds_no_more_partitions_than_kafka_creates() -> None:
    counts = PlacedCounts([])
    assert place("striped", {}, BROKERS, counts, 0, NEW_PARTITIONS_MAX - 1, 1, Random(1)).error is None
    refused = place("striped", {}, BROKERS, counts, 0, 2, 1, Random(1))
    assert (refused.replicas, refused.error) == ((), "2 partitions: one request may add 10,000 at most")
    assert place("striped", {}, BROKERS, counts, 0, 1, 1, Random(1)).error is None


def test_a_replication_factor_that_the_cluster_cannot_hold_is_refused_with_its_size() -> None:
    refused = place("striped", {}, BROKERS, PlacedCounts([]), 0, 1, 7, Random(1))
    assert refused.error == "replication factor 7: the cluster has 6 usable brokers"
