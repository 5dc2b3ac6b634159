"""Valid files made wrong by seeded rng: the command line ends with 0, 1 or 2 and one line, never with a trace.

A failure names the number that makes the same file again.
"""

import json
import os
import re
import shutil
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any

import pyarrow.parquet as pq
import pytest

from rackspan.model import json_format
from rackspan.pipeline import create_warehouse, store
from tests.cli.conftest import GOOD, Ran
from tests.mutations import mutated_bytes, mutated_document, mutated_table

Cli = Callable[..., Ran]

CASES = 2_000 if os.environ.get("RACKSPAN_SOAK") else 200
"""In all, shared out among the kinds."""

SNAPSHOT: dict[str, Any] = {
    **json.loads(json.dumps(GOOD)),
    "partial": ["sizes of 1 partitions: unknown, broker 9: not alive"],
}
SNAPSHOT["topics"][0] |= {"topic_id": "bV9QmkYyRLqD0nS3hGkq1Q", "internal": False}
SNAPSHOT["topics"][0]["partitions"][1] |= {"adding_replicas": [4], "removing_replicas": [6], "size_bytes": 1048576}

SPEC = {
    "brokers": [{"id": broker, "rack": f"r{broker % 3}", "fenced": False} for broker in range(6)],
    "partitions": 4,
    "replication_factor": 3,
    "placer": "rack-alternated",
    "start_index": 0,
    "start_partition": 0,
    "rack_aware": "safe",
    "seed": 7,
    "rng": "java",
    "configs": {},
}
PLAN = {"version": 1, "partitions": [{"topic": "orders", "partition": 0, "replicas": [4, 2, 3], "log_dirs": ["any", "any", "any"]}]}  # fmt: skip
TOPICS = {"version": 1, "topics": [{"topic": "orders"}]}
PROBLEM = {
    "config": {"strategy": "min_traffic", "num_standbys": 1},
    "clients": [
        {"process_id": f"p{at}", "rack": f"r{at}", "threads": 2, "tags": {"zone": "z"}, "prev_active": [f"0_{at}"], "prev_standby": [], "lags": {}}
        for at in range(3)
    ],
    "tasks": [{"id": f"0_{at}", "stateful": True, "source": [f"in:{at}"], "changelog": [f"log:{at}"]} for at in range(3)],
    "partitions": {f"{topic}:{at}": [f"r{at}", "r0"] for topic in ("in", "log") for at in range(3)},
    "initial_active": {f"p{at}": [f"0_{at}"] for at in range(3)},
    "initial_standby": {"p0": ["0_1"], "p1": ["0_2"], "p2": ["0_0"]},
}  # fmt: skip
SETTINGS = (
    'unracked = "own"\nmin-insync-racks = 2\n[topics."orders"]\nmin.insync.racks = 2\n[controllers]\n101 = "r1"\n'
)
PROPERTIES = "security.protocol=SASL_SSL\nssl.truststore.type=PEM\nssl.truststore.location=trust.pem\nsasl.mechanism=PLAIN\nrequest.timeout.ms=100\n"

DOCUMENTS = {
    "snapshot": (SNAPSHOT, (
        ("audit", "--snapshot", "file"),
        ("audit", "--snapshot", "file", "-o", "json"),
        ("outage", "--snapshot", "file", "--pairs", "-o", "yaml"),
        ("acks", "harden", "--min-insync-racks", "2", "--snapshot", "file"),
        ("reassign", "plan", "--snapshot", "file", "--drain", "1", "--out", "out.json"),
        ("reassign", "lint", "--reassignment-json-file", "plan.json", "--snapshot", "file"),
        ("place", "create", "--topic", "new", "--partitions", "4", "--replication-factor", "2", "--snapshot", "file"),
        ("place", "extend", "--topic", "orders", "--partitions", "4", "--snapshot", "file"),
        ("snapshot", "--snapshot", "file", "--out", "out.json"),
        ("snapshot", "--snapshot", "file", "--out", "out"),
        ("pipeline", "collect", "--snapshot", "file", "--warehouse", "out"),
    )),
    "spec": (SPEC, (("place", "plan", "--spec", "file"), ("place", "plan", "--spec", "file", "-o", "human"))),
    "plan": (PLAN, (("reassign", "lint", "--reassignment-json-file", "file", "--snapshot", "moment.json"),)),
    "topics": (TOPICS, (("reassign", "generate", "--topics-to-move-json-file", "file", "--broker-list", "1,2,3", "--snapshot", "moment.json"),)),
    "problem": (PROBLEM, (("streams", "assign", "--problem", "file"), ("streams", "assign", "--problem", "file", "-o", "human"))),
}  # fmt: skip


