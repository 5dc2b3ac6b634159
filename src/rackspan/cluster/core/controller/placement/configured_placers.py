"""The cluster's placer (KIP-660): created and configured once, used for every topic, closed with the controller.

`balanced` is configured before every placement, since it uses the brokers' load. The proposal permits that ("via an external
mean").
"""

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Final

from rackspan.placement.registry import BROKER_DEFAULT, PLACER_CLASS_CONFIG

if TYPE_CHECKING:
    from rackspan.placement import CheckedPlacer

LOAD_AWARE: Final = frozenset({"balanced"})


class ConfiguredPlacers:
    """`make` returns a placer that is configured with the given configs."""

    def __init__(self, configs: Mapping[str, str], make: "Callable[[Mapping[str, str]], CheckedPlacer]") -> None:
        self._configs = configs
        self._make = make
        self._placer: CheckedPlacer | None = None

    @property
    def name(self) -> str:
        """The value of `replica.placer.class.name`."""
        return self._configs.get(PLACER_CLASS_CONFIG, BROKER_DEFAULT)

    def open(self) -> None:
        """Create the placer now and not with the first topic. Errors: UsageError, ReplicaPlacementException.

        The default placer cannot fail, so that it is created with the first topic: importing it takes time.
        """
        if self.name != BROKER_DEFAULT:
            self._created()

    def placer(self, load: Callable[[], Mapping[str, str]]) -> "CheckedPlacer":
        """For one topic; `load` returns the brokers' load as configs. Errors: UsageError, ReplicaPlacementException."""
        placer = self._created()
        if self.name in LOAD_AWARE:
            placer.configure({**load(), **self._configs})
        return placer

    def close(self) -> None:
        """Close the placer: the controller ends."""
        placer, self._placer = self._placer, None
        if placer is not None:
            placer.close()

    def _created(self) -> "CheckedPlacer":
        if self._placer is None:
            self._placer = self._make(self._configs)
        return self._placer
