"""Which test executes which line, as coverage.py recorded it, and the tests that judge a fault, the most specific first."""

import ast
import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Final

from tools.mutation.mutants import ROOT, Mutant

FIXTURE: Final = "fixture of "
"""Begins the context of what runs before and after a test: it may belong to every test of the file."""


@dataclass(frozen=True, slots=True)
class TestMap:
    """`lines[path][line]` are the contexts of a line: a test, FIXTURE and a test, or "" for what importing executes.

    `seconds` is the duration of each test that passed, `failed` are the others.
    """

    __test__ = False

    lines: Mapping[str, Mapping[int, Collection[str]]]
    seconds: Mapping[str, float]
    foreign_modules: Sequence[str]
    failed: Sequence[str] = ()

    def covering(self, mutant: Mutant) -> list[str]:
        """The tests that execute a line of the mutant.

        First those of the module's own file of tests, then those that execute the very lines, then the quickest. The
        lines of a function's head are executed by those who call it. A line executed on import alone, such as a table,
        belongs to every test of the module and of the test files that name it, first to those who use its name.
        """
        by_line = self.lines.get(mutant.path, {})
        span = _executed(mutant)
        # Python executes no line of a constant, and none of a condition that is only its bracket.
        contexts = _of_lines(by_line, span or ()) or _of_lines(by_line, _statement(mutant))
        near = self._tests(contexts)
        if span is None or "" in contexts:
            near |= self._tests(_of_lines(by_line, _lines_naming(mutant)))
            far = self._of_module(mutant.path, by_line)
        else:
            files = {context.partition("::")[0] for context in contexts if context.startswith(FIXTURE)}
            far = {test for test in self.seconds if FIXTURE + test.partition("::")[0] in files}
        own = _own_tests(mutant.path)
        return sorted(
            near | far,
            key=lambda test: (not test.startswith(own), test not in near, self.seconds[test], test),
        )

    def _tests(self, contexts: Collection[str]) -> set[str]:
        return {context.removeprefix(FIXTURE) for context in contexts} & set(self.seconds)

    def _of_module(self, path: str, by_line: Mapping[int, Collection[str]]) -> set[str]:
        naming = _naming(path)
        tests = self._tests(_of_lines(by_line, by_line)) | {
            test for test in self.seconds if naming(test.partition("::")[0])
        }
        return tests or set(self.seconds)


def _of_lines(by_line: Mapping[int, Collection[str]], lines: Collection[int]) -> set[str]:
    return {context for line in lines for context in by_line.get(line, ())}


def _executed(mutant: Mutant) -> range | None:
    """The lines of which one is executed whenever the mutant's code is; None for what importing executes."""
    around = [body for _, body in _bodies(mutant.path) if mutant.first_line in body]
    if around:
        return range(mutant.first_line, mutant.last_line + 1)
    heads = [body for name, body in _bodies(mutant.path) if name == mutant.function]
    return heads[0] if heads else None


def _statement(mutant: Mutant) -> range:
    """The lines of the innermost statement around the mutant, without those of the statements in it."""
    tree = ast.parse((ROOT / mutant.path).read_text(encoding="utf-8"))
    around = [
        node
        for node in ast.walk(tree)
        if isinstance(node, ast.stmt) and node.lineno <= mutant.first_line <= (node.end_lineno or node.lineno)
    ]
    if not around:
        return range(0)
    innermost = max(around, key=lambda node: node.lineno)
    body = getattr(innermost, "body", [])
    end = body[0].lineno - 1 if body else innermost.end_lineno or innermost.lineno
    return range(innermost.lineno, end + 1)


@cache
def _bodies(path: str) -> Sequence[tuple[str, range]]:
    """The qualified name of each function of a module, and the lines of its body."""

    def visit(node: ast.AST, prefix: str) -> Iterator[tuple[str, range]]:
        for part in ast.iter_child_nodes(node):
            name = prefix
            if isinstance(part, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
                name = f"{prefix}.{part.name}".lstrip(".")
                if not isinstance(part, ast.ClassDef):
                    yield name, range(part.body[0].lineno, (part.end_lineno or part.lineno) + 1)
            yield from visit(part, name)

    return list(visit(ast.parse((ROOT / path).read_text(encoding="utf-8")), ""))


def _lines_naming(mutant: Mutant) -> list[int]:
    """The lines of the module with the name that the mutant's line defines."""
    found = re.match(r"(?:self\.)?(\w+)\s*(?::|=)", mutant.before)
    if found is None:
        return []
    name = re.compile(rf"\b{found[1]}\b")
    lines = (ROOT / mutant.path).read_text(encoding="utf-8").splitlines()
    return [number for number, line in enumerate(lines, 1) if name.search(line)]


def _own_tests(path: str) -> str:
    """How the ids of the tests of `src/rackspan/a/b.py` begin: `tests/a/test_b.py::`."""
    module = Path(path).relative_to("src/rackspan") if path.startswith("src/rackspan/") else Path(path)
    return f"tests/{(module.parent / f'test_{module.name}').as_posix()}::"


def _naming(path: str) -> Callable[[str], bool]:
    """Whether a file of tests names the module at `path`."""
    module = path.removeprefix("src/").removesuffix(".py").removesuffix("/__init__").replace("/", ".")

    @cache
    def names(file: str) -> bool:
        return module in (ROOT / file).read_text(encoding="utf-8")

    return names
