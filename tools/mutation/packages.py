"""The packages that are judged by mutants, and the tests that judge each: those of ARCHITECTURE.md's table."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

from tools.mutation.mutants import ROOT

PACKAGES: Final[Mapping[str, Sequence[str]]] = {
    "kafka_bytes": ("tests/kafka_bytes",),
    "flow": ("tests/flow",),
    "model": ("tests/model",),
    "audit": ("tests/audit", "tests/scenarios"),
    "placement": ("tests/placement",),
    "acks": ("tests/acks", "tests/scenarios"),
    "reassign": ("tests/reassign", "tests/scenarios"),
    "streams": ("tests/streams",),
    "consumers": ("tests/consumers",),
    "plan": ("tests/plan", "tests/apply", "tests/scenarios"),
    "cluster/core": ("tests/cluster/core", "tests/simulation"),
}
"""The folders of tests by the package below src/rackspan. No other test counts for the package."""

FAST: Final = "not java and not kafka and not spark and not browser and not package and not slow and not soak"
"""The marks of `make check`: what runs for every mutant."""


def modules_of(package: str, root: Path = ROOT) -> list[str]:
    """The package's modules as paths below `root`, in order."""
    return sorted(str(path.relative_to(root)) for path in (root / "src" / "rackspan" / package).rglob("*.py"))
