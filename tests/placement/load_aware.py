"""A greedy placer that sees all loads, as good as what was known before: the peer of `balanced` in scenarios_of_load.py.

Replica by replica it takes the rack with fewest replicas of the partition, then per broker, and there the least loaded
broker; it uses no fenced broker. At the end the leaders of everything that was placed are reordered by an exact flow, which
copies nothing but which no placer of single topics can do.
"""

import heapq
from collections.abc import Sequence

from ortools.graph.python import min_cost_flow

from tests.placement.scenarios_of_load import MinMax, Phase


def load_aware(phases: Sequence[Phase], replication_factor: int) -> tuple[MinMax, MinMax]:
    """Leaders and replicas per broker of the last phase, least and most."""
    held: dict[int, int] = {}
    rows: list[list[int]] = []
    for phase in phases:
        racks: dict[str, list[int]] = {}
        for broker in phase.brokers:
            held.setdefault(broker.id, 0)
            if not broker.fenced:
                racks.setdefault(str(broker.rack), []).append(broker.id)
        rows += _placed(racks, held, phase.topics * phase.partitions, replication_factor)
    last = [broker.id for broker in phases[-1].brokers]
    return least_most_leaders(rows, sorted(held)), (min(held[one] for one in last), max(held[one] for one in last))


def _placed(
    racks: dict[str, list[int]], held: dict[int, int], partitions: int, replication_factor: int
) -> list[list[int]]:
    emptiest = {rack: [(held[broker], broker) for broker in brokers] for rack, brokers in racks.items()}
    for heap in emptiest.values():
        heapq.heapify(heap)
    in_rack = {rack: sum(held[broker] for broker in brokers) for rack, brokers in racks.items()}
    rows: list[list[int]] = []
    for _ in range(partitions):
        count, chosen = dict.fromkeys(racks, 0), []
        for _ in range(replication_factor):
            fewest = min(count[rack] for rack in racks if emptiest[rack])
            rack = min(
                (rack for rack in racks if emptiest[rack] and count[rack] == fewest),
                key=lambda rack: (in_rack[rack] / len(racks[rack]), rack),
            )
            _, broker = heapq.heappop(emptiest[rack])
            chosen.append((rack, broker))
            count[rack] += 1
            in_rack[rack] += 1
            held[broker] += 1
        for rack, broker in chosen:
            heapq.heappush(emptiest[rack], (held[broker], broker))
        rows.append([broker for _, broker in chosen])
    return rows


def least_most_leaders(rows: Sequence[Sequence[int]], brokers: Sequence[int]) -> MinMax:
    """Leaders per broker, least and most, when the partitions may choose anew among their replicas: an exact flow."""
    flow = min_cost_flow.SimpleMinCostFlow()
    node = {broker: len(rows) + index for index, broker in enumerate(brokers)}
    sink = len(rows) + len(brokers)
    for partition, replicas in enumerate(rows):
        flow.set_node_supply(partition, 1)
        for broker in replicas:
            flow.add_arc_with_capacity_and_unit_cost(partition, node[broker], 1, 0)
    # The n-th leader of a broker costs n, so that the cheapest flow is the most level one.
    height = 2 * -(-len(rows) // len(brokers))
    ladders = [
        [flow.add_arc_with_capacity_and_unit_cost(node[broker], sink, 1, step) for step in range(height)]
        for broker in brokers
    ]
    flow.set_node_supply(sink, -len(rows))
    assert flow.solve() == flow.OPTIMAL
    led = [sum(flow.flow(arc) for arc in ladder) for ladder in ladders]
    return min(led), max(led)
