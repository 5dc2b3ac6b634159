"""Bytes that real brokers sent to clients, by their own counter BytesOutPerSec, which leaves replication out.

The brokers run without a JMX port: `jcmd`, of the same JDK, opens one in the running process.
"""

import re
import subprocess
from pathlib import Path
from typing import Final

from rackspan.kafka_process import KafkaCluster

_MBEAN: Final = "kafka.server:type=BrokerTopicMetrics,name=BytesOutPerSec"
_JMX_TOOL: Final = "org.apache.kafka.tools.JmxTool"


def bytes_out(cluster: KafkaCluster) -> dict[str, int]:
    """Bytes sent to clients since each broker started, by rack."""
    runtime = cluster.runtime
    racks = {node.id: node.rack or "" for node in cluster.brokers}
    found: dict[str, int] = dict.fromkeys(racks.values(), 0)
    for broker, pid in cluster.pids.items():
        if broker not in racks:
            continue  # A controller alone.
        address = _address(runtime.java.home / "bin" / "jcmd", pid)
        arguments = ("--object-name", _MBEAN, "--attributes", "Count", "--one-time", "--report-format", "properties")
        printed = runtime.run_tool(_JMX_TOOL, *arguments, "--jmx-url", address)
        counts = re.findall(r":Count\W+(\d+)\b", printed)
        if len(counts) != 1:
            # Nothing found is not nothing sent.
            raise RuntimeError(f"broker {broker}: JmxTool prints no counter:\n{printed}")
        found[racks[broker]] += int(counts[0])
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
