"""Consumers of the topic orders, each in a group of its own."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Protocol

from confluent_kafka import Consumer


class Served(Protocol):
    """A cluster, or a gateway before it."""

    @property
    def bootstrap_servers(self) -> str: ...


@contextmanager
def consumer(cluster: Served, group: str, rack: str | None, *, subscribed: bool = True) -> Iterator[Consumer]:
    properties = {"bootstrap.servers": cluster.bootstrap_servers, "group.id": group, "client.id": group, "log_level": 0}
    properties["enable.auto.commit"] = "false"
    if rack is not None:
        properties["client.rack"] = rack
    reader = Consumer(properties | {"auto.offset.reset": "earliest"})
    if subscribed:
        reader.subscribe(["orders"])
    try:
        yield reader
    finally:
        reader.close()


def read_all(reader: Consumer, records: int) -> None:
    """Read so many records, and commit."""
    count = 0
    while count < records:
        count += sum(record.error() is None for record in reader.consume(min(1000, records - count), 1))
    reader.commit(asynchronous=False)
