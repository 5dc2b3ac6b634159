"""Finds the placer an operator named in `replica.placer.class.name` (KIP-660, Public Interfaces 3).

A name is one of rackspan's own, one that an installed package registered under the entry-point group `rackspan.placers`,
or `module:Class` for anything importable. NumPy is imported with the first placer that is made.
"""

import importlib
import inspect
from collections.abc import Callable, Iterable, Mapping
from random import Random
from typing import TYPE_CHECKING, Final, TypeAlias, cast

from rackspan.errors import ReplicaPlacementException, UsageError, cause

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

    from rackspan.placement.kafka.java_random import RandomGenerator
    from rackspan.placement.placer import CheckedPlacer, ReplicaPlacer

PLACER_CLASS_CONFIG: Final = "replica.placer.class.name"
ENTRY_POINT_GROUP: Final = "rackspan.placers"

BROKER_DEFAULT: Final = "striped"
"""The placer of a broker without the config (KIP-660)."""

PLACERS: Final[Mapping[str, str]] = {
    "balanced": "rackspan.placement:BalancedReplicaPlacer",
    "rack-alternated": "rackspan.placement:RackAlternatedReplicaPlacer",
    "striped": "rackspan.placement:StripedReplicaPlacer",
}
"""Paths and not classes, so that a placer is imported when it is used."""

PlacerFactory: TypeAlias = "Callable[..., ReplicaPlacer]"
Installed: TypeAlias = "Callable[[], Iterable[EntryPoint]]"


def installed_placers() -> "Iterable[EntryPoint]":
    from importlib.metadata import entry_points

    return entry_points(group=ENTRY_POINT_GROUP)


def configured_placer(
    configs: Mapping[str, str], rng: "Random | RandomGenerator", installed: Installed = installed_placers
) -> "CheckedPlacer":
    """The placer of a broker with these configs, configured with them. Errors: as `placer_named`."""
    return placer_named(configs.get(PLACER_CLASS_CONFIG, BROKER_DEFAULT), configs, rng, installed)


def placer_named(
    name: str, configs: Mapping[str, str], rng: "Random | RandomGenerator", installed: Installed = installed_placers
) -> "CheckedPlacer":
    """The placer of that name, created and configured; its assignments are checked.

    A class whose constructor takes `rng` is given it; any other is created without arguments.
    Errors: UsageError where there is no placer of that name, ReplicaPlacementException where the placer cannot be made or
    refuses its configs.
    """
    from rackspan.placement.placer import CheckedPlacer

    factory = _factory(name, installed)
    try:
        placer = factory(rng=rng) if _takes_rng(factory) else factory()
        placer.configure(configs)
    except ReplicaPlacementException:
        raise
    except Exception as error:
        raise ReplicaPlacementException(
            f"{name} could not be made and configured: {cause(error)}; correct the placer, or choose another"
        ) from error
    return CheckedPlacer(name, placer)


def _factory(name: str, installed: Installed) -> PlacerFactory:
    found = _load(name, _path(name, installed))
    lacking = [method for method in ("configure", "place", "close") if not callable(getattr(found, method, None))]
    if not inspect.isclass(found) or lacking:
        raise _refusal(
            name,
            f"{name} is not a placer class: it has no {', '.join(lacking) or 'class'}",
            "see the contract ReplicaPlacer",
        )
    # A class with the methods of the contract: more cannot be checked before it is made.
    return cast("PlacerFactory", found)


def _path(name: str, installed: Installed) -> str:
    if name in PLACERS:
        return PLACERS[name]
    registered = {point.name: point.value for point in installed()}
    if name in registered:
        return registered[name]
    if ":" not in name:
        known = sorted({*PLACERS, *registered})
        raise _refusal(name, "there is no such placer", f"choose {', '.join(known)} or write module:Class")
    return name


def _load(name: str, path: str) -> object:
    module, _, attribute = path.partition(":")
    try:
        found: object = importlib.import_module(module)
        for part in attribute.split("."):
            found = getattr(found, part)
    except AttributeError:
        raise _refusal(name, f"module {module} has no {attribute}", "correct the name") from None
    except Exception as error:
        raise _refusal(
            name, f"module {module or repr('')} cannot be imported: {cause(error)}", "install it or correct the name"
        ) from error
    return found


def _takes_rng(factory: PlacerFactory) -> bool:
    return "rng" in inspect.signature(factory).parameters


def _refusal(name: str, why: str, what_next: str) -> UsageError:
    return UsageError(f"{PLACER_CLASS_CONFIG} is {name!r}, but {why}; {what_next}")
