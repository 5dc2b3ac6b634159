"""The controller quorum after the loss of racks: which voters remain, and whether they are a majority."""

from collections.abc import Set
from dataclasses import dataclass

from rackspan.audit.batch import ClusterMembers
from rackspan.model.ids import RackId


@dataclass(frozen=True, slots=True)
class QuorumAfter:
    """The voters after a loss of racks. `lost` and `unknown_rack` are controller ids.

    `simulated`: one machine runs the whole cluster, so that its racks are names only and no voter is lost with one.
    """

    voters: int
    lost: tuple[int, ...]
    unknown_rack: tuple[int, ...]
    simulated: bool = False

    @property
    def surviving(self) -> int:
        return self.voters - len(self.lost)

    @property
    def holds(self) -> bool:
        """Whether a majority of all voters is left. Voters whose rack is unknown count as surviving."""
        return 2 * self.surviving > self.voters

    @property
    def certain(self) -> bool:
        """Whether a majority is left wherever the voters of unknown rack are: all of them may be in the lost racks."""
        doubtful = 0 if self.simulated else len(self.unknown_rack)
        return 2 * (self.surviving - doubtful) > self.voters


def quorum_without(members: ClusterMembers, lost_racks: Set[RackId]) -> QuorumAfter | None:
    """The quorum without `lost_racks`, or None where the snapshot has no voters."""
    racks = members.voter_racks
    if not racks:
        return None
    return QuorumAfter(
        voters=len(racks),
        lost=tuple(sorted(voter for voter, rack in racks.items() if rack in lost_racks)),
        unknown_rack=tuple(sorted(voter for voter, rack in racks.items() if rack is None)),
        simulated=members.on_one_machine,
    )
