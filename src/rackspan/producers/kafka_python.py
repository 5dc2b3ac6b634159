"""GuardedKafkaProducer: kafka-python's KafkaProducer, whose futures end after the racks were counted."""

import time
from collections.abc import Mapping
from concurrent.futures import Future, wait
from contextlib import closing
from functools import partial
from typing import Any

from kafka import KafkaProducer
from kafka.errors import KafkaTimeoutError

from rackspan.ends import END_SECONDS, end_within
from rackspan.errors import ClusterUnreachable, RetriableProduceError
from rackspan.producers.logins import kafka_python_login, server_list
from rackspan.producers.verifier import VERIFY_SECONDS, RecordVerifier, VerifierThread, refuse_weak_acks
from rackspan.text import count_noun


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
        # The client's default is longer than any read of the guard.
        self._block_seconds = config["max_block_ms"] / 1000 if "max_block_ms" in config else None
        self._unverified: set[Future[Any]] = set()

    def send(
        self, topic: str, value: bytes | None = None, key: bytes | None = None, partition: int | None = None
    ) -> "Future[Any]":
        """The record's metadata, once it is verified.

        Errors of the future: NotEnoughRacks and ClusterUnreachable, with which nothing was sent, NotEnoughRacksAfterAppend, and those of
        the client. What is raised at once is what the client raises so, and UsageError after `close`. It waits for metadata as the
        client does: until `max_block_ms`, and 5 s at most where the guard reads it.
        """
        result: Future[Any] = Future()
        error = self._refused(topic, partition)
        if error is not None:
            result.set_exception(error)
            return result
        sent = self._producer.send(topic, value=value, key=key, partition=partition)
        # After it: a record that the client refuses at once would never end, and `close` waits for each.
        self._unverified.add(result)
        result.add_done_callback(self._unverified.discard)
        sent.add_errback(result.set_exception)
        sent.add_callback(lambda metadata: self._acknowledged(result, metadata))
        return result

    def _refused(self, topic: str, partition: int | None) -> Exception | None:
        if not self._verifier.records.requires(topic):
            return None
        try:
            return self._verifier.before(topic, partition, self._block_seconds)
        except ClusterUnreachable as error:
            return error

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
        self._producer.flush(seconds)
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
