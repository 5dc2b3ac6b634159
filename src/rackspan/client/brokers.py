"""The addresses of brokers by id, and one connection to each: opened at first use, shared by all who use it, opened again
after it has ended or the broker has moved."""

import asyncio
import re
from functools import partial
from typing import Final

from rackspan.client.connection import CONNECT_SECONDS, BrokerConnection
from rackspan.client.login import Login
from rackspan.errors import ClusterUnreachable, UsageError

Address = tuple[str, int]

_ADDRESS: Final = re.compile(r"(?P<host>\[[0-9a-fA-F:.]+(?:%[\w.-]+)?\]|[^\s:,\[\]]+)(:(?P<port>\d{1,5}))?")
_PORT: Final = 9092
_LARGEST_PORT: Final = 65535


class BrokerConnections:
    """One connection to each broker. `addresses` may change at any time."""

    def __init__(self, login: Login, connect_seconds: float = CONNECT_SECONDS) -> None:
        self._login = login
        self._connect_seconds = connect_seconds
        self.addresses: dict[int, Address] = {}
        self._connections: dict[int, BrokerConnection] = {}
        self._connected_to: dict[int, Address] = {}
        self._opening: dict[int, asyncio.Task[BrokerConnection]] = {}
        self._replaced: list[BrokerConnection] = []

    async def connection(self, broker_id: int) -> BrokerConnection:
        """A connection to one broker. Errors: OSError, LoginRefused, ClusterUnreachable for a broker without an address."""
        known = self._connections.get(broker_id)
        if known is not None and known.is_usable:
            return known
        opening = self._opening.get(broker_id)
        if opening is None:
            address = self.addresses.get(broker_id)
            if address is None:
                raise ClusterUnreachable(f"broker {broker_id} is not in the cluster's metadata")
            self._connected_to[broker_id] = address
            opening = asyncio.get_running_loop().create_task(
                BrokerConnection.open(*address, self._login, self._connect_seconds)
            )
            self._opening[broker_id] = opening
            opening.add_done_callback(partial(self._opened, broker_id))
        return await asyncio.shield(opening)

    def _opened(self, broker_id: int, opening: "asyncio.Task[BrokerConnection]") -> None:
        """Keep the connection, and retrieve the error, if nobody waits for it any more."""
        del self._opening[broker_id]
        if not opening.cancelled() and opening.exception() is None:
            self.keep(broker_id, opening.result())

    def keep(self, broker_id: int, connection: BrokerConnection) -> None:
        """Keep a connection that was opened elsewhere, as to a bootstrap server under a negative id."""
        before = self._connections.get(broker_id)
        if before is not None:
            self.leave(before)
        self._connections[broker_id] = connection

    def leave(self, connection: BrokerConnection) -> None:
        """Send nothing more over a connection. It stays open for requests that wait on it."""
        self._replaced = [replaced for replaced in (*self._replaced, connection) if not replaced.closed]

    def usable(self) -> list[int]:
        """The ids of brokers whose connection is open."""
        return [broker_id for broker_id, connection in self._connections.items() if connection.is_usable]

    def close_moved(self) -> None:
        """Close connections to bootstrap servers, if brokers are known, and to brokers that have another address now."""
        for broker_id, connection in tuple(self._connections.items()):
            address = self.addresses.get(broker_id)
            moved = address is not None and self._connected_to.get(broker_id, address) != address
            if connection.closed or moved or (broker_id < 0 and self.addresses):
                connection.close()
                del self._connections[broker_id]

    def close(self) -> None:
        for opening in self._opening.values():
            opening.cancel()
        for connection in (*self._connections.values(), *self._replaced):
            connection.close()


def addresses(key: str, text: str) -> tuple[Address, ...]:
    """The addresses of a comma-separated value, with Kafka's port if none is given. Errors: UsageError, naming the key."""
    return tuple(_address(key, text, part) for part in text.split(","))


def _address(key: str, text: str, part: str) -> Address:
    match = _ADDRESS.fullmatch(part.strip())
    port = int(match["port"] or _PORT) if match else 0
    if not match or port > _LARGEST_PORT:
        raise UsageError(f"{key} {text!r}: {part!r} is not of the form HOST:PORT")
    return match["host"].strip("[]"), port
