"""GuardedKafkaProducer: kafka-python's KafkaProducer, whose futures end after the racks were counted."""

import threading
import time
from collections.abc import Callable, Mapping
from concurrent.futures import Future, InvalidStateError, wait
from contextlib import ExitStack, closing, suppress
from functools import partial
from typing import Any, Final

from kafka import KafkaProducer
from kafka.errors import KafkaTimeoutError
from kafka.serializer import Serializer, SerializeWrapper

from rackspan.client.identity import IdentityMode, identity_of
from rackspan.daemon_threads import DaemonExecutor
from rackspan.ends import END_SECONDS, end_within
from rackspan.errors import UsageError
from rackspan.producers.logins import kafka_python_login, server_list
from rackspan.producers.verifier import NOT_RUNNING, VERIFY_SECONDS, RecordVerifier, VerifierThread, refuse_weak_acks
from rackspan.producers.waiting import RECORDS_MAX, WaitingRecords, copied
from rackspan.text import count_noun

BYTES_MAX: Final = 32 * 2**20
"""Of keys and values that wait: the default of Java's buffer.memory. kafka-python 3 has no such config."""

_FLUSH_SECONDS: Final = 0.05
"""How long a record that the client did not have yet stays in its batch while `flush` waits."""

_WHEN_FULL: Final = (
    f"{RECORDS_MAX:,} records or {BYTES_MAX >> 20} MiB are the most; wait for the futures of some, and send it again"
)


