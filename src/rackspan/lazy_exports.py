"""A room's front page that imports a name when it is first asked for (PEP 562).

A room gives names of several weights: whoever needs `rackspan.model.ids` alone should not wait for the NumPy behind
`rackspan.model.ClusterSnapshot`. Type checkers and the import rules read the same page under TYPE_CHECKING.
"""

import sys
from collections.abc import Callable, Mapping, Sequence
from importlib import import_module


def late_names(room: str, names_of: Mapping[str, Sequence[str]]) -> Callable[[str], object]:
    """The room's `__getattr__`: `names_of` lists, for each of its modules, the names found there.

    A name must not be a module of the room too: importing the module would hide it.
    """
    module_of = {name: f"{room}.{module}" for module, names in names_of.items() for name in names}

    def getattribute(name: str) -> object:
        if name not in module_of:
            raise AttributeError(f"module {room!r} has no attribute {name!r}")
        found: object = getattr(import_module(module_of[name]), name)
        # The next time it is found without asking.
        setattr(sys.modules[room], name, found)
        return found

    return getattribute
