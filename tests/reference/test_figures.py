"""Figures on the pages about min.insync.racks: those that the code has are the code's."""

import re

import pytest

from rackspan.acks.verification import LATE_SECONDS, SPARE_SECONDS
from rackspan.gateway.clients.connections import GONE_CHECK_SECONDS, HALF_REQUEST_SECONDS
from rackspan.gateway.core.acknowledgement.guard import GuardSettings
from rackspan.gateway.core.config_lease import LEASE_SECONDS, SETTLE_SECONDS
from rackspan.gateway.core.gateways.registrations import HEARTBEAT_SECONDS, SILENT_PERIODS
from rackspan.gateway.handlers.rights import KEPT_SECONDS
from rackspan.gateway.metrics import READY_SECONDS
from rackspan.gateway.net.channel import FIRST_BYTES, SILENT_SECONDS
from rackspan.gateway.net.session import UNREAD_SECONDS, UNTAKEN_SECONDS
from rackspan.gateway.upstream.config_ends import READ_SECONDS
from rackspan.gateway.upstream.config_writer import WRITE_SECONDS
from tests.reference.pages import text
from tests.simulation.kinds import DEMANDED
from tests.simulation.mistakes.planted import COVERED, PLANTED
from tests.simulation.test_planted import LATE, SOON

RULE, FAILURES = "min-insync-racks.md", "gateway-failures.md"
MILLISECONDS = 1000
NUMBERS = {"two": 2, "three": 3, "seven": 7, "nine": 9, "ten": 10, "a second": 1, "every second": 1}
SETTINGS = GuardSettings()


@pytest.mark.parametrize(
    ("page", "words", "value"),
    [
        (RULE, r"holds a \*lease\* of (\d+) s", LEASE_SECONDS),
        (RULE, r"show it, and ([\d.]+) s\s+after that", SETTLE_SECONDS),
        (RULE, r"Each replica is read (every second)", READ_SECONDS),
        (RULE, r"is at most (\d+) ms old counts", SETTINGS.refresh_seconds * MILLISECONDS),
        (RULE, r"reported at most (\d+) ms before it", SETTINGS.refresh_seconds * MILLISECONDS),
        (RULE, r"others after (\d+) ms", SPARE_SECONDS * MILLISECONDS),
        (RULE, r"counts them after (a second)", LATE_SECONDS),
        (RULE, r"worlds in which every rule is demanded \| (\d+)\.", len(DEMANDED)),
        (RULE, r"mistakes that must be caught \| (\d+),", len(PLANTED)),
        (RULE, r"(\d+) take ten or fewer", sum(planted.mean <= 10 for planted in PLANTED.values())),
        (RULE, r"(\d+) are looked for in `make test`", len(SOON)),
        (RULE, r"the other (\w+) in `make soak`", len(LATE)),
        (RULE, r"the (\w+) that take more than twenty", sum(planted.mean > 20 for planted in PLANTED.values())),
        (RULE, r"behind a second guard \| (\d+),", len(COVERED)),
        (FAILURES, r"or after (\d+) s if the ISR cannot be read", SETTINGS.sample_timeout_seconds),
        (FAILURES, r"without WRITE in the last (\w+) seconds", KEPT_SECONDS),
        (FAILURES, r"clients that gave up are closed after (\d+) to 60 seconds", GONE_CHECK_SECONDS),
        (FAILURES, r"are closed after 30 to (\d+) seconds", 2 * GONE_CHECK_SECONDS),
        (FAILURES, r"turned away .*`/readyz` is 503 after (\d+) seconds", READY_SECONDS),
        (FAILURES, r"a half-received one is waited for (\d+) seconds", HALF_REQUEST_SECONDS),
        (FAILURES, r"sent nothing for (\d+) seconds in the middle", SILENT_SECONDS),
        (FAILURES, r"arrived, or (\d+) KB of a larger one", FIRST_BYTES / 1024),
        (FAILURES, r"after (\d+) seconds if their client reads no responses", UNREAD_SECONDS),
        (FAILURES, r"reads no responses, after (\d+) if only their broker", UNTAKEN_SECONDS),
        (FAILURES, r"fewer than two of three replicas in sync for (\d+) s", LEASE_SECONDS),
        (FAILURES, r"Setting a value is refused after (\d+) seconds", WRITE_SECONDS),
        (FAILURES, r"and is refused after (\d+) seconds with their ids", WRITE_SECONDS),
        (FAILURES, r"it is a warning after (\d+) seconds", SILENT_PERIODS * HEARTBEAT_SECONDS),
        (FAILURES, r"for up to (\d+) s after that it may acknowledge", LEASE_SECONDS),
    ],
)
def test_a_figure_is_the_one_of_the_code(page: str, words: str, value: float) -> None:
    found = re.findall(words, text(page))
    assert len(found) == 1, found
    number = NUMBERS[found[0]] if found[0] in NUMBERS else float(found[0])
    assert number == value
