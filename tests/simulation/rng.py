"""Four rng from one seed, so that a fault can be taken away without redrawing the rest of the run."""

from dataclasses import dataclass
from random import Random


@dataclass(frozen=True, slots=True)
class RandomGenerator:
    """`shape` draws racks, timers and thresholds, `faults` what goes wrong, `network` delays, `clients` traffic."""

    shape: Random
    faults: Random
    network: Random
    clients: Random


def rng_of(seed: int) -> RandomGenerator:
    """Random seeds itself from a string by its bytes: the same everywhere, whatever PYTHONHASHSEED says."""
    return RandomGenerator(*(Random(f"{name} {seed}") for name in ("shape", "faults", "network", "clients")))
