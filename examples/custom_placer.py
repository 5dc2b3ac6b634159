"""A placer of your own: racks take turns, and a broker that is nearly full is used where its rack has no other.

Run it with `rackspan place plan --spec FILE`, the spec naming `"placer": "custom_placer:RoomyPlacer"`, or set
`replica.placer.class.name=custom_placer:RoomyPlacer`; this file's folder must be on PYTHONPATH.
"""

from collections.abc import Mapping, Sequence

from rackspan.errors import ReplicaPlacementException
from rackspan.placement import TopicAssignment, UsableBroker


class RoomyPlacer:
    """Configs: `roomy.placer.full.brokers` lists the ids of brokers that are nearly full, as in 3,7."""

    def configure(self, configs: Mapping[str, str]) -> None:
        listed = configs.get("roomy.placer.full.brokers", "")
        self._full = {int(broker) for broker in listed.split(",") if broker}

    def place(
        self, start_partition: int, num_partitions: int, num_replicas: int, brokers: Sequence[UsableBroker]
    ) -> TopicAssignment:
        live = [broker for broker in brokers if not broker.fenced]
        if len(live) < num_replicas:
            why = f"{num_replicas} replicas need as many live brokers, found {len(live)}; add some"
            raise ReplicaPlacementException(why)
        partitions = range(start_partition, start_partition + num_partitions)
        return TopicAssignment.of([self._replicas(live, partition)[:num_replicas] for partition in partitions])

    def close(self) -> None:
        pass

    def _replicas(self, live: Sequence[UsableBroker], turn: int) -> list[int]:
        begin = turn % len(live)
        order = sorted([*live[begin:], *live[:begin]], key=lambda broker: broker.id in self._full)
        racks = [broker.rack for broker in order]
        # First every rack's first broker, then every rack's second; the sort keeps everything else as it is.
        ranks = [racks[:place].count(rack) for place, rack in enumerate(racks)]
        return [order[place].id for place in sorted(range(len(order)), key=ranks.__getitem__)]
