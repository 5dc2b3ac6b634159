"""I6: which records outlive the loss of racks, judged on the disks without touching the run.

G2, survival: for every set X of fewer racks than were required, among the replicas outside X the one that was a member
of the controller's ISR last (greatest partition epoch) holds the record. Nothing is required of the longest log: it is not
always the truest. G3, availability: some member of ISR or ELR outside X holds it, and so may lead.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import combinations

from rackspan.model.ids import BrokerId
from tests.simulation.judges.evidence import Acked, Evidence, Violation
from tests.simulation.kinds import WorldKind


@dataclass(slots=True)
class Survival:
    """Judged at every fault and at the end. `available` of `checked` times a clean leader was left (G3)."""

    kind: WorldKind
    evidence: Evidence
    checked: int = 0
    available: int = 0

    def judge(self) -> None:
        if self.evidence.losses and not self.kind.lossy:
            raise AssertionError("something was lost in a world without losses: the world lies")
        for lost in self._losses_to_try():
            self._judge(frozenset(lost))

    def _losses_to_try(self) -> Iterator[tuple[str, ...]]:
        racks = sorted({replica.rack or "" for replica in self.evidence.replicas.values()})
        most = max((acked.required_racks for acked in self.evidence.acked.values()), default=1)
        for size in range(min(most, len(racks))):
            yield from combinations(racks, size)

    def _judge(self, lost: frozenset[str]) -> None:
        left = [one for one in self.evidence.committed.replicas if (self.evidence.replicas[one].rack or "") not in lost]
        if not left:
            return
        self._last_in_isr_holds(left, lost)
        self._someone_may_lead(left, lost)

    def _last_in_isr_holds(self, left: list[BrokerId], lost: frozenset[str]) -> None:
        if not self.kind.demands_survival or self.evidence.losses:
            return
        survivor = max(left, key=lambda one: (self.evidence.committed.last_in_isr.get(one, -1), -one))
        broken = self._first_missing(survivor, lost)
        if broken is not None:
            self._break(
                "I6",
                f"without racks {sorted(lost)} broker {survivor}, last in the ISR, lacks record {broken.entry.record}",
            )

    def _someone_may_lead(self, left: list[BrokerId], lost: frozenset[str]) -> None:
        electable = set(self.evidence.committed.isr) | set(self.evidence.committed.elr)
        found = any(one in electable and self._first_missing(one, lost) is None for one in left)
        if lost:
            self.checked += 1
            self.available += found
        if not found and self.kind.demands_availability and self._all_should_survive(lost):
            self._break(
                "I6",
                f"without racks {sorted(lost)} nobody of ISR {self.evidence.committed.isr} or ELR {self.evidence.committed.elr} may lead with every acknowledged record",
            )

    def _first_missing(self, broker: BrokerId, lost: frozenset[str]) -> Acked | None:
        records = sorted(self.evidence.replicas[broker].missing)
        found = (self.evidence.acked[record] for record in records)
        return next((one for one in found if len(lost | one.lost_racks) < one.required_racks), None)

    def _all_should_survive(self, lost: frozenset[str]) -> bool:
        """Whether every acknowledged record was to survive this."""
        return all(len(lost) < acked.required_racks for acked in self.evidence.acked.values())

    def _break(self, rule: str, text: str) -> None:
        raise Violation(rule, self.evidence.event, text)
