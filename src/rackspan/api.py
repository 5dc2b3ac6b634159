"""The public functions of rackspan: read a cluster, audit it, plan a change, carry it out.

They stand in the order in which an operator uses them. Each takes and returns values: what one returns, the next one takes.
Network, disk and clock are used in `sources`, `apply` and `pipeline` only.

`cli` adds what a terminal needs: options, pages, progress. Every decision is made here or below.

    snapshot = api.live_cluster("broker:9092", None, 30).read().snapshot
    plan = api.plan_reassignment(snapshot)
    for update in api.carry_out(api.Cluster("broker:9092", None, 30), plan, Path("plan.journal")):
        ...
"""

from __future__ import annotations

import logging
import re
import threading
import time
from collections.abc import Callable, Collection, Generator, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from importlib import import_module
from pathlib import Path
from random import Random
from types import MappingProxyType
from typing import TYPE_CHECKING

from rackspan import audit as _audit
from rackspan.audit import RackPolicy
from rackspan.errors import ClusterUnreachable, UsageError, required_module
from rackspan.lazy_exports import lazy_getattr
from rackspan.model import GATEWAY_CONFIG_TOPIC, MIN_INSYNC_REPLICAS, ReadSnapshot
from rackspan.model import json_format as _json_format
from rackspan.sources import snapshot_file as _snapshot_file
from rackspan.sources.source import Cluster, ClusterName, Source

# A command should not wait for what it does not use: below is imported at its first use.
if TYPE_CHECKING:
    from rackspan import advice as _advice
    from rackspan import clients as _clients
    from rackspan import plan as _plan
    from rackspan import reassign as _reassign
    from rackspan import restart as _restart
    from rackspan import streams as _streams
    from rackspan.acks import HardenAdvice, Watch
    from rackspan.acks import harden as _harden
    from rackspan.acks import watch as _acks_watch
    from rackspan.advice import Advice
    from rackspan.apply import RestartUpdate, RunUpdate
    from rackspan.audit import Audit, ClusterPolicies, Finding, HarmfulCancel, RackLoss, assumptions, racks_down
    from rackspan.client import config as _client_config
    from rackspan.client.cluster import ClusterConnection, ConnectionSettings
    from rackspan.client.config import JudgedLine
    from rackspan.clients import ClientFinding, GroupReads, Measured, ReadBytes
    from rackspan.model import ClusterSnapshot, TopicPartition
    from rackspan.model.client_networks import ClientNetworks
    from rackspan.pipeline import Collected, Exported, RunReport
    from rackspan.pipeline.advised import StoredAdvice
    from rackspan.pipeline.check import CheckReport
    from rackspan.pipeline.follow import FollowedBatch
    from rackspan.pipeline.judging.newest_losses import NewestLosses
    from rackspan.pipeline.maintain import MaintainedTable
    from rackspan.placement import Exclusion, RandomGenerator
    from rackspan.placement import generate as _generate
    from rackspan.placement import new_partitions as _new_partitions
    from rackspan.placement import proposal_format as _proposal_format
    from rackspan.placement import spec as _spec
    from rackspan.placement.generate import GeneratedPartition
    from rackspan.placement.new_partitions import PlacerChoice, Proposal
    from rackspan.placement.proposal_format import PlacementPlan
    from rackspan.placement.spec import PlacementDocument
    from rackspan.plan import (
        ConfigKey,
        ObservedCluster,
        PartitionDifference,
        PlanDifference,
        RunLimits,
        RunState,
        StepLimits,
        VerifiedPartition,
        plan_document,
        read_plan,
    )
    from rackspan.reassign import (
        Direction,
        ReassignmentColumns,
        ReassignmentDocument,
        ReassignmentPlan,
        ReassignmentRequest,
    )
    from rackspan.restart import RestartPlan, RestartRequest, StopJudgement, StopPolicy
    from rackspan.restart.execution import plan_file as _restart_plan_file
    from rackspan.restart.execution.plan_file import RestartBatches
    from rackspan.sources import polling as _watching
    from rackspan.sources import rack_locator as _rack_locator
    from rackspan.sources import rack_locators as _rack_locators
    from rackspan.sources.live.clients import ReadClients
    from rackspan.streams import CapturedGroup, Setting, StreamsGroup
    from rackspan.streams.assignment import AssignmentDocument
    from rackspan.streams.lab.replay import LabDocument
    from rackspan.streams.live.group_audit import StreamsAuditDocument
    from rackspan.traffic import ClusterReading, Interval, PriceFile
else:

    class _LazyModule:
        """A module that is imported at the first use of one of its names."""

        def __init__(self, name: str) -> None:
            self._name = name

        def __getattr__(self, attribute: str) -> object:
            return getattr(import_module(self._name), attribute)

    _advice = _LazyModule("rackspan.advice")
    _clients = _LazyModule("rackspan.clients")
    _plan = _LazyModule("rackspan.plan")
    _reassign = _LazyModule("rackspan.reassign")
    _restart = _LazyModule("rackspan.restart")
    _restart_plan_file = _LazyModule("rackspan.restart.execution.plan_file")
    _streams = _LazyModule("rackspan.streams")
    _harden = _LazyModule("rackspan.acks.harden")
    _acks_watch = _LazyModule("rackspan.acks.watch")
    _client_config = _LazyModule("rackspan.client.config")
    _generate = _LazyModule("rackspan.placement.generate")
    _new_partitions = _LazyModule("rackspan.placement.new_partitions")
    _proposal_format = _LazyModule("rackspan.placement.proposal_format")
    _spec = _LazyModule("rackspan.placement.spec")
    _watching = _LazyModule("rackspan.sources.polling")
    _rack_locator = _LazyModule("rackspan.sources.rack_locator")
    _rack_locators = _LazyModule("rackspan.sources.rack_locators")
    __getattr__ = lazy_getattr(
        "rackspan",
        {
            "audit": ("assumptions", "racks_down"),
            "placement": ("Exclusion",),
            "plan": ("RunLimits", "StepLimits", "plan_document", "read_plan"),
            "reassign": ("Direction", "ReassignmentPlan", "ReassignmentRequest"),
            "restart": ("RestartRequest", "StopPolicy"),
        },
        owner=__name__,
    )

