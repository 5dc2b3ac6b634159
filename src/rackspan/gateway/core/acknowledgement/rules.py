"""The settings of the acknowledgement guard. The rule itself: acks/verification.py."""

from dataclasses import dataclass
from enum import Enum
from typing import Final

NEVER: Final = float("-inf")


class AcknowledgementMode(Enum):
    """How the gateway applies min.insync.racks to acknowledgements."""

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
    """The mode, and how old a sample may be and how long it is waited for."""

    mode: AcknowledgementMode = AcknowledgementMode.VERIFIED
    max_staleness_seconds: float = 1.0
    """A sample that is older is not used."""
    refresh_seconds: float = 0.05
    """Age of a sample from which a new one is taken before a request is forwarded, and again while logs do not show a record."""
    verify_timeout_seconds: float = 10.0
    sample_timeout_seconds: float = 2.0
    """How long a request waits for a sample before it is refused."""

    @property
    def refuses_before(self) -> bool:
        """Whether a request is refused before it is forwarded."""
        return self.mode is not AcknowledgementMode.ADVISORY

    @property
    def checks_after(self) -> bool:
        """Whether an acknowledgement is held until it is verified."""
        return self.mode in (AcknowledgementMode.VERIFIED, AcknowledgementMode.STRICT)

    @property
    def reads_logs(self) -> bool:
        """Whether replicas' logs have to show a record: a broker's metadata may be behind, what is committed is not."""
        return self.mode is AcknowledgementMode.VERIFIED
