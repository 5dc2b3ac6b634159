"""The replicas of one partition in the simulated cluster: logs, fetches and Kafka's rule of who lags."""

from dataclasses import dataclass, field
from random import Random

from rackspan.acks.isr_samples import LogEnd

Entry = tuple[int, int]
"""Leader epoch, and a number that no other record has."""


def log_end(log: list[Entry], epoch: int) -> LogEnd | None:
    """The response to a Fetch beyond the end: LeaderEpochFileCache.endOffsetFor. None for OFFSET_OUT_OF_RANGE."""
    if not log or log[-1][0] < epoch:
        return None
    end = next((offset for offset, entry in enumerate(log) if entry[0] > epoch), len(log))
    return LogEnd(log[end - 1][0] if end else epoch, end)


@dataclass
class Follower:
    """One follower: its log, its link and disk, and what the leader has of it from its fetches."""

    log: list[Entry] = field(default_factory=list)
    topic: int = 0
    """The number of the topic that its log is of: topics are deleted and created anew."""
    frozen: bool = False
    """It does nothing and responds to nothing."""
    isolated: bool = False
    """It fetches nothing, and responds to who reads its log."""
    fetch_seconds: float = 0.003
    """From one fetch to the next: link and disk."""
    batch: int = 1 << 30
    """Records of one fetch."""
    known_end: int = 0
    caught_up_at: float = 0.0
    last_fetch_at: float = 0.0
    leader_end_at_last_fetch: int = 0

    def fetched(self, leader_end: int, now: float) -> None:
        """The leader receives a fetch: org.apache.kafka's Replica.updateFetchStateOrThrow."""
        self.known_end = len(self.log)
        if self.known_end >= leader_end:
            self.caught_up_at = max(self.caught_up_at, now)
        elif self.known_end >= self.leader_end_at_last_fetch:
            self.caught_up_at = max(self.caught_up_at, self.last_fetch_at)
        self.leader_end_at_last_fetch, self.last_fetch_at = leader_end, now

    def lags(self, leader_end: int, now: float, most: float) -> bool:
        return self.known_end < leader_end and now - self.caught_up_at > most

    def truncate_to(self, leader_log: list[Entry]) -> None:
        """Remove what the leader's log does not have: nothing is truncated where logs agree."""
        if self.log and (len(self.log) > len(leader_log) or self.log[-1] != leader_log[len(self.log) - 1]):
            common = 0
            while common < min(len(self.log), len(leader_log)) and self.log[common] == leader_log[common]:
                common += 1
            del self.log[common:]

    def slow_down(self, rng: Random) -> None:
        """A throttled link or a slow disk: it acknowledges each record soon, and never reaches the leader's end."""
        self.fetch_seconds, self.batch = rng.uniform(0.015, 0.045), 1

    def recover(self) -> None:
        self.frozen = self.isolated = False
        self.fetch_seconds, self.batch = 0.003, 1 << 30
