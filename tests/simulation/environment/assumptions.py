"""What a world's controller may rely on, or gets wrong, beside the code under test: mixed into its rules."""

from collections.abc import Iterable
from dataclasses import replace

from rackspan.cluster.core.controller import Conditions, ControllerRules, PartitionChange
from rackspan.cluster.core.messages import BrokerRegistration
from rackspan.cluster.core.metadata import NO_LEADER, BrokerImage, PartitionState
from tests.simulation.kinds import WorldKind


class Trusting(ControllerRules):
    """Treats every shutdown as a clean one: in this world machines live on, and a killed broker loses nothing."""

    def shut_down_cleanly(self, before: BrokerImage, registration: BrokerRegistration) -> bool:
        return True


class FallsBack(ControllerRules):
    """Where ISR and ELR are empty, elects the last leader as soon as it is back (KIP-966's last known leader)."""

    def __init__(self) -> None:
        self._last = NO_LEADER

    def changed(self, before: PartitionState, change: PartitionChange, conditions: Conditions) -> PartitionState:
        after = super().changed(before, change, conditions)
        if after.leader != NO_LEADER:
            self._last = after.leader
        elif not after.isr and not after.elr and self._last in after.replicas and conditions.may_lead(self._last):
            return self._fallen_back(before, after)
        return after

    def _fallen_back(self, before: PartitionState, after: PartitionState) -> PartitionState:
        return replace(
            after,
            leader=self._last,
            isr=(self._last,),
            leader_epoch=before.leader_epoch + 1,
            partition_epoch=before.partition_epoch + 1,
        )


def controller_rules(kind: WorldKind, tested: type[ControllerRules]) -> ControllerRules:
    """The rules under test, under the assumptions of that kind of world."""
    bases = (*_assumed(kind), tested)
    mixed: type[ControllerRules] = tested if len(bases) == 1 else type("Assuming", bases, {})
    return mixed()


def _assumed(kind: WorldKind) -> Iterable[type[ControllerRules]]:
    if kind.trusted:
        yield Trusting
    if kind.falls_back:
        yield FallsBack
