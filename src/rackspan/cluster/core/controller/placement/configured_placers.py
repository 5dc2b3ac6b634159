"""The life of the cluster's placer (KIP-660): made and configured once, asked for every topic, closed with the controller.

Two of rackspan's own are configured more often, which the proposal leaves to whoever needs it ("via an external mean"):
`balanced` before every placement, since it goes by what brokers carry; and both that can insist on racks have a lenient
twin for topics that create themselves (KIP-36: with partial racks those are placed as if there were none).
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
    """`make` gives a placer configured with the configs it is given."""

    def __init__(self, configs: Mapping[str, str], make: "Callable[[Mapping[str, str]], CheckedPlacer]") -> None:
        self._configs = configs
        self._make = make
        self._placers: dict[bool, CheckedPlacer] = {}

    @property
    def name(self) -> str:
        """As the operator wrote it in `replica.placer.class.name`."""
        return self._configs.get(PLACER_CLASS_CONFIG, BROKER_DEFAULT)

    def open(self) -> None:
        """Make the placer now and not with the first topic. Errors: UsageError, ReplicaPlacementException.

        But for the default, which cannot fail: it would be waited for by every cluster that has no topic yet.
        """
        if self.name != BROKER_DEFAULT:
            self._kept(lenient=False)

    def placer(self, automatic: bool, carried: Callable[[], Mapping[str, str]]) -> "CheckedPlacer":
        """For one topic; `carried` counts what brokers hold. Errors: UsageError, ReplicaPlacementException."""
        lenient = automatic and self.name in RACK_STRICT
        placer = self._kept(lenient)
        if self.name in LOAD_AWARE:
            placer.configure({**carried(), **self._with(lenient)})
        return placer

    def close(self) -> None:
        """Close what was made; the controller ends."""
        while self._placers:
            self._placers.popitem()[1].close()

    def _kept(self, lenient: bool) -> "CheckedPlacer":
        if lenient not in self._placers:
            self._placers[lenient] = self._make(self._with(lenient))
        return self._placers[lenient]

    def _with(self, lenient: bool) -> Mapping[str, str]:
        return {**self._configs, **LENIENT} if lenient else self._configs
