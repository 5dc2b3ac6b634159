"""The decisions of the guard, one method each, so that a test plants a mistake by overriding one."""

from collections.abc import Collection
from dataclasses import dataclass
from enum import Enum
from typing import Final
from uuid import UUID

from rackspan.acks.log_ends import AcknowledgedRecord
from rackspan.acks.min_insync_racks import RackBits
from rackspan.model import BrokerId

NEVER: Final = float("-inf")

SPARE_SECONDS: Final = 0.02
"""Further replicas are read where the first ones have not shown a record in so long."""

LATE_SECONDS: Final = 1.0
"""A record that metadata shows in enough racks, and that logs do not show in so long, is counted and logged."""


class AcknowledgementMode(Enum):
    """How acknowledgements are held to min.insync.racks."""

    OFF = "off"
    """Nothing is read, refused or held; min.insync.racks is no config here."""
    ADVISORY = "advisory"
    """Nothing is refused. What `pre` would refuse is counted and logged."""
    PRE = "pre"
    """Refused before the request is forwarded. Requests that wait in the broker while the ISR shrinks are acknowledged."""
    VERIFIED = "verified"
    """And the acknowledgement is held until metadata read after it, and replicas' own logs, show the record in enough racks."""
    STRICT = "strict"
    """And the acknowledgement is held until the controllers' log, read after it, shows enough racks in sync."""


@dataclass(frozen=True, slots=True)
class GuardSettings:
    """Times in seconds."""

    mode: AcknowledgementMode = AcknowledgementMode.VERIFIED
    max_staleness: float = 1.0
    """Beyond this age a sample counts for nothing."""
    refresh: float = 0.05
    """Beyond this age a new sample is taken before a request is forwarded, and again while logs do not show a record."""
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

    def reads_logs(self, settings: GuardSettings) -> bool:
        """Whether replicas' logs have to show a record: a broker's metadata may be behind, what is committed is not."""
        return settings.mode is AcknowledgementMode.VERIFIED

    def is_fresh(self, requested_at: float, now: float, oldest: float) -> bool:
        """Whether a request may be admitted by a sample, at most `oldest` seconds old."""
        return now - requested_at <= oldest

    def is_after(self, requested_at: float, acknowledged_at: float) -> bool:
        """Whether a sample was requested after an acknowledgement.

        Every member of an ISR that is current after an acknowledgement holds the record; of an earlier ISR that is unknown.
        """
        return requested_at >= acknowledged_at

    def is_read_after(self, requested_at: float, acknowledged_at: float) -> bool:
        """Whether a log end was requested after an acknowledgement: a replica read before may have lost its log since."""
        return requested_at >= acknowledged_at

    def is_same_topic(self, before: UUID | None, after: UUID | None) -> bool:
        """Whether a topic was not created anew under its name. Its leader epochs begin at 0 again."""
        return before == after

    def is_held(self, record: AcknowledgedRecord, isr: Collection[BrokerId], racks: RackBits, min_racks: int) -> bool:
        """Whether the logs of members of the ISR show the record in enough racks."""
        return record.is_held(isr, racks, min_racks)
