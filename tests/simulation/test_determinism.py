"""The same seed is the same run: alone, after others, in another process, on another Python (I8)."""

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from importlib import metadata
from pathlib import Path
from typing import Final

import pytest

from tests.simulation.kinds import KINDS
from tests.simulation.runs.replay import run
from tests.simulation.world import Outcome

ROOT: Final = Path(__file__).parents[2]
OTHER_PYTHONS: Final = ("3.13", "3.12", "3.14")


def crc(world: str, seed: int) -> int:
    outcome = run(KINDS[world], seed)
    assert isinstance(outcome, Outcome)
    return outcome.crc


def printed_hash(python: str | Path, world: str, hash_seed: str) -> str:
    """The hash of five seeds, as another process prints it."""
    ran = subprocess.run(
        [str(python), "-m", "tests.simulation", "0", "--world", world, "--count", "5"],
        cwd=ROOT,
        env=os.environ | {"PYTHONHASHSEED": hash_seed, "PYTHONPATH": f"{ROOT / 'src'}:{ROOT}"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr
    return ran.stdout.rpartition("hash ")[2]


@pytest.mark.slow
def test_a_seed_alone_and_after_others_is_the_same_run() -> None:
    alone = crc("clean", 3)
    for world in ("lossy", "reassigning", "dynamic"):
        crc(world, 1)
    assert crc("clean", 3) == alone


@pytest.mark.slow
def test_two_seeds_and_two_worlds_are_different_runs() -> None:
    assert len({crc("clean", 1), crc("clean", 2), crc("lossy", 1)}) == 3


@pytest.mark.slow
@pytest.mark.parametrize("world", ["clean", "reassigning", "groups", "transactions"])
def test_another_process_with_other_hashes_runs_the_same(world: str) -> None:
    assert printed_hash(sys.executable, world, "1") == printed_hash(sys.executable, world, "4711")


def uv() -> str:
    return shutil.which("uv") or str(ROOT / ".venv" / "bin" / "uv")


def _installed(version: str) -> Iterator[str]:
    """On the path, or kept by pyenv, whose shims on the path may stand for nothing."""
    found = shutil.which(f"python{version}")
    if found:
        yield found
    yield from map(str, sorted((Path.home() / ".pyenv" / "versions").glob(f"{version}.*/bin/python{version}")))


def _another_python() -> str:
    """One that is installed already: nothing is downloaded."""
    own = f"{sys.version_info.major}.{sys.version_info.minor}"
    others = [version for version in OTHER_PYTHONS if version != own]
    for python in (one for version in others for one in _installed(version)):
        if subprocess.run([python, "-V"], capture_output=True, check=False).returncode == 0:
            return python
    pytest.skip(f"the same bytes on two Pythons: only {own} is installed, none of {', '.join(others)}")


@pytest.mark.soak
@pytest.mark.package
def test_another_python_runs_the_same(tmp_path: Path) -> None:
    other = _another_python()
    python = tmp_path / "venv" / "bin" / "python"
    wanted = [f"{name}=={metadata.version(name)}" for name in ("numpy", "kio", "crc32c", "kafka-python")]
    install = [uv(), "pip", "install", "--quiet", "--python", str(python), *wanted]
    subprocess.run([uv(), "venv", "--quiet", "--python", other, str(tmp_path / "venv")], check=True)
    subprocess.run(install, check=True)
    for world in ("clean", "lossy", "reassigning", "groups", "relocating", "transactions", "wire"):
        assert printed_hash(python, world, "7") == printed_hash(sys.executable, world, "8")
