"""Survivors that no test has to report, each with its reason: accepted.txt.

A block is four lines: the path, the line before, the line after, and why. Blocks are separated by an empty line.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Final

ACCEPTED: Final = Path(__file__).with_name("accepted.txt")


@dataclass(frozen=True, slots=True)
class Accepted:
    """A mutant by its path and both its lines, and why it may survive."""

    path: str
    before: str
    after: str
    reason: str

    @property
    def key(self) -> tuple[str, str, str]:
        """As `Mutant.key`."""
        return self.path, self.before, self.after


def read_accepted(file: Path) -> list[Accepted]:
    """The blocks of the file. Raises ValueError for one that is not four such lines."""
    blocks = [block for block in file.read_text(encoding="utf-8").strip().split("\n\n") if block]
    return [_accepted(block) for block in blocks if not block.startswith("#")]


def _accepted(block: str) -> Accepted:
    lines = block.split("\n")
    if len(lines) != 4 or not (lines[1].startswith("- ") and lines[2].startswith("+ ") and lines[3].strip()):
        raise ValueError(f"not a path, '- line', '+ line' and a reason: {block!r}; correct it in {ACCEPTED.name}")
    return Accepted(lines[0], lines[1][2:], lines[2][2:], lines[3])
