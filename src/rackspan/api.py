"""The whole system on one page: read, judge, decide, act. `cli` and `web` are skins over these.

Every verb takes values and returns values; the clock, the network and the disk are met in `sources`, `apply` and
`pipeline`.
"""

import re
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from random import Random
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from rackspan import audit as _audit
from rackspan import plan as _plan
from rackspan import reassign as _reassign
from rackspan import streams as _streams
from rackspan.acks import Watch, watched
from rackspan.acks import harden as _harden
from rackspan.acks.harden import HardenAdvice
from rackspan.audit import Audit, Finding, RackLoss, RackPolicy
from rackspan.model import ClusterSnapshot
from rackspan.model.json_format import ReadSnapshot
from rackspan.model.topic import MIN_INSYNC_REPLICAS
from rackspan.placement import RandomGenerator
from rackspan.placement import generate as _generate
from rackspan.placement import new_partitions as _new_partitions
from rackspan.placement import spec as _spec
from rackspan.placement.generate import Generated
from rackspan.placement.new_partitions import PlacerChoice, Proposal
from rackspan.plan import Caps, Limits, Step, Toward, WrittenPlan
from rackspan.plan.execution.events import Account, Turned, after
from rackspan.plan.execution.observed import observed
from rackspan.plan.execution.start import beginning, going_on
from rackspan.plan.verification import PartitionVerdict, verdicts
from rackspan.reassign import Plan, ReassignmentDocument, Request
from rackspan.sources import polling as _watching
from rackspan.sources import rack_locator as _rack_locator
from rackspan.sources import rack_locators as _rack_locators
from rackspan.sources import snapshot_file as _snapshot_file
from rackspan.sources.client_config.properties_file import read_properties
from rackspan.sources.source import Cluster, Source
from rackspan.streams import CapturedGroup, Setting, StreamsGroup

if TYPE_CHECKING:
    from rackspan.apply import Happened
    from rackspan.pipeline import Collected, RunReport
    from rackspan.sources.live.connection import ClusterConnection, ConnectionSettings

__all__ = [
    "Cluster",
    "Source",
    "assign_tasks",
    "audit",
    "audit_streams",
    "cancel_reassignment",
    "capture_streams",
    "carry_out",
    "check_reassignment",
    "collect",
    "collect_every",
    "create_partitions",
    "create_topic",
    "generate_reassignment",
    "harden",
    "lint_reassignment",
    "live_cluster",
    "located",
    "outage",
    "place_from_spec",
    "place_more_partitions",
    "place_new_topic",
    "plan_reassignment",
    "read_streams_group",
    "report",
    "run_pipeline",
    "set_min_insync_replicas",
    "snapshot",
    "snapshot_file",
    "snapshot_files",
    "streams_lab",
    "table",
    "verify_reassignment",
    "watch",
]

_NO_CHANGELOGS: Mapping[str, Sequence[str]] = MappingProxyType({})

# ── where snapshots come from


def live_cluster(
    bootstrap_servers: str, command_config: Path | None, timeout_seconds: float, *, sizes: bool = True
) -> Source:
    """A running cluster; without `sizes` metadata alone. Errors: UsageError for a command config that cannot be followed."""
    connection = _settings(Cluster(bootstrap_servers, command_config, timeout_seconds))
    # The Kafka client is imported where a cluster is met: judging a file should not wait for it.
    from rackspan.sources.live.cluster import read_cluster

    return Source(bootstrap_servers, lambda: ReadSnapshot(read_cluster(connection, sizes=sizes), ()))


def _connection(cluster: Cluster) -> "ClusterConnection":
    from rackspan.sources.live.connection import ClusterConnection

    return ClusterConnection(_settings(cluster))


def _settings(cluster: Cluster) -> "ConnectionSettings":
    from rackspan.sources.live.connection import ConnectionSettings

    properties = {} if cluster.command_config is None else read_properties(cluster.command_config)
    return ConnectionSettings(cluster.bootstrap_servers, properties, cluster.timeout_seconds)


def snapshot_file(path: Path) -> Source:
    """A JSON file or Parquet folder."""
    return Source(str(path), lambda: _snapshot_file.read(path))


def snapshot_files(folder: Path) -> list[Source]:
    """Every snapshot in a folder, by name. Errors: UsageError for none."""
    from rackspan import pipeline

    return list(pipeline.from_folder(folder))


def located(source: Source, rack_locator_class: str, rack_locator_properties: str) -> Source:
    """The same with the racks that a locator finds, asked anew at every reading. Errors: UsageError, RackLocatorFailed."""
    locator = _rack_locators.make(rack_locator_class, _rack_locator.parse_properties(rack_locator_properties))

    def read() -> ReadSnapshot:
        taken = source.read()
        return ReadSnapshot(_rack_locator.located(taken.snapshot, locator), taken.warnings)

    return Source(source.name, read)


# ── see


