"""Whether the tests that docs/kips.md cites would report that a row's rule is gone.

    python -m tools.mutation.kips [ROW ...] [--tries N] [--seed S] [--sample N] [--java]

Each row whose status is done names modules and tests. The faults of these modules are ranked by the words that they, the
function around them and its docstring have in common with the row; the tests of the row are run against the first of
them. A row is reported when a test fails for one of the first `--tries`; it is listed with what survived otherwise.
With --seed the faults are drawn from the first 20, other ones for every seed, and with --sample as many rows.
A row whose tests all need Java, Kafka, Spark or a browser is listed as not run, unless --java runs them.
"""

import argparse
import ast
import json
import math
import re
import sys
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import islice
from random import Random
from typing import Final

from tools.kips_page import PAGE, Row, read_page, status_of
from tools.mutation import runs
from tools.mutation.__main__ import REPORTS
from tools.mutation.coverage_map import TestMap
from tools.mutation.mutants import ROOT, Fault, ModuleFaults, Mutant
from tools.mutation.packages import FAST
from tools.mutation.runs import Outcome

_WORD: Final = re.compile(r"[A-Z]?[a-z]{2,}|[A-Z]{2,}|\d+")
_COMMON: Final = frozenset(
    [
        "the",
        "of",
        "to",
        "an",
        "in",
        "is",
        "be",
        "it",
        "or",
        "and",
        "for",
        "as",
        "by",
        "not",
        "no",
        "on",
        "at",
        "will",
        "can",
        "may",
        "each",
        "that",
        "with",
        "has",
    ]
)
_QUOTED: Final = re.compile("“([^”]+)”")
_LINE_WEIGHT, _NAME_WEIGHT, _DOCSTRING_WEIGHT, _REMOVAL_WEIGHT = 3.0, 2.0, 1.0, 1.3
_PER_LINE: Final = 2
"""Mutants of one line among those tried: more of them say the same."""

_LINES_MAX: Final = 6
"""A fault in more lines than these, such as a whole table, has something in common with every row."""

DRAWN_MAX: Final = 20
"""The first mutants that a row's tests execute, of which a seed draws. Those behind them have little to do with the row."""

RANKED_MAX: Final = 200
"""Mutants that are looked at for those that the row's tests execute."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """What became of a row: the mutants tried in order, each with whether the row's tests reported it."""

    row: Row
    tests: int
    tried: Sequence[tuple[str, bool]]
    reason: str = ""

    @property
    def reported(self) -> bool:
        return any(reported for _, reported in self.tried)


@cache
def _stems(text: str) -> Counter[str]:
    words = (word.lower() for word in _WORD.findall(text))
    return Counter(re.sub(r"(?:ies|ing|ed|es|s|e)$", "", word) for word in words if word not in _COMMON)


def _requirement(row: Row) -> str:
    prose = re.sub(r"`[^`]*`", "", row.status)
    return f"{row.quote} {row.requirement} {prose}"


def weights(rows: Sequence[Row]) -> Mapping[str, float]:
    """How much a word says about a row: the fewer rows have it, the more."""
    having = Counter(word for row in rows for word in _stems(_requirement(row)))
    return {word: math.log(1 + len(rows) / count) for word, count in having.items()}


@cache
def _module(path: str) -> ModuleFaults:
    return ModuleFaults(path)


@cache
def _prose(path: str) -> Mapping[str, str]:
    """The docstring of each class and function of a module by its qualified name; the module's own under ''."""

    def visit(node: ast.AST, prefix: str) -> Iterator[tuple[str, str]]:
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
                name = f"{prefix}.{child.name}".lstrip(".")
                yield name, ast.get_docstring(child) or ""
                yield from visit(child, name)

    return dict(visit(ast.parse((ROOT / path).read_text(encoding="utf-8")), ""))


def ranked(row: Row, weight: Mapping[str, float]) -> Iterator[Mutant]:
    """The mutants of the row's modules, those that have most in common with the row first."""
    wanted = _stems(_requirement(row))
    scored: list[tuple[float, str, int, Fault]] = []
    for path in modules_of(row):
        lines = (ROOT / path).read_text(encoding="utf-8").splitlines()
        for index, fault in enumerate(_module(path).faults):
            if fault.last_line - fault.first_line >= _LINES_MAX:
                continue
            line = _stems(" ".join(lines[fault.first_line - 1 : fault.last_line]))
            name, docstring = _stems(fault.function), _stems(_prose(path).get(fault.function, ""))
            common = sum(
                weight[word]
                * max(
                    _LINE_WEIGHT * (word in line),
                    _NAME_WEIGHT * (word in name),
                    _DOCSTRING_WEIGHT * (word in docstring),
                )
                for word in wanted
            )
            scored.append((-common * (_REMOVAL_WEIGHT if fault.removes else 1), path, index, fault))
    of_line: Counter[tuple[str, int]] = Counter()
    for _, path, index, fault in sorted(scored, key=lambda one: one[:3]):
        if of_line[path, fault.first_line] < _PER_LINE and (mutant := _module(path)[index]) is not None:
            of_line[path, fault.first_line] += 1
            yield mutant


