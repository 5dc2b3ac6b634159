"""The types of config resources by Kafka's numbers."""

from enum import IntEnum


class ConfigResourceType(IntEnum):
    """ConfigResource.Type. The embedded cluster has configs of topics, brokers and groups."""

    TOPIC = 2
    BROKER = 4
    BROKER_LOGGER = 8
    CLIENT_METRICS = 16
    GROUP = 32