__all__ = [
    "Cluster",
    "ClusterName",
    "Direction",
    "Exclusion",
    "RackPolicy",
    "ReassignmentPlan",
    "ReassignmentRequest",
    "RestartRequest",
    "RunLimits",
    "Source",
    "StepLimits",
    "StopPolicy",
    "advise",
    "advise_stored",
    "assign_tasks",
    "assumptions",
    "audit",
    "audit_page",
    "audit_streams",
    "batches_of",
    "brokers_in_racks",
    "cancel_in_flight",
    "cancel_reassignment",
    "capture_streams",
    "carry_out",
    "carry_out_restart",
    "check_command_config",
    "check_reassignment",
    "check_warehouse",
    "clients",
    "collect",
    "collect_every",
    "command_config_lines",
    "create_partitions",
    "create_topic",
    "export_tables",
    "follow_pipeline",
    "foreign_throttles",
    "generate_reassignment",
    "harden",
    "harmful_cancels",
    "judge_stop",
    "known_reassignments",
    "lint_reassignment",
    "live_cluster",
    "located",
    "maintain",
    "measure_reads",
    "measure_traffic",
    "observe_reassignment",
    "outage",
    "partition_differences",
    "place_from_spec",
    "place_more_partitions",
    "place_new_topic",
    "placement_plan_document",
    "plan_difference",
    "plan_document",
    "plan_reassignment",
    "plan_restart",
    "planned_proposal",
    "protocol_warnings",
    "racks_down",
    "read_clients",
    "read_placement_plan",
    "read_plan",
    "read_prices",
    "read_restart_plan",
    "read_streams_group",
    "reassignments_in_flight",
    "rebuild_pipeline",
    "report",
    "restart_step",
    "run_pipeline",
    "set_min_insync_replicas",
    "snapshot",
    "snapshot_after",
    "snapshot_file",
    "snapshot_files",
    "snapshot_json",
    "snapshot_text",
    "stopped_once_hardened",
    "streams_lab",
    "table",
    "table_columns",
    "traffic",
    "verify_reassignment",
    "wait_until_safe",
    "watch",
    "watch_restart",
    "why_no_rows",
    "with_gateway_values",
]

_log = logging.getLogger(__name__)

_NO_CONFIGS: Mapping[str, str] = MappingProxyType({})
_NO_CHANGELOGS: Mapping[str, Sequence[str]] = MappingProxyType({})

# ── read a cluster


def live_cluster(
    bootstrap_servers: str,
    command_config: Path | None,
    timeout_seconds: float,
    *,
    sizes: bool = True,
    name: str | None = None,
    named: ClusterName | None = None,
) -> Source:
    """A running cluster; without `sizes` metadata alone. `name` is for messages, the address by default; `named` what a warehouse keeps.

    Errors: UsageError for a command config that cannot be followed.
    """
    connection = _settings(Cluster(bootstrap_servers, command_config, timeout_seconds))
    # The Kafka client is imported only here: auditing a file should not wait for it.
    from rackspan.sources.live.cluster import repeated_reader

    read = repeated_reader(connection, sizes=sizes)

    def read_traffic(period_seconds: float, counters: Sequence[str]) -> ClusterReading:
        from rackspan.sources.live.traffic import read_everything

        return read_everything(connection, period_seconds, counters)

    return Source(name or bootstrap_servers, read, read_traffic, named)


def check_command_config(file: Path) -> None:
    """Check that a properties file can be followed, without a connection. Errors: UsageError, naming the key."""
    _client_config.kafka_python_settings(_client_config.read_properties(file))


def command_config_lines(file: Path) -> list[JudgedLine]:
    """What becomes of each line of a properties file: used, ignored or refused, and why. Errors: UsageError if it cannot be read."""
    return list(_client_config.judged_lines(_client_config.load_properties(file)))


def protocol_warnings(cluster: Cluster) -> list[str]:
    """A sentence if the address of a server names another security protocol than the properties file. Errors: UsageError."""
    return _unwarned(cluster).protocol_warnings()


def _connection(cluster: Cluster) -> ClusterConnection:
    from rackspan.client.cluster import ClusterConnection

    return ClusterConnection(_settings(cluster))


def _settings(cluster: Cluster) -> ConnectionSettings:
    settings = _unwarned(cluster)
    for line in (*settings.property_warnings(), *settings.protocol_warnings()):
        _log.warning(line)
    return settings


def _unwarned(cluster: Cluster) -> ConnectionSettings:
    from rackspan.client.cluster import ConnectionSettings

    properties = {} if cluster.command_config is None else _client_config.read_properties(cluster.command_config)
    return ConnectionSettings(cluster.bootstrap_servers, properties, cluster.timeout_seconds)


def snapshot_file(path: Path) -> Source:
    """A JSON file or Parquet folder."""
    return Source(str(path), lambda: _snapshot_file.read(path))


