"""The least load the busiest broker can have, found by other means than placing."""

from collections.abc import Sequence

from ortools.graph.python import max_flow

from rackspan.model.racks import even_spread


def least_leaders(held: Sequence[int], partitions: int) -> list[int]:
    """Leaders per broker, each further one given to the broker that has least: no choice of leaders can be more level."""
    led = list(held)
    for _ in range(partitions):
        led[led.index(min(led))] += 1
    return led


def least_replicas(
    racks: Sequence[str], held: Sequence[int], least: Sequence[int], partitions: int, replication_factor: int
) -> int:
    """The least maximum of replicas per broker, `held` included, over all evenly spread placements of one topic.

    `least`: replicas each broker gets in any case. Partition by partition, rack by rack: a flow without
    levels or shares, tried for one maximum after the other.
    """
    maximum = max(have + more for have, more in zip(held, least, strict=True))
    while not _fits(racks, [max(0, maximum - have) for have in held], least, partitions, replication_factor):
        maximum += 1
    return maximum


def _fits(
    racks: Sequence[str], most: Sequence[int], least: Sequence[int], partitions: int, replication_factor: int
) -> bool:
    """Whether every partition finds its replicas when brokers take between `least` and `most` of them.

    Partition → (its racks' least, and one extra for some) → broker → sink. Lower bounds are met by a second sink that
    only counts a full `least`: a flow is wanted that saturates the source and every broker's lower bound.
    """
    names = sorted(set(racks))
    sizes = [racks.count(rack) for rack in names]
    counts = even_spread(sizes, replication_factor)
    flow = max_flow.SimpleMaxFlow()
    source, sink, extra_source, extra_sink = range(4)
    first_broker = 4
    node = first_broker + len(racks)
    wanted = 0

    def arc(tail: int, head: int, low: int, high: int) -> int:
        """An arc with a lower bound: `low` is sent by way of the extra source and sink, the rest stays free."""
        if high > low:
            flow.add_arc_with_capacity(tail, head, high - low)
        if low:
            flow.add_arc_with_capacity(extra_source, head, low)
            flow.add_arc_with_capacity(tail, extra_sink, low)
        return low

    for _ in range(partitions):
        partition = node
        node += 1
        wanted += arc(source, partition, replication_factor, replication_factor)
        for name, size in zip(names, sizes, strict=True):
            rack = node
            node += 1
            low, high = _share(size, counts)
            wanted += arc(partition, rack, low, high)
            for broker, of in enumerate(racks):
                if of == name:
                    wanted += arc(rack, first_broker + broker, 0, 1)
    for broker, (low, high) in enumerate(zip(least, most, strict=True)):
        wanted += arc(first_broker + broker, sink, low, high)
    wanted += arc(sink, source, 0, partitions * replication_factor)
    assert flow.solve(extra_source, extra_sink) == flow.OPTIMAL
    return int(flow.optimal_flow()) == wanted


def _share(size: int, counts: Sequence[int]) -> tuple[int, int]:
    """Fewest and most replicas of a partition in a rack of `size`: racks that are not full differ by at most one."""
    return (size, size) if size < max(counts) else (max(counts) - 1, max(counts))
