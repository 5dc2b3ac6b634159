"""The tree of exceptions on the first page of errors.py: every class of the package that is raised for a mistake outside of it."""

import re

from rackspan import errors

NAMED_WITH = {
    "NotEnoughReplicasAfterAppend": "NotEnoughReplicas",
    "NotEnoughRacksAfterAppend": "NotEnoughRacks",
}
"""Classes that have no line of their own; the line of the other one names them."""


def drawn() -> dict[str, str]:
    """The parent of each class in the docstring's tree, by the depth of its line."""
    found: dict[str, str] = {}
    above: dict[int, str] = {}
    for line in (errors.__doc__ or "").splitlines():
        match = re.match(r"    (?P<branches>(?:[│├└ ][ ─]{2} )*)(?P<name>[A-Z]\w+) {2,}\S", line)
        if match:
            depth = len(match["branches"]) // 4
            above[depth] = match["name"]
            if depth:
                found[match["name"]] = above[depth - 1]
    return found


def defined() -> dict[str, str]:
    """The parent of each class in errors.py."""
    classes = [value for value in vars(errors).values() if isinstance(value, type)]
    return {
        each.__name__: each.__bases__[0].__name__
        for each in classes
        if issubclass(each, errors.RackspanError) and each is not errors.RackspanError
    }


def test_the_tree_has_every_class_below_its_parent() -> None:
    named = {name: parent for name, parent in defined().items() if name not in NAMED_WITH}
    assert drawn() == named