def snapshot(source: Source, out: Path) -> ReadSnapshot:
    """One moment of a cluster, written to `out`: a JSON file where the name ends in .json, a Parquet folder otherwise."""
    taken = source.read()
    _snapshot_file.write(taken.snapshot, out)
    return taken


def audit(snapshot: ClusterSnapshot, policy: RackPolicy = RackPolicy()) -> Audit:
    """Everything that is wrong, and whether the loss of each rack is survived."""
    return _audit.audit(snapshot, policy)


def outage(
    snapshot: ClusterSnapshot,
    policy: RackPolicy = RackPolicy(),
    *,
    lose: tuple[str, ...] | None = None,
    pairs: bool = False,
) -> tuple[RackLoss, list[RackLoss]]:
    """What is harmed already, and what losing each rack, each pair, or the named racks together would do."""
    return _audit.outage(snapshot, policy, lose=lose, pairs=pairs)


# ── place


def place_from_spec(document: object, rng: Random) -> dict[str, Any]:
    """The assignment that a parsed placement spec asks for. Errors: UsageError, ReplicaPlacementException."""
    return _spec.run(document, rng)


def place_new_topic(
    snapshot: ClusterSnapshot,
    topic: str,
    partitions: int,
    replication_factor: int,
    choice: PlacerChoice,
    rng: Random | RandomGenerator,
) -> Proposal:
    """Where a new topic's replicas would go, among all that brokers carry already."""
    return _new_partitions.new_topic(snapshot, topic, partitions, replication_factor, choice, rng)


def place_more_partitions(
    snapshot: ClusterSnapshot, topic: str, total: int, choice: PlacerChoice, rng: Random | RandomGenerator
) -> Proposal:
    """Where the partitions would go that a topic lacks up to `total`."""
    return _new_partitions.more_partitions(snapshot, topic, total, choice, rng)


def create_topic(cluster: Cluster, proposal: Proposal, configs: Mapping[str, str]) -> None:
    """Create the proposed topic, each replica where it is proposed. Errors: SourceError."""
    from rackspan import apply

    with _connection(cluster) as connection:
        apply.create_topic(connection, proposal.topic, proposal.assignment.replicas.tolist(), configs)


def create_partitions(cluster: Cluster, proposal: Proposal) -> None:
    """Add the proposed partitions to their topic. Errors: SourceError."""
    from rackspan import apply

    with _connection(cluster) as connection:
        added = proposal.assignment.replicas.tolist()
        apply.create_partitions(connection, proposal.topic, proposal.total, added)


# ── move


def generate_reassignment(
    snapshot: ClusterSnapshot,
    topics: Sequence[str],
    broker_list: Sequence[int],
    choice: PlacerChoice,
    rng: Random | RandomGenerator,
) -> list[Generated]:
    """Topics placed anew on a list of brokers, as kafka-reassign-partitions --generate does."""
    return _generate.generate(snapshot, topics, broker_list, choice, rng)


def plan_reassignment(
    snapshot: ClusterSnapshot, policy: RackPolicy, request: Request, caps: Caps
) -> tuple[Plan, Sequence[Step]]:
    """The least movement that does what is asked, with the bound that proves it, in steps by risk."""
    planned = _reassign.plan(snapshot, policy, request)
    return planned, _plan.in_steps(planned, policy, caps)


def lint_reassignment(snapshot: ClusterSnapshot, policy: RackPolicy, document: ReassignmentDocument) -> list[Finding]:
    """What is wrong with anyone's plan: where it leads, what it passes through, what it copies needlessly."""
    return _reassign.lint(snapshot, policy, document)


def verify_reassignment(snapshot: ClusterSnapshot, plan: WrittenPlan) -> list[PartitionVerdict]:
    """How far anyone's reassignment is, partition by partition."""
    return verdicts(plan, observed(snapshot))


def check_reassignment(snapshot: ClusterSnapshot, plan: WrittenPlan, toward: Toward, journal: Path) -> Account:
    """Where a run would begin or go on, if it may. Errors: ReassignmentStopped, with the reason; InvalidJournal."""
    from rackspan.apply.journal import peek

    begun, seen = peek(journal), observed(snapshot)
    if begun is None:
        return Account(beginning(plan, toward, seen), toward)
    going_on(begun, plan, seen, str(journal))
    return after(begun, Turned(toward))


def carry_out(
    cluster: Cluster, plan: WrittenPlan, toward: Toward, journal: Path, limits: Limits, patience_seconds: float
) -> "Iterator[Happened]":
    """Carry a plan out, or undo it; a journal that has begun is gone on with. Errors: ReassignmentStopped, SourceError."""
    from rackspan import apply

    with apply.Journal(journal) as opened:
        live, pace = apply.LiveCluster(_settings(cluster)), apply.Pace(patience_seconds)
        yield from apply.run(live, plan, toward, opened, limits, pace)


