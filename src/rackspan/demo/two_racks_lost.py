"""The second part of the demo: two of three racks are lost under min.insync.racks, and the operator lowers it.

Source: min.insync.racks, the runbook of an outage: producers are refused, the value is lowered, and restored afterwards.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

from rackspan.demo.clients import DemoClients, Tally, confluent_kafka, handles
from rackspan.demo.clusters import DemoCluster, ReportLine
from rackspan.demo.topics import LEDGER, LOST_RACK, SECOND_RACK

MIN_INSYNC_RACKS: Final = "min.insync.racks"
LOWERED_SECONDS: Final = 4.0


@dataclass(frozen=True, slots=True)
class TwoRacksLost:
    """`under_min_racks` is the metric while both racks are lost. The counts are of the ledger's records."""

    under_min_racks: int
    refused: int
    acknowledged_lowered: int


def lose_two_racks(
    cluster: DemoCluster,
    under_min_racks: Callable[[], int],
    clients: DemoClients,
    report_tally: Callable[[str, Tally], None],
    report: ReportLine,
) -> TwoRacksLost:
    """Returns when both racks are restored and the config has its first value again."""
    report(f"racks {LOST_RACK} and {SECOND_RACK} lose power: {LEDGER.name} is left with one rack")
    for rack in (LOST_RACK, SECOND_RACK):
        cluster.lose_rack(rack)
    time.sleep(cluster.outage_seconds)
    refused = clients.take_tally()
    report_tally(f"without {LOST_RACK} and {SECOND_RACK}", refused)
    metric = under_min_racks()
    report(
        f"  rackspan_under_min_rack_isr_partitions {metric}: that is why {LEDGER.name} is refused, though its leaders live"
    )
    _set(cluster.bootstrap_servers, "1")
    report(f"the operator lowers {MIN_INSYNC_RACKS} of {LEDGER.name} to 1, no restart")
    time.sleep(LOWERED_SECONDS)
    lowered = clients.take_tally()
    report_tally("with one rack allowed", lowered)
    report(f"both racks come back, and {MIN_INSYNC_RACKS} is {LEDGER.config[MIN_INSYNC_RACKS]} again")
    for rack in (LOST_RACK, SECOND_RACK):
        cluster.restore_rack(rack)
    _set(cluster.bootstrap_servers, LEDGER.config[MIN_INSYNC_RACKS])
    time.sleep(cluster.quiet_seconds)
    report_tally("all racks up again", clients.take_tally())
    return TwoRacksLost(metric, refused.refused[LEDGER.name], lowered.acknowledged[LEDGER.name])


def _set(bootstrap_servers: str, value: str) -> None:
    client: Any = confluent_kafka()
    entry = client.admin.ConfigEntry(MIN_INSYNC_RACKS, value, incremental_operation=client.admin.AlterConfigOpType.SET)
    topic = client.admin.ConfigResource(client.admin.ResourceType.TOPIC, LEDGER.name, incremental_configs=[entry])
    # Kept in a variable: librdkafka drops requests without a response when their client is garbage-collected.
    admin = handles().AdminClient({"bootstrap.servers": bootstrap_servers, "log_level": 0})
    for done in admin.incremental_alter_configs([topic]).values():
        done.result(30)
