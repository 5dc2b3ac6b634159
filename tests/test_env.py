"""tools/env.sh, which `make env` runs, among programs that stand for Python and uv and install nothing."""

import shutil
import subprocess
import sys
from pathlib import Path

import pyspark
import pytest

from tests.waiting import WITHIN_SECONDS

ROOT = Path(__file__).parent.parent
NEEDED = ("sh", "dirname", "sed", "touch", "mkdir", "cp")

PYTHON = f"""#!/bin/sh
case "$1" in
-c) exec {sys.executable} -c "import sys; sys.version_info = (3, $MINOR, 0); $2" ;;
-m) mkdir -p .venv/bin && cp "$0" .venv/bin/python ;;
esac
"""
UNAME = """#!/bin/sh
echo $SYSTEM
"""
UV = """#!/bin/sh
echo "uv $*" >&2
"""


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """A folder with the script, and the programs that it may use in .made."""
    programs = tmp_path / ".made"
    programs.mkdir()
    (tmp_path / "tools").mkdir()
    shutil.copy(ROOT / "tools/env.sh", tmp_path / "tools")
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    for name in NEEDED:
        found = shutil.which(name)
        assert found is not None
        (programs / name).symlink_to(found)
    for name, text in {"python3": PYTHON, "uname": UNAME, "uv": UV}.items():
        (programs / name).write_text(text)
        (programs / name).chmod(0o755)
    return tmp_path


def made(checkout: Path, minor: int = 12, system: str = "Linux") -> list[str]:
    """What `make env` prints with Python 3.`minor`, in lines."""
    environment = {"PATH": str(checkout / ".made"), "MINOR": str(minor), "SYSTEM": system}
    ran = subprocess.run(
        ["sh", "tools/env.sh"],
        cwd=checkout,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
        timeout=WITHIN_SECONDS,
    )
    assert ran.returncode == (minor < 11), ran.stderr
    return ran.stderr.splitlines()


def test_a_tested_python_needs_no_line(checkout: Path) -> None:
    assert not [line for minor in (11, 12, 13) for line in made(checkout, minor) if "tested" in line]


def test_a_newer_python_is_named_before_anything_is_installed(checkout: Path) -> None:
    lines = made(checkout, 14)
    assert lines[0] == (
        "make env: python3 is Python 3.14, and tested are 3.11 3.12 3.13; if a package cannot be installed: make clean env PYTHON=python3.13"
    )
    assert any(line.startswith("uv pip install") for line in lines[1:])
    assert made(checkout, 14)[0].startswith("make env: .venv/bin/python is Python 3.14, and tested are ")


def test_an_older_python_is_refused(checkout: Path) -> None:
    (line,) = made(checkout, 10)
    assert line.startswith("make env: python3 is missing or older than 3.11; install ")


@pytest.mark.parametrize(("system", "install"), [("Linux", "apt-get"), ("Darwin", "brew")])
def test_a_missing_browser_and_promtool_are_named_last_with_their_commands(
    checkout: Path, system: str, install: str
) -> None:
    assert made(checkout, system=system)[-2:] == [
        f"make env: no promtool is installed, so the tests of the alerts are skipped: {install} install prometheus",
        f"make env: no Chromium is installed, so the tests of the report's page are skipped: {install} install chromium",
    ]
    (checkout / ".made" / "promtool").write_text("#!/bin/sh\n")
    (checkout / ".made" / "promtool").chmod(0o755)
    assert not any("promtool" in line for line in made(checkout))
    (checkout / ".made" / "google-chrome").write_text("#!/bin/sh\n")
    (checkout / ".made" / "google-chrome").chmod(0o755)
    assert "Chromium" not in made(checkout)[-1]


def test_workers_of_spark_do_not_import_pyspark_from_its_zip() -> None:
    lib = Path(pyspark.__file__).parent / "python" / "lib"
    zips = [str(one) for one in lib.glob("*.zip")]
    assert len(zips) == 2
    if not list(Path(sys.prefix).glob("lib/*/site-packages/pyspark_unzipped.pth")):
        pytest.skip("NOT TESTED: this environment is not of make env")
    shown = subprocess.run(
        [sys.executable, "-c", "import py4j, pyspark; print(py4j.__file__, pyspark.__file__)"],
        env={"PYTHONPATH": ":".join(zips)},
        capture_output=True,
        text=True,
        check=True,
        timeout=WITHIN_SECONDS,
    )
    assert ".zip" not in shown.stdout
