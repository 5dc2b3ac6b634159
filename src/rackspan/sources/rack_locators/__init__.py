"""The rack locators of rackspan, and the registry that finds others.

Begin with registry.py. A locator is a class that takes its properties and has `rack_info`; to add one: a file, and a line
in the registry. No locator caches what it read: the next call reads again.
"""

from rackspan.sources.rack_locators.registry import LOCATORS, make

__all__ = ["LOCATORS", "make"]
