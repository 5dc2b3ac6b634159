"""GuardedProducer: confluent-kafka's Producer, whose delivery reports come after the racks were counted."""

import logging
import math
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

from confluent_kafka import KafkaException

from rackspan.client.identity import IdentityMode, identity_of
from rackspan.ends import lost
from rackspan.errors import UsageError
from rackspan.producers.handles import Producer
from rackspan.producers.logins import librdkafka_login
from rackspan.producers.verifier import VERIFY_SECONDS, RecordVerifier, VerifierThread, refuse_weak_acks
from rackspan.producers.waiting import RECORDS_MAX, WaitingRecords

log = logging.getLogger(__name__)

FLUSH_SECONDS: Final = 60.0

_POLL_SECONDS: Final = 0.005
_SLICE_SECONDS: Final = 0.5
"""The longest wait in librdkafka, which Python's signals do not interrupt."""

_PROGRESS_SECONDS: Final = 10.0

_ACKS: Final = ("acks", "request.required.acks")

_ONLY_ERRORS: Final = "delivery.report.only.error"

_MAX_MESSAGES: Final = "queue.buffering.max.messages"
_MAX_KBYTES: Final = "queue.buffering.max.kbytes"
_MAX_KBYTES_DEFAULT: Final = 1_048_576
"""librdkafka's own default."""

OnDelivery = Callable[[Any, Any], None]


@dataclass(frozen=True, slots=True)
class UnsentMessage:
    """A record that was never sent, as its delivery report has it: the methods of confluent-kafka's Message."""

    _topic: str
    _value: bytes | None
    _key: bytes | None
    _partition: int | None
    _error: Any

    def topic(self) -> str:
        return self._topic

    def value(self) -> bytes | None:
        return self._value

    def key(self) -> bytes | None:
        return self._key

    def partition(self) -> int | None:
        return self._partition

    def error(self) -> Any:
        return self._error

    def offset(self) -> None:
        return None

    def headers(self) -> None:
        return None

    def latency(self) -> None:
        return None

    def leader_epoch(self) -> None:
        return None

    def timestamp(self) -> tuple[int, int]:
        """(TIMESTAMP_NOT_AVAILABLE, 0)."""
        return 0, 0

    def __len__(self) -> int:
        return len(self._value or b"")


