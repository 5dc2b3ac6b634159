"""Addresses for tests: broker N is at gateway-N:9000+N, and racks are kept."""

from rackspan.gateway.core.endpoints import Addresses


def renamed(host: str = "gateway") -> Addresses:
    return Addresses(
        lambda broker, _host, _port: (f"{host}-{broker}", 9000 + broker), lambda _broker, registered: registered
    )