def modules_of(row: Row) -> list[str]:
    """The Python modules that the row names as the place of its rule."""
    return [name for name in row.named if "::" not in name and name.startswith("src/") and name.endswith(".py")]


def tests_of(row: Row, recorded: TestMap) -> set[str]:
    """The row's tests as they were run; those alone that it quotes, where it quotes one of a table's."""
    names = {name for name in row.named if "::" in name}
    tests = {test for test in recorded.seconds if test.partition("[")[0] in names}
    quoted = {test for test in tests for words in _QUOTED.findall(row.status) if words in test}
    return quoted or tests


def judge(row: Row, weight: Mapping[str, float], recorded: TestMap, tries: int, seed: int | None = None) -> Verdict:
    """Try the row's first mutants until one is reported, and at most `tries`; the first in the order of the seed."""
    tests = tests_of(row, recorded)
    if not modules_of(row):
        return Verdict(row, len(tests), (), "names no module of src")
    if not tests:
        return Verdict(row, 0, (), "its tests need more than Python, or none of them was run")
    mutants = list(islice(ranked(row, weight), RANKED_MAX))
    own = [(mutant, [test for test in recorded.covering(mutant) if test in tests]) for mutant in mutants]
    # Where the row's tests execute nothing, another test of their file may have made the fixture that they use.
    files = {test.partition("::")[0] for test in tests}
    shared = [
        (mutant, sorted(tests))
        for mutant in mutants
        if any(test.partition("::")[0] in files for test in recorded.covering(mutant))
    ]
    executed = [(mutant, chosen) for mutant, chosen in own if chosen] or shared
    if seed is not None:
        executed = executed[:DRAWN_MAX]
        Random(f"{seed} {row.id}").shuffle(executed)
    tried: list[tuple[str, bool]] = []
    for mutant, chosen in executed[:tries]:
        reported = _outcome(mutant, tuple(chosen), recorded) is Outcome.KILLED
        tried.append((f"{mutant}\n  {len(chosen)} tests", reported))
        if reported:
            break
    return Verdict(row, len(tests), tried, "" if tried else "its tests execute nothing of its modules")


_OUTCOMES: Final = dict[tuple[Mutant, tuple[str, ...]], Outcome]()


def _outcome(mutant: Mutant, tests: tuple[str, ...], recorded: TestMap) -> Outcome:
    """As `runs.judge`, once for rows with the same tests."""
    key = mutant, tests
    if key not in _OUTCOMES:
        _OUTCOMES[key] = runs.judge(mutant, tests, recorded.seconds).outcome
    return _OUTCOMES[key]


def main(words: Sequence[str]) -> int:
    """Exit 0 when every row that was tried is reported, else 1."""
    parser = argparse.ArgumentParser(prog="python -m tools.mutation.kips", description=__doc__)
    parser.add_argument(
        "rows", nargs="*", metavar="ROW", help="ids such as 36-003, or their beginnings; all by default"
    )
    parser.add_argument("--tries", type=int, default=6, help="mutants of a row (6)")
    parser.add_argument("--java", action="store_true", help="also the tests that need Java and Kafka; hours")
    parser.add_argument("--seed", type=int, default=None, help="draws the faults; without it the first are tried")
    parser.add_argument("--sample", type=int, default=None, metavar="N", help="rows, drawn by the seed; all by default")
    arguments = parser.parse_args(words)
    done = [row for row in read_page(PAGE.read_text(encoding="utf-8")) if status_of(row) == "done"]
    rows = [row for row in done if not arguments.rows or row.id.startswith(tuple(arguments.rows))]
    if arguments.sample is not None:
        rows = Random(f"{arguments.seed}").sample(rows, min(arguments.sample, len(rows)))
    files = sorted({name for row in rows for name in row.named if "::" in name})
    recorded = runs.record(files, "not package" if arguments.java else FAST, ["src/rackspan"], may_fail=True)
    weight = weights(done)
    verdicts = []
    for row in rows:
        verdict = judge(row, weight, recorded, arguments.tries, arguments.seed)
        verdicts.append(verdict)
        _print(verdict)
    _save(verdicts)
    untried = {"names no module of src", "its tests need more than Python, or none of them was run"}
    silent = [one for one in verdicts if not one.reported and one.reason not in untried]
    tried = sum(one.reason not in untried for one in verdicts)
    print(
        f"{tried - len(silent)} of {tried} rows reported; {len(verdicts) - tried} not tried; not reported: {len(silent)}"
    )
    return 1 if silent else 0


def _print(verdict: Verdict) -> None:
    words = verdict.reason or f"{'reported' if verdict.reported else 'NOT REPORTED'} after {len(verdict.tried)}"
    print(f"{verdict.row.id}: {words}", flush=True)
    if not verdict.reported:
        for mutant, _ in verdict.tried:
            print("    " + mutant.replace("\n", "\n    "), flush=True)


def _save(verdicts: Sequence[Verdict]) -> None:
    REPORTS.mkdir(exist_ok=True)
    document = [
        {
            "row": one.row.id,
            "reported": one.reported,
            "reason": one.reason,
            "tried": [mutant for mutant, _ in one.tried],
        }
        for one in verdicts
    ]
    (REPORTS / "kips.json").write_text(json.dumps(document, indent=1, ensure_ascii=False), encoding="utf-8")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
