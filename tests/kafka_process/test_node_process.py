"""What a node's log shows of its current run."""

from pathlib import Path
from typing import cast

from rackspan.kafka_process.node_process import NodeProcess
from rackspan.kafka_process.release.runtime import KafkaRuntime
from rackspan.kafka_process.topology import KafkaNode


def test_the_tail_of_a_log_is_its_last_forty_lines(tmp_path: Path) -> None:
    process = NodeProcess(KafkaNode(1, "r1", True, True), tmp_path, {}, cast("KafkaRuntime", None))
    process.log_file.write_text("".join(f"line {number}\n" for number in range(50)))
    assert process.log_tail().splitlines() == [f"line {number}" for number in range(10, 50)]
    assert process.log_tail(2).splitlines() == ["line 48", "line 49"]
