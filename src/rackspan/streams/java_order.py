"""The order in which Java walks a HashMap or HashSet of task or process ids, and drains a PriorityQueue.

Kafka's sticky and tag-aware assignors let this order break ties between equal clients; without it their picks, and the
number of tasks on each client, could not be told beforehand. It is a matter of hash codes and heaps alone: the same on every machine.
"""

from collections.abc import Sequence

from rackspan.streams.problem import process_order, task_order

_MASK = 2**32 - 1
_LEAST_CAPACITY = 16


def task_hash(task: str) -> int:
    """TaskId.hashCode: sub-topology, partition and topology name, in steps of 31. 32 bits, unsigned."""
    topology, subtopology, partition = task_order(task)
    code = 1
    for part in (subtopology, partition, _string_hash(topology)):
        code = (31 * code + part) & _MASK
    return code


def process_hash(process_id: str) -> int:
    """UUID.hashCode: its four words, exclusive or."""
    high, low = process_order(process_id)
    both = (high ^ low) & (2**64 - 1)
    return (both >> 32) ^ (both & _MASK)


def walk(hashes: Sequence[int], copied: bool = False, fullest: int = 0) -> list[int]:
    """Positions in the order Java walks them, when put in one by one, or `copied` from another collection at once.

    `fullest` is how many the table once held, where some were removed since: a table never shrinks. Buckets in turn, and within a bucket as they came in (Java turns long buckets into trees; that far apart ids do not fall).
    """
    capacity = _capacity(max(len(hashes), fullest), copied)
    return sorted(range(len(hashes)), key=lambda position: _bucket(hashes[position], capacity))


def _bucket(code: int, capacity: int) -> int:
    return (code ^ (code >> 16)) & (capacity - 1)


def _capacity(size: int, copied: bool) -> int:
    """A table doubles when it is more than three quarters full; a copy is made larger from the start."""
    capacity = _LEAST_CAPACITY
    wanted = int(size / 0.75) + 1
    while capacity < wanted if copied else capacity * 3 < size * 4:
        capacity *= 2
    return capacity


def _string_hash(text: str) -> int:
    code = 0
    for char in text:
        code = (31 * code + ord(char)) & _MASK
    return code


def drained(keys: Sequence[tuple[int, ...]]) -> list[int]:
    """Positions in the order a Java PriorityQueue gives them up, all offered in turn first.

    Equal keys leave in an order that only its heap knows.
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
