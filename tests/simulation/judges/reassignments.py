"""What a reassignment may do to a partition, judged on every state the controller commits.

RS1 ISR, ELR, adding and removing are replicas; ISR and ELR are apart; a leader is in the ISR.
RS2 only an operator's request changes where the replicas go: it leads to the requested brokers, and a cancelled one back to
    those there were. By itself a reassignment only ends; then nothing is left adding or removing.
RS3 it ends when everybody who stays is in sync: no replica is given up before, also none that a replaced one had added.
RS4 a replica that is given up is fenced: the leader epoch rises.
RS5 after everything healed none is under way, and the replicas are those last requested.

That no acknowledged record is lost meanwhile is judged by rules.py.
"""

from dataclasses import dataclass

from rackspan.model.ids import BrokerId
from tests.simulation.judges.evidence import Committed, Evidence, Violation


@dataclass(frozen=True, slots=True)
class Request:
    """`target` None cancels."""

    target: tuple[BrokerId, ...] | None


@dataclass(slots=True)
class ReassignmentRules:
    """`request` is the operator's that the controller executes in this event."""

    evidence: Evidence
    request: Request | None = None
    requested: tuple[BrokerId, ...] | None = None
    started: int = 0
    ended: int = 0

    def committed(self, before: Committed, after: Committed) -> None:
        self._members(after)
        if not before.replicas:
            return
        if self.request is not None:
            self._follows_request(before, after, self.request)
            self.request = None
        else:
            self._by_itself(before, after)
        if set(before.replicas) - set(after.replicas) and after.leader_epoch <= before.leader_epoch:
            self._break("RS4", f"epoch {after.leader_epoch} stands though replicas went: {_change_text(before, after)}")

    def _members(self, state: Committed) -> None:
        replicas = set(state.replicas)
        for name, members in (
            ("ISR", state.isr),
            ("ELR", state.elr),
            ("adding", state.adding),
            ("removing", state.removing),
        ):
            if not set(members) <= replicas:
                self._break("RS1", f"{name} {members} is not within replicas {state.replicas}")
        if set(state.isr) & set(state.elr):
            self._break("RS1", f"ISR {state.isr}, ELR {state.elr}")
        if state.leader is not None and state.leader not in state.isr:
            self._break("RS1", f"leader {state.leader} is not in ISR {state.isr}")

    def _follows_request(self, before: Committed, after: Committed, request: Request) -> None:
        """Replicas that are there stay till the end, but for those that a cancelled reassignment was adding."""
        if request.target is None:
            target = tuple(one for one in before.replicas if one not in before.adding)
        else:
            # Kafka keeps the removed replicas of a reassignment that is replaced by one which removes nobody.
            removed = set(before.replicas) - set(request.target) or set(before.removing)
            target = tuple(one for one in request.target if one not in removed)
        self.requested = target
        if before.isr and not after.isr:
            self._break("RS3", f"a request leaves nobody in sync: {_change_text(before, after)}")
        if not (after.adding or after.removing):
            reordered = set(target) == set(before.replicas) and not (before.adding or before.removing)
            self._ended(target, before, after, at_once=request.target is None or reordered)
            return
        self.started += 1
        going = tuple(one for one in after.replicas if one not in after.removing)
        if going != target or not set(before.replicas) <= set(after.replicas):
            self._break("RS2", f"{target} was asked for: {_change_text(before, after)}")

    def _by_itself(self, before: Committed, after: Committed) -> None:
        if (after.replicas, after.adding, after.removing) == (before.replicas, before.adding, before.removing):
            return
        target = tuple(one for one in before.replicas if one not in before.removing)
        if after.adding or after.removing:
            self._break("RS2", f"nobody asked for this: {_change_text(before, after)}")
        self._ended(target, before, after)

    def _ended(
        self, target: tuple[BrokerId, ...], before: Committed, after: Committed, *, at_once: bool = False
    ) -> None:
        """`at_once`: a cancelled one, or a new order of the same replicas, waits for nobody."""
        self.ended += 1
        if after.replicas != target:
            self._break("RS2", f"it ends with {after.replicas} and not {target}: {_change_text(before, after)}")
        if (before.isr and not after.isr) or not (at_once or set(target) <= set(after.isr)):
            self._break("RS3", f"it ends before {target} are in sync: {_change_text(before, after)}")

    def settled(self, *, demanded: bool) -> None:
        state = self.evidence.committed
        if not demanded or state.leader is None:
            return
        if state.adding or state.removing:
            self._break("RS5", f"still adding {state.adding} and removing {state.removing} after everything healed")
        if self.requested is not None and state.replicas != self.requested:
            self._break("RS5", f"replicas {state.replicas} in the end, {self.requested} were requested last")

    def _break(self, rule: str, text: str) -> None:
        raise Violation(rule, self.evidence.event, text)


def _change_text(before: Committed, after: Committed) -> str:
    return " to ".join(
        f"replicas {one.replicas} (adding {one.adding}, removing {one.removing}, ISR {one.isr}, leader {one.leader})"
        for one in (before, after)
    )
