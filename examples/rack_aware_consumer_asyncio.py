"""Read a topic as one of a group, each consumer what is in its own rack. With aiokafka, in the same group if you like:

python examples/rack_aware_consumer_asyncio.py 127.0.0.1:9092 orders-readers orders eu-1b
"""

import asyncio
import sys

from aiokafka import AIOKafkaConsumer

from rackspan.assignor.aiokafka import in_rack
from rackspan.ends import awaited_within


async def main(bootstrap_servers: str, group: str, topic: str, rack: str) -> None:
    """Print the partition and offset of every record. Start one in each rack."""
    consumer = AIOKafkaConsumer(
        topic, bootstrap_servers=bootstrap_servers, group_id=group, auto_offset_reset="earliest", **in_rack(rack)
    )
    try:
        await consumer.start()
        async for record in consumer:
            print(f"{rack} {record.topic}-{record.partition} {record.offset}", flush=True)
    finally:
        await awaited_within("AIOKafkaConsumer", consumer.stop(), seconds=4)


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
