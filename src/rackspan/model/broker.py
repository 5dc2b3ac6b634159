"""Brokers and controllers as the cluster registers them."""

from dataclasses import dataclass
from typing import Final

from rackspan.errors import InvalidSnapshot
from rackspan.model.ids import INT32_MAX, UNNAMED_RACK, BrokerId, RackId

PORT_MAX: Final = 65_535

REPLICA_SELECTOR: Final = "replica.selector.class"
RACK_AWARE_SELECTOR: Final = "org.apache.kafka.common.replica.RackAwareReplicaSelector"
"""The value with which leaders direct consumers to the replica in their rack (KIP-392). Unset by default: then leaders serve."""


@dataclass(frozen=True, slots=True)
class Broker:
    """One registered broker.

    `rack` is `broker.rack` (KIP-36), None where it is not set. A fenced broker is registered but not usable: it holds
    replicas and leads nothing. A cordoned one takes no new replicas: all of its log directories are cordoned (KIP-1066).
    `failed_log_dirs`: the paths of its log directories that have failed (KAFKA_STORAGE_ERROR) while it is up. `usable_bytes`: what is left on
    the volumes of the others, which more than that never fits onto; None where that is not known.
    """

    id: BrokerId
    rack: RackId | None = None
    fenced: bool = False
    host: str | None = None
    port: int | None = None
    cordoned: bool = False
    failed_log_dirs: tuple[str, ...] = ()
    usable_bytes: int | None = None

    def __post_init__(self) -> None:
        if not 0 <= self.id <= INT32_MAX:
            raise InvalidSnapshot(f"broker {self.id}: expected an id between 0 and {INT32_MAX}; fix it in the file")
        if self.port is not None and not 0 <= self.port <= PORT_MAX:
            raise InvalidSnapshot(f"broker {self.id}: port {self.port} is outside 0 to {PORT_MAX}; fix it in the file")
        if self.rack == UNNAMED_RACK:
            # Kafka refuses an empty broker.rack, so that None is the one value for a broker without a rack.
            object.__setattr__(self, "rack", None)

    @property
    def on_loopback(self) -> bool:
        """Whether the broker can be reached from its own machine only; False where the host is not known."""
        return self.host is not None and (self.host in ("localhost", "::1") or self.host.startswith("127."))


@dataclass(frozen=True, slots=True)
class Controller:
    """One member of the controller quorum. Observers (`voter` false) do not count for its majority.

    `alive`: whether it follows the quorum's leader. `active`: whether it is the quorum's leader. None where that is not known.
    """

    id: BrokerId
    rack: RackId | None = None
    voter: bool = True
    alive: bool | None = None
    active: bool | None = None

    def __post_init__(self) -> None:
        if not 0 <= self.id <= INT32_MAX:
            raise InvalidSnapshot(f"controller {self.id}: expected an id between 0 and {INT32_MAX}; fix it in the file")