class GuardedProducer:
    """`config` is librdkafka's; `min_insync_racks` gives the racks required by topic.

    What becomes of a record is reported to `on_delivery(error, message)` and nowhere else. The error is librdkafka's; NotEnoughRacks or
    ClusterUnreachable, with which nothing was sent; or NotEnoughRacksAfterAppend. For a topic that requires more than one rack it is
    called from a thread of the guard, and may send records.
    """

    def __init__(
        self,
        config: Mapping[str, Any],
        min_insync_racks: Mapping[str, int],
        *,
        verify_seconds: float = VERIFY_SECONDS,
        broker_identity: str = IdentityMode.PROVED.value,
    ) -> None:
        """Errors: UsageError for acks other than all, and for a login that the guard cannot use; UnprovableBroker and
        OtherBroker, unless `broker_identity` is "address".
        """
        # librdkafka takes them in three places, of which the last one counts.
        for given in (config, config.get("default.topic.config") or {}):
            refuse_weak_acks(given, *_ACKS, *(f"topic.{key}" for key in _ACKS))
        servers = str(config.get("bootstrap.servers", ""))
        identity = identity_of("broker_identity", broker_identity)
        login = librdkafka_login(config)
        records = RecordVerifier(servers, login, min_insync_racks, seconds=verify_seconds, identity=identity)
        # Applied here: without a report of its acknowledgement no record would be verified.
        self._only_errors = str(config.get(_ONLY_ERRORS, False)).lower() == "true"
        self._on_delivery: OnDelivery | None = config.get("on_delivery")
        self._verifier = VerifierThread(records)
        self._verifier.start()
        try:
            self._producer = Producer({**config, "acks": "all", _ONLY_ERRORS: False})
        except BaseException:
            self._verifier.close()
            raise
        self._unreported: set[object] = set()
        """Every record from `produce` until its report has been given, wherever it is. A report that produces another adds that first."""
        # librdkafka's own count has errors of connections in it, which nobody polls after `close`.
        self._producer.unacknowledged = self._unreported.__len__
        self._waiting = WaitingRecords(
            int(config.get(_MAX_MESSAGES, RECORDS_MAX)) or math.inf,
            int(config.get(_MAX_KBYTES, _MAX_KBYTES_DEFAULT)) * 1024,
            f"{_MAX_MESSAGES} and {_MAX_KBYTES} allow no more; poll, and produce it again",
        )

    def produce(
        self,
        topic: str,
        value: bytes | str | None = None,
        key: bytes | str | None = None,
        *,
        partition: int | None = None,
        on_delivery: OnDelivery | None = None,
    ) -> None:
        """Give a record to the guard. It never waits: the guard reads the topic's ISR and then gives the record to librdkafka.

        Errors: UsageError after `close`; TypeError; BufferError if as many records wait as librdkafka's queue may hold. A topic that
        requires one rack has librdkafka's own.
        """
        record, report = object(), self._reporting(on_delivery or self._on_delivery)
        self._unreported.add(record)
        try:
            if not self._verifier.records.requires(topic):
                self._hand_over(record, topic, value, key, partition, report)
                return
            value, key = _as_bytes("value", value), _as_bytes("key", key)
            size_bytes = len(value or b"") + len(key or b"")
            self._waiting.add(size_bytes, len(self._unreported) - 1 - len(self._waiting))
            try:
                self._verifier.when_read(
                    topic, partition, lambda error: self._send(error, record, topic, value, key, partition, report)
                )
            except UsageError:
                self._waiting.remove(size_bytes)
                raise
        except BaseException:
            self._unreported.discard(record)
            raise

    def _send(
        self,
        error: Any,
        record: object,
        topic: str,
        value: bytes | None,
        key: bytes | None,
        partition: int | None,
        report: OnDelivery | None,
    ) -> bool:
        """Give a record to librdkafka, or report its error. False if librdkafka's queue is full."""
        if error is None:
            try:
                self._hand_over(record, topic, value, key, partition, report)
            except BufferError:
                return False
            except KafkaException as refused:
                error = refused.args[0]
            except Exception as refused:
                error = refused
        if error is not None:
            message = UnsentMessage(topic, value, key, partition, error)
            self._verifier.report(partial(self._report, record, report, message, error))
        self._waiting.remove(len(value or b"") + len(key or b""))
        return True

    def _hand_over(
        self,
        record: object,
        topic: str,
        value: bytes | str | None,
        key: bytes | str | None,
        partition: int | None,
        report: OnDelivery | None,
    ) -> None:
        where: dict[str, Any] = {} if partition is None else {"partition": partition}
        self._producer.produce(topic, value, key, on_delivery=self._delivered(record, report), **where)

    def poll(self, seconds: float = 0.0) -> int:
        """Serves librdkafka's reports. Those of acknowledged records are passed on when their racks were counted."""
        return self._producer.poll(seconds)

    def flush(self, seconds: float = FLUSH_SECONDS) -> int:
        """Returns when every record was delivered and verified: how many were not, after so many seconds; below 0 as many as it takes."""
        began = time.monotonic()
        until = began + seconds if seconds >= 0 else math.inf
        shown = began + _PROGRESS_SECONDS
        while True:
            left = self._producer.flush(max(0.0, min(until - time.monotonic(), _SLICE_SECONDS)))
            now, records = time.monotonic(), len(self._unreported)
            if records == 0 or now >= until:
                return records
            if now >= shown:
                log.warning("flush continues after %.0f s%s", now - began, lost(records))
                shown = now + _PROGRESS_SECONDS
            if left == 0:
                time.sleep(_POLL_SECONDS)

    def close(self) -> None:
        """Flush, and end the guard. What is not acknowledged after FLUSH_SECONDS is named in a warning, and not reported."""
        left = self.flush(FLUSH_SECONDS)
        if left:
            log.warning("GuardedProducer is closed%s", lost(left))
        self._verifier.close(lambda: len(self._unreported))
        # They are named. Its destruction would name them again, of a producer that was not closed.
        self._producer.unacknowledged = lambda: 0

    def _reporting(self, on_delivery: OnDelivery | None) -> OnDelivery | None:
        """The callback, without the reports that the config declines."""
        if on_delivery is None or not self._only_errors:
            return on_delivery
        return lambda error, message: None if error is None else on_delivery(error, message)

    def _delivered(self, record: object, on_delivery: OnDelivery | None) -> OnDelivery:
        def delivered(error: Any, message: Any) -> None:
            if error is None and self._verifier.records.requires(message.topic()):
                report = partial(self._report, record, on_delivery, message)
                self._verifier.when_verified(message.topic(), message.partition(), acknowledged_offset(message), report)
                return
            try:
                if on_delivery is not None:
                    on_delivery(error, message)
            finally:
                self._unreported.discard(record)

        return delivered

    def _report(self, record: object, on_delivery: OnDelivery | None, message: Any, error: Any) -> None:
        try:
            if on_delivery is not None:
                on_delivery(error, message)
        except Exception:
            log.exception("%s-%d: on_delivery failed", message.topic(), message.partition())
        finally:
            self._unreported.discard(record)


def _as_bytes(name: str, given: bytes | str | None) -> bytes | None:
    if isinstance(given, bytes | None):
        return given
    if isinstance(given, str):
        return given.encode()
    # Now: where the guard gives the record to librdkafka nobody sees an exception.
    raise TypeError(f"{name} is {type(given).__name__}; give bytes or str")


def acknowledged_offset(message: Any) -> int:
    """The offset in a delivery report; below 0 if there is none, as of a batch that was repeated."""
    offset: int | None = message.offset()
    return -1 if offset is None else offset
