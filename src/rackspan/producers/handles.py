"""Clients of librdkafka whose destruction holds up nobody: a destruction joins librdkafka's threads, which may be in a deadlock."""

import confluent_kafka
from confluent_kafka import admin

from rackspan.ends import DestroyedInBackground


class Producer(DestroyedInBackground, confluent_kafka.Producer):
    """confluent-kafka's, destroyed in the background."""


class Consumer(DestroyedInBackground, confluent_kafka.Consumer):
    """confluent-kafka's, destroyed in the background."""


class AdminClient(DestroyedInBackground, admin.AdminClient):
    """confluent-kafka's, destroyed in the background."""
