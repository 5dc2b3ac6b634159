"""A driver that is killed and started again from its checkpoint, with executors in two racks, on real Kafka."""

import json
import os
import random
import subprocess
import sys
import time
from contextlib import ExitStack
from pathlib import Path

import pytest

from rackspan.kafka_process import KafkaCluster
from tests.kafka_source.filled_topics import consumed, created, produced
from tests.kafka_source.standalone import SPARK_HOME, group, kill_group, standalone
from tests.pipeline.conftest import QUICK_JAVA

pytestmark = [pytest.mark.spark, pytest.mark.kafka]

SOAK = bool(os.environ.get("RACKSPAN_SOAK"))
KILLS = 10 if SOAK else 1
RECORDS = 40_000 if SOAK else 600
BATCH = 60
ROOT = Path(__file__).parents[2]

# In local-cluster every executor has the environment of the driver, and a folder of its own, which ends in its number.
BY_FOLDER = '#!/bin/sh\ncase "$PWD" in */0) echo r1;; *) echo r2;; esac\n'


def batches(folder: Path) -> int:
    """Those that are committed."""
    return len([name for name in (folder / "checkpoint" / "commits").glob("*") if name.name.isdigit()])


@pytest.mark.timeout(1800 if SOAK else 600)
@pytest.mark.parametrize("kind", ["standalone", "local-cluster"])
@pytest.mark.soak
def test_each_record_arrives_once_however_often_the_driver_is_killed(
    kafka: KafkaCluster, tmp_path: Path, kind: str
) -> None:
    topic = created(kafka)
    produced(kafka.bootstrap_servers, topic, RECORDS)
    script = tmp_path / "rack.sh"
    script.write_text(BY_FOLDER)
    script.chmod(0o700)
    environment = {
        "PYSPARK_PYTHON": sys.executable,
        "SPARK_HOME": str(SPARK_HOME),
        "PYTHONPATH": os.pathsep.join(sys.path),
        **QUICK_JAVA,
    }
    rng = random.Random(7)
    with ExitStack() as held:
        if kind == "standalone":
            master = held.enter_context(standalone(tmp_path, ("r1", "r2")))
        else:
            master, environment = "local-cluster[2,1,1024]", {**environment, "RACK_SCRIPT": str(script)}
        words = [sys.executable, "-m", "tests.kafka_source.restarted_driver", master, kafka.bootstrap_servers, topic]
        for number in range(KILLS):
            before, log = batches(tmp_path), tmp_path / f"driver-{number}.log"
            with (
                log.open("w") as output,
                group([*words, str(tmp_path), "kill-me"], environment, stdout=output, cwd=ROOT) as driver,
            ):
                until = time.monotonic() + 400
                while batches(tmp_path) == before:
                    assert driver.poll() is None, log.read_text()[-3000:]
                    assert time.monotonic() < until, log.read_text()[-3000:]
                    time.sleep(0.05)
                # Anywhere within a batch.
                time.sleep(rng.random())
                kill_group(driver)
        assert batches(tmp_path) < RECORDS / BATCH, "the driver was done before it was killed"
        with group([*words, str(tmp_path), "to-the-end"], environment, stdout=subprocess.PIPE, cwd=ROOT) as driver:
            printed, _ = driver.communicate(timeout=300)
    (line,) = (line for line in printed.splitlines() if line.startswith('{"rows"'))
    found = json.loads(line)
    assert sorted(map(tuple, found["rows"])) == [
        (row.partition, row.offset) for row in consumed(kafka.bootstrap_servers, topic)
    ]
    assert sorted(map(tuple, found["racks"])) == [("r1", "r1"), ("r2", "r2")]
    if kind == "standalone":
        # A failed task was run again, and a speculative copy overtook another.
        assert (tmp_path / "failed").exists()
        assert (tmp_path / "overtaken").exists() or sys.platform != "linux"
        assert not (tmp_path / "not overtaken").exists() or sys.platform != "linux"
