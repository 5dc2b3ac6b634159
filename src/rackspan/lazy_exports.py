"""Lazy exports of a package: a name is imported from its module at its first use (PEP 562).

Importing `rackspan.model.ids` alone should not import the NumPy behind `rackspan.model.ClusterSnapshot`. Type checkers and
the import contracts read the same exports under TYPE_CHECKING.
"""

import sys
from collections.abc import Callable, Mapping, Sequence
from importlib import import_module


def lazy_getattr(
    package: str, names_of: Mapping[str, Sequence[str]], owner: str | None = None
) -> Callable[[str], object]:
    """The `__getattr__` of a package, or of one module in it, the `owner`; `names_of` maps modules of the package to their names.

    A name must not be that of a module too: importing the module would hide it.
    """
    module_of = {name: f"{package}.{module}" for module, names in names_of.items() for name in names}
    exporter = owner or package

    def getattribute(name: str) -> object:
        if name not in module_of:
            raise AttributeError(f"module {exporter!r} has no attribute {name!r}")
        value: object = getattr(import_module(module_of[name]), name)
        # From now on Python finds it without this function.
        setattr(sys.modules[exporter], name, value)
        return value

    return getattribute
