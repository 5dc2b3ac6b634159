"""The files of docs/how-to/orchestrate.md work: with Airflow, Dagster and Kubernetes' own schemas, each in an environment of its own."""

import json
import os
import re
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Final

import pytest
import yaml

from tests.cli.conftest import GOOD
from tests.how_to.page import PAGES

PAGE: Final = (PAGES / "orchestrate.md").read_text(encoding="utf-8")
BIN: Final = Path(sys.executable).parent

pytestmark = [pytest.mark.package, pytest.mark.spark]


def block(language: str, heading: str) -> str:
    """The first code block of that language below the heading."""
    found = re.search(rf"^## {heading}\n.*?^```{language}\n(.*?)^```$", PAGE, re.DOTALL | re.MULTILINE)
    assert found is not None
    return found[1]


def shell(*words: str | Path, cwd: Path, env: Mapping[str, str]) -> str:
    ran = subprocess.run([str(word) for word in words], cwd=cwd, env=env, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, f"{words}: {ran.stdout}{ran.stderr}"
    return ran.stdout


def environment(folder: Path, *packages: str) -> Path:
    """The programs of a new environment with those packages."""
    uv = BIN / "uv"
    shell(uv, "venv", "--quiet", "--python", sys.executable, folder, cwd=folder.parent, env=os.environ)
    shell(
        uv,
        "pip",
        "install",
        "--quiet",
        "--python",
        folder / "bin" / "python",
        *packages,
        cwd=folder.parent,
        env=os.environ,
    )
    return folder / "bin"


@pytest.fixture(scope="module")
def warehouse(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One snapshot, judged by the command of the CronJob."""
    folder = tmp_path_factory.mktemp("fleet")
    (folder / "moment.json").write_text(json.dumps({**GOOD, "taken_at": "2026-11-21T02:00:00Z"}))
    env = variables(folder / "w")
    shell(BIN / "rackspan", "pipeline", "collect", "--snapshot", "moment.json", cwd=folder, env=env)
    container = yaml.safe_load(block("yaml", "Kubernetes"))["spec"]["jobTemplate"]["spec"]["template"]["spec"][
        "containers"
    ][0]
    shell(*container["command"], cwd=folder, env=env)
    return folder / "w"


def variables(warehouse: Path) -> dict[str, str]:
    return {**os.environ, "RACKSPAN_WAREHOUSE": str(warehouse), "PATH": f"{BIN}:{os.environ['PATH']}"}


def test_the_cron_job_is_one_by_the_schemas_of_kubernetes(tmp_path: Path) -> None:
    (tmp_path / "job.yaml").write_text(block("yaml", "Kubernetes"))
    programs = environment(tmp_path / "kubernetes", "kubernetes-validate")
    shell(programs / "kubernetes-validate", "--strict", "job.yaml", cwd=tmp_path, env=os.environ)


@pytest.mark.soak  # Airflow's own start takes a minute of processors.
def test_the_dags_run_on_airflow(tmp_path: Path, warehouse: Path) -> None:
    programs = environment(tmp_path / "airflow", "apache-airflow>=3,<4")
    dags = tmp_path / "dags"
    dags.mkdir()
    (dags / "rackspan.py").write_text(block("python", "Airflow"))
    env = variables(warehouse) | {
        "AIRFLOW_HOME": str(tmp_path / "home"),
        "AIRFLOW__CORE__DAGS_FOLDER": str(dags),
        "AIRFLOW__CORE__LOAD_EXAMPLES": "False",
    }
    shell(programs / "airflow", "db", "migrate", cwd=tmp_path, env=env)
    shell(programs / "airflow", "dags", "test", "rackspan_maintain", cwd=tmp_path, env=env)
    # The snapshot is old: `run` has nothing to do, and `check` fails, as the page says of a collector that stopped.
    ran = subprocess.run(
        [programs / "airflow", "dags", "test", "rackspan"],
        cwd=tmp_path,
        env=env,
        capture_output=True,
        text=True,
        check=False,
    )
    log = ran.stdout + ran.stderr
    assert "0 snapshots judged, 1 up to date" in log
    assert "no snapshot for " in log
    assert "Bash command failed. The command returned a non-zero exit code 2." in log


@pytest.mark.soak
def test_the_assets_are_made_by_dagster(tmp_path: Path, warehouse: Path) -> None:
    programs = environment(tmp_path / "dagster", "dagster>=1,<2")
    (tmp_path / "definitions.py").write_text(block("python", "Dagster"))
    (tmp_path / "execute.py").write_text(
        "import json, definitions\n"
        "ran = definitions.definitions.resolve_job_def('rackspan').execute_in_process()\n"
        "events = [event.event_specific_data.materialization for event in ran.get_asset_materialization_events()]\n"
        "made = {event.asset_key.to_user_string(): event.metadata['rows written'].value for event in events}\n"
        "checks = [(event.check_name, event.passed) for event in ran.get_asset_check_evaluations()]\n"
        "print(json.dumps({'success': ran.success, 'made': made, 'checks': checks}))\n"
    )
    printed = shell(programs / "python", "execute.py", cwd=tmp_path, env=variables(warehouse)).splitlines()[-1]
    rows = json.loads(
        shell(BIN / "rackspan", "pipeline", "table", "runs", "-o", "json", cwd=tmp_path, env=variables(warehouse))
    )
    assert json.loads(printed) == {
        "success": True,
        "made": {
            name: rows[-1]["rows"][name] for name in ("drift", "findings", "outage_impact", "partition_durability")
        },
        "checks": [["warehouse_is_whole_and_recent", False]],
    }
