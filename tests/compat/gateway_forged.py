"""Leak trials with a client that plays the missing follower: it fetches as broker 3, which is suspended. Judged by the log of broker 3.

    python -m tests.compat.gateway_forged RUNS [through|past] [MODE…]

Brokers 1 and 2 are in rack A, 3 in rack B; one partition is on [1, 2, 3] and requires two racks. A leader believes a replica's fetch, so
broker 3 stays in the ISR, and a gateway that trusts the ISR acknowledges what rack A alone holds. `through`: the client is one of the gateway.
`past`: it reaches the leader itself, as where no network or authorizer hinders it.
"""

import socket
import sys
import threading
import time
from collections import Counter
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import Any, Final, cast
from uuid import UUID

from confluent_kafka.admin import AdminClient

from rackspan.kafka_bytes.record_batch import whole_batches
from rackspan.wire.apis import ApiKey
from rackspan.wire.codec import read_response
from rackspan.wire.messages.fetch import (
    FetchPartition,
    FetchRequestData,
    FetchRequestReplicaState,
    FetchResponseData,
    FetchTopic,
)
from rackspan.wire.messages.metadata import MetadataRequestData, MetadataRequestTopic, MetadataResponseTopic
from tests.cluster.raw import request_frame, response_to
from tests.compat.gateway_leak_lag import (
    LAG_MAX_SECONDS,
    LEADER,
    OF_RACK_B,
    Clients,
    TunedCluster,
    create_topic,
    gateway,
    isr,
)
from tests.conformance.wire import received
from tests.kafka_fixtures import await_partitions
from tests.waiting import WITHIN_SECONDS, eventually

FORMS: Final = ((12, False), (17, False), (12, True), (17, True))
"""Version, a field up to 14 and a tag from 15 on, and whether a consumer has opened a fetch session with the partition before."""

WITH_TOPIC_IDS, WITH_TAG = 13, 15
CONSUMER: Final = -1
REFUSED: Final = 29
PLAYED_SECONDS: Final = 2 * LAG_MAX_SECONDS
CONTROLLER: Final = 101
UNFENCED: Final = {"broker.session.timeout.ms": "60000"}
"""The suspended broker does not leave the ISR because its session ends: for as long as that takes the forged fetches alone hold it there."""


class Forger:
    """A client that fetches as broker 3 until `stop`. `errors` counts the codes of its responses."""

    def __init__(self, address: str, topic: str, topic_id: UUID | None, form: tuple[int, bool], offset: int) -> None:
        self._address, self._topic, self._topic_id = address, topic, topic_id
        self._version, self._in_session = form
        self._offset = offset
        self._session = 0, -1
        self._stopped = threading.Event()
        self.errors: Counter[int] = Counter()
        self._executor = ThreadPoolExecutor(1)
        self._fetches = self._executor.submit(self._fetch)

    def _fetch(self) -> None:
        host, port = self._address.split(":")
        with socket.create_connection((host, int(port)), timeout=WITHIN_SECONDS) as link:
            if self._in_session:
                opened = self._sent(link, CONSUMER, 0, 0)
                self._session = opened.session_id, 1
            while not self._stopped.is_set():
                response = self._sent(link, OF_RACK_B, *self._session)
                partitions = [one for topic in response.responses for one in topic.partitions]
                self.errors.update(one.error_code for one in partitions)
                for one in partitions:
                    for header, _ in whole_batches(bytes(cast("memoryview[int]", one.records or b""))):
                        self._offset = header.base_offset + header.last_offset_delta + 1
                if self._in_session and REFUSED not in self.errors:
                    self._session = self._session[0], self._session[1] + 1
                self._stopped.wait(0.01)

    def _sent(self, link: socket.socket, replica: int, session: int, epoch: int) -> FetchResponseData:
        partition = FetchPartition(partition=0, fetch_offset=self._offset, partition_max_bytes=1 << 20)
        named: dict[str, Any] = (
            {"topic": self._topic} if self._version < WITH_TOPIC_IDS else {"topic_id": self._topic_id}
        )
        tagged = self._version >= WITH_TAG
        request = FetchRequestData(
            replica_id=CONSUMER if tagged else replica,
            replica_state=FetchRequestReplicaState(replica_id=replica) if tagged and replica != CONSUMER else None,
            max_wait=20,
            min_bytes=1,
            session_id=session,
            session_epoch=epoch,
            topics=[FetchTopic(**named, partitions=[partition])],
        )
        link.sendall(request_frame(ApiKey.FETCH, self._version, request))
        response: FetchResponseData = read_response(ApiKey.FETCH, self._version, received(link))
        return response

    def stop(self) -> None:
        """Errors: those of its thread."""
        self._stopped.set()
        self._executor.shutdown()
        self._fetches.result()


