"""From a failing run to a short one: take faults out, half of them at a time, while the same rule still breaks."""

from collections.abc import Callable

from tests.simulation.faults.drawing import Fault


def shrunk(faults: tuple[Fault, ...], still_breaks: Callable[[tuple[Fault, ...]], bool]) -> tuple[Fault, ...]:
    """The fewest faults found: no single one of them can be taken away (ddmin, Zeller and Hildebrandt 2002)."""
    part = max(1, len(faults) // 2)
    while part:
        shorter = _without_a_part(faults, part, still_breaks)
        if shorter is None:
            part //= 2
        else:
            faults = shorter
            part = min(part, max(1, len(faults) // 2)) if faults else 0
    return faults


def _without_a_part(
    faults: tuple[Fault, ...], part: int, still_breaks: Callable[[tuple[Fault, ...]], bool]
) -> tuple[Fault, ...] | None:
    for start in range(0, len(faults), part):
        shorter = faults[:start] + faults[start + part :]
        if still_breaks(shorter):
            return shorter
    return None
