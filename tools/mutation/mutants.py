"""Mutants of a module: its text with one small fault each."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from pathlib import Path
from typing import Any, Final

import libcst as cst
from libcst.metadata import MetadataWrapper, PositionProvider
from mutmut.mutation.mutators import mutation_operators, operator_arg_removal, operator_assignment, operator_string

from tools.mutation.meanings import REMOVALS, Operator, forget_update, quantity, swapped

ROOT: Final = Path(__file__).resolve().parent.parent.parent


@dataclass(frozen=True, slots=True)
class Mutant:
    """One fault: the file, the lines it changes (1-based, inclusive), and both texts of these lines."""

    path: str
    first_line: int
    last_line: int
    function: str
    before: str
    after: str
    removes: bool
    module_text: str

    @property
    def key(self) -> tuple[str, str, str]:
        """What stays the same when other lines of the file change."""
        return self.path, self.before, self.after

    def __str__(self) -> str:
        return f"{self.path}:{self.first_line} in {self.function or 'the module'}\n- {self.before}\n+ {self.after}"


class ModuleFaults(Sequence[Mutant | None]):
    """The mutants of the module at `path` below `root`, each made when it is indexed.

    None stands where a fault gives no module, or one of the same byte code.
    """

    def __init__(self, path: str, root: Path = ROOT) -> None:
        self.path = path
        self._text = (root / path).read_text(encoding="utf-8")
        wrapper = MetadataWrapper(cst.parse_module(self._text), unsafe_skip_copy=True)
        self._module = wrapper.module
        self._code = compile(self._text, path, "exec")
        collector = _Collector()
        wrapper.visit(collector)
        self.faults: Sequence[Fault] = sorted(collector.faults, key=lambda fault: fault.first_line)

    def __len__(self) -> int:
        return len(self.faults)

    def __getitem__(self, index: Any) -> Any:
        fault = self.faults[index]
        mutated = self._module.deep_replace(fault.node, fault.replacement)
        assert isinstance(mutated, cst.Module)
        after = mutated.code
        try:
            if compile(after, self.path, "exec") == self._code:
                return None
        except SyntaxError:
            return None
        old, new = _changed_lines(self._text, after)
        return Mutant(self.path, fault.first_line, fault.last_line, fault.function, old, new, fault.removes, after)


@dataclass(frozen=True, slots=True)
class Fault:
    """A node and what stands in its place; `function` is the qualified name of the class or function around it."""

    node: cst.CSTNode
    replacement: cst.CSTNode
    first_line: int
    last_line: int
    function: str
    removes: bool


def _changed_lines(before: str, after: str) -> tuple[str, str]:
    """The lines that differ, each side on one line."""
    old, new = before.splitlines(), after.splitlines()
    changes = [code for code in SequenceMatcher(None, old, new, autojunk=False).get_opcodes() if code[0] != "equal"]
    start, end = changes[0], changes[-1]
    return _one_line(old[start[1] : end[2]]), _one_line(new[start[3] : end[4]])


def _one_line(lines: Sequence[str]) -> str:
    return " ".join(line.strip() for line in lines)


def other_text(node: cst.BaseString) -> Iterator[cst.CSTNode]:
    """mutmut's first change of a string; the two others change its case alone."""
    yield from list(operator_string(node))[:1]


def other_arguments(node: cst.Call) -> Iterator[cst.CSTNode]:
    """mutmut's changes of the arguments but those of INERT_KEYWORDS, and None for False: both are false."""
    for changed in operator_arg_removal(node):
        assert isinstance(changed, cst.Call)
        pairs = zip(node.args, changed.args, strict=False)
        of_false = len(changed.args) == len(node.args) and any(
            _is_false(old.value) for old, new in pairs if old is not new
        )
        if _inert(changed) == _inert(node) and not of_false:
            yield changed


def other_value(node: cst.Assign | cst.AnnAssign) -> Iterator[cst.CSTNode]:
    """mutmut's None in place of a value, but in place of False."""
    if not _is_false(node.value):
        yield from operator_assignment(node)


def _is_false(node: cst.CSTNode | None) -> bool:
    return isinstance(node, cst.Name) and str(node.value) == "False"


def _inert(node: cst.Call) -> list[cst.BaseExpression]:
    return [argument.value for argument in node.args if _is_inert(argument)]


def _is_inert(node: cst.CSTNode) -> bool:
    return isinstance(node, cst.Arg) and node.keyword is not None and node.keyword.value in INERT_KEYWORDS


_REPLACED: Final = (operator_string, operator_arg_removal, operator_assignment)

OPERATORS: Final[Sequence[Operator]] = (
    *((kind, change) for kind, change in mutation_operators if change not in _REPLACED),
    *((kind, other_value) for kind in (cst.Assign, cst.AnnAssign)),
    (cst.BaseString, other_text),
    (cst.Call, other_arguments),
)

_OPAQUE: Final = (
    *(cst.Annotation, cst.Decorator, cst.Import, cst.ImportFrom),
    *(cst.TypeAlias, cst.TypeParameters),
)
"""What says nothing at run time, or changes only how a value is represented."""

INERT_KEYWORDS: Final = frozenset({"strict", "dtype", "help", "metavar", "epilog"})
"""Arguments that change nothing in correct code: a check of lengths that are equal, a type that the values have; and prose."""

_DECLARATIONS: Final = frozenset({"__slots__", "__all__", "__match_args__"})
_TYPE_NAME: Final = re.compile(r"_?(?:[A-Z][a-z0-9]+)+")
_TYPE_MAKERS: Final = frozenset({"NewType", "TypeVar", "cast", "assert_never"})


