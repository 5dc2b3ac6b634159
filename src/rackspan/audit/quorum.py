"""The controller quorum after the loss of racks: which voters remain, and whether they are a majority.

A voter that is dead already is lost whichever rack is.
"""

from collections.abc import Set
from dataclasses import dataclass

from rackspan.audit.batch import ClusterMembers
from rackspan.model.ids import RackId


@dataclass(frozen=True, slots=True)
class QuorumAfter:
    """The voters after a loss of racks. `lost`, `dead` and `unknown_rack` are controller ids.

    `dead`: those of the lost that were dead before. `unknown_rack`: those alive of which no rack is known.

    `simulated`: one machine runs the whole cluster, so that its racks are names only and no voter is lost with one.
    """

    voters: int
    lost: tuple[int, ...]
    dead: tuple[int, ...]
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
    def doubtful(self) -> int:
        """How many of the surviving voters may be in the lost racks too."""
        return 0 if self.simulated else len(self.unknown_rack)

    @property
    def certain(self) -> bool:
        """Whether a majority is left wherever the voters of unknown rack are: all of them may be in the lost racks."""
        return 2 * (self.surviving - self.doubtful) > self.voters


def quorum_without(members: ClusterMembers, lost_racks: Set[RackId]) -> QuorumAfter | None:
    """The quorum without `lost_racks`, or None where the snapshot has no voters."""
    racks, dead = members.voter_racks, members.dead_voters
    if not racks:
        return None
    return QuorumAfter(
        voters=len(racks),
        lost=tuple(voter for voter, rack in racks.items() if rack in lost_racks or voter in dead),
        dead=tuple(sorted(dead)),
        unknown_rack=tuple(voter for voter, rack in racks.items() if rack is None and voter not in dead),
        simulated=members.on_one_machine,
    )
