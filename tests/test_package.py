"""What users install: the wheel and the sdist, each into a bare environment, used from an empty folder."""

import json
import re
import shlex
import shutil
import subprocess
import sys
import tarfile
import zipfile
from collections.abc import Iterator
from dataclasses import replace
from email import message_from_bytes
from importlib import metadata
from pathlib import Path
from random import Random

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from rackspan import api
from rackspan.audit import RackPolicy
from rackspan.cluster import EmbeddedCluster
from rackspan.model import ClusterSnapshot
from rackspan.sources import snapshot_file
from tests.audit import repairs
from tests.cli.conftest import GOOD
from tests.random_clusters.values import drawn
from tests.restart.test_search import FOUR_BATCHES, snapshot_of

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


def installed(folder: Path, *packages: Path | str, python: str = sys.executable) -> Path:
    """The programs of a new environment with these packages only."""
    run(python, "-m", "venv", folder / "venv", cwd=folder)
    uv = shutil.which("uv") or ROOT / ".venv" / "bin" / "uv"
    programs = folder / "venv" / "bin"
    if Path(uv).exists():
        run(uv, "pip", "install", "--quiet", "--python", programs / "python", *packages, cwd=folder)
    else:
        run(programs / "python", "-m", "pip", "install", "--quiet", *packages, cwd=folder)
    return programs


def pythons() -> dict[str, str]:
    """The interpreters on this machine that are not the one of the tests, by version: those on PATH and pyenv's."""
    found: dict[str, str] = {}
    for minor in range(11, 15):
        here = [
            shutil.which(f"python3.{minor}"),
            *map(str, (Path.home() / ".pyenv/versions").glob(f"3.{minor}.*/bin/python")),
        ]
        for python in filter(None, here):
            ran = subprocess.run([python, "-c", "pass"], capture_output=True, check=False)
            if ran.returncode == 0 and minor != sys.version_info.minor:
                found[f"3.{minor}"] = python
    return found


PYTHONS = pythons()


@pytest.mark.parametrize("pattern", ["*.whl", pytest.param("*.tar.gz", marks=pytest.mark.soak)])
def test_it_installs_bare_and_judges_a_snapshot(built: Path, tmp_path: Path, pattern: str) -> None:
    (distribution,) = built.glob(pattern)
    rackspan = installed(tmp_path, distribution) / "rackspan"
    judges_a_snapshot(rackspan, tmp_path)
    assert not {"numpy", "rich", "ortools"} - {path.name for path in site_packages(tmp_path).iterdir()}
    assert not {"pyarrow", "deltalake"} & {path.name for path in site_packages(tmp_path).iterdir()}
    files = (path for path in site_packages(tmp_path).rglob("*") if path.is_file() and "__pycache__" not in path.parts)
    # docs/install.md says 223 MB, by du.
    assert sum(path.stat().st_size for path in files) < 240_000_000
    # Without the extras each is missed in one line, which says what to install.
    for extra, words in {
        "spark": ("pipeline", "run", "--warehouse", "w"),
        "warehouse": ("pipeline", "table", "findings", "--warehouse", "w"),
        "clients": ("demo",),
    }.items():
        missed = subprocess.run([str(rackspan), *words], cwd=tmp_path, capture_output=True, text=True, check=False)
        assert missed.returncode == 1
        assert missed.stderr.count("\n") == 1
        assert f"pip install '.[{extra}]'" in missed.stderr


KINDS = {
    "reassign plan",
    "reassign plan --topic",
    "reassign plan --replication-factor --topic",
    "reassign plan --balance",
    "reassign plan --drain",
    "reassign plan --drain --topic",
    "reassign plan --leaders --topic",
    "reassign cancel --in-flight",
    "acks harden --topic",
    "acks harden --min-insync-racks --topic",
}
"""The commands of rackspan that an audit may print, by verb and options."""


def printed_commands() -> Iterator[tuple[str, ClusterSnapshot, RackPolicy, list[str]]]:
    """Commands of the remedies of generated clusters, by kind, each with its cluster and policy."""
    for seed in range(400):
        snapshot, policy = drawn(Random(seed))
        if seed % 2:
            first = snapshot.topics[0].name
            policy = replace(policy, topic_leader_racks={first: (repairs.snapshot_racks(snapshot)[-1],)})
        for finding in api.audit(snapshot, policy).findings:
            for remedy in re.split("; then ", finding.remedy):
                for alternative in repairs.alternatives(remedy):
                    if alternative.startswith("rackspan "):
                        words = shlex.split(alternative)
                        options = sorted(word for word in words if word.startswith("--"))
                        yield " ".join([*words[1:3], *options]), snapshot, policy, words[1:]


