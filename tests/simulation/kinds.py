"""The kinds of world: what may happen in each, and so which guarantees are demanded there.

The name of a kind stands in the line that replays a failure, so a kind is never redefined under its name.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Final

from rackspan.cluster.core.settings import Elr


@dataclass(frozen=True, slots=True)
class WorldKind:
    """One set of assumptions.

    `lossy`: power cuts take unflushed tails and disks are lost, in fewer than k racks. `moving`: a broker restarts in
    another rack. `dynamic`: min.insync.racks and min.insync.replicas are changed while traffic flows. `unclean`: unclean
    election is allowed. `unnamed`: some brokers have no rack. `reassigning`: replicas are moved while all this goes on. `trusted`: the controller
    knows that who is killed lost nothing, as is so where machines live on; a Kafka broker that is killed leaves no
    clean-shutdown mark, and is not electable until it has caught up.
    """

    name: str
    lossy: bool = False
    moving: bool = False
    dynamic: bool = False
    unclean: bool = False
    unnamed: bool = False
    trusted: bool = True
    reassigning: bool = False
    elr: Elr = Elr.RACKS

    @property
    def demands_survival(self) -> bool:
        """G2: the survivor that was last in the ISR holds every acknowledged record.

        Not where replicas are reassigned: taking one away takes what it alone held beside the leader.
        """
        return not (self.unclean or self.moving or self.reassigning)

    @property
    def demands_availability(self) -> bool:
        """G3: after any k - 1 racks are lost somebody who may lead is left. Needs the ELR that counts racks.

        A threshold that was lowered meanwhile empties the ELR, rightly: not demanded where it is changed.
        """
        return self.demands_survival and not (self.lossy or self.dynamic) and self.trusted and self.elr is Elr.RACKS


_CLEAN: Final = WorldKind("clean")

KINDS: Final[Mapping[str, WorldKind]] = {
    kind.name: kind
    for kind in (
        _CLEAN,
        replace(_CLEAN, name="kafka-elr", elr=Elr.KAFKA),
        replace(_CLEAN, name="no-elr", elr=Elr.OFF),
        replace(_CLEAN, name="lossy", lossy=True, trusted=False),
        replace(_CLEAN, name="lossy-no-elr", lossy=True, trusted=False, elr=Elr.OFF),
        replace(_CLEAN, name="killed", trusted=False),
        replace(_CLEAN, name="moving", moving=True),
        replace(_CLEAN, name="dynamic", dynamic=True),
        replace(_CLEAN, name="unnamed", unnamed=True),
        replace(_CLEAN, name="unclean", unclean=True),
        replace(_CLEAN, name="reassigning", reassigning=True),
    )
}
