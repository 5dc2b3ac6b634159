"""`make bench`: every room's comparison with its peers; `make bench-ROOM` for one.

Each room is a module of this folder with a `main() -> None` that prints its figures.
"""

import importlib
import pkgutil
import sys
from pathlib import Path


def rooms() -> list[str]:
    return sorted(
        module.name for module in pkgutil.iter_modules([str(Path(__file__).parent)]) if not module.name.startswith("_")
    )


def main(arguments: list[str]) -> None:
    unknown = [room for room in arguments if room not in rooms()]
    if unknown:
        sys.exit(f"make bench-{unknown[0]}: there is no such benchmark; there are {', '.join(rooms()) or 'none yet'}")
    for room in arguments or rooms():
        importlib.import_module(f"benchmarks.{room}").main()


if __name__ == "__main__":
    main(sys.argv[1:])
