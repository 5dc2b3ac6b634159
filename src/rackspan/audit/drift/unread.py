"""What a snapshot could not read is unknown: such a difference between two snapshots is no change.

Constraint: no difference that a lost or regained right alone can make is reported. Goal: every other difference is. The
notes of a snapshot (`partial`) say what was not read; a change whose one side lies in that is left out. A topic that is deleted
while it cannot be read is therefore never reported as deleted.
"""

from collections.abc import Iterable
from enum import Flag, auto
from typing import Final

from rackspan.audit.drift.changes import Change
from rackspan.model.snapshot import MOVES


class Unread(Flag):
    """What a snapshot lacks. FENCED: brokers that are fenced. CONFIGS: topics' minimums, which then have their defaults.
    MOVES: which partitions are being reassigned.
    """

    NOTHING = 0
    TOPICS = auto()
    CONFIGS = auto()
    FENCED = auto()
    VOTERS = auto()
    MOVES = auto()


_NOTES: Final = (
    ("topic ", Unread.TOPICS),
    ("topics ", Unread.TOPICS),
    ("min.insync.replicas of", Unread.CONFIGS),
    ("which brokers are fenced", Unread.FENCED),
    ("the controller quorum", Unread.VOTERS),
    (MOVES, Unread.MOVES),
)
"""How the notes begin that sources/live writes."""

_LOWERED: Final = ("min-insync-replicas-changed", "min-insync-racks-changed")


def unread(partial: Iterable[str]) -> Unread:
    """What the notes of a snapshot say that it lacks."""
    lacks = Unread.NOTHING
    for note in partial:
        for beginning, kind in _NOTES:
            if note.startswith(beginning):
                lacks |= kind
    return lacks


def is_known(change: Change, before: Unread, after: Unread) -> bool:
    """Whether a change follows from what both snapshots could read."""
    word = change.cause if change.change in ("safety-lost", "safety-gained") else change.change
    if word in ("topic-deleted", "voter-gone"):
        return not after & (Unread.TOPICS if word == "topic-deleted" else Unread.VOTERS)
    if word in ("topic-created", "voter-appeared"):
        return not before & (Unread.TOPICS if word == "topic-created" else Unread.VOTERS)
    if change.change == "broker-gone":
        return not after & ~before & Unread.FENCED
    if change.change == "broker-appeared":
        return not before & ~after & Unread.FENCED
    if word in _LOWERED:
        falls = change.change == "safety-gained" or (
            change.change == word and _number(change.after) < _number(change.before)
        )
        return not (after if falls else before) & Unread.CONFIGS
    return True


def _number(text: str | None) -> int:
    return int(text or 0)
