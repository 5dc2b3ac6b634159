"""The kinds of resources that have configs, and the numbers of Kafka's requests for them."""

from enum import IntEnum


class ConfigResourceType(IntEnum):
    """Kafka's ConfigResource.Type."""

    TOPIC = 2
    BROKER = 4
    BROKER_LOGGER = 8
    CLIENT_METRICS = 16
    GROUP = 32
