"""Faults of meaning: what an engineer forgets or confuses, beside the operators of mutmut.

A flush, a close, an update or a clean-up that is forgotten; two statements in the wrong order; a lock or a deadline that
is not taken; an error that is swallowed, or not handled; a unit that is not converted, or a thousand times too large.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, Final

import libcst as cst
import libcst.matchers as m

Operator = tuple[Any, Callable[[Any], Iterable[cst.CSTNode]]]
"""A class of nodes, and the nodes that may stand in the place of one."""


def drop_statement(_node: cst.BaseSmallStatement) -> Iterator[cst.CSTNode]:
    """A call made for its effect, a refusal or a removal does not happen."""
    yield cst.Pass()


def forget_update(node: cst.Assign | cst.AugAssign) -> Iterator[cst.CSTNode]:
    """An attribute or an item keeps its old value, as a stale cache does."""
    target = node.target if isinstance(node, cst.AugAssign) else node.targets[0].target
    if isinstance(target, cst.Attribute | cst.Subscript):
        yield cst.Pass()


def force_condition(node: cst.If | cst.CompIf) -> Iterator[cst.CSTNode]:
    """The condition always holds; it never holds."""
    for name in ("True", "False"):
        yield node.with_changes(test=cst.Name(name), whitespace_before_test=cst.SimpleWhitespace(" "))


def never_repeat(node: cst.While) -> Iterator[cst.CSTNode]:
    """The loop's body does not run."""
    yield node.with_changes(test=cst.Name("False"), whitespace_after_while=cst.SimpleWhitespace(" "))


def return_none(node: cst.Return) -> Iterator[cst.CSTNode]:
    """The function returns None."""
    if node.value is not None and not (isinstance(node.value, cst.Name) and node.value.value == "None"):
        yield node.with_changes(value=cst.Name("None"), whitespace_after_return=cst.SimpleWhitespace(" "))


def skip_context(node: cst.With) -> Iterator[cst.CSTNode]:
    """A lock, a deadline or a `suppress` is left out: its block runs without it."""
    if all(item.asname is None for item in node.items):
        yield cst.If(test=cst.Name("True"), body=node.body)


def mishandle(node: cst.ExceptHandler) -> Iterator[cst.CSTNode]:
    """The error is not caught; what is done about it is not done."""
    nothing = cst.IndentedBlock([cst.SimpleStatementLine([cst.Pass()])])
    yield node.with_changes(type=cst.Tuple([]), name=None, whitespace_after_except=cst.SimpleWhitespace(" "))
    if not m.matches(node.body, m.IndentedBlock([m.SimpleStatementLine([m.Pass() | m.Raise()])])):
        yield node.with_changes(body=nothing)


def never_clean_up(node: cst.Finally) -> Iterator[cst.CSTNode]:
    """What must happen in every case does not happen."""
    yield node.with_changes(body=cst.IndentedBlock([cst.SimpleStatementLine([cst.Pass()])]))


_UNITS: Final = frozenset({60, 1000, 1024, 3600, 86_400, 1_000_000, 1 << 20, 1 << 30, 1_000_000_000})


def forget_unit(node: cst.BinaryOperation) -> Iterator[cst.CSTNode]:
    """A value is not converted: seconds stay milliseconds."""
    if isinstance(node.operator, cst.Multiply | cst.Divide | cst.FloorDivide):
        for side, other in ((node.left, node.right), (node.right, node.left)):
            if isinstance(side, cst.Integer | cst.Float) and side.evaluated_value in _UNITS:
                yield other


def leave_unsorted(node: cst.Call) -> Iterator[cst.CSTNode]:
    """Items stay in the order in which they came."""
    if isinstance(node.func, cst.Name) and node.func.value == "sorted":
        yield node.with_changes(
            func=cst.Name("list"), args=[node.args[0].with_changes(comma=cst.MaybeSentinel.DEFAULT)]
        )


_WITH_UNIT: Final = re.compile(
    r"(?i)(?:^|_|\.)(?:ms|millis|seconds|minutes|hours|days|bytes|timeout|deadline|interval|delay)\w*$"
)


def confuse_unit(node: cst.Arg | cst.Param | cst.Assign | cst.AnnAssign) -> Iterator[cst.CSTNode]:
    """A time or a size is a thousand times as large."""
    value = quantity(node)
    if value is not None and value.evaluated_value:
        field = "default" if isinstance(node, cst.Param) else "value"
        yield node.with_changes(**{field: value.with_changes(value=repr(value.evaluated_value * 1000))})


def quantity(node: cst.CSTNode) -> cst.Integer | cst.Float | None:
    """The number that the node gives to a name with a unit, such as `timeout=30`."""
    name: cst.BaseExpression | None = None
    value: cst.BaseExpression | None = None
    if isinstance(node, cst.Arg):
        name, value = node.keyword, node.value
    elif isinstance(node, cst.Param):
        name, value = node.name, node.default
    elif isinstance(node, cst.Assign):
        name, value = node.targets[0].target, node.value
    elif isinstance(node, cst.AnnAssign):
        name, value = node.target, node.value
    if isinstance(name, cst.Attribute):
        name = name.attr
    if isinstance(name, cst.Name) and isinstance(value, cst.Integer | cst.Float) and _WITH_UNIT.search(name.value):
        return value
    return None


REMOVALS: Final[Sequence[Operator]] = (
    (cst.Expr, drop_statement),
    (cst.Raise, drop_statement),
    (cst.Del, drop_statement),
    (cst.Assign, forget_update),
    (cst.AugAssign, forget_update),
    (cst.If, force_condition),
    (cst.CompIf, force_condition),
    (cst.While, never_repeat),
    (cst.Return, return_none),
    (cst.With, skip_context),
    (cst.ExceptHandler, mishandle),
    (cst.Finally, never_clean_up),
    (cst.BinaryOperation, forget_unit),
    (cst.Call, leave_unsorted),
    *((kind, confuse_unit) for kind in (cst.Arg, cst.Param, cst.Assign, cst.AnnAssign)),
)
"""Operators that take a rule away or confuse it. mutmut has none of them."""


def swapped(block: cst.IndentedBlock) -> Iterator[tuple[cst.CSTNode, cst.CSTNode, cst.CSTNode]]:
    """Two statements in the wrong order: both of them, and the block in which they are exchanged.

    Only where the order may count: one is a call made for its effect, and they share a name, or one awaits.
    """
    for index, (first, second) in enumerate(zip(block.body, block.body[1:], strict=False)):
        if _is_effect(first) and _is_effect(second) and _depend(first, second):
            body = [*block.body[:index], second, first, *block.body[index + 2 :]]
            yield first, second, block.with_changes(body=body)


def _is_effect(statement: cst.BaseStatement) -> bool:
    """Whether it is one call, or one assignment to an attribute or an item."""
    if not isinstance(statement, cst.SimpleStatementLine) or len(statement.body) != 1:
        return False
    small = statement.body[0]
    if isinstance(small, cst.Expr):
        return isinstance(small.value, cst.Call | cst.Await)
    return isinstance(small, cst.Assign | cst.AugAssign) and any(True for _ in forget_update(small))


def _depend(first: cst.CSTNode, second: cst.CSTNode) -> bool:
    if not any(m.findall(one, m.Expr()) for one in (first, second)):
        return False
    names = [{name.value for name in m.findall(one, m.Name()) if isinstance(name, cst.Name)} for one in (first, second)]
    return bool(names[0] & names[1] - {"self"}) or any(m.findall(one, m.Await()) for one in (first, second))
