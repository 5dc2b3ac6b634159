"""One seed, judged; and when it breaks, the line that replays it and the short list of faults that suffices."""

from dataclasses import dataclass

from tests.simulation.environment.trace import Trace
from tests.simulation.faults.drawing import Fault
from tests.simulation.judges.evidence import Violation
from tests.simulation.kinds import WorldKind
from tests.simulation.runs.shrink import shrunk
from tests.simulation.world import Build, Outcome, Running, World


@dataclass(frozen=True, slots=True)
class Broken:
    """A rule broke. `faults` are those that suffice."""

    kind: WorldKind
    seed: int
    violation: Violation
    faults: tuple[Fault, ...]

    def __str__(self) -> str:
        listed = "\n".join(f"  {fault}" for fault in self.faults)
        return f"make sim SEED={self.seed} WORLD={self.kind.name}\n{self.violation}\n{len(self.faults)} faults suffice:\n{listed}"


def run(kind: WorldKind, seed: int, build: Build | None = None) -> Outcome | Violation:
    """The outcome, or the first violation."""
    try:
        return World(kind, seed, build=build or Build()).run()
    except Violation as violation:
        return violation


def explained(kind: WorldKind, seed: int, violation: Violation, build: Build | None = None) -> Broken:
    """The same failure with the fewest faults found; the parameters and the traffic are those of the seed."""
    build = build or Build()

    def still_breaks(faults: tuple[Fault, ...]) -> bool:
        try:
            World(kind, seed, faults, build).run()
        except Violation as found:
            return found.rule == violation.rule
        return False

    drawn = Running(World(kind, seed, build=build)).faults
    return Broken(kind, seed, violation, shrunk(drawn, still_breaks))


def traced(kind: WorldKind, seed: int, faults: tuple[Fault, ...] | None, build: Build | None = None) -> list[str]:
    """Every message of the run as a line of JSON, up to the violation if there is one."""
    trace = Trace(keep=True)
    try:
        World(kind, seed, faults, build or Build(), trace).run()
    except Violation as violation:
        trace.add(0, "judge", violation.rule, violation.text)
    return trace.lines or []
