"""Real Apache Kafka (KRaft), started and stopped from Python: for tests, the demo and `cluster up --kafka`.

Begin with cluster.py, then topology.py (who is in it). jars.py finds a release, keeper.py sees to it that no process
outlives its owner, ports.py and data_folder.py that neither ports nor files are fought over. Loopback only; never a
cluster for production.
"""

from rackspan.kafka_process.cluster import KafkaCluster, console_tool
from rackspan.kafka_process.release.jars import resolve_jars
from rackspan.kafka_process.release.versions import DEFAULT_VERSION, KafkaVersion
from rackspan.kafka_process.topology import Node

__all__ = ["DEFAULT_VERSION", "KafkaCluster", "KafkaVersion", "Node", "console_tool", "resolve_jars"]
