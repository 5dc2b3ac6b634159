"""GuardedKafkaProducer: kafka-python's KafkaProducer, whose futures end after the racks were counted."""

import time
from collections.abc import Callable, Mapping
from concurrent.futures import Future, wait
from contextlib import closing
from functools import partial
from typing import Any, Final

from kafka import KafkaProducer
from kafka.errors import KafkaTimeoutError

from rackspan.daemon_threads import DaemonExecutor
from rackspan.ends import END_SECONDS, end_within
from rackspan.errors import RetriableProduceError, UsageError
from rackspan.producers.logins import kafka_python_login, server_list
from rackspan.producers.verifier import VERIFY_SECONDS, RecordVerifier, VerifierThread, refuse_weak_acks
from rackspan.producers.waiting import RECORDS_MAX, WaitingRecords
from rackspan.text import count_noun

BYTES_MAX: Final = 32 * 2**20
"""Of keys and values that wait: the default of Java's buffer.memory. kafka-python 3 has no such config."""

_WHEN_FULL: Final = (
    f"{RECORDS_MAX:,} records or {BYTES_MAX >> 20} MiB are the most; wait for the futures of some, and send it again"
)


class GuardedKafkaProducer:
    """`config` is kafka-python's; `min_insync_racks` gives the racks required by topic."""

    def __init__(
        self, min_insync_racks: Mapping[str, int], *, verify_seconds: float = VERIFY_SECONDS, **config: Any
    ) -> None:
        """Errors: UsageError for acks other than all."""
        refuse_weak_acks(config, "acks")
        servers = server_list(config.get("bootstrap_servers", "localhost"))
        records = RecordVerifier(servers, kafka_python_login(config), min_insync_racks, seconds=verify_seconds)
        self._producer = KafkaProducer(**{**config, "acks": "all"})
        self._verifier = VerifierThread(records)
        # The client's `send` waits for its own metadata, until `max_block_ms`: there, and not in the caller's thread.
        self._sends = DaemonExecutor(1, "rackspan-guard-sends")
        self._waiting = WaitingRecords(RECORDS_MAX, BYTES_MAX, _WHEN_FULL)
        self._serializes = any(config.get(key) is not None for key in ("key_serializer", "value_serializer"))
        self._unverified: set[Future[Any]] = set()

    def send(
        self, topic: str, value: bytes | None = None, key: bytes | None = None, partition: int | None = None
    ) -> "Future[Any]":
        """The record's metadata, once it is verified.

        It never waits: the guard reads the topic's ISR, and another thread gives the record to the client. Records of a topic are sent in
        the order of the calls. Errors of the future: NotEnoughRacks and ClusterUnreachable, with which nothing was sent,
        NotEnoughRacksAfterAppend, and all those of the client. Errors: UsageError after `close`; TypeError; BufferError if 100,000 records
        or 32 MiB wait. To a topic that requires one rack the client sends at once, and waits and raises as it does.
        """
        result: Future[Any] = Future()
        give = partial(self._give, result, topic, value, key, partition)
        if not self._verifier.records.requires(topic):
            give()
            return result
        size_bytes = self._size("value", value) + self._size("key", key)
        self._waiting.add(size_bytes)
        result.add_done_callback(self._unverified.discard)
        self._unverified.add(result)
        try:
            self._verifier.when_read(topic, partition, lambda error: self._send(error, result, give, size_bytes))
        except UsageError:
            self._waiting.remove(size_bytes)
            self._unverified.discard(result)
            raise
        return result

    def _size(self, name: str, given: object) -> int:
        """The bytes of a key or value, 0 of what is yet to be serialized."""
        if given is None or (self._serializes and not isinstance(given, bytes)):
            return 0
        if not isinstance(given, bytes | bytearray | memoryview):
            # Now: an exception in another thread is nobody's.
            raise TypeError(f"{name} is {type(given).__name__}; give bytes, or a serializer to the producer")
        return len(given)

    def _send(self, error: Exception | None, result: "Future[Any]", give: Callable[[], None], size_bytes: int) -> bool:
        """Give a record to the client in the thread of the sends, or report its error."""

        def sent() -> None:
            try:
                give()
            except Exception as refused:
                self._verifier.report(partial(result.set_exception, refused))
            finally:
                self._waiting.remove(size_bytes)

        if error is None:
            self._sends.submit(sent)
        else:
            self._verifier.report(partial(result.set_exception, error))
            self._waiting.remove(size_bytes)
        return True

    def _give(
        self, result: "Future[Any]", topic: str, value: bytes | None, key: bytes | None, partition: int | None
    ) -> None:
        sent = self._producer.send(topic, value=value, key=key, partition=partition)
        # After it: a record that the client refuses at once would never end, and `close` waits for each.
        self._unverified.add(result)
        result.add_done_callback(self._unverified.discard)
        sent.add_errback(result.set_exception)
        sent.add_callback(lambda metadata: self._acknowledged(result, metadata))

    def _acknowledged(self, result: "Future[Any]", metadata: Any) -> None:
        if not self._verifier.records.requires(metadata.topic):
            result.set_result(metadata)
            return

        def report(error: RetriableProduceError | None) -> None:
            if error is None:
                result.set_result(metadata)
            else:
                result.set_exception(error)

        self._verifier.when_verified(metadata.topic, metadata.partition, metadata.offset, report)

    def flush(self, seconds: float = 60.0) -> None:
        """Returns when every record was delivered and verified. Errors: KafkaTimeoutError after so many seconds."""
        until = time.monotonic() + seconds
        self._waiting.await_none(seconds)
        self._producer.flush(max(0.0, until - time.monotonic()))
        unverified = wait(tuple(self._unverified), max(0.0, until - time.monotonic())).not_done
        if unverified:
            raise KafkaTimeoutError(f"{count_noun(len(unverified), 'record')} not verified in {seconds:g} s")

    def close(self) -> None:
        """Returns when every record that was sent has been verified. Errors: KafkaTimeoutError if one is not in 60 s."""
        with closing(self._verifier):
            try:
                self.flush()
            finally:
                # Its own limit is for its flush, and again for its thread.
                end = partial(self._producer.close, END_SECONDS / 2)
                end_within("KafkaProducer", end, END_SECONDS, unacknowledged=lambda: len(self._unverified))
                self._sends.shutdown(wait=False)
