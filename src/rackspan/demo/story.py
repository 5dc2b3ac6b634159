"""The story, step by step: what happens, what rackspan says of it, and what the clients saw."""

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from rackspan import api
from rackspan.audit import RackLoss, RackPolicy
from rackspan.demo.racks_lost import TwoRacksLost, lose_two_racks
from rackspan.demo.stage import Say, Stage, embedded, real_kafka
from rackspan.demo.topics import BROKERS, LEDGER, LOST_RACK, RACKS, TOPICS, DemoTopic
from rackspan.demo.traffic import Tally, Traffic, confluent_kafka
from rackspan.errors import RackspanError
from rackspan.java import find_java
from rackspan.model.ids import shown

COLLECT_SECONDS: Final = 2.0


@dataclass(frozen=True, slots=True)
class Outcome:
    """How the demo ended. `foretold` is what outage said before the rack was lost; `missing` acknowledged records.

    `two_racks` is None where the cluster does not know min.insync.racks.
    """

    report: Path
    warehouse: Path
    foretold: RackLoss
    acknowledged: int
    missing: tuple[str, ...]
    snapshots: int
    two_racks: TwoRacksLost | None


def tell(out: Path, say: Say, *, kafka: bool = False) -> Outcome:
    """Run the whole demo, on real Kafka if so asked; `say` gets a line a step.

    Errors: MissingRequirement without Java, Spark or librdkafka.
    """
    confluent_kafka()
    # Spark comes last; what it will lack is said before anything starts.
    find_java()
    with (real_kafka if kafka else embedded)(say) as stage:
        say(f"{BROKERS} brokers in racks {', '.join(RACKS)} at {stage.bootstrap_servers}")
        topics = (*TOPICS, LEDGER) if stage.under_min_racks else TOPICS
        _create_topics(stage.bootstrap_servers, topics, say)
        warehouse = out / "warehouse"
        with Traffic(stage.bootstrap_servers, {topic.name: len(topic.replicas) for topic in topics}) as traffic:
            with _collecting(stage.bootstrap_servers, warehouse) as collected:
                foretold, two_racks = _acts(stage, traffic, say)
            traffic.stop()
            missing = tuple(traffic.missing())
        say(
            f"{traffic.acknowledged:,} records acknowledged, {len(missing)} partitions miss any; {len(collected)} snapshots collected"
        )
    report = _report(out, warehouse, say)
    return Outcome(report, warehouse, foretold, traffic.acknowledged, missing, len(collected), two_racks)


def _create_topics(bootstrap_servers: str, topics: tuple[DemoTopic, ...], say: Say) -> None:
    client = confluent_kafka()
    admin = client.admin.AdminClient({"bootstrap.servers": bootstrap_servers})
    wanted = [
        client.admin.NewTopic(
            topic.name,
            num_partitions=len(topic.replicas),
            replica_assignment=[list(replicas) for replicas in topic.replicas],
            config=dict(topic.config),
        )
        for topic in topics
    ]
    for topic, created in zip(topics, admin.create_topics(wanted).values(), strict=True):
        created.result(30)
        say(f"  topic {topic.name}: {topic.why}")


def _acts(stage: Stage, traffic: Traffic, say: Say) -> tuple[RackLoss, TwoRacksLost | None]:
    foretold = _lose_and_restore(stage, traffic, say)
    if stage.under_min_racks is None:
        return foretold, None
    return foretold, lose_two_racks(
        stage, stage.under_min_racks, traffic, lambda when, tally: _say_tally(say, when, tally), say
    )


def _lose_and_restore(stage: Stage, traffic: Traffic, say: Say) -> RackLoss:
    traffic.wait_until_acknowledged()
    time.sleep(stage.quiet_seconds)
    _say_tally(say, "all racks up", traffic.phase())
    foretold = _foretell(stage.bootstrap_servers, say)
    say(f"rack {LOST_RACK} loses power")
    stage.lose_rack(LOST_RACK)
    time.sleep(stage.outage_seconds)
    _say_tally(say, f"without {LOST_RACK}", traffic.phase())
    say(f"rack {LOST_RACK} comes back")
    stage.restore_rack(LOST_RACK)
    _say_tally(say, "while it starts", traffic.phase())
    time.sleep(stage.quiet_seconds)
    _say_tally(say, "all racks up again", traffic.phase())
    return foretold


def _foretell(bootstrap_servers: str, say: Say) -> RackLoss:
    source = api.live_cluster(bootstrap_servers, None, 30.0)
    _, (loss,) = api.outage(source.read().snapshot, RackPolicy(), lose=(LOST_RACK,))
    harmed = [f"{topic.topic} {', '.join(_states(topic.offline, topic.under_min_isr))}" for topic in loss.topics]
    say(f"rackspan outage --lose {shown(loss.racks[0])} foretells: {'; '.join(harmed) or 'no harm'}")
    return loss


def _states(offline: int, under_min_isr: int) -> Iterator[str]:
    if offline:
        yield f"{offline} offline"
    if under_min_isr:
        yield f"{under_min_isr} refusing acks=all"


def _say_tally(say: Say, when: str, tally: Tally) -> None:
    refused = ", ".join(f"{topic} {count:,}" for topic, count in sorted(tally.refused.items()) if count)
    say(f"  {when}: {tally.acknowledged.total():,} records acknowledged; refused: {refused or 'none'}")


@contextmanager
def _collecting(bootstrap_servers: str, warehouse: Path) -> Iterator[list[Path]]:
    """Snapshots into the warehouse every few seconds, as `rackspan pipeline collect --every` takes them."""
    source = api.live_cluster(bootstrap_servers, None, 10.0)
    kept: list[Path] = []
    stop = threading.Event()

    def go_on() -> None:
        while not stop.wait(COLLECT_SECONDS):
            for one in api.collect([source], warehouse):
                # A snapshot missed while brokers come and go is made up for by the next one.
                if not isinstance(one.error, RackspanError) and one.stored is not None:
                    kept.append(one.stored.path)

    thread = threading.Thread(target=go_on, daemon=True)
    thread.start()
    try:
        yield kept
    finally:
        stop.set()
        thread.join()


def _report(out: Path, warehouse: Path, say: Say) -> Path:
    say("Spark judges every snapshot (a few seconds to start)")
    api.run_pipeline(warehouse, RackPolicy())
    report = out / "report.html"
    api.report(warehouse, RackPolicy(), report)
    return report