def snapshot_text(content: bytes, name: str) -> Source:
    """A snapshot as JSON text; `name` is for messages."""
    return Source(name, lambda: _snapshot_file.read_text(content, name))


def snapshot_json(snapshot: ClusterSnapshot) -> str:
    """A snapshot as JSON text, as in a file."""
    return _json_format.write(snapshot)


def snapshot_files(folder: Path) -> list[Source]:
    """Every snapshot in a folder, by name. Errors: UsageError for none."""
    from rackspan import pipeline

    return list(pipeline.from_folder(folder))


def located(source: Source, rack_locator_class: str, rack_locator_properties: str) -> Source:
    """The same source with racks from a locator, which is called at every reading. Errors: UsageError, RackLocatorFailed."""
    locator = _rack_locators.make(rack_locator_class, _rack_locator.parse_properties(rack_locator_properties))

    def read() -> ReadSnapshot:
        original = source.read()
        return ReadSnapshot(_rack_locator.located(original.snapshot, locator), original.warnings)

    original_traffic = source.read_traffic
    if original_traffic is None:
        return Source(source.name, read, named=source.named)

    def read_traffic(period_seconds: float, counters: Sequence[str]) -> ClusterReading:
        reading = original_traffic(period_seconds, counters)
        return reading.of_snapshot(_rack_locator.located(reading.snapshot, locator))

    return Source(source.name, read, read_traffic, source.named)


def with_gateway_values(source: Source, cluster: Cluster) -> Source:
    """The same source, with the values of min.insync.racks that gateways before this cluster keep in it, if there are any."""
    connection = _settings(cluster)

    def read() -> ReadSnapshot:
        original = source.read()
        if GATEWAY_CONFIG_TOPIC not in {topic.name for topic in original.snapshot.topics}:
            return original
        from rackspan.gateway.upstream.effective_values import with_gateway_values

        return ReadSnapshot(with_gateway_values(original.snapshot, connection), original.warnings)

    return Source(source.name, read)


# ── audit it


def snapshot(source: Source, out: Path) -> ReadSnapshot:
    """Read a source and write the snapshot to `out`: a JSON file where the name ends in .json, a Parquet folder otherwise."""
    result = source.read()
    _snapshot_file.write(result.snapshot, out)
    return result


def audit(
    snapshot: ClusterSnapshot, policy: RackPolicy = RackPolicy(), topic_filter: re.Pattern[str] | None = None
) -> Audit:
    """Every finding, and whether the cluster survives the loss of each rack; of the topics that match, if any are named."""
    return _audit.audit(snapshot, policy, topic_filter)


def audit_page(
    snapshot: ClusterSnapshot,
    policy: RackPolicy,
    judged: Audit,
    topic_filter: re.Pattern[str] | None = None,
    name: str | None = None,
    address: str | None = None,
    command_config: str | None = None,
) -> str:
    """An audit as one HTML page, with a picture of the racks. `judged`: the audit of the snapshot with this policy and filter.

    `name`: the cluster's name to show; `address` and `command_config`: its bootstrap servers and client properties, for the commands of Kafka's tools.
    """
    from rackspan.audit.findings import at_address
    from rackspan.report import render
    from rackspan.report.from_snapshot import audit_report

    findings = [
        replace(finding, remedy=at_address(finding.remedy, address, command_config)) for finding in judged.findings
    ]
    return render(audit_report(snapshot, policy, replace(judged, findings=findings), topic_filter, name))


def outage(
    snapshot: ClusterSnapshot,
    policy: RackPolicy = RackPolicy(),
    topic_filter: re.Pattern[str] | None = None,
    *,
    lose: tuple[str, ...] | None = None,
    pairs: bool = False,
) -> tuple[RackLoss, list[RackLoss]]:
    """Returns what is harmed already, and what losing each rack, each pair, or the named racks together would do.

    `topic_filter`: to the topics whose whole name matches.
    """
    return _audit.outage(snapshot, policy, topic_filter, lose=lose, pairs=pairs)


def read_clients(cluster: Cluster, groups: re.Pattern[str] | None = None) -> ReadClients:
    """The groups of a running cluster whose whole id matches, of all four kinds. Errors: SourceError."""
    from rackspan.sources.live import clients as live_clients

    return live_clients.read_clients(_settings(cluster), groups)


def measure_reads(urls: Sequence[str], seconds: float, *, sleep: Callable[[float], None] = time.sleep) -> ReadBytes:
    """The bytes that clients read in so many seconds, from the metrics of gateways. Errors: UsageError, SourceError."""
    from rackspan.sources import gateway_counters

    return gateway_counters.measure(urls, seconds, sleep)


def clients(
    snapshot: ClusterSnapshot,
    found: ReadClients,
    networks: ClientNetworks | None = None,
    counted: ReadBytes | None = None,
    chosen: re.Pattern[str] | None = None,
) -> tuple[list[GroupReads], list[Measured], list[ClientFinding]]:
    """What the members of each group read across racks, the bytes of it that were `counted`, and the causes that can be removed.

    Of the groups that were found only those whose whole id matches `chosen` are judged. The others may share client ids
    with them, whose bytes are then nobody's.
    """
    reads = [
        _clients.group_reads(group, snapshot, found.selectors, networks)
        for group in found.groups
        if group.members and (chosen is None or chosen.fullmatch(group.group_id))
    ]
    measured = [_clients.measured_reads(group, found.groups, counted or {}) for group in reads]
    pairs = zip(reads, measured, strict=True)
    causes = [cause for group, measure in pairs for cause in _clients.find_causes(group, snapshot, measure)]
    return reads, measured, causes


