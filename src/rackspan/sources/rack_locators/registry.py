"""Finds the rack locator named in `rack.locator.class`: rackspan's own, a package's, or `module:Class`."""

import importlib
from collections.abc import Mapping
from importlib.metadata import entry_points
from typing import Any, Final

from rackspan.errors import RackLocatorFailed, RackspanError, UsageError
from rackspan.sources.rack_locator import Properties, RackLocator, RackLocatorFactory, one_line
from rackspan.sources.rack_locators.availability_zones import AvailabilityZones
from rackspan.sources.rack_locators.command import TopologyCommand
from rackspan.sources.rack_locators.file import RackFile
from rackspan.sources.rack_locators.host_pattern import HostPattern
from rackspan.sources.rack_locators.listed import ListedRacks
from rackspan.sources.rack_locators.registered import RegisteredRacks

GROUP: Final = "rackspan.rack_locators"
"""The entry-point group in which packages offer locators by a short name."""

LOCATORS: Final[Mapping[str, RackLocatorFactory]] = {
    "registered": RegisteredRacks,
    "properties": ListedRacks,
    "file": RackFile,
    "command": TopologyCommand,
    "host-pattern": HostPattern,
    "availability-zones": AvailabilityZones,
}


def make(name: str, properties: Properties) -> RackLocator:
    """The locator with this short name or `module:Class`, created with its properties.

    Errors: UsageError for an unknown name and for malformed properties, RackLocatorFailed for a class that cannot
    be loaded or made.
    """
    factory = LOCATORS.get(name) or _named(name)
    try:
        created: Any = factory(properties)
    except RackspanError:
        raise
    except Exception as error:
        raise RackLocatorFailed(
            f"rack locator {name!r}: cannot be made: {type(error).__name__}: {one_line(error)}; --debug shows where"
        ) from error
    if not callable(getattr(created, "rack_info", None)):
        raise RackLocatorFailed(f"rack locator {name!r}: has no rack_info(cluster); see rackspan.sources.rack_locator")
    locator: RackLocator = created
    return locator


def _named(name: str) -> RackLocatorFactory:
    return _from_module(name) if ":" in name else _from_package(name)


def _from_module(name: str) -> RackLocatorFactory:
    module_name, _, class_name = name.partition(":")
    if not module_name or not class_name:
        raise UsageError(f"rack locator {name!r}: write it as module:Class")
    try:
        factory: Any = getattr(importlib.import_module(module_name), class_name, None)
    except ModuleNotFoundError as error:
        raise RackLocatorFailed(
            f"rack locator {name!r}: there is no module {error.name}; install it, or add its folder to PYTHONPATH"
        ) from error
    except Exception as error:
        raise RackLocatorFailed(
            f"rack locator {name!r}: importing it failed: {type(error).__name__}: {one_line(error)}"
        ) from error
    return _checked(name, factory, f"module {module_name} has no class {class_name}; correct the name")


def _from_package(name: str) -> RackLocatorFactory:
    offered = entry_points(group=GROUP, name=name)
    if not offered:
        names = sorted({*LOCATORS, *(entry.name for entry in entry_points(group=GROUP))})
        raise UsageError(f"rack locator {name!r}: not found; there are {', '.join(names)}, or name a module:Class")
    values = sorted({entry.value for entry in offered})
    if len(values) > 1:
        raise UsageError(
            f"rack locator {name!r}: offered twice, as {' and '.join(values)}; name the module:Class you mean"
        )
    return _from_module(values[0])


def _checked(name: str, factory: Any, otherwise: str) -> RackLocatorFactory:
    if not callable(factory):
        raise RackLocatorFailed(f"rack locator {name!r}: {otherwise}")
    named: RackLocatorFactory = factory
    return named