class _Collector(cst.CSTVisitor):  # type: ignore[misc, unused-ignore] # where libcst is not installed yet
    """Every place that an operator fits, but for types, docstrings, decorators and the words of an error message."""

    METADATA_DEPENDENCIES = (PositionProvider,)

    def __init__(self) -> None:
        super().__init__()
        self.faults: list[Fault] = []
        self._names: list[str] = []
        self._quantities: set[cst.CSTNode] = set()

    def on_visit(self, node: cst.CSTNode) -> bool:
        if isinstance(node, cst.FunctionDef | cst.ClassDef):
            self._names.append(node.name.value)
        if _is_opaque(node):
            return False
        if (number := quantity(node)) is not None:  # A time or size of one more or less is no fault.
            self._quantities.add(number)
        if node not in self._quantities:
            self._collect(node, OPERATORS, removes=False)
        self._collect(node, REMOVALS, removes=True)
        if isinstance(node, cst.IndentedBlock) and not self._is_constructor():
            for first, second, block in swapped(node):
                self._add(node, block, self._lines(first)[0], self._lines(second)[1], removes=True)
        return not (isinstance(node, cst.Raise) or _is_log(node))  # The words of an error or of a log line are prose.

    def on_leave(self, original_node: cst.CSTNode) -> None:
        if isinstance(original_node, cst.FunctionDef | cst.ClassDef):
            self._names.pop()

    def _collect(self, node: cst.CSTNode, operators: Sequence[Operator], *, removes: bool) -> None:
        for kind, change in operators:
            if isinstance(node, kind) and not (change is forget_update and self._is_constructor()):
                start, end = self._lines(node)
                if isinstance(node, cst.If | cst.While | cst.With | cst.ExceptHandler):
                    end = start  # A condition is executed on its statement's first line.
                for new in change(node):
                    self._add(node, new, start, end, removes=removes)

    def _add(self, node: cst.CSTNode, new: cst.CSTNode, start: int, end: int, *, removes: bool) -> None:
        self.faults.append(Fault(node, new, start, end, ".".join(self._names), removes))

    def _lines(self, node: cst.CSTNode) -> tuple[int, int]:
        place = self.get_metadata(PositionProvider, node)
        return place.start.line, place.end.line

    def _is_constructor(self) -> bool:
        """Whether an attribute that is not set is missing everywhere, which says nothing about the tests."""
        return self._names[-1:] in (["__init__"], ["__post_init__"])


def _is_opaque(node: cst.CSTNode) -> bool:
    """Whether nothing inside the node is a rule: types, docstrings, declarations, imports for a type checker."""
    if isinstance(node, cst.If) and isinstance(node.test, cst.Name):
        return str(node.test.value) == "TYPE_CHECKING"
    judgements = (_is_docstring, _is_declaration, _is_protocol, _is_inert, _is_trace, _is_abstract)
    return isinstance(node, _OPAQUE) or any(judgement(node) for judgement in judgements)


def _is_log(node: cst.CSTNode, *levels: str) -> bool:
    """Whether the node is a call such as `log.warning(...)`, of the levels."""
    return (
        isinstance(node, cst.Call)
        and isinstance(node.func, cst.Attribute)
        and isinstance(node.func.value, cst.Name)
        and str(node.func.value.value) == "log"
        and (not levels or node.func.attr.value in levels)
    )


def _is_abstract(node: cst.CSTNode) -> bool:
    """Whether the statement stands for a method that subclasses have."""
    return (
        isinstance(node, cst.Raise) and isinstance(node.exc, cst.Name) and str(node.exc.value) == "NotImplementedError"
    )


def _is_trace(node: cst.CSTNode) -> bool:
    """Whether the statement only logs what happens in good health."""
    return isinstance(node, cst.Expr) and _is_log(node.value, "debug", "info")


def _is_docstring(node: cst.CSTNode) -> bool:
    return isinstance(node, cst.Expr) and isinstance(
        node.value, cst.SimpleString | cst.ConcatenatedString | cst.Ellipsis
    )


def _is_declaration(node: cst.CSTNode) -> bool:
    if isinstance(node, cst.Call):
        return isinstance(node.func, cst.Name) and node.func.value in _TYPE_MAKERS
    if isinstance(node, cst.AnnAssign) and isinstance(kind := node.annotation.annotation, cst.Name):
        return str(kind.value) == "TypeAlias"
    if not isinstance(node, cst.Assign) or not isinstance(name := node.targets[0].target, cst.Name):
        return False
    if isinstance(node.value, cst.Call) and isinstance(node.value.func, cst.Name) and node.value.func.value == "auto":
        return True  # A member of an enumeration whose value is not read: None is another such value.
    return name.value in _DECLARATIONS or (_TYPE_NAME.fullmatch(name.value) is not None and _is_type(node.value))


def _is_type(node: cst.BaseExpression) -> bool:
    """Whether an expression bound to a type's name is a type: `Sequence[int]`, `A | B`."""
    return isinstance(node, cst.Subscript) or (
        isinstance(node, cst.BinaryOperation) and isinstance(node.operator, cst.BitOr)
    )


def _is_protocol(node: cst.CSTNode) -> bool:
    return isinstance(node, cst.ClassDef) and any(
        isinstance(base.value, cst.Name) and base.value.value == "Protocol" for base in node.bases
    )