def measure_traffic(
    cluster: Cluster,
    seconds: float,
    counters: Sequence[str] = (),
    *,
    of_brokers: bool = True,
    sleep: Callable[[float], None] = time.sleep,
) -> Interval:
    """Two readings of a running cluster, so many seconds apart, and what passed in between.

    `counters`: the metrics of gateways that clients go through, and, `of_brokers`, of brokers. Errors: UsageError, SourceError.
    """
    from rackspan.sources.live import traffic as live_traffic

    return live_traffic.read_traffic(_settings(cluster), seconds, sleep, counters=counters, of_brokers=of_brokers)


def read_prices(content: bytes) -> PriceFile:
    """The prices of bytes between racks. Errors: UsageError, naming the key; NotJson."""
    from rackspan.traffic.price_file import price_file

    return price_file(content)


def traffic(passed: Interval, snapshot: ClusterSnapshot, networks: ClientNetworks | None = None) -> Interval:
    """The same, with racks from a locator in `snapshot`, else the one of the second reading, and clients where `networks` has them."""
    return replace(passed, after=passed.after.of_snapshot(snapshot), networks=networks)


def advise(
    snapshot: ClusterSnapshot,
    policy: RackPolicy = RackPolicy(),
    passed: Interval | None = None,
    prices: PriceFile | None = None,
    least_bytes_a_month: int | None = None,
) -> list[Advice]:
    """What to do first, ranked: what an audit finds, and of the traffic that was measured what need not cross racks.

    `snapshot`: the one of the second reading of `passed`. Savings below `least_bytes_a_month` are left out.
    """
    least = _advice.LEAST_BYTES_A_MONTH if least_bytes_a_month is None else least_bytes_a_month
    return _advice.advise(snapshot, policy, passed, prices, least)


# ── restart brokers


def brokers_in_racks(
    snapshot: ClusterSnapshot, racks: tuple[str, ...], policy: RackPolicy = RackPolicy()
) -> frozenset[int]:
    """The brokers of the named racks. Errors: UsageError for a rack that the cluster does not have."""
    return _restart.brokers_in_racks(snapshot, racks, policy)


def judge_stop(
    snapshot: ClusterSnapshot,
    brokers: Collection[int],
    policy: RackPolicy = RackPolicy(),
    stop: StopPolicy | None = None,
) -> StopJudgement:
    """Whether brokers may stop together, and what would suffer. Errors: UsageError for a broker that the cluster lacks."""
    return _restart.judge_stop(snapshot, brokers, policy, stop or _restart.StopPolicy())


def plan_restart(
    snapshot: ClusterSnapshot,
    policy: RackPolicy = RackPolicy(),
    stop: StopPolicy | None = None,
    request: RestartRequest | None = None,
) -> RestartPlan:
    """The fewest batches in which the chosen brokers can be restarted, each safe with every other broker up and in sync.

    `lower_bound` says how few batches there can be; brokers that can never be stopped safely are in `blocked`.
    """
    return _restart.plan_restart(snapshot, policy, stop or _restart.StopPolicy(), request or _restart.RestartRequest())


def wait_until_safe(
    source: Source, judge: Callable[[ClusterSnapshot], StopJudgement], wait_seconds: float, every_seconds: float = 1.0
) -> tuple[ReadSnapshot, StopJudgement]:
    """Read and judge until brokers may stop, or `wait_seconds` are over: the last reading. Errors: the first reading's, and `judge`'s."""
    until = time.monotonic() + wait_seconds
    read = source.read()
    while not (judged := judge(read.snapshot)).safe and time.monotonic() < until:
        time.sleep(min(every_seconds, max(0.0, until - time.monotonic())))
        # A server that restarts meanwhile is a reason to wait.
        with suppress(ClusterUnreachable):
            read = source.read()
    return read, judged


def batches_of(plan: RestartPlan) -> RestartBatches:
    """What of a plan `watch_restart` and `carry_out_restart` need."""
    return _restart_plan_file.batches_of(plan)


def read_restart_plan(content: bytes) -> RestartBatches:
    """The batches of a document that `rackspan restart plan -o json` printed. Errors: UsageError, NotJson."""
    return _restart_plan_file.read_restart_plan(content)


def restart_step(
    snapshot: ClusterSnapshot, batches: RestartBatches, journal: Path, policy: RackPolicy = RackPolicy()
) -> RestartUpdate:
    """Where a run would start or resume, and its next effect. Changes nothing. Errors: InvalidJournal, RestartStopped."""
    from rackspan import apply

    return apply.next_step(snapshot, batches, journal, policy)


def watch_restart(
    source: Source,
    batches: RestartBatches,
    journal: Path,
    policy: RackPolicy = RackPolicy(),
    *,
    afterwards: Source | None = None,
    patience_seconds: float = 300.0,
    every_seconds: float = 1.0,
) -> Iterator[RestartUpdate]:
    """Follow a rolling restart that somebody else performs: which batch may stop, and when it is back. Resumed from its journal.

    `afterwards`: the same cluster without log sizes, for the readings that let no broker stop. Errors: RestartStopped if a
    broker does not come back, InvalidJournal, SourceError.
    """
    from rackspan import apply

    with apply.RestartJournal(journal) as opened:
        pace = apply.Pace(patience_seconds, every_seconds)
        yield from apply.restart(opened, batches, _whole_or_light(source, afterwards), policy, None, pace)


