"""Bytes that real brokers count, by their own BrokerTopicMetrics.

The brokers run without a JMX port: `jcmd`, of the same JDK, opens one in the running process.
"""

import re
import subprocess
from collections import Counter
from pathlib import Path
from typing import Final, NamedTuple

from rackspan.kafka_process import KafkaCluster

_MBEANS: Final = "kafka.server:type=BrokerTopicMetrics,*"
_JMX_TOOL: Final = "org.apache.kafka.tools.JmxTool"
_COUNT: Final = re.compile(
    r"kafka\.server:type=BrokerTopicMetrics,name=(?P<name>\w+)(?:,topic=(?P<topic>[^:,]+))?:Count\W+(?P<count>\d+)\b"
)
BYTES_OUT: Final = "BytesOutPerSec"
"""Bytes to clients: replication is left out."""


class BrokerCount(NamedTuple):
    """What one counter counts. `topic` is None for all together."""

    rack: str
    name: str
    topic: str | None


def bytes_out(cluster: KafkaCluster) -> dict[str, int]:
    """Bytes sent to clients since each broker started, by rack."""
    counts = broker_counts(cluster)
    return {
        rack: counts[BrokerCount(rack, BYTES_OUT, None)]
        for rack in {cluster.rack(broker) or "" for broker in cluster.brokers}
    }


def broker_counts(cluster: KafkaCluster) -> Counter[BrokerCount]:
    """All counts since each broker started, summed by rack."""
    runtime = cluster.runtime
    racks = {broker: cluster.rack(broker) or "" for broker in cluster.brokers}
    found = Counter[BrokerCount]()
    for broker, pid in cluster.pids.items():
        if broker not in racks:
            continue  # A controller alone.
        address = _address(runtime.java.home / "bin" / "jcmd", pid)
        arguments = ("--object-name", _MBEANS, "--attributes", "Count", "--one-time", "--report-format", "properties")
        printed = runtime.run_tool(_JMX_TOOL, *arguments, "--jmx-url", address)
        counts = {
            BrokerCount(racks[broker], match["name"], match["topic"]): int(match["count"])
            for match in _COUNT.finditer(printed)
        }
        if BrokerCount(racks[broker], BYTES_OUT, None) not in counts:
            # Nothing found is not nothing sent.
            raise RuntimeError(f"broker {broker}: JmxTool prints no counter:\n{printed}")
        found.update(counts)
    return found


def _address(jcmd: Path, pid: int) -> str:
    subprocess.run([jcmd, str(pid), "ManagementAgent.start_local"], capture_output=True, check=False, timeout=60)
    status = subprocess.run(
        [jcmd, str(pid), "ManagementAgent.status"], capture_output=True, text=True, check=True, timeout=60
    )
    match = re.search(r"URL\s*:\s*(service:jmx:\S+)", status.stdout)
    if match is None:
        raise RuntimeError(f"process {pid} opens no JMX address:\n{status.stdout}")
    return match.group(1)
