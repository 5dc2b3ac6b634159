"""Compares the rows of a table at two times, and puts rows together again from what is stored of them: whole once, then changes.

Constraints: `latest(key, [before, *changes])` has exactly the rows of `after`; columns named `ignored` never make a row a change.
Method: keys become whole numbers, rows are matched by them and compared column by column. Bound: both tables in memory. Source: our
own (slowly changing dimensions of type 2). Tests: tests/pipeline/changes/test_difference.py.
"""

from collections.abc import Collection, Mapping, Sequence
from typing import Any, Final, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from rackspan.errors import InvalidWarehouse
from rackspan.pipeline.schemas import GONE

Bools: TypeAlias = np.ndarray[tuple[int], np.dtype[np.bool_]]
Codes: TypeAlias = np.ndarray[tuple[int], np.dtype[np.int64]]
CODES_MAX: Final = 2**62


def changes(before: pa.Table, after: pa.Table, key: Sequence[str], ignored: Collection[str] = ()) -> pa.Table:
    """The rows of `after` that `before` has not or has otherwise, then those of `before` that are gone; with the column GONE.

    Both have the same columns, and no two rows of the same key.
    """
    before, after = before.combine_chunks(), after.combine_chunks()
    ours, theirs = _positions(before, after, key)
    differs = np.ones(len(after), dtype=np.bool_)
    differs[theirs] = False
    compared = [name for name in after.column_names if name not in ignored and name not in key]
    same_order = len(ours) == len(before) == len(after) and bool((ours == theirs).all())
    for name in compared:
        left, right = _only_chunk(before, name), _only_chunk(after, name)
        if same_order and left.equals(right):
            continue
        differs[theirs] |= _differ(left.take(pa.array(ours)), right.take(pa.array(theirs)))
    gone = np.ones(len(before), dtype=np.bool_)
    gone[ours] = False
    found = [_marked(after.filter(pa.array(differs)), gone=False)]
    if gone.any():
        found.append(_marked(before.filter(pa.array(gone)), gone=True))
    return pa.concat_tables(found)


def latest(key: Sequence[str], parts: Sequence[pa.Table]) -> pa.Table:
    """The rows that are there after some parts, the first of them whole: of each key the last row, unless it is gone.

    The column GONE is left out. In order of the key, where there is more than one part.
    """
    parts = [parts[0], *(part for part in parts[1:] if len(part))]
    if len(parts) == 1:
        return _without_mark(parts[0])
    rows = pa.concat_tables([_marked(part) for part in parts]).unify_dictionaries().combine_chunks()
    codes = key_codes(rows, key)
    order = np.argsort(codes, kind="stable")
    last = np.append(codes[order][1:] != codes[order][:-1], len(order) > 0)
    kept = order[last[: len(order)]]
    there = ~_only_chunk(rows, GONE).to_numpy(zero_copy_only=False)[kept]
    return _without_mark(rows.take(pa.array(kept[there])))


class Contents:
    """The whole rows of snapshots, of which some are stored as what differs from another one, their base.

    Snapshots are read in order of time, so that each is made of the one before it.
    """

    def __init__(self, key: Sequence[str], stored: pa.Table, bases: Mapping[str, str | None]) -> None:
        """`stored` has the columns snapshot_id and GONE; `bases` gives for each snapshot its base, None for a whole one."""
        self._key, self._bases = key, bases
        self._none = stored.slice(0, 0).drop_columns("snapshot_id")
        self._stored = by_snapshot(stored)
        self._made: dict[str, pa.Table] = {}

    def of(self, snapshot_id: str) -> pa.Table:
        """The rows of a snapshot, without snapshot_id and GONE. Errors: InvalidWarehouse where a base is not stored."""
        parts = []
        for identity in chain(snapshot_id, self._bases):
            if identity in self._made:
                # Nothing but the next one builds on it.
                parts.append(self._made.pop(identity))
                break
            parts.append(self._stored.get(identity, self._none))
        rows = latest(self._key, parts[::-1]).combine_chunks()
        self._made[snapshot_id] = rows
        return rows


def chain(snapshot_id: str, bases: Mapping[str, str | None]) -> list[str]:
    """The ids of a snapshot and of all that it builds on, the whole one last. Errors: InvalidWarehouse where one is not stored."""
    found = [snapshot_id]
    while (base_id := bases[found[-1]]) is not None:
        if base_id not in bases:
            raise InvalidWarehouse(f"snapshot {found[-1]} builds on {base_id}, which is not stored")
        found.append(base_id)
    return found


def by_snapshot(rows: pa.Table) -> dict[str, pa.Table]:
    """The rows of each snapshot by id, without the id, in the order in which they were read."""
    rows = rows.combine_chunks()
    if not len(rows):
        return {}
    ids = _only_chunk(rows, "snapshot_id")
    if not pa.types.is_dictionary(ids.type):
        ids = ids.dictionary_encode()
    codes = ids.indices.to_numpy()
    if bool((codes[1:] < codes[:-1]).any()):
        order = np.argsort(codes, kind="stable")
        rows, codes = rows.take(pa.array(order)).combine_chunks(), codes[order]
    rows = rows.drop_columns("snapshot_id")
    firsts = np.flatnonzero(np.diff(codes, prepend=-1))
    names = ids.dictionary.to_pylist()
    return {
        names[codes[first]]: rows.slice(first, end - first)
        for first, end in zip(firsts.tolist(), [*firsts[1:].tolist(), len(rows)], strict=True)
    }