def carry_out_restart(
    cluster: Cluster,
    source: Source,
    batches: RestartBatches,
    journal: Path,
    command: str,
    policy: RackPolicy = RackPolicy(),
    *,
    afterwards: Source | None = None,
    patience_seconds: float = 300.0,
    every_seconds: float = 1.0,
    stopping: Callable[[], bool] = lambda: False,
) -> Generator[RestartUpdate, None, None]:
    """Restart each batch by a command of the shell, in which {brokers} stands for ids: 1,4; the rest as `watch_restart`.

    After each batch its preferred leaders are elected. `stopping`: whether to end as soon as no command runs. Ctrl-C, and the
    generator's `close`, stop the command first. Errors: also UsageError for a command without {brokers} and a plan that names no cluster, RestartStopped if the command fails.
    """
    from rackspan import apply

    if batches.cluster_id is None:
        raise UsageError("the plan names no cluster; make it again from the running cluster")
    with apply.LiveCluster(_settings(cluster)) as live:
        command_of_batches = apply.RestartCommand(command, live.elect_leaders)
        with apply.RestartJournal(journal) as opened, command_of_batches as executor:
            pace = apply.Pace(patience_seconds, every_seconds)
            read = _whole_or_light(source, afterwards)
            yield from apply.restart(opened, batches, read, policy, executor, pace, stopping)


def _whole_or_light(source: Source, afterwards: Source | None) -> Callable[[bool], ClusterSnapshot]:
    return lambda whole: (source if whole or afterwards is None else afterwards).read().snapshot


# ── place topics and partitions


def place_from_spec(document: object, rng: Random, exclusion: Exclusion | None = None) -> PlacementDocument:
    """The assignment for a parsed placement spec. Errors: UsageError, ReplicaPlacementException."""
    return _spec.run(document, rng) if exclusion is None else _spec.run(document, rng, exclusion=exclusion)


def place_new_topic(
    snapshot: ClusterSnapshot,
    topic: str,
    partitions: int,
    replication_factor: int,
    choice: PlacerChoice,
    rng: Random | RandomGenerator,
) -> Proposal:
    """The brokers of a new topic's replicas, given the replicas that brokers have already."""
    return _new_partitions.new_topic(snapshot, topic, partitions, replication_factor, choice, rng)


def place_more_partitions(
    snapshot: ClusterSnapshot, topic: str, total: int, choice: PlacerChoice, rng: Random | RandomGenerator
) -> Proposal:
    """The brokers of the partitions that a topic lacks up to `total`."""
    return _new_partitions.more_partitions(snapshot, topic, total, choice, rng)


def placement_plan_document(
    proposal: Proposal, snapshot: ClusterSnapshot, configs: Mapping[str, str] = _NO_CONFIGS
) -> dict[str, object]:
    """A proposal as a file that `read_placement_plan` reads."""
    return _proposal_format.placement_plan_document(proposal, snapshot, configs)


def read_placement_plan(content: bytes) -> PlacementPlan:
    """Errors: UsageError, NotJson."""
    return _proposal_format.read_placement_plan(content)


def planned_proposal(
    snapshot: ClusterSnapshot, plan: PlacementPlan, exclusion: Exclusion, *, new_topic: bool
) -> Proposal:
    """The proposal of a file, on the cluster as it is now. Errors: UsageError where it can no longer be made as it was shown."""
    return _proposal_format.planned_proposal(snapshot, plan, exclusion, new_topic=new_topic)


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


# ── reassign partitions


def generate_reassignment(
    snapshot: ClusterSnapshot,
    topics: Sequence[str],
    broker_list: Sequence[int],
    choice: PlacerChoice,
    rng: Random | RandomGenerator,
) -> list[GeneratedPartition]:
    """Topics placed anew on a list of brokers, as kafka-reassign-partitions --generate does."""
    return _generate.generate(snapshot, topics, broker_list, choice, rng)


def plan_reassignment(
    snapshot: ClusterSnapshot,
    policy: RackPolicy = RackPolicy(),
    request: ReassignmentRequest | None = None,
    limits: StepLimits | None = None,
) -> ReassignmentPlan:
    """The least movement that meets the constraints and the request, with the bound that proves it, in steps by risk.

    What cannot be met is in `plan.infeasible`. Errors: UsageError for brokers and topics that do not exist.
    """
    request, limits = request or _reassign.ReassignmentRequest(), limits or _plan.StepLimits()
    return _plan.order_steps(snapshot, _reassign.plan(snapshot, policy, request), policy, limits, request)


def snapshot_after(
    snapshot: ClusterSnapshot, plan: ReassignmentPlan, removed_brokers: frozenset[int] = frozenset()
) -> ClusterSnapshot:
    """The cluster as the plan leaves it, to be audited before anything is moved.

    `removed_brokers` are left out where they hold nothing any more. Errors: InvalidReassignment for unknown partitions.
    """
    return _reassign.snapshot_after(snapshot, plan, removed_brokers)


def lint_reassignment(
    snapshot: ClusterSnapshot,
    policy: RackPolicy,
    reassignment: ReassignmentPlan | ReassignmentDocument,
    request: ReassignmentRequest | None = None,
) -> list[Finding]:
    """Returns what is wrong with a plan, or with a file of any tool: its targets, the replicas on the way, needless copies.

    `request`: what it was made for; the brokers that it drains and its replication factor count as required.
    """
    return _reassign.lint(snapshot, policy, reassignment, request or _reassign.ReassignmentRequest())


def known_reassignments(snapshot: ClusterSnapshot, document: ReassignmentDocument) -> ReassignmentColumns:
    """The entries of a file that are sound and whose partitions exist."""
    return _reassign.known_reassignments(snapshot, document)


