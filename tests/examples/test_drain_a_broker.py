from pathlib import Path

import pytest

from examples.drain_a_broker import main
from rackspan.cluster import EmbeddedCluster

pytestmark = pytest.mark.slow


def test_the_broker_is_empty_and_the_example_says_so(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with EmbeddedCluster(racks=3, brokers=6) as cluster:
        cluster.create_topic("orders", 6, 3)
        held = sum(1 in cluster.replicas("orders", partition) for partition in range(6))
        assert main(cluster.bootstrap_servers, 1, tmp_path / "journal") == 0
        assert not any(1 in cluster.replicas("orders", partition) for partition in range(6))
    output = capsys.readouterr().out.splitlines()
    assert output[0].startswith(f"{held} moves in ")
    assert output[1].endswith(" findings without broker 1")
    assert "StartMoves" in output
    assert output[-1].split(" ")[0] == output[-1].split(" ")[2]


def test_what_cannot_be_drained_is_not_touched(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with EmbeddedCluster(racks=2, brokers=2) as cluster:
        cluster.create_topic("orders", 1, 2, config={"min.insync.racks": "2"})
        before = cluster.replicas("orders", 0)
        assert main(cluster.bootstrap_servers, 1, tmp_path / "journal") == 2
        assert cluster.replicas("orders", 0) == before
    assert "impossible: 1 topic (orders) has min.insync.racks 2" in capsys.readouterr().out
