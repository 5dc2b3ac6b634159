"""Valid files made wrong by rng: bytes changed anywhere, and values changed in their places."""

import json
from collections.abc import Callable, Iterator
from random import Random
from typing import Any

import pyarrow as pa

Place = tuple[Any, Any]
"""A container and the key or index of a value in it."""

DEEP: Any = json.loads("[" * 500 + "]" * 500)

NASTY: tuple[Any, ...] = (
    *(None, True, False, 0, -1, 1, 2, 7, 2**31 - 1, 2**31, -(2**31) - 1, 2**63 - 1, 2**63, -(2**63) - 1, 10**400),
    *(0.5, -0.0, 1e308, float("nan"), float("inf")),
    *("", " ", "0", "1", "orders", "x" * 300, "\ud800", "\x00", "r1\n", "é", "../..", "2026-11-21", "9" * 5000),
    *([], [[]], [None], [1, 1], ["a"], {}, {"": 0}, {"id": 1}, {"version": 1}, DEEP),
)


def mutated_bytes(content: bytes, rng: Random) -> bytes:
    """One to three changes anywhere: torn, flipped, repeated, put in."""
    for _ in range(rng.randint(1, 3)):
        at, to = sorted((rng.randint(0, len(content)), rng.randint(0, len(content))))
        content = rng.choice(_BYTE_CHANGES)(content, at, min(to, at + 40), rng)
    return content


_BYTE_CHANGES: tuple[Callable[[bytes, int, int, Random], bytes], ...] = (
    lambda content, at, _to, _rng: content[:at],
    lambda content, at, to, _rng: content[:at] + content[to:],
    lambda content, at, to, _rng: content[:to] + content[at:],
    lambda content, at, _to, rng: content[:at] + rng.randbytes(1) + content[at + 1 :],
    lambda content, at, _to, rng: content[:at] + rng.choice([b'"', b"{", b"}", b"[", b",", b"-", b"9", b"\xff", b"\\ud800"]) + content[at:],
)  # fmt: skip


def mutated_document(document: Any, rng: Random) -> str:
    """One to three values replaced, taken away, doubled or put under another name; as text, as json writes it."""
    for _ in range(rng.randint(1, 3)):
        places = list(_places(document))
        if places:
            container, key = rng.choice(places)
            _change(container, key, rng)
    return json.dumps(document)


def _places(value: Any) -> Iterator[Place]:
    if value is DEEP:
        return
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, inner in items:
        yield value, key
        yield from _places(inner)


def _change(container: Any, key: Any, rng: Random) -> None:
    kind = rng.randrange(4)
    if kind == 0:
        del container[key]
    elif kind == 1 and isinstance(container, list):
        container.insert(rng.randint(0, len(container)), container[key])
    elif kind == 1:
        container[rng.choice(["id", "name", "x", "version", "partitions", ""])] = container.pop(key)
    else:
        container[key] = rng.choice(NASTY)


def mutated_table(table: pa.Table, rng: Random) -> pa.Table:
    """One column replaced, taken away, renamed or made of another type; or rows doubled or gone."""
    at = rng.randrange(table.num_columns)
    name = table.column_names[at]
    kind = rng.randrange(5)
    if kind == 0:
        return table.drop_columns([name])
    if kind == 1:
        return table.rename_columns([rng.choice(["x", "id", ""]) if one == name else one for one in table.column_names])
    if kind == 2:
        return pa.concat_tables([table, table]) if rng.random() < 0.5 else table.slice(0, 0)
    return table.set_column(at, name, _column(table.num_rows, table.column(at), rng))


def _column(rows: int, old: Any, rng: Random) -> Any:
    value = rng.choice(
        [
            None,
            True,
            -1,
            0,
            2**31 - 1,
            2**62,
            0.5,
            "x",
            "",
            "5",
            b"\xff",
            [],
            [None],
            [1, 1],
            [-1],
            [2**40],
            ["a"],
            {"a": 1},
        ]
    )
    if rng.random() < 0.3 and rows:
        kept = old.to_pylist()
        kept[rng.randrange(rows)] = None
        return pa.array(kept, old.type)
    return pa.array([value] * rows)  # fmt: skip
