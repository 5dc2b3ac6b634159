import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from rackspan.reassign.optimizer.row_groups import distribute_items, group_rows

matrices = st.lists(st.lists(st.integers(-(2**40), 2**40), min_size=4, max_size=4), min_size=1, max_size=20)


@given(st.one_of(matrices, st.lists(st.lists(st.integers(-1, 1), min_size=2, max_size=2), min_size=1, max_size=20)))
def test_rows_share_a_group_exactly_when_they_are_equal(rows: list[list[int]]) -> None:
    groups = group_rows(np.array(rows, dtype=np.int64))
    for one, selected in zip(rows, groups.of_row.tolist(), strict=True):
        assert rows[int(groups.first[selected])] == one
    assert len(groups) == len({tuple(row) for row in rows})
    assert groups.size.tolist() == [rows.count(rows[first]) for first in groups.first.tolist()]


@given(st.lists(st.integers(0, 3), min_size=1, max_size=20), st.data())
def test_dealing_gives_every_row_its_share_of_every_stretch(kinds: list[int], data: st.DataObject) -> None:
    groups = group_rows(np.array(kinds, dtype=np.int64)[:, None])
    units = [data.draw(st.integers(0, 3 * int(size))) for size in groups.size]
    item_group = np.repeat(np.arange(len(groups)), units)
    rows = distribute_items(groups, item_group)
    assert (groups.of_row[rows] == item_group).all()
    for group, size in enumerate(groups.size.tolist()):
        selected = rows[item_group == group].tolist()
        for start in range(len(selected)):
            assert len(set(selected[start : start + size])) == len(selected[start : start + size])