class GuardedKafkaProducer:
    """`config` is kafka-python's; `min_insync_racks` gives the racks required by topic.

    The guard serializes keys and values itself, so that a partitioner gets their bytes only.
    """

    def __init__(
        self,
        min_insync_racks: Mapping[str, int],
        *,
        verify_seconds: float = VERIFY_SECONDS,
        broker_identity: str = IdentityMode.PROVED.value,
        **config: Any,
    ) -> None:
        """Errors: UsageError for acks other than all; UnprovableBroker and OtherBroker, unless `broker_identity` is "address"."""
        refuse_weak_acks(config, "acks")
        servers = server_list(config.get("bootstrap_servers", "localhost"))
        identity = identity_of("broker_identity", broker_identity)
        login = kafka_python_login(config)
        records = RecordVerifier(servers, login, min_insync_racks, seconds=verify_seconds, identity=identity)
        self._serializers = {name: _serializer(config.pop(f"{name}_serializer", None)) for name in ("key", "value")}
        self._serializers_closing = ExitStack()
        for serializer in filter(None, self._serializers.values()):
            self._serializers_closing.callback(serializer.close)
        self._verifier = VerifierThread(records)
        self._verifier.start()
        try:
            self._producer = KafkaProducer(**{**config, "acks": "all"})
        except BaseException:
            self._verifier.close()
            raise
        # The client's `send` waits for its own metadata, until `max_block_ms`: there, and not in the caller's thread.
        self._sends = DaemonExecutor(1, "rackspan-guard-sends")
        self._waiting = WaitingRecords(RECORDS_MAX, BYTES_MAX, _WHEN_FULL)
        self._unverified: set[Future[Any]] = set()
        self._accepting, self._closed = threading.Lock(), False

    def send(self, topic: str, value: Any = None, key: Any = None, partition: int | None = None) -> "Future[Any]":
        """The record's metadata, once it is verified.

        It never waits: key and value are serialized, the guard reads the topic's ISR, and another thread gives the record to the client.
        Records of a topic are sent in the order of the calls. Errors of the future: NotEnoughRacks and ClusterUnreachable, with which
        nothing was sent, NotEnoughRacksAfterAppend, and all those of the client. Errors: UsageError after `close`; TypeError; those of the
        serializers; BufferError if 100,000 records or 32 MiB wait. To a topic that requires one rack the client sends at once, and waits
        and raises as it does.
        """
        value, key = self._serialized("value", topic, value), self._serialized("key", topic, key)
        result: Future[Any] = Future()
        give = partial(self._give, result, topic, value, key, partition)
        result.add_done_callback(self._unverified.discard)
        with self._accepting:
            if self._closed:
                raise UsageError(NOT_RUNNING)
            self._unverified.add(result)
        try:
            if self._verifier.records.requires(topic):
                self._send_when_read(result, give, topic, partition, len(value or b"") + len(key or b""))
            else:
                give()
        except BaseException:
            self._unverified.discard(result)
            raise
        return result

    def _serialized(self, name: str, topic: str, given: Any) -> bytes | None:
        """A key or value, now: the caller may change it once `send` has returned, and an exception in another thread is nobody's."""
        serializer = self._serializers[name]
        return copied(name, given if serializer is None else serializer.serialize(topic, [], given))

    def _send_when_read(
        self, result: "Future[Any]", give: Callable[[], None], topic: str, partition: int | None, size_bytes: int
    ) -> None:
        # A record that is larger than the bound waits by itself.
        size_bytes = min(size_bytes, BYTES_MAX)
        self._waiting.add(size_bytes)
        try:
            self._verifier.when_read(topic, partition, lambda error: self._send(error, result, give, size_bytes))
        except UsageError:
            self._waiting.remove(size_bytes)
            raise

    def _send(self, error: Exception | None, result: "Future[Any]", give: Callable[[], None], size_bytes: int) -> bool:
        """Give a record to the client in the thread of the sends, or report its error."""

        def sent() -> None:
            refused: Exception | None = None
            try:
                if not result.done():
                    give()
            except Exception as raised:
                refused = raised
            self._waiting.remove(size_bytes)
            if refused is not None:
                self._verifier.report(partial(_end, result, None, refused))

        if error is None:
            self._sends.submit(sent)
        else:
            self._waiting.remove(size_bytes)
            self._verifier.report(partial(_end, result, None, error))
        return True

    def _give(
        self, result: "Future[Any]", topic: str, value: bytes | None, key: bytes | None, partition: int | None
    ) -> None:
        sent = self._producer.send(topic, value=value, key=key, partition=partition)
        sent.add_errback(partial(_end, result, None))
        sent.add_callback(lambda metadata: self._acknowledged(result, metadata))

    def _acknowledged(self, result: "Future[Any]", metadata: Any) -> None:
        if self._verifier.records.requires(metadata.topic):
            report = partial(_end, result, metadata)
            self._verifier.when_verified(metadata.topic, metadata.partition, metadata.offset, report)
        else:
            _end(result, metadata, None)

    def flush(self, seconds: float = 60.0) -> None:
        """Returns when every record that was sent before was delivered and verified. Errors: KafkaTimeoutError after so many seconds."""
        until = time.monotonic() + seconds
        unverified = self._unverified.copy()
        for record in unverified:
            while not record.done():
                left = until - time.monotonic()
                if left <= 0:
                    records = count_noun(sum(not other.done() for other in unverified), "record")
                    raise KafkaTimeoutError(f"{records} not verified in {seconds:g} s")
                # Again and again: the client may have got the record meanwhile, and holds it for `linger_ms`.
                with suppress(KafkaTimeoutError):
                    self._producer.flush(left)
                wait((record,), min(left, _FLUSH_SECONDS))

    def close(self) -> None:
        """Returns when every record that was sent has been verified. Errors: KafkaTimeoutError if one is not in 60 s, as of its future."""
        with self._accepting:
            self._closed = True
        try:
            with closing(self._verifier):
                try:
                    self.flush()
                finally:
                    # Its own limit is for its flush, and again for its thread.
                    end = partial(self._producer.close, END_SECONDS / 2)
                    end_within("KafkaProducer", end, END_SECONDS, unacknowledged=lambda: len(self._unverified))
                    self._serializers_closing.close()
        finally:
            # The verifier, which gives it calls, has ended.
            self._sends.shutdown(wait=False)
            end_within("the futures of a guarded producer", self._end_unverified, END_SECONDS)

    def _end_unverified(self) -> None:
        for record in self._unverified.copy():
            _end(record, None, KafkaTimeoutError("not verified before the producer was closed; it may be in the log"))


def _serializer(given: Any) -> Serializer | None:
    """The serializer that kafka-python makes of its config: a Serializer, or a function."""
    return given if given is None or isinstance(given, Serializer) else SerializeWrapper(given)


def _end(result: "Future[Any]", metadata: Any, error: BaseException | None) -> None:
    """End a future, unless `close` or its owner has ended it."""
    with suppress(InvalidStateError):
        if error is None:
            result.set_result(metadata)
        else:
            result.set_exception(error)
