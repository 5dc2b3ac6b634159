"""GuardedProducer: confluent-kafka's Producer, whose delivery reports come after the racks were counted."""

import logging
import math
import time
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, Final

from confluent_kafka import Producer

from rackspan.errors import RetriableProduceError
from rackspan.producers.logins import librdkafka_login
from rackspan.producers.verifier import VERIFY_SECONDS, RecordVerifier, VerifierThread, refuse_weak_acks

log = logging.getLogger(__name__)

_POLL_SECONDS: Final = 0.005

_ACKS: Final = ("acks", "request.required.acks")

_ONLY_ERRORS: Final = "delivery.report.only.error"

OnDelivery = Callable[[Any, Any], None]


class GuardedProducer:
    """`config` is librdkafka's; `min_insync_racks` gives the racks required by topic.

    `on_delivery(error, message)` is called from a thread of the guard, and may send records; its error is librdkafka's, or NotEnoughRacksAfterAppend.
    """

    def __init__(
        self,
        config: Mapping[str, Any],
        min_insync_racks: Mapping[str, int],
        *,
        verify_seconds: float = VERIFY_SECONDS,
    ) -> None:
        """Errors: UsageError for acks other than all, and for a login that the guard cannot use."""
        # librdkafka takes them in three places, of which the last one counts.
        for given in (config, config.get("default.topic.config") or {}):
            refuse_weak_acks(given, *_ACKS, *(f"topic.{key}" for key in _ACKS))
        servers = str(config.get("bootstrap.servers", ""))
        records = RecordVerifier(servers, librdkafka_login(config), min_insync_racks, seconds=verify_seconds)
        # Applied here: without a report of its acknowledgement no record would be verified.
        self._only_errors = str(config.get(_ONLY_ERRORS, False)).lower() == "true"
        self._on_delivery: OnDelivery | None = config.get("on_delivery")
        self._producer = Producer({**config, "acks": "all", _ONLY_ERRORS: False})
        self._verifier = VerifierThread(records)
        self._unverified: set[object] = set()

    def produce(
        self,
        topic: str,
        value: bytes | str | None = None,
        key: bytes | str | None = None,
        *,
        partition: int | None = None,
        on_delivery: OnDelivery | None = None,
    ) -> None:
        """Errors: NotEnoughRacks before anything is sent; BufferError, KafkaException, ClusterUnreachable."""
        if self._verifier.records.requires(topic):
            error = self._verifier.before(topic, partition)
            if error is not None:
                raise error
        where: dict[str, Any] = {} if partition is None else {"partition": partition}
        report = self._reporting(on_delivery or self._on_delivery)
        self._producer.produce(topic, value, key, on_delivery=self._delivered(report), **where)

    def poll(self, seconds: float = 0.0) -> int:
        """Serves librdkafka's reports. Those of acknowledged records are passed on when their racks were counted."""
        return self._producer.poll(seconds)

    def flush(self, seconds: float = 60.0) -> int:
        """Returns when every record was delivered and verified: how many were not, after so many seconds; below 0 as many as it takes."""
        until = time.monotonic() + seconds if seconds >= 0 else math.inf
        left = self._producer.flush(seconds)
        while self._unverified and time.monotonic() < until:
            time.sleep(_POLL_SECONDS)
        return left + len(self._unverified)

    def close(self) -> None:
        self.flush()
        self._verifier.close()

    def _reporting(self, on_delivery: OnDelivery | None) -> OnDelivery | None:
        """The callback, without the reports that the config declines."""
        if on_delivery is None or not self._only_errors:
            return on_delivery
        return lambda error, message: None if error is None else on_delivery(error, message)

    def _delivered(self, on_delivery: OnDelivery | None) -> OnDelivery:
        def delivered(error: Any, message: Any) -> None:
            if error is None and self._verifier.records.requires(message.topic()):
                record = object()
                self._unverified.add(record)
                report = partial(self._report, record, on_delivery, message)
                self._verifier.when_verified(message.topic(), message.partition(), acknowledged_offset(message), report)
            elif on_delivery is not None:
                on_delivery(error, message)

        return delivered

    def _report(
        self, record: object, on_delivery: OnDelivery | None, message: Any, error: RetriableProduceError | None
    ) -> None:
        try:
            if on_delivery is not None:
                on_delivery(error, message)
        except Exception:
            log.exception("%s-%d: on_delivery failed", message.topic(), message.partition())
        finally:
            self._unverified.discard(record)


def acknowledged_offset(message: Any) -> int:
    """The offset in a delivery report; below 0 if there is none, as of a batch that was repeated."""
    offset: int | None = message.offset()
    return -1 if offset is None else offset
