"""The iteration order of Java's HashMap, HashSet and PriorityQueue for task and process ids.

In Kafka's sticky and tag-aware assignors this order breaks ties between equal clients, so it is needed to predict the number
of tasks on each client. It depends on hash codes and heaps alone and is the same on every machine.
"""

from collections.abc import Sequence

from rackspan.streams.problem import process_order, task_order

_MASK = 2**32 - 1
_LEAST_CAPACITY = 16


def task_hash(task: str) -> int:
    """TaskId.hashCode: 31 times the code so far, plus sub-topology, partition and topology name in turn. Unsigned, 32 bits."""
    topology, subtopology, partition = task_order(task)
    code = 1
    for part in (subtopology, partition, _string_hash(topology)):
        code = (31 * code + part) & _MASK
    return code


def process_hash(process_id: str) -> int:
    """UUID.hashCode: exclusive or of its four 32-bit words."""
    high, low = process_order(process_id)
    both = (high ^ low) & (2**64 - 1)
    return (both >> 32) ^ (both & _MASK)


def hash_order(hashes: Sequence[int], copied: bool = False, fullest: int = 0) -> list[int]:
    """Positions in the iteration order of a hash table, entries put in one by one, or `copied` from a collection at once.

    `fullest` is the greatest size that the table had: it never shrinks when entries are removed. The order is bucket by
    bucket, and within a bucket the order of insertion. (Java turns long buckets into trees; ids are too few for that.)
    """
    capacity = _capacity(max(len(hashes), fullest), copied)
    return sorted(range(len(hashes)), key=lambda position: _bucket(hashes[position], capacity))


def _bucket(code: int, capacity: int) -> int:
    return (code ^ (code >> 16)) & (capacity - 1)


def _capacity(size: int, copied: bool) -> int:
    """Capacity for `size` entries: a table doubles when more than three quarters full; a copy starts large enough."""
    capacity = _LEAST_CAPACITY
    copy_capacity = int(size / 0.75) + 1
    while capacity < copy_capacity if copied else capacity * 3 < size * 4:
        capacity *= 2
    return capacity


def _string_hash(text: str) -> int:
    code = 0
    for char in text:
        code = (31 * code + ord(char)) & _MASK
    return code


def heap_order(keys: Sequence[tuple[int, ...]]) -> list[int]:
    """Positions in the order in which a Java PriorityQueue returns them, after all were offered in turn.

    The order of equal keys depends on the heap, so the heap is reproduced step by step.
    """
    heap: list[int] = []
    for position in range(len(keys)):
        heap.append(position)
        _sift_up(heap, keys)
    return [_poll(heap, keys) for _ in keys]


def _sift_up(heap: list[int], keys: Sequence[tuple[int, ...]]) -> None:
    at, item = len(heap) - 1, heap[-1]
    while at and keys[item] < keys[heap[(at - 1) // 2]]:
        heap[at] = heap[(at - 1) // 2]
        at = (at - 1) // 2
    heap[at] = item


def _poll(heap: list[int], keys: Sequence[tuple[int, ...]]) -> int:
    first, item, at = heap[0], heap.pop(), 0
    while (child := 2 * at + 1) < len(heap):
        if child + 1 < len(heap) and keys[heap[child + 1]] < keys[heap[child]]:
            child += 1
        if keys[item] <= keys[heap[child]]:
            break
        heap[at] = heap[child]
        at = child
    if heap:
        heap[at] = item
    return first