def settings_of(policy: RackPolicy) -> str:
    """The policy as rackspan.toml has it."""
    lines = [
        f'survive = "{policy.survive}"',
        f'unracked = "{policy.unracked}"',
        f"min-insync-racks = {policy.min_insync_racks}",
    ]
    for topic in {*policy.topic_min_insync_racks, *policy.topic_survive, *policy.topic_leader_racks}:
        lines.append(f'[topics."{topic}"]')
        if topic in policy.topic_min_insync_racks:
            lines.append(f'"min.insync.racks" = {policy.topic_min_insync_racks[topic]}')
        if topic in policy.topic_survive:
            lines.append(f'survive = "{policy.topic_survive[topic]}"')
        if topic in policy.topic_leader_racks:
            lines.append(f'"leader.racks" = {json.dumps(policy.topic_leader_racks[topic])}')
    return "\n".join(lines)


def test_the_default_install_carries_out_every_command_that_an_audit_prints(built: Path, tmp_path: Path) -> None:
    found = {kind: (snapshot, policy, words) for kind, snapshot, policy, words in printed_commands()}
    assert found.keys() == KINDS
    # Of this cluster the fewest batches of a restart are not known without a search.
    found["restart plan"] = snapshot_of(FOUR_BATCHES, 10), RackPolicy(), ["restart", "plan"]
    (wheel,) = built.glob("*.whl")
    rackspan = installed(tmp_path, wheel) / "rackspan"
    for kind, (snapshot, policy, words) in found.items():
        folder = tmp_path / kind.replace(" ", "")
        snapshot_file.write(snapshot, folder / "snapshot.json")
        (folder / "rackspan.toml").write_text(settings_of(policy))
        ours, theirs = (
            subprocess.run(
                [*program, *words, "--snapshot", "snapshot.json"],
                cwd=folder,
                capture_output=True,
                text=True,
                check=False,
            )
            for program in ([sys.executable, "-m", "rackspan"], [str(rackspan)])
        )
        assert "Traceback" not in ours.stderr
        assert ours.stdout
        # With every extra, a command ends with 1 too, of a plan that leaves some partitions as they are.
        assert (theirs.returncode, theirs.stdout, theirs.stderr) == (ours.returncode, ours.stdout, ours.stderr), words


def required_by(wheel: Path, extra: str) -> set[str]:
    """The packages that a wheel with an extra requires, and what these require in turn, by the metadata of those installed here."""
    (name,) = (one for one in zipfile.ZipFile(wheel).namelist() if one.endswith(".dist-info/METADATA"))
    own = message_from_bytes(zipfile.ZipFile(wheel).read(name)).get_all("Requires-Dist", [])
    required = {("rackspan", ""), ("rackspan", extra)}
    waiting = [*required]
    while waiting:
        package, of_extra = waiting.pop()
        for line in own if package == "rackspan" else metadata.requires(package) or []:
            needed = Requirement(line)
            if needed.marker is None or needed.marker.evaluate({"extra": of_extra}):
                new = {(canonicalize_name(needed.name), other) for other in ("", *needed.extras)} - required
                required |= new
                waiting += new
    return {name for name, _ in required} - {"rackspan"}


def locked(names: set[str]) -> str:
    """Their lines of requirements.lock."""
    entries = re.split(r"\n(?=\S)", (ROOT / "requirements.lock").read_text("utf-8"))
    return "\n".join(entry for entry in entries if entry.partition("==")[0] in names)


@pytest.mark.spark
@pytest.mark.soak
@pytest.mark.timeout(1800)
def test_the_extra_spark_runs_every_command_of_the_pipeline(built: Path, tmp_path: Path) -> None:
    (wheel,) = built.glob("*.whl")
    (tmp_path / "locked.txt").write_text(locked(required_by(wheel, "spark")))
    # Without dependencies, or uv builds Spark anew (tools/env.sh).
    installed(tmp_path, "--no-deps", "--require-hashes", "-r", tmp_path / "locked.txt")
    rackspan = installed(tmp_path, "--no-deps", wheel) / "rackspan"

    def pipeline(*words: str | Path) -> str:
        return run(rackspan, "pipeline", *words, "--warehouse", "w", cwd=tmp_path)

    with EmbeddedCluster(racks=3, brokers=3) as cluster:
        at = ("--bootstrap-server", cluster.bootstrap_servers)
        topic = ("--topic", "orders", "--partitions", "6", "--replication-factor", "3")
        run(rackspan, "place", "create", *at, *topic, "--apply", cwd=tmp_path)
        for _ in range(2):
            pipeline("collect", *at, "--traffic-every", "1")
        pipeline("run")
        assert len(json.loads(pipeline("table", "readings", "-o", "json"))) == 2
        hours = json.loads(pipeline("table", "advice", "-o", "json"))
        pipeline("collect", *at, "--traffic-every", "1")
        pipeline("follow", "--available-now")
    assert [row["kind"] for row in json.loads(pipeline("table", "runs", "-o", "json"))] == ["run", "follow"]
    assert {row["run_id"] for row in hours}.isdisjoint(
        row["run_id"] for row in json.loads(pipeline("table", "advice", "-o", "json"))
    )
    pipeline("rebuild", "findings")
    pipeline("report", "--out", "report.html")
    pipeline("export", "--out", "exported")
    pipeline("maintain")
    assert "no problems" in pipeline("check", "--whole")
    words = [str(rackspan), "advise", "--warehouse", "w", "-o", "json"]
    advised = subprocess.run(words, cwd=tmp_path, capture_output=True, text=True, check=False)
    # 2: there is something to do.
    assert (advised.returncode, "orders" in advised.stdout) == (2, True), advised.stderr


