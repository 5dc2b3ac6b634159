"""The second act, where the cluster knows min.insync.racks: two of three racks are lost, and what the operator can do.

Source: min.insync.racks, the runbook of an outage: producers are refused, the value is lowered, and restored afterwards.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

from rackspan.demo.stage import Say, Stage
from rackspan.demo.topics import LEDGER, LOST_RACK, SECOND_RACK
from rackspan.demo.traffic import Tally, Traffic, confluent_kafka

MIN_INSYNC_RACKS: Final = "min.insync.racks"
LOWERED_SECONDS: Final = 4.0


@dataclass(frozen=True, slots=True)
class TwoRacksLost:
    """`under_min_racks` is the metric while both are lost; the counts are the ledger's records."""

    under_min_racks: int
    refused: int
    acknowledged_lowered: int


def lose_two_racks(
    stage: Stage,
    under_min_racks: Callable[[], int],
    traffic: Traffic,
    say_tally: Callable[[str, Tally], None],
    say: Say,
) -> TwoRacksLost:
    """Returns when both racks are back and the value is what it was."""
    say(f"racks {LOST_RACK} and {SECOND_RACK} lose power: {LEDGER.name} is left with one rack")
    for rack in (LOST_RACK, SECOND_RACK):
        stage.lose_rack(rack)
    time.sleep(stage.outage_seconds)
    refused = traffic.phase()
    say_tally(f"without {LOST_RACK} and {SECOND_RACK}", refused)
    metric = under_min_racks()
    say(
        f"  rackspan_under_min_rack_isr_partitions {metric}: that is why {LEDGER.name} is refused, though its leaders live"
    )
    _set(stage.bootstrap_servers, "1")
    say(f"the operator lowers {MIN_INSYNC_RACKS} of {LEDGER.name} to 1, no restart")
    time.sleep(LOWERED_SECONDS)
    lowered = traffic.phase()
    say_tally("with one rack allowed", lowered)
    say(f"both racks come back, and {MIN_INSYNC_RACKS} is {LEDGER.config[MIN_INSYNC_RACKS]} again")
    for rack in (LOST_RACK, SECOND_RACK):
        stage.restore_rack(rack)
    _set(stage.bootstrap_servers, LEDGER.config[MIN_INSYNC_RACKS])
    time.sleep(stage.quiet_seconds)
    say_tally("all racks up again", traffic.phase())
    return TwoRacksLost(metric, refused.refused[LEDGER.name], lowered.acknowledged[LEDGER.name])


def _set(bootstrap_servers: str, value: str) -> None:
    client: Any = confluent_kafka()
    entry = client.admin.ConfigEntry(MIN_INSYNC_RACKS, value, incremental_operation=client.admin.AlterConfigOpType.SET)
    topic = client.admin.ConfigResource(client.admin.ResourceType.TOPIC, LEDGER.name, incremental_configs=[entry])
    # Named, since librdkafka gives up what is under way when nobody holds its client any more.
    admin = client.admin.AdminClient({"bootstrap.servers": bootstrap_servers, "log_level": 0})
    for done in admin.incremental_alter_configs([topic]).values():
        done.result(30)
