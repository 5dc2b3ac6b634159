"""Racks of clients by their addresses: where they are, whatever they declare."""

from collections.abc import Mapping
from ipaddress import IPv4Network, IPv6Network, ip_address, ip_network

from rackspan.errors import UsageError
from rackspan.model.ids import RackId


class ClientNetworks:
    """Racks by address range. The narrowest range that has an address counts."""

    def __init__(self, ranges: Mapping[str, str]) -> None:
        """`ranges` maps CIDR blocks or single addresses to racks. Errors: UsageError."""
        parsed = [(_network(text), RackId(rack)) for text, rack in ranges.items()]
        self._ranges = sorted(parsed, key=lambda pair: -pair[0].prefixlen)

    def rack_of(self, host: str) -> RackId | None:
        """The rack of an address, None if no range has it or if it is a name."""
        try:
            address = ip_address(host)
        except ValueError:
            return None
        return next((rack for network, rack in self._ranges if address in network), None)


def _network(text: str) -> IPv4Network | IPv6Network:
    try:
        return ip_network(text)
    except ValueError as error:
        raise UsageError(f"client network {text!r}: {error}; write 10.0.1.0/24 or one address") from None
