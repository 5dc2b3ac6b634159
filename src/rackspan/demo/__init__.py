"""The demo: a cluster, clients, racks lost and restored, the pipeline on Spark, a report.

Begin with run.py. clusters.py starts the cluster (embedded or real Kafka), topics.py has its topics, clients.py its producer and
consumer, two_racks_lost.py the part that needs min.insync.racks. fleet.py is another beginning: a synthetic fleet over weeks, pure. It calls rackspan.api as any user would, and decides nothing.
Depends on: audit, clients, cluster, kafka_process, model, traffic.
"""

from rackspan.demo.run import DemoResult, run_demo

__all__ = ["DemoResult", "run_demo"]
