"""Whole rows and the changes after them give the rows again: random tables against plain dictionaries."""

import random
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from rackspan.errors import InvalidWarehouse
from rackspan.pipeline.changes import difference
from rackspan.pipeline.changes.difference import chain, changes, key_codes, latest
from rackspan.pipeline.schemas import GONE
from tests.depth import at_depth

SCHEMA = pa.schema(
    [
        ("topic", pa.string()),
        ("racks", pa.list_(pa.string())),
        ("number", pa.int32()),
        ("replicas", pa.list_(pa.int32())),
        ("config", pa.map_(pa.string(), pa.string())),
        ("surge", pa.list_(pa.struct([("broker", pa.int32()), ("leaders", pa.int64())]))),
        ("size_bytes", pa.int64()),
    ]
)
KEY = ("topic", "racks")
Rows = dict[tuple[str | None, tuple[str, ...]], dict[str, Any]]


def random_rows(rng: random.Random, before: Rows) -> Rows:
    """Most rows as before, some changed, some new, some gone."""
    rows = {key: dict(row) for key, row in before.items() if rng.random() < 0.9}
    for row in rows.values():
        if rng.random() < 0.3:
            name = rng.choice([name for name in SCHEMA.names if name not in KEY])
            row[name] = random_row(rng)[name]
    for _ in range(rng.randrange(6)):
        row = random_row(rng)
        rows.setdefault((row["topic"], tuple(row["racks"])), row)
    return dict(sorted(rows.items(), key=lambda entry: (entry[0][0] or "", entry[0][1])))


def random_row(rng: random.Random) -> dict[str, Any]:
    return {
        "topic": rng.choice([None, "", "a", "b", "c"]),
        "racks": rng.choice([[], [""], ["r1"], ["r1", "r2"], ["r1", ""]]),
        "number": rng.choice([None, 0, 1, -1]),
        "replicas": rng.choice([None, [], [1], [1, 2], [2, 1]]),
        "config": rng.choice([None, [], [("k", "v")], [("k", None)], [("k", "v"), ("l", "w")]]),
        "surge": rng.choice([None, [], [{"broker": 1, "leaders": 2}], [{"broker": 1, "leaders": 3}]]),
        "size_bytes": rng.randrange(9),
    }


def table(rows: Rows) -> pa.Table:
    return pa.Table.from_pylist(list(rows.values()), SCHEMA)


def plain(found: pa.Table) -> Rows:
    return {(row["topic"], tuple(row["racks"])): row for row in found.to_pylist()}


@pytest.mark.parametrize("seed", range(at_depth(check=100, test=300, soak=20_000)))
def test_changes_give_the_rows_again(seed: int) -> None:
    rng = random.Random(seed)
    history = [random_rows(rng, {})]
    parts = [table(history[0])]
    for _ in range(rng.randrange(5)):
        history.append(random_rows(rng, history[-1]))
        before, after = history[-2], history[-1]
        found = changes(table(before), table(after), KEY)
        wanted = {key for key in before.keys() | after.keys() if before.get(key) != after.get(key)}
        assert {(row["topic"], tuple(row["racks"])) for row in found.to_pylist()} == wanted
        assert all(row[GONE] == ((row["topic"], tuple(row["racks"])) not in after) for row in found.to_pylist())
        parts.append(found)
    assert plain(latest(KEY, parts)) == plain(table(history[-1]))


def test_an_ignored_column_makes_no_change() -> None:
    rng = random.Random(1)
    row = random_row(rng)
    key = row["topic"], tuple(row["racks"])
    grown = {key: {**row, "size_bytes": 99}}
    assert not len(changes(table({key: row}), table(grown), KEY, ignored=["size_bytes"]))
    assert len(changes(table({key: row}), table(grown), KEY)) == 1


def test_keys_have_the_same_order_where_their_codes_would_not_fit_into_a_number(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    rows = table({(row["topic"], tuple(row["racks"])): row for row in map(random_row, [random.Random(2)] * 40)})
    every = key_codes(rows, (*KEY, "size_bytes"))
    monkeypatch.setattr(difference, "CODES_MAX", 8)
    packed = key_codes(rows, (*KEY, "size_bytes"))
    assert np.unique(packed, return_inverse=True)[1].tolist() == np.unique(every, return_inverse=True)[1].tolist()
    assert packed.max() < every.max()


def test_a_chain_ends_at_a_whole_snapshot_or_names_what_is_not_stored() -> None:
    assert chain("c", {"a": None, "b": "a", "c": "b"}) == ["c", "b", "a"]
    with pytest.raises(InvalidWarehouse, match=r"^snapshot b builds on a, which is not stored$"):
        chain("c", {"b": "a", "c": "b"})


def test_a_list_that_is_null_has_no_values_whatever_stands_behind_it() -> None:
    """Arrow leaves values there where rows become null."""
    behind = pa.ListArray.from_arrays(pa.array([0, 2, 3]), pa.array([1, 2, 3]), mask=pa.array([True, False]))
    before, after = (pa.table({"topic": ["a", "b"], "replicas": lists}) for lists in (behind, pa.array([None, [3]])))
    assert not len(changes(before, after, ["topic"]))
    assert len(changes(before, after.set_column(1, "replicas", pa.array([[1, 2], [3]])), ["topic"])) == 1
