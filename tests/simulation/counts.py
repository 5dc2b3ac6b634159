"""How many seeds of each world a test run takes."""

import os
from typing import Final

SEEDS: Final = int(os.environ.get("RACKSPAN_SIM_SEEDS", "6"))
"""Of each kind of world: six in make check; make test sets more."""

SOAK_SEEDS: Final = 4_200
"""Of all worlds together, in one run, with make soak."""

CHUNK: Final = 20
"""Seeds in one test, so that several processes share the work."""


def chunks(seeds: int) -> list[range]:
    return [range(first, min(first + CHUNK, seeds)) for first in range(0, seeds, CHUNK)]
