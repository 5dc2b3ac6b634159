"""The cluster's placer (KIP-660): created and configured once, used for every topic, closed with the controller.

Two of rackspan's own placers are configured more often, which the proposal permits ("via an external mean"): `balanced`
before every placement, since it uses the brokers' load; and both placers that can require racks have a lenient second
instance for auto-created topics (KIP-36: with partial racks those are placed as if there were none).
"""

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Final

from rackspan.placement.rack_modes import RACK_AWARE_CONFIG, RackAwareMode
from rackspan.placement.registry import BROKER_DEFAULT, PLACER_CLASS_CONFIG

if TYPE_CHECKING:
    from rackspan.placement import CheckedPlacer

LOAD_AWARE: Final = frozenset({"balanced"})
RACK_STRICT: Final = frozenset({"balanced", "rack-alternated"})
LENIENT: Final = {RACK_AWARE_CONFIG: RackAwareMode.SAFE.value}


class ConfiguredPlacers:
    """`make` returns a placer that is configured with the given configs."""

    def __init__(self, configs: Mapping[str, str], make: "Callable[[Mapping[str, str]], CheckedPlacer]") -> None:
        self._configs = configs
        self._make = make
        self._placers: dict[bool, CheckedPlacer] = {}

    @property
    def name(self) -> str:
        """The value of `replica.placer.class.name`."""
        return self._configs.get(PLACER_CLASS_CONFIG, BROKER_DEFAULT)

    def open(self) -> None:
        """Create the placer now and not with the first topic. Errors: UsageError, ReplicaPlacementException.

        The default placer cannot fail, so that it is created with the first topic: importing it takes time.
        """
        if self.name != BROKER_DEFAULT:
            self._instance(lenient=False)

    def placer(self, automatic: bool, load: Callable[[], Mapping[str, str]]) -> "CheckedPlacer":
        """For one topic; `load` returns the brokers' load as configs. Errors: UsageError, ReplicaPlacementException."""
        lenient = automatic and self.name in RACK_STRICT
        placer = self._instance(lenient)
        if self.name in LOAD_AWARE:
            placer.configure({**load(), **self._configs_for(lenient)})
        return placer

    def close(self) -> None:
        """Close the placers: the controller ends."""
        while self._placers:
            self._placers.popitem()[1].close()

    def _instance(self, lenient: bool) -> "CheckedPlacer":
        if lenient not in self._placers:
            self._placers[lenient] = self._make(self._configs_for(lenient))
        return self._placers[lenient]

    def _configs_for(self, lenient: bool) -> Mapping[str, str]:
        return {**self._configs, **LENIENT} if lenient else self._configs