def plan_difference(
    snapshot: ClusterSnapshot, columns: ReassignmentColumns, policy: RackPolicy = RackPolicy()
) -> PlanDifference:
    """Each topic and broker before and after, and the partitions that would end less safe. `columns`: `plan.columns()`."""
    return _plan.plan_difference(snapshot, columns, policy)


def partition_differences(
    snapshot: ClusterSnapshot,
    columns: ReassignmentColumns,
    policy: RackPolicy,
    steps: Sequence[int],
    leaving: frozenset[int] = frozenset(),
) -> Iterator[PartitionDifference]:
    """Every partition before and after, with its reason. `steps`: the step of each; `leaving`: brokers to drain."""
    return _plan.partition_differences(snapshot, columns, policy, steps, leaving)


def check_reassignment(
    snapshot: ClusterSnapshot, plan: ReassignmentPlan, journal: Path, direction: Direction | None = None
) -> RunState:
    """Where a run would start or resume. Errors: ReassignmentStopped where it may not, InvalidJournal."""
    from rackspan.apply import Journal

    direction = direction or _reassign.Direction.TARGETS
    state, cluster = Journal.peek(journal), _plan.observed(snapshot)
    if state is None:
        return _plan.RunState(_plan.plan_to_start(plan, direction, cluster), direction)
    _plan.refuse_to_resume(state, plan, cluster, str(journal))
    state = _plan.after(state, _plan.DirectionSet(direction))
    _plan.refuse_to_repeat(state, cluster)
    return state


def observe_reassignment(cluster: Cluster, plan: ReassignmentPlan) -> ObservedCluster:
    """What a cluster shows of a plan, as a run observes it. Errors: SourceError, which names a missing right."""
    from rackspan import apply

    topics = frozenset(partition.topic for partition in plan.partitions())
    with apply.LiveCluster(_settings(cluster)) as live:
        return live.observe(_plan.ObservationRequest(topics))


def carry_out(
    cluster: Cluster,
    plan: ReassignmentPlan,
    journal: Path,
    *,
    direction: Direction | None = None,
    limits: RunLimits | None = None,
    patience_seconds: float = 300.0,
) -> Iterator[RunUpdate]:
    """Carry a plan out, or undo it; where its journal has begun, resume it. Yields each effect before it is carried out.

    Errors: UsageError for a plan that names no cluster (`plan.for_cluster` names it), ReassignmentStopped where the
    cluster is another or its replicas are not those that were planned on, InvalidJournal, SourceError.
    """
    from rackspan import apply

    direction, limits = direction or _reassign.Direction.TARGETS, limits or _plan.RunLimits()
    with apply.Journal(journal) as opened, apply.LiveCluster(_settings(cluster)) as live:
        yield from apply.run(live, plan, direction, opened, limits, apply.Pace(patience_seconds))


def cancel_reassignment(
    cluster: Cluster, plan: ReassignmentPlan, journal: Path, *, patience_seconds: float = 300.0
) -> Iterator[RunUpdate]:
    """Cancel what is in flight of a plan, and restore the user's throttles. Errors: as carry_out."""
    from rackspan import apply

    with apply.Journal(journal) as opened, apply.LiveCluster(_settings(cluster)) as live:
        yield from apply.cancel(live, plan, opened, apply.Pace(patience_seconds))


def reassignments_in_flight(snapshot: ClusterSnapshot, topic_filter: re.Pattern[str] | None = None) -> ReassignmentPlan:
    """Returns the reassignments in flight, by any tool. Its undo is the replicas after a cancel, in Kafka's order.

    Errors: ClusterRequestFailed if the snapshot lacks them.
    """
    _plan.refuse_unknown_moves(snapshot)
    cluster = _plan.observed(snapshot)
    named = (
        partition for partition in cluster.in_flight if topic_filter is None or topic_filter.fullmatch(partition.topic)
    )
    return _plan.plan_in_flight(cluster, named)


def harmful_cancels(
    snapshot: ClusterSnapshot, partitions: Collection[TopicPartition], policy: RackPolicy = RackPolicy()
) -> dict[TopicPartition, HarmfulCancel]:
    """Returns those of these partitions that a cancel of their reassignments would harm, as `judge_stop` judges a stop.

    They would refuse acks=all, or have no leader, or Kafka refuses the cancel. A check, not a lock.
    """
    return _audit.harmful_cancels(_audit.snapshot_batch(snapshot, policy), partitions)


def cancel_in_flight(
    cluster: Cluster,
    plan: ReassignmentPlan,
    *,
    left_out: Collection[TopicPartition] = (),
    patience_seconds: float = 300.0,
) -> dict[TopicPartition, tuple[int, ...]]:
    """Cancel what `reassignments_in_flight` returned but for `left_out`, such as `harmful_cancels`; returns the replicas of each afterwards.

    Throttles stay. Errors: ReassignmentStopped, SourceError.
    """
    from rackspan import apply

    with apply.LiveCluster(_settings(cluster)) as live:
        return apply.cancel_in_flight(live, plan.without(left_out), apply.Pace(patience_seconds))


def foreign_throttles(cluster: Cluster, state: RunState) -> dict[ConfigKey, str]:
    """The throttles that others have set on the topics and the brokers of a run's plan. Errors: SourceError."""
    from rackspan import apply

    with apply.LiveCluster(_settings(cluster)) as live:
        return apply.observe_foreign_throttles(live, state)


def verify_reassignment(snapshot: ClusterSnapshot, plan: ReassignmentPlan) -> list[VerifiedPartition]:
    """How far a reassignment is, partition by partition, whatever tool executes it.

    Errors: ClusterRequestFailed if the snapshot lacks the reassignments under way: what is still copied would look done.
    """
    _plan.refuse_unknown_moves(snapshot)
    return _plan.verify(plan, _plan.observed(snapshot))


