"""make sim SEED=n [WORLD=clean] [COUNT=1] [TRACE=file]: run seeds, and print how to replay a failure."""

import argparse
import sys
import time
import zlib
from pathlib import Path

from tests.simulation.judges.evidence import Violation
from tests.simulation.kinds import KINDS, WorldKind
from tests.simulation.runs.replay import explained, run, traced


def main() -> int:
    arguments = _arguments()
    kind = KINDS[arguments.world]
    events = acknowledged = offline = crc = 0
    started = time.monotonic()
    for seed in range(arguments.seed, arguments.seed + arguments.count):
        outcome = run(kind, seed)
        if isinstance(outcome, Violation):
            return _print_violation(kind, seed, outcome, arguments.trace)
        events += outcome.events
        acknowledged += outcome.acknowledged
        offline += outcome.offline
        crc = zlib.crc32(outcome.crc.to_bytes(4, "big"), crc)
    if arguments.trace is not None:
        _write_trace(arguments.trace, traced(kind, arguments.seed, None))
    seconds = time.monotonic() - started
    print(
        f"{arguments.count} seeds of world {kind.name}: no rule broken; {events:,} events, {acknowledged:,} batches"
        f" acknowledged, {offline} ended offline; {events / seconds:,.0f} events/s, hash {crc:08x}"
    )
    return 0


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="make sim", description="Rack disasters on a virtual clock, judged.")
    parser.add_argument("seed", type=int)
    parser.add_argument("--world", choices=list(KINDS), default="clean")
    parser.add_argument("--count", type=int, default=1)
    parser.add_argument("--trace", type=Path, help="write every message of the (first or failing) seed there")
    return parser.parse_args()


def _print_violation(kind: WorldKind, seed: int, violation: Violation, trace: Path | None) -> int:
    broken = explained(kind, seed, violation)
    print(broken, file=sys.stderr)
    if trace is not None:
        _write_trace(trace, traced(kind, seed, broken.faults))
    return 1


def _write_trace(path: Path, lines: list[str]) -> None:
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    print(f"{len(lines)} lines in {path}")


if __name__ == "__main__":
    sys.exit(main())
