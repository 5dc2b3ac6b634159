"""Guarded producers for Python, for clusters without a gateway: confluent-kafka, kafka-python and aiokafka.

Each sends with acks=all, reads the cluster's metadata before a record is sent, and after it was acknowledged the logs of its replicas from
the replicas themselves. NotEnoughRacks and NotEnoughRacksAfterAppend, by acks/verification.py, are reported as the client reports its own errors:
by the delivery callback, by the future, by the coroutine. Begin with verifier.py.

Weaker than a gateway: the leader is the newest that any replica reports, not the one that was sampled before the record was sent, and
producers without the wrapper are not checked. A record that is refused after the append stays in the log. The value is the caller's, not
the topic's config. Each has connections of its own, and needs READ on the topic, and before Kafka 4.4 DESCRIBE_CONFIGS on the cluster, by
which each broker proves which one it is (client/identity.py).
Depends on: acks, client, kafka_bytes, model.
"""

from typing import TYPE_CHECKING

from rackspan.lazy_exports import lazy_getattr

if TYPE_CHECKING:
    from rackspan.producers.aiokafka import GuardedAIOKafkaProducer
    from rackspan.producers.confluent import GuardedProducer
    from rackspan.producers.kafka_python import GuardedKafkaProducer
else:
    __getattr__ = lazy_getattr(
        __name__,
        {
            "aiokafka": ("GuardedAIOKafkaProducer",),
            "confluent": ("GuardedProducer",),
            "kafka_python": ("GuardedKafkaProducer",),
        },
    )

__all__ = ["GuardedAIOKafkaProducer", "GuardedKafkaProducer", "GuardedProducer"]
