"""Clients of five languages with their default retries while a rack is suspended: the gateway loses and doubles nothing that direct Kafka does not."""

import pytest

from tests.compat.gateway_outage import CLIENTS, available, judged, outage

SECONDS = [10, 30, 60]


def test_what_was_acknowledged_and_is_not_in_the_log_is_lost_and_what_is_there_twice_is_doubled() -> None:
    reports = ["ack 0", "ack 1", "ack 2", "error 3 Not Enough Replicas", "error 4 timed out"]
    outcome = judged(reports, ["0", "2", "2", "3"])
    assert (outcome.sent, outcome.acknowledged, outcome.lost, outcome.doubled, outcome.hidden) == (5, 3, 1, 1, 1)
    assert outcome.errors == {"Not Enough Replicas": 1, "timed out": 1}


@pytest.mark.kafka
@pytest.mark.soak
@pytest.mark.parametrize("seconds", SECONDS)
def test_no_client_loses_doubles_or_gives_up_what_it_does_not_without_the_gateway(seconds: int) -> None:
    clients = available(CLIENTS)
    outcomes = outage(seconds, clients)
    for client in clients:
        direct, through = outcomes[client, "direct"], outcomes[client, "gateway"]
        assert through.acknowledged > 0, client
        assert (through.lost, through.doubled) <= (direct.lost, direct.doubled), (client, str(direct), str(through))
