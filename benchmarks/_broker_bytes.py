"""Bytes that real brokers sent to clients, by their own counter BytesOutPerSec, which leaves replication out.

The brokers run without a JMX port: `jcmd`, of the same JDK, opens one in the running process.
"""

import re
import subprocess
from pathlib import Path
from typing import Final

from rackspan.java import find_java
from rackspan.kafka_process import KafkaCluster
from rackspan.kafka_process.release.jars import resolve_jars
from rackspan.kafka_process.release.runtime import KafkaRuntime

_MBEAN: Final = "kafka.server:type=BrokerTopicMetrics,name=BytesOutPerSec"
_JMX_TOOL: Final = "org.apache.kafka.tools.JmxTool"


def bytes_out(cluster: KafkaCluster) -> dict[str, int]:
    """Bytes sent to clients since each broker started, by rack."""
    java = find_java()
    runtime = KafkaRuntime(java, resolve_jars(cluster.version))
    racks = {node.id: node.rack or "" for node in cluster.brokers}
    found: dict[str, int] = dict.fromkeys(racks.values(), 0)
    for broker, pid in cluster.pids.items():
        arguments = ("--object-name", _MBEAN, "--attributes", "Count", "--one-time", "--report-format", "csv")
        printed = runtime.run_tool(_JMX_TOOL, *arguments, "--jmx-url", _address(java.home / "bin" / "jcmd", pid))
        counts = re.findall(r"(?:Count[=,:]?\s*|^)(\d+)\s*$", printed, re.MULTILINE)
        # A broker that has sent nothing yet has no counter.
        found[racks[broker]] += int(counts[-1]) if counts else 0
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