@pytest.mark.parametrize(
    "version",
    # The newest in make test, each in make soak.
    [pytest.param(one, marks=[] if one == [*PYTHONS][-1] else pytest.mark.soak) for one in PYTHONS],
)
def test_the_wheel_judges_a_snapshot_on_the_other_pythons(built: Path, tmp_path: Path, version: str) -> None:
    (wheel,) = built.glob("*.whl")
    judges_a_snapshot(installed(tmp_path, wheel, python=PYTHONS[version]) / "rackspan", tmp_path)


def judges_a_snapshot(rackspan: Path, folder: Path) -> None:
    (folder / "moment.json").write_text(json.dumps(GOOD))
    assert run(rackspan, "--version", cwd=folder).startswith("rackspan ")
    assert run(rackspan, cwd=folder) == run(rackspan, "--help", cwd=folder)
    output = json.loads(run(rackspan, "audit", "--snapshot", "moment.json", "-o", "json", cwd=folder))
    assert output["summary"]["survives_any_rack"] is True


def site_packages(folder: Path) -> Path:
    (found,) = (folder / "venv" / "lib").glob("python3*/site-packages")
    return found


PLUGIN = {
    "pyproject.toml": """
[build-system]
requires = ["hatchling"]
build-backend = "hatchling.build"
[project]
name = "plugged-in"
version = "1"
[project.entry-points."rackspan.placers"]
first-brokers = "plugged_in:FirstBrokers"
[project.entry-points."rackspan.rack_locators"]
odd-and-even = "plugged_in:OddAndEven"
""",
    "plugged_in.py": """
from rackspan.placement import TopicAssignment


class FirstBrokers:
    def configure(self, configs): ...

    def place(self, start_partition, num_partitions, num_replicas, brokers):
        ids = [broker.id for broker in brokers][:num_replicas]
        return TopicAssignment.of([ids] * num_partitions)

    def close(self): ...


class OddAndEven:
    def __init__(self, properties): ...

    def rack_info(self, cluster):
        return {broker.id: "odd" if broker.id % 2 else "even" for broker in cluster.brokers}
""",
}


def test_a_placer_and_a_rack_locator_come_from_another_wheel(built: Path, tmp_path: Path) -> None:
    source = tmp_path / "plugin"
    source.mkdir()
    for name, text in PLUGIN.items():
        (source / name).write_text(text)
    run(sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", tmp_path, cwd=source)
    (wheel,), (plugin,) = built.glob("*.whl"), tmp_path.glob("plugged_in*.whl")
    rackspan = installed(tmp_path, wheel, plugin) / "rackspan"
    (tmp_path / "spec.json").write_text(
        json.dumps(
            {
                "brokers": [{"id": broker, "rack": f"r{broker}"} for broker in (1, 2, 3)],
                "partitions": 2,
                "replication_factor": 2,
                "placer": "first-brokers",
            }
        )
    )
    placed = json.loads(run(rackspan, "place", "plan", "--spec", "spec.json", cwd=tmp_path))
    assert placed["assignments"] == {"0": [1, 2], "1": [1, 2]}
    (tmp_path / "moment.json").write_text(json.dumps(GOOD))
    words = ("snapshot", "--snapshot", "moment.json", "--rack-locator-class", "odd-and-even", "--out", "located.json")
    run(rackspan, *words, cwd=tmp_path)
    located = json.loads((tmp_path / "located.json").read_text())
    assert {broker["id"]: broker["rack"] for broker in located["brokers"]} == {
        broker: "odd" if broker % 2 else "even" for broker in range(1, 7)
    }


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
