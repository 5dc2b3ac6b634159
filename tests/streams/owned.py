"""Small sets of active tasks, and every way to assign them."""

from collections.abc import Iterator, Sequence
from itertools import product

import numpy as np
from hypothesis import strategies as st

from rackspan.streams.costs import OwnedTasks
from rackspan.streams.problem import Int32s


def owned(
    owner: Sequence[int],
    traffic: Sequence[Sequence[int]],
    client_rack: Sequence[int],
    non_overlap: int = 0,
    subtopology: Sequence[int] | None = None,
) -> OwnedTasks:
    return OwnedTasks(
        owner=np.array(owner, dtype=np.int32),
        traffic=np.array(traffic, dtype=np.int64).reshape(len(owner), -1),
        subtopology=np.array(subtopology or [0] * len(owner), dtype=np.int32),
        client_rack=np.array(client_rack, dtype=np.int32),
        non_overlap=non_overlap,
    )


def every_assignment(tasks: OwnedTasks) -> Iterator[Int32s]:
    """All that could be, quotas or not."""
    for clients in product(range(len(tasks.client_rack)), repeat=len(tasks)):
        yield np.array(clients, dtype=np.int32)


def keeps_quotas(tasks: OwnedTasks, client: Int32s) -> bool:
    return np.array_equal(np.bincount(client, minlength=len(tasks.client_rack)), tasks.held)


def best(tasks: OwnedTasks, allowed: Iterator[Int32s]) -> tuple[int, int]:
    """Least cost, then fewest moves, over all that is allowed."""
    return min((tasks.cost(client), int(np.count_nonzero(client != tasks.owner))) for client in allowed)


@st.composite
def owned_sets(draw: st.DrawFn) -> OwnedTasks:
    """Up to 5 tasks on up to 3 clients in up to 3 racks: few enough to try every assignment."""
    racks, clients, tasks = draw(st.integers(1, 3)), draw(st.integers(1, 3)), draw(st.integers(1, 5))
    price = st.integers(0, 3).map(lambda partitions: partitions * 2)
    return owned(
        owner=draw(st.lists(st.integers(0, clients - 1), min_size=tasks, max_size=tasks)),
        traffic=draw(st.lists(st.lists(price, min_size=racks, max_size=racks), min_size=tasks, max_size=tasks)),
        client_rack=draw(st.lists(st.integers(0, racks - 1), min_size=clients, max_size=clients)),
        non_overlap=draw(st.sampled_from([0, 1, 2, 5])),
        subtopology=draw(st.lists(st.integers(0, 1), min_size=tasks, max_size=tasks)),
    )