@dataclass
class Outcome:
    """Of one mode: acknowledgements while broker 3 was suspended and played, those that it lacks by run, and what the forgers got."""

    acknowledged: int = 0
    leaked: list[int] = field(default_factory=list)
    in_isr: int = 0
    """Runs at whose end broker 3 was in the ISR still."""
    errors: Counter[int] = field(default_factory=Counter)


def forged(runs: int, modes: Sequence[str], *, past: bool) -> dict[str, Outcome]:
    """So many runs of each form, with a gateway of every mode beside the others, each with a topic of its own."""
    outcomes = {mode: Outcome() for mode in modes}
    with ExitStack() as stack:
        cluster = stack.enter_context(TunedCluster(lambda _: {CONTROLLER: UNFENCED}))
        servers = {mode: stack.enter_context(gateway(cluster, mode)) for mode in modes}
        for number in range(runs):
            for form in FORMS:
                _one_run(cluster, servers, f"forged-{number}-{form[0]}-{form[1]}", form, outcomes, past=past)
    return outcomes


def _one_run(
    cluster: TunedCluster,
    servers: dict[str, str],
    name: str,
    form: tuple[int, bool],
    outcomes: dict[str, Outcome],
    *,
    past: bool,
) -> None:
    admin = AdminClient({"bootstrap.servers": cluster.bootstrap_servers.split(",")[1], "log_level": 0})
    topics = {mode: f"{name}-{mode}" for mode in servers}
    for topic in topics.values():
        create_topic(admin, topic)
        await_partitions(cluster, topic, 1)
    eventually(lambda: all(isr(admin, topic) == {1, 2, 3} for topic in topics.values()), "every ISR is whole")
    leader = cluster.bootstrap_servers.split(",")[LEADER - 1]
    clients = {mode: Clients(servers[mode], topic) for mode, topic in topics.items()}
    forgers: dict[str, Forger] = {}
    try:
        eventually(lambda: all(len(one.offsets) > 20 for one in clients.values()), "records are acknowledged")
        cluster.pause(OF_RACK_B)
        for mode, topic in topics.items():
            address = leader if past else servers[mode].split(",")[LEADER - 1]
            end = cluster.log_end(OF_RACK_B, topic)
            forgers[mode] = Forger(address, topic, described(leader, topic).topic_id, form, end)
        time.sleep(PLAYED_SECONDS)  # short: the trial itself
        for mode, topic in topics.items():
            clients[mode].judged = True
            end, outcome = cluster.log_end(OF_RACK_B, topic), outcomes[mode]
            outcome.acknowledged += len(clients[mode].offsets)
            outcome.leaked.append(sum(offset >= end for offset in clients[mode].offsets))
            outcome.in_isr += OF_RACK_B in described(leader, topic).partitions[0].isr_nodes
    finally:
        cluster.resume(OF_RACK_B)
        for mode, forger in forgers.items():
            forger.stop()
            outcomes[mode].errors += forger.errors
        for one in clients.values():
            one.stop()
    print(name, {mode: (one.leaked[-1], one.in_isr, dict(one.errors)) for mode, one in outcomes.items()}, flush=True)


def described(address: str, topic: str) -> MetadataResponseTopic:
    """The topic by this broker: an admin client could read it at the suspended one."""
    request = MetadataRequestData(topics=[MetadataRequestTopic(name=topic)], allow_auto_topic_creation=False)
    found: MetadataResponseTopic = response_to(address, ApiKey.METADATA, 12, request).topics[0]
    return found


if __name__ == "__main__":
    for mode, outcome in forged(
        int(sys.argv[1]), sys.argv[3:] or ("verified", "strict"), past=sys.argv[2:3] == ["past"]
    ).items():
        print(mode, outcome)
