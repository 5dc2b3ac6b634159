"""The decisions of the guard, one method each, so that a test plants a mistake by overriding one."""

from dataclasses import dataclass
from enum import Enum
from typing import Final

QUICK_SECONDS: Final = 1.0
"""A follower that had caught up leaves the ISR by lag no sooner than replica.lag.time.max.ms, which is 30 s by default."""

STALLED_SECONDS: Final = 0.5
"""A request with acks=all that waits so long waits for a follower, which is about to leave the ISR."""

NEVER: Final = float("-inf")


class AcknowledgementMode(Enum):
    """How acknowledgements are held to min.insync.racks."""

    OFF = "off"
    """Nothing is read, refused or held; min.insync.racks is no config here."""
    ADVISORY = "advisory"
    """Nothing is refused. What `pre` would refuse is counted and logged."""
    PRE = "pre"
    """Refused before the request is forwarded. Requests that wait in the broker while the ISR shrinks are acknowledged."""
    VERIFIED = "verified"
    """And the acknowledgement is held until metadata requested after it shows enough racks."""
    STRICT = "strict"
    """The same by the controllers' log, read after the acknowledgement: exact, where metadata may be behind."""


@dataclass(frozen=True, slots=True)
class GuardSettings:
    """Times in seconds."""

    mode: AcknowledgementMode = AcknowledgementMode.VERIFIED
    max_staleness: float = 1.0
    """Beyond this age a sample counts for nothing."""
    refresh: float = 0.05
    """Beyond this age a new sample is taken before a request is forwarded."""
    settle: float = 0.1
    """How far the metadata of a leader may be behind the ISR by which it acknowledges."""
    stalled_settle: float = 2.0
    """The same after a request has waited in the broker for STALLED_SECONDS: that is when ISRs shrink."""
    verify_timeout: float = 10.0
    sample_timeout: float = 2.0
    """How long a request waits for a sample before it is refused."""


class GuardRules:
    """How the guard decides. Times are of one monotonic clock."""

    def refuses_before(self, settings: GuardSettings) -> bool:
        """Whether a request is refused before it is forwarded."""
        return settings.mode is not AcknowledgementMode.ADVISORY

    def checks_after(self, settings: GuardSettings) -> bool:
        """Whether an acknowledgement is held until it is verified."""
        return settings.mode in (AcknowledgementMode.VERIFIED, AcknowledgementMode.STRICT)

    def is_fresh(self, requested_at: float, now: float, oldest: float) -> bool:
        """Whether a request may be admitted by a sample, at most `oldest` seconds old."""
        return now - requested_at <= oldest

    def is_after(self, requested_at: float, acknowledged_at: float) -> bool:
        """Whether a sample was requested after an acknowledgement.

        Every member of an ISR that is current after an acknowledgement holds the record; of an earlier ISR that is unknown.
        """
        return requested_at >= acknowledged_at

    def settled_at(self, last_good: float, stalled_at: float, acknowledged_at: float, settings: GuardSettings) -> float:
        """The earliest time at which the deciding sample may be requested.

        A leader removes a follower that has not caught up for replica.lag.time.max.ms, acknowledges, and shows the change only
        when its metadata has it. `last_good` is when the latest record was forwarded that was verified here: those in the ISR
        then had caught up, so within QUICK_SECONDS of it no one can have been removed for lag. `stalled_at` is when a request
        was acknowledged that had waited for STALLED_SECONDS, and is not verified yet; NEVER where none was.
        """
        settle = settings.settle if acknowledged_at - last_good > QUICK_SECONDS else 0.0
        return max(acknowledged_at + settle, stalled_at + settings.stalled_settle)
