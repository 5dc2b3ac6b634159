"""Clients of four kinds without a rack read in their gateway's rack, through changes of the cluster (gateway_readers.py)."""

import pytest

from tests.compat.gateway_readers import RACK, Trial, has_go, run_trial

pytestmark = [pytest.mark.kafka, pytest.mark.soak]

SEED = 7

CLIENTS = {"librdkafka", "kafka-python", "java", *({"kgo"} if has_go() else ())}


def judged(trial: Trial) -> None:
    assert trial.unsettled == []
    assert (trial.lost, trial.repeated) == (0, 0)
    assert set(trial.read.values()) == {trial.written}
    assert set(trial.read) == CLIENTS
    read = {client for (client, from_rack, _), size in trial.gateway_bytes.items() if size and from_rack == RACK}
    assert read == CLIENTS
    assert trial.broker_bytes[RACK] > 0


def test_four_clients_read_in_their_gateways_rack_after_a_change() -> None:
    judged(run_trial(0, SEED))


@pytest.mark.timeout(1_800)
def test_ten_minutes_of_restarts_leader_moves_and_lost_racks() -> None:
    judged(run_trial(600, SEED, changes_min=6))