@pytest.fixture
def ended(cli: Cli, tmp_path: Path) -> Callable[..., None]:
    """Run a command line; whatever it wrote to `out…` is gone afterwards, and nothing half-written may be left."""
    (tmp_path / "moment.json").write_text(json.dumps(GOOD))
    (tmp_path / "plan.json").write_text(json.dumps(PLAN))

    def check(case: int, *words: str) -> None:
        try:
            ran = cli(*words)
        except Exception as error:
            pytest.fail(f"case {case}, {' '.join(words)}: {type(error).__name__}: {error}")
        assert ran.code in (0, 1, 2), f"case {case}, {words}: {ran}"
        assert "Traceback" not in ran.err, f"case {case}, {words}: {ran}"
        if ran.code == 1 and not ran.out:
            last = ran.err.rstrip("\n").splitlines()[-1]
            assert re.match(r"rackspan: |warning: |\d{4}-\d\d-\d\dT[\d:]{8}Z .+: ", last), f"case {case}: {ran}"
        assert not list(tmp_path.glob(".*.partial")), f"case {case}, {words}"
        assert ran.code != 1 or ran.out or not (tmp_path / "out.json").exists(), f"case {case}, {words}"
        for left in tmp_path.glob("out*"):
            shutil.rmtree(left) if left.is_dir() else left.unlink()

    return check


@pytest.mark.slow
@pytest.mark.parametrize("kind", DOCUMENTS)
def test_a_document_with_mistakes_ends_in_a_line(ended: Callable[..., None], tmp_path: Path, kind: str) -> None:
    document, commands = DOCUMENTS[kind]
    text = json.dumps(document)
    for case in range(CASES // 8 if kind != "snapshot" else CASES // 4):
        rng = Random(f"{kind} {case}")
        fresh = json.loads(text)
        content = mutated_bytes(text.encode(), rng) if case % 3 == 0 else mutated_document(fresh, rng).encode()
        (tmp_path / "file").write_bytes(content)
        ended(case, *rng.choice(commands))


@pytest.mark.slow
def test_a_parquet_snapshot_with_mistakes_ends_in_a_line(ended: Callable[..., None], cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "file").write_text(json.dumps(SNAPSHOT))
    assert cli("snapshot", "--snapshot", "file", "--out", "good").code == 0
    _, commands = DOCUMENTS["snapshot"]
    (tmp_path / "file").unlink()
    for case in range(CASES // 8):
        rng = Random(f"parquet {case}")
        shutil.copytree(tmp_path / "good", tmp_path / "file")
        chosen = rng.choice(sorted((tmp_path / "file").iterdir()))
        if case % 3 == 0:
            chosen.write_bytes(mutated_bytes(chosen.read_bytes(), rng))
        else:
            pq.write_table(mutated_table(pq.ParquetFile(chosen).read(), rng), chosen)
        ended(case, *rng.choice(commands))
        shutil.rmtree(tmp_path / "file")


def test_settings_and_properties_with_mistakes_end_in_a_line(ended: Callable[..., None], tmp_path: Path) -> None:
    for case in range(CASES // 8):
        rng = Random(f"settings {case}")
        if case % 2:
            (tmp_path / "rackspan.toml").write_bytes(mutated_bytes(SETTINGS.encode(), rng))
            ended(case, "audit", "--snapshot", "moment.json")
            (tmp_path / "rackspan.toml").unlink()
        else:
            (tmp_path / "client.properties").write_bytes(mutated_bytes(PROPERTIES.encode(), rng))
            ended(case, "audit", "--bootstrap-server", "127.0.0.1:1", "--timeout", "100", "--command-config", "client.properties")  # fmt: skip


@pytest.mark.slow
def test_a_warehouse_with_mistakes_in_its_log_ends_in_a_line(ended: Callable[..., None], tmp_path: Path) -> None:
    warehouse = create_warehouse(tmp_path / "warehouse")
    store(json_format.from_document(GOOD).snapshot, warehouse)
    entry = Path(warehouse.table("snapshots")) / "_delta_log" / f"{1:020}.json"
    whole = entry.read_bytes()
    for case in range(CASES // 16):
        entry.write_bytes(mutated_bytes(whole, Random(f"log {case}")))
        ended(case, "pipeline", "table", "snapshots", "--warehouse", "warehouse", "-o", "json")
