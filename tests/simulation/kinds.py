"""The kinds of world: what may happen in each, and so which guarantees are demanded there.

The name of a kind stands in the line that replays a failure, so a kind is never redefined under its name.

    DEMANDED        every rule holds in every seed
    SHOWN_TO_FAIL   an assumption of the guarantee is taken away, and the seeds show what that costs
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Final

from rackspan.cluster.core.settings import Elr


@dataclass(frozen=True, slots=True)
class WorldKind:
    """One set of assumptions.

    `lossy`: power cuts take unflushed tails and disks are lost, in fewer than k racks. `moving`: a broker restarts in
    another rack. `dynamic`: min.insync.racks and min.insync.replicas are changed while traffic flows. `reassigning`:
    replicas are moved while all this goes on. `relocating`: the partition begins on some of the brokers, and all of its
    replicas are sent elsewhere, cancelled or sent on before they arrive. `unclean`: unclean election is allowed. `unnamed`: some brokers have no
    rack. `trusted`: the controller treats a killed broker as having lost nothing, as is so where machines live on; a Kafka broker
    that is killed leaves no clean-shutdown mark, and is not electable until it has caught up. `falls_back`: where nobody
    may lead, the last known leader does. `restless`: many short faults, so that the ISR changes all the time. `groups`: a
    consumer group instead of producers; the partition is its coordinator's. `transactions`: transactional producers, whose
    partitions and coordinators' are four; `transaction_version` is 2 where every end bumps the epoch (KIP-890), 1 for older
    clients; `late_markers`: copies of markers that arrive long afterwards. `wire`: producers send bytes, some
    of them flawed, and the topic's cleanup.policy is changed. `fails`: the rules that some seeds break, and
    are to break.
    """

    name: str
    lossy: bool = False
    moving: bool = False
    dynamic: bool = False
    unclean: bool = False
    unnamed: bool = False
    trusted: bool = True
    reassigning: bool = False
    relocating: bool = False
    falls_back: bool = False
    restless: bool = False
    groups: bool = False
    transactions: bool = False
    transaction_version: int = 2
    late_markers: bool = True
    wire: bool = False
    elr: Elr = Elr.RACKS
    fails: frozenset[str] = frozenset()

    @property
    def demands_survival(self) -> bool:
        """G2: the survivor that was last in the ISR holds every acknowledged record.

        Not where replicas are reassigned: taking one away takes what it alone held beside the leader. Nor where a rack
        holds another broker's disk than it did.
        """
        return not (self.moving or self.reassigning or self.relocating)

    @property
    def demands_availability(self) -> bool:
        """G3: after any k - 1 racks are lost somebody who may lead is left. Needs the ELR that counts racks.

        A threshold that was lowered meanwhile empties the ELR, rightly: not demanded where it is changed.
        """
        return self.demands_survival and not (self.lossy or self.dynamic) and self.trusted and self.elr is Elr.RACKS


_CLEAN: Final = WorldKind("clean")
_LOSSY: Final = replace(_CLEAN, lossy=True, trusted=False)
_LOSES: Final = frozenset({"I2", "I3", "I4"})
"""What is acknowledged is missing in who joins the ISR, leads or truncates."""

DEMANDED: Final[Mapping[str, WorldKind]] = {
    kind.name: kind
    for kind in (
        _CLEAN,
        replace(_CLEAN, name="kafka-elr", elr=Elr.KAFKA),
        replace(_CLEAN, name="no-elr", elr=Elr.OFF),
        replace(_CLEAN, name="killed", trusted=False),
        replace(_CLEAN, name="moving", moving=True),
        replace(_CLEAN, name="dynamic", dynamic=True),
        replace(_CLEAN, name="unnamed", unnamed=True),
        replace(_CLEAN, name="reassigning", reassigning=True),
        replace(_CLEAN, name="restless", restless=True),
        replace(_CLEAN, name="restless-dynamic", restless=True, dynamic=True),
        replace(_CLEAN, name="restless-moving", restless=True, moving=True),
        replace(_LOSSY, name="restless-lossy", restless=True),
        replace(_LOSSY, name="lossy"),
        replace(_LOSSY, name="lossy-kafka-elr", elr=Elr.KAFKA),
        replace(_CLEAN, name="groups", groups=True),
        replace(_CLEAN, name="groups-restless", groups=True, restless=True),
        replace(_CLEAN, name="groups-reassigning", groups=True, reassigning=True),
        replace(_LOSSY, name="groups-lossy", groups=True),
        replace(_CLEAN, name="transactions", transactions=True),
        replace(_CLEAN, name="transactions-restless", transactions=True, restless=True),
        replace(_CLEAN, name="transactions-reassigning", transactions=True, reassigning=True),
        replace(_LOSSY, name="transactions-lossy", transactions=True),
        replace(_CLEAN, name="transactions-version-1", transactions=True, transaction_version=1, late_markers=False),
        replace(_CLEAN, name="relocating", relocating=True),
        replace(_CLEAN, name="restless-relocating", relocating=True, restless=True),
        replace(_CLEAN, name="killed-relocating", relocating=True, trusted=False),
        replace(_CLEAN, name="wire", wire=True),
        replace(_LOSSY, name="wire-restless-lossy", wire=True, restless=True),
    )
}

SHOWN_TO_FAIL: Final[Mapping[str, WorldKind]] = {
    kind.name: kind
    for kind in (
        # Kafka before KIP-966: the last member of an ISR is elected, whatever it lost.
        replace(_LOSSY, name="lossy-undetected", elr=Elr.OFF, fails=_LOSES),
        replace(_LOSSY, name="lossy-kafka-elr-fallback", elr=Elr.KAFKA, falls_back=True, fails=_LOSES),
        replace(_LOSSY, name="lossy-fallback", falls_back=True, fails=_LOSES),
        replace(_CLEAN, name="unclean", unclean=True, fails=_LOSES | {"I5", "I6"}),
        # Clients before KIP-890's second part: a late copy of a marker ends the next transaction of its epoch.
        replace(
            _CLEAN,
            name="transactions-version-1-late",
            transactions=True,
            transaction_version=1,
            fails=frozenset({"TX1", "TX2"}),
        ),
    )
}

KINDS: Final[Mapping[str, WorldKind]] = {**DEMANDED, **SHOWN_TO_FAIL}
