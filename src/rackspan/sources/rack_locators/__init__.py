"""The rack locators that come with rackspan, and how others are found.

Begin with registry.py. Each is a class that takes its properties and answers `rack_info`; to add one: a file, and a line
in the registry. None of them keeps what it read: the next call reads again.
"""

from rackspan.sources.rack_locators.registry import LOCATORS, make

__all__ = ["LOCATORS", "make"]
