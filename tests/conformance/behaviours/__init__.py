"""One file an area; importing this package fills the list."""

import importlib
from typing import Final

AREAS: Final = (
    "produce",
    "fetch",
    "groups",
    "admin",
    "elections",
    "configs",
    "errors",
    "racks",
    "clients",
    "compaction",
)

for area in AREAS:
    importlib.import_module(f"{__name__}.{area}")
