"""The state of each partition is the worst of the constraints it breaks."""

from hypothesis import given

from rackspan.audit import RackPolicy
from rackspan.audit.batch import snapshot_batch
from rackspan.audit.durability import ONE_RACK, STATES, states
from rackspan.model import ClusterSnapshot
from tests.audit import brute_force
from tests.snapshots import of_one_topic
from tests.strategies import policies, snapshots


@given(snapshots(), policies())
def test_a_state_is_the_first_of_its_constraints_that_is_broken(snapshot: ClusterSnapshot, policy: RackPolicy) -> None:
    cluster = brute_force.document(snapshot)
    racks = brute_force.rack_of(cluster, policy)
    partitions = [(topic, one) for topic in cluster["topics"] for one in topic["partitions"]]
    for (topic, one), state in zip(partitions, states(snapshot_batch(snapshot, policy)).tolist(), strict=True):
        found = brute_force.broken(cluster, topic, one, racks, policy)
        broken = [word for word in STATES if word in found]
        assert STATES[state] == broken[0] if broken else STATES[state] in ("one-rack", "ok")


def of_one_partition(racks: str, isr: list[int], leader: int = 1, replicas_required: str = "1") -> str:
    """The state of a partition on brokers 1… in the given racks, `-` for none."""
    by_broker = dict(enumerate(racks, start=1))
    config = {"min.insync.replicas": replicas_required}
    snapshot = of_one_topic(by_broker, [[*by_broker, 99]], isr=[isr], leader=[leader], config=config)
    return STATES[int(states(snapshot_batch(snapshot, RackPolicy(min_insync_racks=1)))[0])]


def test_every_state_has_its_example() -> None:
    assert of_one_partition("abc", isr=[], leader=-1) == "offline"
    assert of_one_partition("abc", isr=[1], replicas_required="2") == "under-min-isr"
    assert of_one_partition("aab", isr=[1, 2]) == ONE_RACK
    assert of_one_partition("aab", isr=[1, 3]) == "ok"


def test_a_minimum_above_the_replicas_counts_as_all_of_them() -> None:
    assert of_one_partition("abc", isr=[1, 2, 3, 99], replicas_required="9") == "ok"
    assert of_one_partition("abc", isr=[1, 2, 3], replicas_required="9") == "under-min-isr"


def test_a_cluster_of_one_rack_is_not_in_the_state_one_rack() -> None:
    assert of_one_partition("aaa", isr=[1, 2]) == "ok"


def test_an_in_sync_replica_of_unknown_rack_is_no_second_rack() -> None:
    assert of_one_partition("abc", isr=[1, 99]) == ONE_RACK
