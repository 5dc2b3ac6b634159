"""Lose a rack: what acks=all does under min.insync.racks=2. Needs rackspan and confluent-kafka, no Java."""

from confluent_kafka import Producer

from rackspan.cluster import EmbeddedCluster
from rackspan.testing import closing

with EmbeddedCluster(racks=3, brokers=6) as cluster:
    cluster.create_topic("orders", 1, 3, config={"min.insync.racks": "2"})
    config = {"bootstrap.servers": cluster.bootstrap_servers, "message.timeout.ms": 3000, "log_level": 0}
    with closing(Producer(config)) as producer:
        for lost in ("no rack", "r1", "r2"):
            if lost in cluster.racks:
                cluster.lose_rack(lost)
            in_sync = sorted(str(cluster.rack(broker)) for broker in cluster.isr("orders", 0))
            producer.produce(
                "orders", b"42", on_delivery=lambda error, _: print("  refused" if error else "  acknowledged")
            )
            print(f"{lost} lost, in sync {', '.join(in_sync)}:")
            producer.flush(30)
