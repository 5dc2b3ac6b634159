"""docs/kips.md as rows: what a row is, what is wrong with the page by itself, and its counts.

A row's id is its proposal's prefix and a number, its quote the proposal's own words, its status one of STATUSES.
kips_index.py holds the quotes against the proposals.
"""

import ast
import re
import tomllib
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).resolve().parent.parent
PAGE: Final = ROOT / "docs" / "kips.md"

PROPOSALS: Final[Mapping[str, str]] = {
    "36": "KIP-36",
    "36d": "KIP-36, draft",
    "660": "KIP-660",
    "mir": "min.insync.racks",
    "925": "KIP-925",
}
"""The proposals by the prefix of their rows' ids, in the page's order."""

KINDS: Final = ("statement", "config", "field", "error", "metric", "flag", "example", "test", "rejected")

STATUSES: Final = ("done", "not yet", "differs", "history", "background", "decided")
"""`done` is written as the place and the test that shows it; the others begin with their own word."""

QUOTED_WORDS: Final = range(3, 13)
"""How many words a quote has: enough to be found, too few to be the text."""

EXTRA_PACKAGES: Final = frozenset({"benchmarks", "simulation"})
"""What a row may wait for besides the packages under src/rackspan."""

_ROW_START: Final = re.compile(r"\|\s*[a-z0-9]+-\d")
_ROW: Final = re.compile(
    r"\| (?P<id>(?P<prefix>\w+)-(?P<number>\d{3})) \| “(?P<quote>(?:[^|\\]|\\.)+)” \| (?P<kind>\w+) \| (?P<requirement>[^|]+) \| (?P<status>[^|]+) \|"
)
_ESCAPED: Final = re.compile(r"\\([\\`*\[<|])")
_CODE: Final = re.compile(r"`([^`]+)`")
_FOLDERS: Final = ("src/", "tests/", "docs/", "examples/", "benchmarks/")
_NOT_YET: Final = re.compile(r"not yet \((?P<packages>\w+(?:, \w+)*)\)(?:: \S.*)?")
_REASONED: Final = re.compile(r"(?P<status>differs|history|background|decided): \S.*")
_DONE: Final = re.compile(
    r"`(?!tests/)[^`]+/[^`]+`(?:, `[^`]+`)* ?; `tests/[^`]+::test_\w+`(?:, `tests/[^`]+::test_\w+`)*(?:: \S.*)?"
)
_COUNTS: Final = re.compile(r"(?<=<!-- counts -->\n).*?(?=<!-- /counts -->)", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Row:
    """One row: what a proposal says, and what became of it. `quote` is without Markdown's backslashes."""

    id: str
    prefix: str
    number: int
    quote: str
    kind: str
    requirement: str
    status: str

    @property
    def named(self) -> tuple[str, ...]:
        """The files and tests the status names, tests as `path::name`."""
        return tuple(code for code in _CODE.findall(self.status) if code.startswith(_FOLDERS))

    @property
    def packages(self) -> tuple[str, ...]:
        """What the row waits for."""
        waits = _NOT_YET.fullmatch(self.status)
        return tuple(waits["packages"].split(", ")) if waits else ()


def read_page(page: str) -> list[Row]:
    """The page's rows, in its order."""
    return [_row(found) for line in page.splitlines() if (found := _ROW.fullmatch(line))]


def rows_of(prefix: str, rows: Sequence[Row]) -> list[Row]:
    """One proposal's rows."""
    return [row for row in rows if row.prefix == prefix]


def status_of(row: Row) -> str | None:
    """Which of STATUSES the row has, None where its wording is none of them."""
    if row.packages:
        return "not yet"
    if reasoned := _REASONED.fullmatch(row.status):
        return reasoned["status"]
    return "done" if _DONE.fullmatch(row.status) else None


def faults(page: str) -> list[str]:
    """What is wrong with the page by itself, a line each."""
    rows = read_page(page)
    found = [
        f"not a row: {line!r}" for line in page.splitlines() if _ROW_START.match(line) and not _ROW.fullmatch(line)
    ]
    found += [f"{row.id}: {fault}" for row in rows for fault in _row_faults(row)]
    found += [f"{later.id}: stands after {row.id}" for row, later in pairwise(rows) if not _ascends(row, later)]
    if with_counts(page) != page:
        found.append("the counts are not the page's; run tools/kips_index.py")
    return found


def with_counts(page: str) -> str:
    """The page with its counts as they are."""
    return _COUNTS.sub("\n" + "\n".join(_counts(read_page(page))).replace("\\", r"\\") + "\n\n", page)


def _row(found: re.Match[str]) -> Row:
    return Row(
        id=found["id"],
        prefix=found["prefix"],
        number=int(found["number"]),
        quote=_ESCAPED.sub(r"\1", found["quote"]),
        kind=found["kind"],
        requirement=found["requirement"],
        status=found["status"],
    )


def _row_faults(row: Row) -> Iterator[str]:
    if row.prefix not in PROPOSALS:
        yield f"no proposal has the prefix {row.prefix!r}"
    if row.kind not in KINDS:
        yield f"kind {row.kind!r} is none of {', '.join(KINDS)}"
    if len(row.quote.split()) not in QUOTED_WORDS:
        yield f"the quote has {len(row.quote.split())} words, not {QUOTED_WORDS[0]} to {QUOTED_WORDS[-1]}"
    status = status_of(row)
    if status is None:
        yield f"status {row.status!r} has none of the legal forms"
    if (row.kind == "rejected") != (status == "decided"):
        yield "a rejected alternative, and nothing else, has a decision"
    yield from (f"waits for {package!r}, which is no package" for package in row.packages if package not in _packages())
    yield from (f"`{name}` does not exist" for name in row.named if not exists(name))


def _ascends(row: Row, later: Row) -> bool:
    order = list(PROPOSALS)
    if row.prefix == later.prefix:
        return row.number < later.number
    return row.prefix in order and later.prefix in order[order.index(row.prefix) :]


@cache
def _packages() -> frozenset[str]:
    """The packages of the import contract, built or not, and the extra ones."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    contracts = project["tool"]["importlinter"]["contracts"]
    layers = next(contract["layers"] for contract in contracts if contract["type"] == "layers")
    return EXTRA_PACKAGES.union(*(re.findall(r"\w+", layer) for layer in layers))


@cache
def exists(name: str) -> bool:
    """Whether a file, or a test written `path::name` or `path::Class::name`, is there."""
    path, *names = name.split("::")
    file = ROOT / path
    if not names:
        return file.exists()
    if not file.is_file():
        return False
    return _defines(ast.parse(file.read_text(encoding="utf-8")).body, names)


def _defines(body: Sequence[ast.stmt], names: Sequence[str]) -> bool:
    for one in body:
        if isinstance(one, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef) and one.name == names[0]:
            return len(names) == 1 or _defines(one.body, names[1:])
    return False


def _counts(rows: Sequence[Row]) -> Iterator[str]:
    yield from _table(
        STATUSES, {prefix: Counter(status_of(row) or "" for row in rows_of(prefix, rows)) for prefix in PROPOSALS}
    )
    yield ""
    yield from _table(KINDS, {prefix: Counter(row.kind for row in rows_of(prefix, rows)) for prefix in PROPOSALS})


def _table(columns: Sequence[str], counts: Mapping[str, Counter[str]]) -> Iterator[str]:
    yield f"| | {' | '.join(columns)} | rows |"
    yield "|---|" + "--:|" * (len(columns) + 1)
    for prefix, name in PROPOSALS.items():
        yield _line(name, columns, counts[prefix])
    yield _line("**all**", columns, sum(counts.values(), Counter[str]()))


def _line(name: str, columns: Sequence[str], count: Counter[str]) -> str:
    return f"| {name} | {' | '.join(str(count[column]) for column in columns)} | {count.total()} |"
