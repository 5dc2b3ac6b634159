"""What the pytest plug-in costs a test run that uses no cluster: a run of one empty test, with it and without, in turns."""

import sys
import tempfile
from pathlib import Path
from typing import Final

from benchmarks._measure import Figures, run_process

TURNS: Final = 9
_PYTEST: Final = (sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider")


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "test_nothing.py").write_text("def test_nothing():\n    pass\n")
        (Path(folder) / "pytest.ini").write_text("[pytest]\n")
        runs = (*_PYTEST, folder), (*_PYTEST, "-p", "no:rackspan", folder)
        for words in runs:
            run_process(words)
        turns = [tuple(run_process(words).cpu_seconds * 1000 for words in runs) for _ in range(TURNS)]
    with_it, without = (Figures(tuple(values)) for values in zip(*turns, strict=True))
    print(f"\npytest with one empty test, {TURNS} turns, processor time")
    print(f"  with the plug-in      {with_it.text('ms', 0)}")
    print(f"  -p no:rackspan        {without.text('ms', 0)}")
    print(f"  ratio                 {with_it.over(without).text('times', 3)}")
