"""Read a topic as one of a group, each consumer what is in its own rack. With kafka-python:

python examples/rack_aware_consumer.py 127.0.0.1:9092 orders-readers orders eu-1a
"""

import sys

from kafka import KafkaConsumer

from rackspan.assignor.kafka_python import in_rack
from rackspan.ends import closing


def main(bootstrap_servers: str, group: str, topic: str, rack: str) -> None:
    """Print the partition and offset of every record. Start one in each rack."""
    consumer = KafkaConsumer(
        topic, bootstrap_servers=bootstrap_servers, group_id=group, auto_offset_reset="earliest", **in_rack(rack)
    )
    # Ctrl-C ends this whatever the brokers do.
    with closing(consumer, seconds=4):
        for record in consumer:
            print(f"{rack} {record.topic}-{record.partition} {record.offset}", flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
