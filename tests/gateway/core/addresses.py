"""Addresses for tests: broker N is at gateway-N:9000+N, and racks are kept."""


class Renamed:
    def __init__(self, host: str = "gateway") -> None:
        self._host = host

    def advertised(self, node_id: int, _host: str, _port: int) -> tuple[str, int]:
        return f"{self._host}-{node_id}", 9000 + node_id

    def rack(self, _node_id: int, registered: str | None) -> str | None:
        return registered
