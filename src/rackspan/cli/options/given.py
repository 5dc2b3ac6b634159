"""Where the values of a command's options come from: a flag, a variable, a file, or the default."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import IntEnum
from typing import Any, Final

from rackspan.cli.options.settings import Settings


class Level(IntEnum):
    """Where a value comes from. The higher one counts."""

    DEFAULT = 0
    FILE = 1
    VARIABLE = 2
    FLAG = 3


_LEVELS: Final = {
    "DEFAULT": Level.DEFAULT,
    "DEFAULT_MAP": Level.FILE,
    "ENVIRONMENT": Level.VARIABLE,
    "COMMANDLINE": Level.FLAG,
}
"""By the name of click's ParameterSource."""


@dataclass(frozen=True, slots=True)
class Given:
    """The level of every option of a command, by parameter name, and the settings that apply to it.

    An option group that declares a field `given` receives it.
    """

    levels: Mapping[str, Level] = field(default_factory=dict)
    settings: Settings = field(default_factory=Settings)

    @classmethod
    def of(cls, context: Any) -> "Given":
        """From click's context."""
        sources = {name: context.get_parameter_source(name) for name in context.params}
        levels = {name: _LEVELS[source.name] for name, source in sources.items() if source is not None}
        return cls(levels, context.obj if isinstance(context.obj, Settings) else Settings())

    def level(self, name: str) -> Level:
        return self.levels.get(name, Level.DEFAULT)

    def by_flag(self, name: str) -> bool:
        return self.level(name) is Level.FLAG
