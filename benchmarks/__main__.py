"""`make bench`: every package's comparison with its peers; `make bench-NAME` for one.

Each comparison is a module of this folder with a `main() -> None` that prints its figures.
"""

import importlib
import pkgutil
import sys
from pathlib import Path


def comparisons() -> list[str]:
    return sorted(
        module.name for module in pkgutil.iter_modules([str(Path(__file__).parent)]) if not module.name.startswith("_")
    )


def main(arguments: list[str]) -> None:
    unknown = [comparison for comparison in arguments if comparison not in comparisons()]
    if unknown:
        sys.exit(
            f"make bench-{unknown[0]}: there is no such benchmark; there are {', '.join(comparisons()) or 'none yet'}"
        )
    for comparison in arguments or comparisons():
        importlib.import_module(f"benchmarks.{comparison}").main()


if __name__ == "__main__":
    main(sys.argv[1:])
