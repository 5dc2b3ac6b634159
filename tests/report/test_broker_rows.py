from hypothesis import given

from rackspan.audit import RackPolicy
from rackspan.audit.batch import snapshot_batch
from rackspan.model import ClusterSnapshot
from rackspan.report.broker_rows import broker_rows
from tests.audit import brute_force
from tests.strategies import policies, snapshots


@given(snapshots(), policies())
def test_the_rows_are_those_of_plain_loops(snapshot: ClusterSnapshot, policy: RackPolicy) -> None:
    cluster = brute_force.document(snapshot)
    racks = brute_force.rack_of(cluster, policy)
    alive = {one["id"] for one in cluster["brokers"] if not one["fenced"]}
    every = [(topic, partition) for topic in cluster["topics"] for partition in topic["partitions"]]
    for row in broker_rows(snapshot_batch(snapshot, policy)):
        mine = [one for one in every if row.broker in one[1]["replicas"]]
        assert (row.rack, row.fenced) == (racks.get(row.broker), row.broker not in alive)
        assert row.replicas == len(mine)
        assert row.out_of_sync == sum(row.broker not in partition["isr"] for _, partition in mine)
        assert row.leaders == sum(partition["leader"] == row.broker for _, partition in every)
        offline = refused = 0
        for topic, partition in every:
            in_sync = [one for one in partition["isr"] if one in alive]
            if partition["leader"] == -1 or row.broker not in in_sync:
                continue
            left = [one for one in in_sync if one != row.broker]
            k = brute_force.min_racks(topic, policy)
            spanned = len({racks[one] for one in left if one in racks})
            offline += not left
            refused += bool(left) and (
                len(left) < brute_force.required_in_sync(topic, partition) or (k > 1 and spanned < k)
            )
        assert (row.offline_if_lost, row.refused_if_lost) == (offline, refused)
