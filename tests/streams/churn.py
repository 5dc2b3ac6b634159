"""A Kafka Streams group over many rebalances: clients join, leave and return, and warm up a part of their state in between."""

from random import Random
from typing import Any

from rackspan.streams import assign

Document = Any

STATE = 50_000
"""Records in the changelog of each task, the lag of a client that has just been given the task."""
REBALANCES_TO_WARM_UP = 5
"""A lag falls to a tenth or less between two rebalances, so five are enough for any task."""


class Churn:
    """The members of a group with what they run and the lag of the state that they hold.

    A client that leaves keeps its state, which falls behind, and finds it again if it returns.
    """

    def __init__(self, document: Document, rng: Random) -> None:
        # The assignor starts anew and takes no initial assignment; it would name clients that leave.
        self.document = {key: value for key, value in document.items() if key != "initial_active"}
        self.rng = rng
        self.members: list[Document] = document["clients"]
        self.gone: list[Document] = []
        self.joined = 0
        self.stateful = {task["id"] for task in document["tasks"] if task["stateful"]}
        for client in self.members:
            client.update(prev_active=[], prev_standby=[], lags={})

    def disturb(self) -> None:
        """One client joins, leaves or returns."""
        kind = self.rng.choice(["join", "leave", "return"])
        if kind == "leave" and len(self.members) > 1:
            client = self.members.pop(self.rng.randrange(len(self.members)))
            client.update(prev_active=[], prev_standby=[])
            self.gone.append(client)
        elif kind == "return" and self.gone:
            self.members.append(self.gone.pop(self.rng.randrange(len(self.gone))))
        elif kind == "join":
            rack = self.rng.choice(self.members)["rack"]
            # Random in Kafka's order of clients, and never one that the group has or had.
            self.joined += 1
            process_id = f"{self.rng.getrandbits(32):08x}-0000-4000-8000-{self.joined:012x}"
            tags = {
                key: f"{key}{self.rng.randint(0, 2)}" for key in self.document["config"]["rack_aware_assignment_tags"]
            }
            client = {"process_id": process_id, "rack": rack, "threads": self.rng.choice([1, 2]), "tags": tags}
            self.members.append({**client, "prev_active": [], "prev_standby": [], "lags": {}})

    def rebalance(self) -> Document:
        """Assign the tasks; the members then run them."""
        assigned = assign({**self.document, "clients": self.members}, "high-availability")
        for client in self.members:
            held = assigned["assignment"][client["process_id"]]
            client.update(prev_active=held["active"], prev_standby=held["standby"])
            for task in self.stateful & {*held["active"], *held["standby"]}:
                client["lags"].setdefault(task, STATE)
                if client["lags"][task] < 0:
                    client["lags"][task] = 0
        return assigned

    def warm_up(self) -> None:
        """Tasks that run catch up in part or whole. State that is not in use falls behind."""
        for client in [*self.members, *self.gone]:
            running = {*client["prev_active"], *client["prev_standby"]}
            for task, lag in client["lags"].items():
                if task in running:
                    lag //= self.rng.choice([10, 100, STATE + 1])
                    client["lags"][task] = -2 if lag == 0 and task in client["prev_active"] else lag
                else:
                    client["lags"][task] = min(STATE, max(lag, 0) + self.rng.randint(0, STATE // 10))

    def lasting(self, strategy: str) -> Document:
        """The assignment of the same members if every client were caught up on every task."""
        config = {**self.document["config"], "strategy": strategy, "acceptable_recovery_lag": 2**63 - 1}
        return assign({**self.document, "clients": self.members, "config": config}, "high-availability")
