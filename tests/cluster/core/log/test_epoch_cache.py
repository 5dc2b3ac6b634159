"""The start offsets of leader epochs, by Kafka's LeaderEpochFileCache."""

import pytest

from rackspan.cluster.core.log import EpochCache, EpochEnd


def cache_of(*entries: tuple[int, int]) -> EpochCache:
    cache = EpochCache()
    for entry in entries:
        cache.assign(*entry)
    return cache


def test_the_first_batch_of_an_epoch_begins_it() -> None:
    assert (cache_of().latest, cache_of().entries) == (-1, ())
    cache = cache_of((0, 0), (0, 3), (2, 5), (1, 6), (2, 7), (4, 9))
    assert (cache.latest, cache.entries) == (4, ((0, 0), (2, 5), (4, 9)))
    cache.assign(5, 9)
    assert cache.entries == ((0, 0), (2, 5), (5, 9)), "epoch 4 has no record"


@pytest.mark.parametrize(
    ("epoch", "end"),
    [
        (-1, (-1, -1)),
        (0, (0, 3)),
        (1, (1, 5)),
        (2, (1, 5)),
        (3, (3, 20)),
        (4, (-1, -1)),
    ],
)
def test_an_epoch_ends_where_the_next_begins(epoch: int, end: tuple[int, int]) -> None:
    assert cache_of((1, 3), (3, 5)).end_offset(epoch, 20) == EpochEnd(*end)
    assert cache_of().end_offset(epoch, 20) == EpochEnd(-1, -1)


@pytest.mark.parametrize(("end", "entries"), [(6, ((1, 3), (3, 5))), (5, ((1, 3),)), (4, ((1, 3),)), (3, ()), (0, ())])
def test_a_truncated_log_has_no_epoch_that_begins_at_its_end(end: int, entries: tuple[tuple[int, int], ...]) -> None:
    cache = cache_of((1, 3), (3, 5))
    cache.truncate_from_end(end)
    assert cache.entries == entries


@pytest.mark.parametrize(
    ("start", "entries"),
    [(2, ((1, 3), (3, 5))), (4, ((1, 4), (3, 5))), (5, ((3, 5),)), (9, ((3, 9),))],
)
def test_an_epoch_that_spans_the_new_start_begins_there(start: int, entries: tuple[tuple[int, int], ...]) -> None:
    cache = cache_of((1, 3), (3, 5))
    cache.truncate_from_start(start)
    assert cache.entries == entries
    cache.clear()
    assert (cache.entries, cache.latest) == ((), -1)
