"""Clients of five languages with their default retries while a rack is suspended: the gateway loses and doubles nothing that direct Kafka does not."""

import math

import pytest

from tests.compat.gateway_outage import CLIENTS, available, judged, outage

SECONDS = [10, 30, 60]
GIVES_UP_AFTER_SECONDS = {"sarama": 5, "kafkajs": 40}
"""By default: kafkajs after a request's timeout of 30 s and five retries, sarama after three retries of what is refused at once."""


def test_what_was_acknowledged_and_is_not_in_the_log_is_lost_and_what_is_there_twice_is_doubled() -> None:
    reports = ["ack 0", "ack 1", "ack 2", "error 3 Not Enough Replicas", "error 4 timed out"]
    outcome = judged(reports, ["0", "2", "2", "3"])
    assert (outcome.sent, outcome.acknowledged, outcome.lost, outcome.doubled, outcome.hidden) == (5, 3, 1, 1, 1)
    assert outcome.errors == {"Not Enough Replicas": 1, "timed out": 1}


@pytest.mark.kafka
@pytest.mark.soak
@pytest.mark.parametrize("seconds", SECONDS)
def test_clients_lose_and_double_nothing_and_only_those_that_give_up_do_so_as_without_the_gateway(seconds: int) -> None:
    clients = available(CLIENTS)
    outcomes = outage(seconds, clients)
    for client in clients:
        direct, through = outcomes[client, "direct"], outcomes[client, "gateway"]
        assert through.acknowledged > 0, client
        assert through.doubled == 0, (client, str(through))
        if seconds < GIVES_UP_AFTER_SECONDS.get(client, math.inf):
            assert (through.lost, through.errors.total()) == (0, 0), (client, str(through))
        else:
            # They lose a few then, of thousands, as often with the gateway as without.
            assert direct.errors, client
            assert through.lost <= direct.lost + 5, (client, str(direct), str(through))
