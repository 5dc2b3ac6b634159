"""What users install: the wheel and the sdist, each into a bare environment, used from an empty folder."""

import json
import shutil
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest

from tests.cli.conftest import GOOD

ROOT = Path(__file__).parent.parent

pytestmark = pytest.mark.package


def run(*words: str | Path, cwd: Path) -> str:
    ran = subprocess.run([str(word) for word in words], cwd=cwd, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, f"{words}: {ran.stdout}{ran.stderr}"
    return ran.stdout


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("dist")
    run(sys.executable, "-m", "hatchling", "build", "-d", folder, cwd=ROOT)
    return folder


@pytest.mark.parametrize("pattern", ["*.whl", "*.tar.gz"])
def test_it_installs_bare_and_judges_a_snapshot(built: Path, tmp_path: Path, pattern: str) -> None:
    (distribution,) = built.glob(pattern)
    run(sys.executable, "-m", "venv", tmp_path / "venv", cwd=tmp_path)
    python = tmp_path / "venv" / "bin" / "python"
    uv = shutil.which("uv") or ROOT / ".venv" / "bin" / "uv"
    if Path(uv).exists():
        run(uv, "pip", "install", "--quiet", "--python", python, distribution, cwd=tmp_path)
    else:
        run(python, "-m", "pip", "install", "--quiet", distribution, cwd=tmp_path)
    (tmp_path / "moment.json").write_text(json.dumps(GOOD))
    rackspan = tmp_path / "venv" / "bin" / "rackspan"
    assert run(rackspan, "--version", cwd=tmp_path).startswith("rackspan ")
    output = json.loads(run(rackspan, "audit", "--snapshot", "moment.json", "-o", "json", cwd=tmp_path))
    assert output["summary"]["survives_any_rack"] is True
    # Without the extras: Spark is missed in one line, and nothing else is.
    missed = subprocess.run(
        [str(rackspan), "pipeline", "run", "--warehouse", "w"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert missed.returncode == 1
    assert missed.stderr.count("\n") == 1
    assert "Traceback" not in missed.stderr


def test_the_wheel_carries_types_and_templates_and_no_tests(built: Path) -> None:
    (wheel,) = built.glob("*.whl")
    names = zipfile.ZipFile(wheel).namelist()
    assert "rackspan/py.typed" in names
    assert any(name.endswith(".html.j2") for name in names)
    assert not [name for name in names if name.startswith(("tests/", "benchmarks/", "tools/"))]


def test_the_sdist_carries_what_its_tests_need(built: Path) -> None:
    (sdist,) = built.glob("*.tar.gz")
    with tarfile.open(sdist) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    for needed in ("LICENSE", "Makefile", "requirements.lock", "tests/conftest.py", "tools/env.sh", "docs/kips.md"):
        assert needed in names
