"""The rack that the gateway writes into fetches that name none, and the clients for which it writes none.

A leader with a rack-aware selector responds to a fetch with the replica in the client's rack, and sends no records (KIP-392). A
client that ignores that replica would fetch from the leader for ever and get nothing. So a client that is redirected twice
from the same partition without ever fetching a partition where it was sent is left alone for a while.
"""

import re
from collections import OrderedDict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final, TypeAlias

from rackspan.gateway.core.record_bytes import Topic
from rackspan.model.client_networks import ClientNetworks
from rackspan.model.ids import RackId

REDIRECTS_TO_BELIEVE: Final = 2
REPEATED_WITHIN_SECONDS: Final = 60.0
"""Clients that follow a redirect come back to the leader after their metadata.max.age, five minutes by default."""

LEFT_ALONE_SECONDS: Final = 600.0
CLIENTS_MAX: Final = 10_000
"""Those remembered; the one that fetched longest ago is forgotten first."""

ClientName: TypeAlias = tuple[str, str]
"""Host and client id: connections to several brokers have them in common."""

TopicKey: TypeAlias = tuple[Topic, int]
"""A topic and a partition."""


@dataclass(frozen=True, slots=True)
class ReaderRacks:
    """The racks of clients: by client id, by address, or that of the gateway's own listeners, in this order.

    `client_ids` maps patterns of whole ids to racks. `replaces`: also where the client names a rack itself.
    """

    rack: RackId | None = None
    client_ids: Mapping[str, RackId] = field(default_factory=dict)
    networks: ClientNetworks | None = None
    replaces: bool = False

    @property
    def is_on(self) -> bool:
        return self.rack is not None or bool(self.client_ids) or self.networks is not None

    def of(self, host: str, client_id: str) -> RackId | None:
        """The rack of a client, None if no rule names one."""
        for pattern, rack in self.client_ids.items():
            if re.fullmatch(pattern, client_id):
                return rack
        located = None if self.networks is None else self.networks.rack_of(host)
        return located or self.rack


@dataclass(slots=True)
class _Client:
    """`redirected` has, of each partition, the replica named last, how often in a row, and when (s)."""

    follows: bool = False
    redirected: dict[TopicKey, tuple[int, int, float]] = field(default_factory=dict)
    left_alone_until: float = 0.0


class Redirects:
    """Which clients follow the replica that a leader names. Times in seconds, of any clock that does not go back."""

    def __init__(self) -> None:
        self.left_alone = 0
        """How often a client was left alone."""
        self._clients: OrderedDict[ClientName, _Client] = OrderedDict()

    def may_write(self, name: ClientName, broker: int, partitions: Iterable[TopicKey], now: float) -> bool:
        """Whether a fetch of these partitions from a broker may get a rack; it also shows whether the client follows."""
        client = self._clients.get(name)
        if client is None:
            return True
        self._clients.move_to_end(name)
        if not client.follows and any(client.redirected.get(key, _NOWHERE)[0] == broker for key in partitions):
            client.follows = True
            client.redirected.clear()
        return client.follows or now >= client.left_alone_until

    def redirected(self, name: ClientName, key: TopicKey, replica: int, now: float) -> None:
        """The leader has named a replica for a partition, to a fetch that got its rack here."""
        client = self._clients.setdefault(name, _Client())
        if len(self._clients) > CLIENTS_MAX:
            self._clients.popitem(last=False)
        if client.follows:
            return
        _, times, last = client.redirected.get(key, _NOWHERE)
        times = times + 1 if now - last <= REPEATED_WITHIN_SECONDS else 1
        client.redirected[key] = replica, times, now
        if times >= REDIRECTS_TO_BELIEVE:
            client.left_alone_until = now + LEFT_ALONE_SECONDS
            client.redirected.clear()
            self.left_alone += 1


_NOWHERE: Final = (-1, 0, float("-inf"))