def key_codes(rows: pa.Table, key: Sequence[str]) -> Codes:
    """A whole number for each row, in order of these columns as texts or numbers; equal exactly for equal keys."""
    codes, most = np.zeros(len(rows), dtype=np.int64), 1
    for name in key:
        column, count = _ranked(_only_chunk(rows, name))
        if most * count >= CODES_MAX:
            codes = np.unique(codes, return_inverse=True)[1].astype(np.int64)
            most = len(codes) + 1
        codes, most = codes * count + column, most * count
    return codes


def _positions(before: pa.Table, after: pa.Table, key: Sequence[str]) -> tuple[Codes, Codes]:
    """The places of the rows that both have, in each of them."""
    if all(_only_chunk(before, name).equals(_only_chunk(after, name)) for name in key):
        places = np.arange(len(after), dtype=np.int64)
        return places, places
    both = pa.concat_tables([before.select(key), after.select(key)]).unify_dictionaries().combine_chunks()
    codes = key_codes(both, key)
    _, ours, theirs = np.intersect1d(
        codes[: len(before)], codes[len(before) :], assume_unique=True, return_indices=True
    )
    return ours.astype(np.int64), theirs.astype(np.int64)


def _ranked(column: pa.Array) -> tuple[Codes, int]:
    """The place of each value among the distinct ones in order, nulls first, and their number."""
    if pa.types.is_list(column.type):
        # Arrow has no order of lists. No name has the character \0, and the length distinguishes [] from [""].
        lengths = _lengths(column)
        words, count = _ranked(pc.binary_join(column, "\0"))
        most = int(lengths.max(initial=0)) + 1
        return words * most + lengths, count * most
    encoded = column if pa.types.is_dictionary(column.type) else column.dictionary_encode()
    order = pc.sort_indices(encoded.dictionary).to_numpy()
    rank = np.empty(len(order) + 1, dtype=np.int64)
    rank[order] = np.arange(1, len(order) + 1)
    rank[-1] = 0
    return rank[encoded.indices.fill_null(len(order)).to_numpy(zero_copy_only=False)], len(order) + 1


def _differ(left: pa.Array, right: pa.Array) -> Bools:
    """Where two columns of equal length differ; two nulls are equal."""
    differs: Bools = left.is_null().to_numpy(zero_copy_only=False) != right.is_null().to_numpy(zero_copy_only=False)
    kind = left.type
    if pa.types.is_struct(kind):
        for place in range(kind.num_fields):
            differs |= _differ(pc.struct_field(left, place), pc.struct_field(right, place))
    elif pa.types.is_list(kind) or pa.types.is_map(kind):
        lengths = [_lengths(column) for column in (left, right)]
        differs |= lengths[0] != lengths[1]
        alike = np.flatnonzero(~differs)
        inner = _differ(*(_values(column.take(pa.array(alike))) for column in (left, right)))
        rows = np.repeat(alike, lengths[0][alike])
        differs[rows[inner]] = True
    else:
        differs |= pc.not_equal(left, right).fill_null(False).to_numpy(zero_copy_only=False)
    return differs


def _lengths(column: pa.Array) -> Codes:
    """How many values each list has; one that is null has none, also behind it, since rows are taken or read from a file."""
    lengths: Codes = np.diff(column.offsets.to_numpy()).astype(np.int64)
    return lengths


def _values(column: Any) -> pa.Array:
    """The values of all lists one after another, those of a map as structs."""
    if pa.types.is_map(column.type):
        first, last = column.offsets[0].as_py(), column.offsets[-1].as_py()
        entries = [values.slice(first, last - first) for values in (column.keys, column.items)]
        return pa.StructArray.from_arrays(entries, ["key", "value"])
    return column.flatten()


def _marked(rows: pa.Table, *, gone: bool | None = None) -> pa.Table:
    """The rows with the column GONE, false in rows that have none or null."""
    if gone is None and GONE in rows.column_names:
        place = rows.column_names.index(GONE)
        return rows.set_column(place, GONE, rows[GONE].fill_null(False)).select([*_others(rows), GONE])
    return rows.select(_others(rows)).append_column(GONE, pa.repeat(bool(gone), len(rows)))


def _without_mark(rows: pa.Table) -> pa.Table:
    return rows.select(_others(rows))


def _others(rows: pa.Table) -> list[str]:
    return [name for name in rows.column_names if name != GONE]


def _only_chunk(rows: pa.Table, name: str) -> pa.Array:
    column = rows.column(name)
    return column.chunk(0) if column.num_chunks == 1 else pa.array([], column.type)