# ── acknowledge writes by racks


def harden(
    snapshot: ClusterSnapshot, policy: RackPolicy = RackPolicy(), topic_filter: re.Pattern[str] | None = None
) -> list[HardenAdvice]:
    """For each topic the least min.insync.replicas that forces its racks, and what that costs."""
    return _harden.harden(snapshot, policy, topic_filter)


def stopped_once_hardened(
    snapshot: ClusterSnapshot, policy: RackPolicy, advice: Sequence[HardenAdvice]
) -> list[Finding]:
    """What a loss would stop once the advised values are set, with the remedy: to be read before they are."""
    return _harden.stopped_once_set(snapshot, policy, advice)


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
    """The metrics of min.insync.racks by metadata, read every so many seconds; a reading that fails is reported, and the
    next one is tried. `afterwards`: the same cluster without log sizes, for most readings after the first.

    Errors: the first reading's.
    """
    readings = _watching.readings(source, seconds, afterwards=afterwards, now=time.monotonic, sleep=time.sleep)
    return _acks_watch.watch_readings(readings, policy)


# ── assign stream tasks


def assign_tasks(problem: object, assignor: str, beyond: Sequence[str] = ()) -> AssignmentDocument:
    """Stream tasks to clients at least cross-rack cost (KIP-925), with a certificate that nothing is cheaper."""
    return _streams.assign(problem, assignor, _streams.options_named(*beyond), time.perf_counter)


def read_streams_group(cluster: Cluster, group: str) -> StreamsGroup:
    """A running Kafka Streams group. Errors: SourceError, InvalidGroup where it is none or not at rest."""
    from rackspan.sources.live.groups import read_group

    return _streams.streams_group(read_group(_settings(cluster), group))


def capture_streams(
    group: StreamsGroup, snapshot: ClusterSnapshot, changelogs: Mapping[str, Sequence[str]] = _NO_CHANGELOGS
) -> CapturedGroup:
    """A running group as an assignment problem. `changelogs` by sub-topology, where names and sizes do not determine them."""
    return _streams.capture_group(group, snapshot, changelogs)


def audit_streams(group: StreamsGroup, captured: CapturedGroup) -> StreamsAuditDocument:
    """What a running group reads across racks now, at best, and under each of Kafka's strategies."""
    return _streams.audit_group(group, captured)


def streams_lab(problems: Mapping[str, object], settings: Sequence[Setting], beyond: Sequence[str] = ()) -> LabDocument:
    """Groups under every setting: cost, balance, stickiness, and rebalances until the assignment is stable."""
    return _streams.replay(problems, settings, _streams.options_named(*beyond))


# ── collect snapshots and report


def collect(
    sources: list[Source],
    warehouse: str | Path,
    traffic_seconds: float | None = None,
    counters: Sequence[str] = (),
    period_seconds: float | None = None,
) -> Iterator[Collected]:
    """Store one snapshot of each source in the warehouse. A source that fails does not stop the others.

    With `traffic_seconds`, a reading of each running cluster too, as taken so often; `counters`: the metrics of gateways before it.
    `period_seconds` is how often the caller collects: a snapshot says something for three periods. Without it that follows from the
    distances between the snapshots before it.
    """
    from rackspan import pipeline

    traffic = None if traffic_seconds is None else pipeline.TrafficReadings(traffic_seconds, counters)
    return pipeline.collect(
        sources, pipeline.create_warehouse(warehouse), traffic=traffic, period_seconds=period_seconds
    )


def collect_every(
    sources: list[Source],
    warehouse: str | Path,
    seconds: float,
    traffic_seconds: float | None = None,
    counters: Sequence[str] = (),
) -> Iterator[Collected]:
    """The same, repeated every `seconds`, with readings every `traffic_seconds`, until the caller stops iterating."""
    from rackspan import pipeline

    kept = pipeline.create_warehouse(warehouse)
    traffic = None if traffic_seconds is None else pipeline.TrafficReadings(traffic_seconds, counters)
    return pipeline.collect_every(sources, kept, seconds, now=time.monotonic, sleep=time.sleep, traffic=traffic)


def cluster_names(warehouse: str | Path) -> dict[str, str]:
    """What to call each cluster of a warehouse, by id: the last name under which it was collected; those without one are left out."""
    from rackspan import pipeline
    from rackspan.pipeline.landing.names import shown_names

    return shown_names(pipeline.open_warehouse(warehouse))


def export_tables(
    warehouse: str | Path, names: Sequence[str], out: Path, left_out: Callable[[str], None] | None = None
) -> Iterator[Exported]:
    """Write tables of the newest run as Parquet files below `out`, all of them where `names` is empty.

    With `left_out`, snapshots of damaged files are left out, and it gets a line for each file.
    """
    from rackspan import pipeline

    return pipeline.export(pipeline.open_warehouse(warehouse), names, out, left_out)


def _spark() -> None:
    """Errors: MissingRequirement if PySpark is not installed, before what the warehouse needs is missed."""
    required_module("pyspark", "the pipeline runs on it")


def run_pipeline(
    warehouse: str | Path,
    policies: ClusterPolicies = RackPolicy(),
    master: str | None = None,
    remote: str | None = None,
    prices: PriceFile | None = None,
) -> RunReport:
    """Bring every table up to date with what was collected, on Spark; `remote` is a Spark Connect server."""
    _spark()
    from rackspan import pipeline

    return pipeline.run(pipeline.repaired_warehouse(warehouse), policies, master, remote=remote, prices=prices)