def cancel_reassignment(
    cluster: Cluster, plan: WrittenPlan, journal: Path, patience_seconds: float
) -> "Iterator[Happened]":
    """Take back what is in flight of a plan, and give throttles back. Errors: as carry_out."""
    from rackspan import apply

    with apply.Journal(journal) as opened:
        live, pace = apply.LiveCluster(_settings(cluster)), apply.Pace(patience_seconds)
        yield from apply.cancel(live, plan, opened, pace)


# ── acknowledge


def harden(
    snapshot: ClusterSnapshot, policy: RackPolicy = RackPolicy(), topic_filter: re.Pattern[str] | None = None
) -> list[HardenAdvice]:
    """For each topic the least min.insync.replicas that forces its racks, and what that costs."""
    return _harden.harden(snapshot, policy, topic_filter)


def set_min_insync_replicas(cluster: Cluster, advice: Sequence[HardenAdvice]) -> dict[str, int]:
    """Set the value of each topic whose advice is to raise it; returns what was set. Errors: SourceError."""
    from rackspan import apply

    values = _harden.values_to_set(advice)
    if values:
        with _connection(cluster) as connection:
            apply.alter_topic_configs(
                connection, {topic: {MIN_INSYNC_REPLICAS: str(value)} for topic, value in values.items()}
            )
    return values


def watch(source: Source, policy: RackPolicy, seconds: float, *, afterwards: Source | None = None) -> Iterator[Watch]:
    """The metrics of min.insync.racks by metadata, read every so many seconds; a reading that fails is told, and the next
    is tried. `afterwards` is the same cluster, asked for less once the first reading has told what it hides.

    Errors: the first reading's.
    """
    readings = _watching.readings(source, seconds, afterwards=afterwards, now=time.monotonic, sleep=time.sleep)
    return watched(readings, policy)


# ── assign


def assign_tasks(problem: object, assignor: str, beyond: Sequence[str] = ()) -> dict[str, Any]:
    """Stream tasks to clients at least cross-rack cost (KIP-925), with a certificate that nothing is cheaper."""
    return _streams.assign(problem, assignor, _streams.options_named(*beyond), time.perf_counter)


def read_streams_group(cluster: Cluster, group: str) -> StreamsGroup:
    """A running Kafka Streams group. Errors: SourceError, InvalidGroup where it is none or not at rest."""
    from rackspan.sources.live.group import read_group

    return _streams.streams_group(read_group(_settings(cluster), group))


def capture_streams(
    group: StreamsGroup, snapshot: ClusterSnapshot, changelogs: Mapping[str, Sequence[str]] = _NO_CHANGELOGS
) -> CapturedGroup:
    """A running group as an assignment problem. `changelogs` by sub-topology, where names and sizes do not tell."""
    return _streams.capture_group(group, snapshot, changelogs)


def audit_streams(group: StreamsGroup, captured: CapturedGroup) -> dict[str, Any]:
    """What a running group reads across racks now, at best, and under each of Kafka's strategies."""
    return _streams.audit_group(group, captured)


def streams_lab(
    problems: Mapping[str, object], settings: Sequence[Setting], beyond: Sequence[str] = ()
) -> dict[str, Any]:
    """Groups under every setting: cost, balance, stickiness, and rounds until each comes to rest."""
    return _streams.replay(problems, settings, _streams.options_named(*beyond))


# ── the pipeline


def collect(sources: list[Source], warehouse: Path) -> "Iterator[Collected]":
    """One snapshot of each source into the warehouse; a source that fails does not keep the others from being read."""
    from rackspan import pipeline

    return pipeline.collect(sources, pipeline.create_warehouse(warehouse))


def collect_every(sources: list[Source], warehouse: Path, seconds: float) -> "Iterator[Collected]":
    """The same, a round every so many seconds, until the caller stops asking."""
    from rackspan import pipeline

    kept = pipeline.create_warehouse(warehouse)
    return pipeline.collect_every(sources, kept, seconds, now=time.monotonic, sleep=time.sleep)


def run_pipeline(warehouse: Path, policy: RackPolicy = RackPolicy(), master: str | None = None) -> "RunReport":
    """Bring every table up to date with what was collected, on Spark."""
    from rackspan import pipeline

    return pipeline.run(pipeline.open_warehouse(warehouse), policy, master)


def table(warehouse: Path, name: str, limit: int | None = None) -> Iterator[dict[str, object]]:
    """The rows of a table in the order of its grain, without Spark."""
    from rackspan import pipeline

    return pipeline.rows(pipeline.open_warehouse(warehouse), name, limit)


def report(warehouse: Path, policy: RackPolicy, out: Path, master: str | None = None) -> list[str]:
    """One page about every cluster of the warehouse, drawn from its tables. Returns what is odd about it, a line each."""
    from rackspan import pipeline

    return pipeline.draw_report(pipeline.open_warehouse(warehouse), policy, out, master)
