"""Real Apache Kafka (KRaft), started and stopped from Python: for tests, the demo and `cluster up --kafka`.

Begin with cluster.py, then topology.py (its brokers and controllers). release/ fetches and runs a Kafka release, child_process
guarantees that no Java process outlives its owner, ports.py and data_folder.py that clusters do not share ports or files.
Loopback only; never a cluster for production.
Depends on: child_process.
"""

from typing import TYPE_CHECKING

from rackspan.lazy_exports import lazy_getattr

if TYPE_CHECKING:
    from rackspan.kafka_process.cluster import KafkaCluster, console_tool
    from rackspan.kafka_process.release.jars import resolve_jars
    from rackspan.kafka_process.release.versions import DEFAULT_VERSION, TESTED_VERSIONS, KafkaVersion
    from rackspan.kafka_process.topology import KafkaNode
else:
    __getattr__ = lazy_getattr(
        __name__,
        {
            "cluster": ("KafkaCluster", "console_tool"),
            "release.jars": ("resolve_jars",),
            "release.versions": ("DEFAULT_VERSION", "TESTED_VERSIONS", "KafkaVersion"),
            "topology": ("KafkaNode",),
        },
    )

__all__ = [
    "DEFAULT_VERSION",
    "TESTED_VERSIONS",
    "KafkaCluster",
    "KafkaNode",
    "KafkaVersion",
    "console_tool",
    "resolve_jars",
]
