"""Run the pipeline's tests on both ends of the pyspark range that pyproject.toml declares.

    .venv/bin/python tools/spark_ends.py [--keep DIR] [PYTEST-WORDS…]

Each end, in its newest patch release, gets an environment of its own: requirements.lock, with that pyspark in place of the locked one. It takes minutes,
2 GB of disk and a package index, and so is no part of `make test`. Exit code 1 where an end fails.
"""

import argparse
import re
import shutil
import subprocess
import sys
import tempfile
import time
import tomllib
from collections.abc import Iterator, Sequence
from pathlib import Path

ROOT = Path(__file__).parent.parent
TESTS = ("tests/pipeline", "-m", "not browser and not soak", "-q")
REPLACED = ("pyspark", "py4j")
"""Left out of the lock: py4j belongs to pyspark."""


def ends(declared: str) -> tuple[str, str]:
    """What to install for `pyspark>=4.0,<4.3`: the newest patch release of 4.0, and the newest version below the bound."""
    least = re.search(r">=\s*([0-9.]+)", declared)
    if least is None:
        raise SystemExit(f"pyproject.toml: {declared!r} names no least version")
    extras = re.search(r"\[.*?\]", declared)
    return f"pyspark{extras[0] if extras else ''}=={least[1]}.*", declared


def declared_range() -> str:
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["optional-dependencies"]
    return next(str(one) for one in extras["spark"] if one.startswith("pyspark"))


def locked() -> Iterator[str]:
    """`name==version ; marker` of everything locked; hashes would be wanted of the other pyspark too."""
    for line in (ROOT / "requirements.lock").read_text(encoding="utf-8").splitlines():
        pinned = re.match(r"([A-Za-z0-9_.-]+)==[^\\]+", line)
        if pinned and pinned[1].lower() not in REPLACED:
            yield pinned[0].strip()


def environment(folder: Path, pyspark: str) -> Path:
    """A new environment with that pyspark. Returns its Python."""
    uv = shutil.which("uv") or str(ROOT / ".venv/bin/uv")
    python = folder / "bin" / "python"
    requirements = folder.with_suffix(".txt")
    requirements.write_text("\n".join([*locked(), pyspark]) + "\n", encoding="utf-8")
    install = [uv, "pip", "install", "--quiet", "--python", str(python)]
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(folder)], check=True)
    subprocess.run([*install, "-r", str(requirements)], check=True)
    subprocess.run([*install, "--no-deps", "--no-build-isolation", "-e", str(ROOT)], check=True)
    return python


def tested(python: Path, words: Sequence[str]) -> bool:
    """Whether the pipeline's tests pass there. Says which pyspark that was, and how long they took."""
    script = "import pyspark, pyarrow, pandas; print(pyspark.__version__, pyarrow.__version__, pandas.__version__)"
    found = subprocess.run([python, "-c", script], check=True, capture_output=True, text=True).stdout.split()
    print("pyspark {}, pyarrow {}, pandas {}".format(*found), flush=True)
    began = time.monotonic()
    passed = subprocess.run([python, "-m", "pytest", *(words or TESTS)], cwd=ROOT, check=False).returncode == 0
    print(f"pyspark {found[0]}: {'passed' if passed else 'FAILED'} in {time.monotonic() - began:.0f} s", flush=True)
    return passed


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--keep", type=Path, metavar="DIR", help="make the environments here, and use those found here")
    arguments, words = parser.parse_known_args()
    with tempfile.TemporaryDirectory() as scratch:
        folder = arguments.keep or Path(scratch)
        folder.mkdir(parents=True, exist_ok=True)
        passed = [tested(_found_or_made(folder / name, end), words) for name, end in named_ends()]
    return 0 if all(passed) else 1


def named_ends() -> Iterator[tuple[str, str]]:
    return zip(("oldest", "newest"), ends(declared_range()), strict=True)


def _found_or_made(folder: Path, pyspark: str) -> Path:
    python = folder / "bin" / "python"
    return python if python.exists() else environment(folder, pyspark)


if __name__ == "__main__":
    sys.exit(main())
