"""What clients do in a world, and what runs beside a broker for them. A world has one kind of traffic."""

from typing import TYPE_CHECKING

from rackspan.cluster.core.ids import NodeId
from rackspan.cluster.core.messages import LeadershipChanged, Message, Respond, SendRequest
from rackspan.model.ids import TopicPartition
from tests.simulation.clients.request import ClientRequest
from tests.simulation.environment.machine import Machine

if TYPE_CHECKING:
    from tests.simulation.world import Running


class Traffic:
    """Receives the events of a world; every response to a client comes through `responded`."""

    acknowledged = 0

    def __init__(self, world: "Running") -> None:
        self.world = world

    def start(self) -> None:
        """Plan the clients' first steps."""

    def started(self, machine: Machine) -> None:
        """A new process runs there."""

    def led(self, machine: Machine, change: LeadershipChanged) -> None:
        """A leadership has begun or ended."""

    def readable(self, machine: Machine, partition: TopicPartition) -> None:
        """A broker says that there may be more to read in a partition."""

    def ticked(self, machine: Machine) -> None:
        """Time has passed."""

    def arriving(self, message: Message) -> Message:
        """A message of the core arrives; what the broker is given instead."""
        return message

    def moved(self, node: NodeId) -> None:
        """A node has handled an event; its effects are about to be carried out."""

    def send_request(self, machine: Machine, request: SendRequest) -> None:
        """A process sends another broker a request, and awaits the response."""

    def received(self, machine: Machine, message: ClientRequest) -> None:
        """A client's request has arrived."""

    def responded(self, node: NodeId, effect: Respond) -> None:
        """A node has sent a response."""

    def healed(self) -> None:
        """Nothing goes wrong any more."""

    def settled(self) -> None:
        """The run is over: judge what is left to judge."""