def rebuild_pipeline(
    warehouse: str | Path,
    table: str | None = None,
    policies: ClusterPolicies = RackPolicy(),
    master: str | None = None,
    remote: str | None = None,
    prices: PriceFile | None = None,
) -> RunReport:
    """Make all rows of a derived table again, or of every one, from the snapshots; else as `run_pipeline`."""
    _spark()
    from rackspan import pipeline

    opened = pipeline.repaired_warehouse(warehouse)
    rebuilt = pipeline.EVERY if table is None else table
    return pipeline.run(opened, policies, master, remote=remote, rebuild=rebuilt, prices=prices)


def check_warehouse(warehouse: str | Path, *, whole: bool = False, max_age: timedelta | None = None) -> CheckReport:
    """Judge a warehouse: logs, files, rows, and how old each cluster's newest snapshot is. Nothing is changed."""
    from rackspan.pipeline.check import check
    from rackspan.pipeline.warehouse import named_warehouse

    return check(named_warehouse(warehouse), now=datetime.now(UTC), whole=whole, max_age=max_age)


def follow_pipeline(
    warehouse: str | Path,
    policies: ClusterPolicies,
    on_batch: Callable[[FollowedBatch], None],
    stop: threading.Event,
    *,
    master: str | None = None,
    every: float = 10.0,
    available_now: bool = False,
    prices: PriceFile | None = None,
    losses: NewestLosses | None = None,
) -> None:
    """Judge snapshots as they are stored, on Spark, until `stop` is set; with `available_now`, those that are stored now.

    `losses`: what the loss of a rack would do to each cluster, kept up to date meanwhile.
    """
    _spark()
    from rackspan import pipeline
    from rackspan.pipeline.follow import follow

    opened = pipeline.repaired_warehouse(warehouse)
    follow(
        opened,
        policies,
        on_batch,
        stop,
        master=master,
        every=every,
        available_now=available_now,
        prices=prices,
        losses=losses,
    )


def maintain(
    warehouse: str | Path,
    keep_days: int | None = None,
    vacuum_hours: float = 168.0,
    give_up: Callable[[str], None] | None = None,
    agree: Callable[[], None] | None = None,
    undo: Callable[[str], None] | None = None,
) -> list[MaintainedTable]:
    """Join small files, delete those that no version of the last `vacuum_hours` has, drop days before the last `keep_days`.

    With `give_up`, damaged files of landing tables and the snapshots in them are dropped, and it gets a line for each, before
    and after. `agree` is called in between, and raises an error to keep them. With `undo`, what was dropped is brought back, and it gets a line for each kind.
    """
    from rackspan import pipeline
    from rackspan.pipeline import maintain as maintenance

    return maintenance.maintain(
        pipeline.repaired_warehouse(warehouse),
        now=lambda: datetime.now(UTC),
        keep_days=keep_days,
        vacuum_hours=vacuum_hours,
        give_up=give_up,
        agree=agree,
        undo=undo,
    )


def table(
    warehouse: str | Path,
    name: str,
    limit: int | None = None,
    left_out: Callable[[str], None] | None = None,
    *,
    changes: bool = False,
    at: datetime | None = None,
) -> Iterator[dict[str, object]]:
    """The rows of a table at each snapshot in the order of its grain, without Spark.

    With `changes`, what is stored: rows that differ from those of the snapshot before. With `at`, the rows as of that time; a
    cluster without a snapshot for three of its periods before has none. With `left_out`, snapshots of damaged files are left out, and it gets a line for each file.
    """
    from rackspan import pipeline

    return pipeline.rows(pipeline.open_warehouse(warehouse), name, limit, left_out, changes=changes, at=at)


def table_columns(name: str, *, changes: bool = False) -> list[str]:
    """The columns of the rows of a table, or of what is stored of it. Errors: UsageError for an unknown table."""
    from rackspan.pipeline.table import column_names

    return column_names(name, changes=changes)


def why_no_rows(warehouse: str | Path, name: str, at: datetime | None = None) -> str:
    """Why a table of a warehouse has no rows, or none as of a time: what has to be stored or judged first, or that there are none to show."""
    from rackspan import pipeline
    from rackspan.pipeline.table import why_no_rows as why

    return why(pipeline.open_warehouse(warehouse), name, at)


def advise_stored(
    warehouse: str | Path, policy: RackPolicy = RackPolicy(), cluster_id: str | None = None
) -> tuple[ClusterSnapshot, list[StoredAdvice], datetime | None, tuple[str, ...]]:
    """What to do first by a warehouse's tables, without Spark: risks of the newest snapshot, savings of the newest hour with readings.

    Returns the snapshot, the advice as it is ranked, that hour, and what snapshot and readings lack. Errors: InvalidWarehouse; UsageError for a cluster that it lacks, or
    several of which none is named.
    """
    from rackspan import pipeline
    from rackspan.pipeline.advised import advise_stored as advise

    return advise(pipeline.open_warehouse(warehouse), policy, cluster_id)


def report(
    warehouse: str | Path,
    policies: ClusterPolicies,
    out: Path,
    names: Mapping[str, str] = MappingProxyType({}),
    left_out: Callable[[str], None] | None = None,
) -> list[str]:
    """One page about every cluster of the warehouse, drawn from its tables without Spark. Returns its warnings.

    `names`: what to call clusters, by id. With `left_out`, damaged files are left out, and it gets a line for each.
    """
    from rackspan import pipeline

    return pipeline.draw_report(pipeline.open_warehouse(warehouse), policies, out, names, left_out)
