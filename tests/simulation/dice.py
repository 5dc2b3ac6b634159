"""Four dice from one seed, so that a fault can be taken away without redrawing the rest of the run."""

from dataclasses import dataclass
from random import Random


@dataclass(frozen=True, slots=True)
class Dice:
    """`shape` draws racks, timers and thresholds, `faults` what goes wrong, `network` delays, `clients` traffic."""

    shape: Random
    faults: Random
    network: Random
    clients: Random


def dice_of(seed: int) -> Dice:
    """Random seeds itself from a string by its bytes: the same everywhere, whatever PYTHONHASHSEED says."""
    return Dice(*(Random(f"{name} {seed}") for name in ("shape", "faults", "network", "clients")))
