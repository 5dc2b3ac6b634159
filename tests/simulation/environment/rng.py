"""Four random generators from one seed, so that a fault can be taken away without redrawing the rest of the run."""

from dataclasses import dataclass
from random import Random


@dataclass(frozen=True, slots=True)
class Generators:
    """`parameters` draws racks, timers and thresholds, `faults` what goes wrong, `network` delays, `clients` traffic."""

    parameters: Random
    faults: Random
    network: Random
    clients: Random


def generators_for(seed: int) -> Generators:
    """Random seeds itself from a string by its bytes: the same on every machine, whatever PYTHONHASHSEED is."""
    return Generators(*(Random(f"{name} {seed}") for name in ("shape", "faults", "network", "clients")))
