"""The releases of Apache Kafka that can be started."""

import re
from dataclasses import dataclass
from typing import Final

from rackspan.errors import UsageError

TESTED_VERSIONS: Final = ("3.9.1", "4.1.0", "4.3.1", "4.4.0")
"""The releases that the tests run on, the oldest first: `make test` on the newest, `make soak` on every one."""

DEFAULT_VERSION: Final = TESTED_VERSIONS[-1]
SCALA_VERSION: Final = "2.13"
"""The Scala that Kafka's server is compiled for; from Kafka 4.0 on there is no other."""

_LEAST: Final = (3, 5)
"""The first release with KRaft for production use and the DescribeQuorum response that is read here."""


@dataclass(frozen=True, slots=True, order=True)
class KafkaVersion:
    """A release, such as 4.1.0."""

    major: int
    minor: int
    patch: int

    @classmethod
    def parse(cls, text: str) -> "KafkaVersion":
        match = re.fullmatch(r"(\d+)\.(\d+)\.(\d+)", text)
        if not match:
            raise UsageError(f"Kafka version {text!r}: a release has three numbers, such as {DEFAULT_VERSION}")
        version = cls(*map(int, match.groups()))
        if (version.major, version.minor) < _LEAST:
            raise UsageError(
                f"Kafka version {text}: rackspan starts {'.'.join(map(str, _LEAST))} and newer; choose such as {DEFAULT_VERSION}"
            )
        return version

    def __str__(self) -> str:
        return f"{self.major}.{self.minor}.{self.patch}"
