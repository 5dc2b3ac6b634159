"""A client that plays a follower which is suspended: through the gateway it is refused, and past it nothing is acknowledged by its word."""

import pytest

from tests.compat.gateway_forged import FORMS, REFUSED, forged
from tests.depth import DEPTH

pytestmark = [pytest.mark.kafka, pytest.mark.rest]

RUNS = 10 if DEPTH == "soak" else 1


def test_fetches_in_the_name_of_a_replica_are_refused_and_leak_nothing() -> None:
    for outcome in forged(RUNS, ("verified", "strict"), past=False).values():
        assert outcome.leaked == [0] * RUNS * len(FORMS)
        assert outcome.errors.keys() == {REFUSED}
        assert outcome.acknowledged > 0


def test_a_client_that_reaches_the_leader_itself_leaks_nothing_in_a_mode_that_reads_logs() -> None:
    outcomes = forged(RUNS, ("pre", "verified", "strict"), past=True)
    assert outcomes["verified"].leaked == outcomes["strict"].leaked == [0] * RUNS * len(FORMS)
    # The trial is one: the leader believes the client, and who trusts the ISR acknowledges.
    assert all(outcomes["pre"].leaked)
    assert [one.in_isr for one in outcomes.values()] == [RUNS * len(FORMS)] * len(outcomes)
