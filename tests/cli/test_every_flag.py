"""No flag is accepted and without effect: every flag of every command changes what the command does, or is refused.

The flags come from the command tree. A new one without a case fails test_every_flag_has_a_case.
"""

import json
import re
import shutil
import socket
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NoReturn

import pytest

from rackspan import api
from rackspan.acks import Watch
from rackspan.cli import cluster as cluster_command
from rackspan.cli import command_tree
from rackspan.cli.commands import leaf_commands
from rackspan.clients import ReplicaSelectors
from rackspan.cluster import EmbeddedCluster
from rackspan.errors import UsageError
from rackspan.pipeline import RunReport
from rackspan.pipeline.check import CheckReport
from rackspan.plan.execution.events import DirectionSet
from rackspan.plan.execution.events_format import event_line
from rackspan.reassign import Direction
from rackspan.sources.source import Source
from rackspan.traffic import ClusterReading, Interval
from tests.cli.conftest import GOOD, Ran
from tests.cli.replaced_groups import replace_group, two_groups
from tests.cli.test_streams import PROBLEM
from tests.gateway.running import running
from tests.streams.test_assignment import PREVIOUS_CLIENTS

Cli = Callable[..., Ran]

UNEVEN: dict[str, Any] = json.loads(json.dumps(GOOD))
UNEVEN["brokers"] += [{"id": 7}, {"id": 8, "rack": "r1"}]
UNEVEN["topics"] = [
    {
        "name": "orders",
        "config": {"min.insync.replicas": "2", "min.insync.racks": "2"},
        "partitions": [
            {"partition": 0, "leader": 1, "replicas": [1, 4, 2], "isr": [1, 4, 2], "size_bytes": 3_000},
            {"partition": 1, "leader": 1, "replicas": [1, 4, 5], "isr": [1, 4, 5], "size_bytes": 2_000},
            {"partition": 2, "leader": 2, "replicas": [2, 5, 7], "isr": [2, 5, 7], "size_bytes": 1_000},
        ],
    },
    {
        "name": "stacked",
        "partitions": [{"partition": at, "leader": 1, "replicas": [1, 4], "isr": [1]} for at in range(4)],
    },
]
"""Racks to spread over, a broker without one, an empty broker, a topic whose brokers enforce racks, one that lags."""

RESTART = {**GOOD, "topics": [*GOOD["topics"], {"name": "soft", "config": {"min.insync.replicas": "1"}, "partitions": [
    {"partition": 0, "leader": 1, "replicas": [1, 2], "isr": [1, 2]},
    {"partition": 1, "leader": 1, "replicas": [1], "isr": [1]},
    {"partition": 2, "leader": 1, "replicas": [1, 2, 4], "isr": [1]},
]}]}  # fmt: skip
"""Topics of which a restart leaves one copy in sync, or none."""

PLAN: dict[str, Any] = {
    "version": 1,
    "partitions": [
        {"topic": "orders", "partition": 0, "replicas": [1, 5, 3]},
        {"topic": "stacked", "partition": 0, "replicas": [1, 2]},
    ],
}
SPEC = {
    "brokers": [{"id": at, "rack": f"r{at % 3}"} for at in range(6)],
    "partitions": 3,
    "replication_factor": 3,
    "seed": 1,
}
LAB: dict[str, Any] = {
    **PROBLEM,
    "config": {**PROBLEM["config"], "num_standbys": 1},
    "clients": [
        {**client, "prev_active": [f"0_{at}"], "prev_standby": []} for at, client in enumerate(PROBLEM["clients"])
    ],
    "tasks": [{**task, "changelog": task["source"]} for task in PROBLEM["tasks"]],
    "partitions": {"orders:0": ["r1", "r2"], "orders:1": ["r2"]},
}

ROLLING = {
    "cluster_id": None,
    "as_of": None,
    "margin": 0,
    "block_on": [],
    "accept": None,
    "batches": [{"brokers": [1]}],
}

SNAP = ("--snapshot", "uneven.json")
RACKED = ("--snapshot", "racked.json")
LIVE = ("--bootstrap-server", "{live}")
FORCED = ("--rack-locator-class", "properties", "--rack-locator-properties")
BY_ID = ",".join(f"{broker}=x{broker % 2}" for broker in range(9))
OTHERS = ",".join(f"{broker}=y{broker % 3}" for broker in range(9))


@dataclass(frozen=True)
class Case:
    """A flag's words, and the words beside which it has its effect; `good`: the run with it has to succeed."""

    flag: tuple[str, ...]
    beside: tuple[str, ...] = SNAP
    good: bool = False


COMMON: dict[str, Case] = {
    "--cluster": Case(("--cluster", "here"), (), good=True),
    "--bootstrap-server": Case(LIVE, (), good=True),
    "--snapshot": Case(SNAP, (), good=True),
    "--command-config": Case(("--command-config", "bad.properties"), LIVE),
    "--timeout": Case(("--timeout", "110"), ("--bootstrap-server", "{silent}", "--timeout", "190")),
    "--rack-locator-class": Case((*FORCED, BY_ID)),
    "--rack-locator-properties": Case(("--rack-locator-properties", OTHERS), (*SNAP, *FORCED, BY_ID)),
    "--unracked": Case(("--unracked", "error")),
    "--min-insync-racks": Case(("--min-insync-racks", "3")),
    "--exclude-brokers": Case(("--exclude-brokers", "3")),
    "--output": Case(("-o", "json")),
    "--placer": Case(("--placer", "striped"), RACKED),
    "--placer-config": Case(("--placer-config", "colour=red"), RACKED),
    "--ignore-racks": Case(("--ignore-racks",)),
    "--allow-fewer-racks": Case(("--allow-fewer-racks",), ("--snapshot", "racked.json", "--exclude-brokers", "3,6")),
    "--seed": Case(("--seed", "3"), ("--snapshot", "racked.json", "--placer", "rack-alternated")),
    "--apply": Case(("--apply",), LIVE, good=True),
    "--survive": Case(("--survive", "none")),
    "--require-controllers": Case(("--require-controllers",), ("--snapshot", "managed.json")),
    "--details": Case(("--details",)),
}
"""By the flag's first name, for every command that has it and no case of its own."""

NEW = ("place", "create", "--topic", "new", "--partitions", "7", "--replication-factor", "3", "--seed", "1")
MORE = ("place", "extend", "--topic", "orders", "--partitions", "9", "--seed", "1")
ANEW = (
    *("reassign", "generate", "--topics-to-move-json-file", "topics.json"),
    *("--broker-list", "1,2,3,4,5,6", "--seed", "1"),
)
RECORDED = (*LIVE, "--apply")

WORDS: dict[str, tuple[str, ...]] = {
    "snapshot": ("snapshot", "--out", "-"),
    "place create": NEW,
    "place extend": MORE,
    "reassign generate": ANEW,
    "reassign lint": ("reassign", "lint", "--plan", "plan.json"),
    "reassign apply": ("reassign", "apply", "--plan", "live.json"),
    "reassign verify": ("reassign", "verify", "--plan", "live.json"),
    "reassign cancel": ("reassign", "cancel", "--plan", "begun.json"),
    "reassign undo": ("reassign", "undo", "--plan", "done.json"),
    "gateway check": ("gateway", "check", "--config", "gateway.toml"),
    "gateway confirm": ("gateway", "confirm", "--config", "gateway.toml"),
    "restart safe": ("restart", "safe", "--broker", "1"),
    "restart watch": ("restart", "watch", "--plan", "rolling.json", "--exec", "true {{brokers}}"),
    "acks watch": ("acks", "watch", "--every", "1"),
    "streams audit": ("streams", "audit", "--group", "shop"),
    "place plan": ("place", "plan", "--spec", "spec.json"),
    "streams assign": ("streams", "assign", "--problem", "problem.json"),
    "streams lab": ("streams", "lab", "--problem", "lab.json"),
    "pipeline collect": ("pipeline", "collect", "--warehouse", "out"),
    "pipeline run": ("pipeline", "run", "--warehouse", "warehouse"),
    "pipeline follow": ("pipeline", "follow", "--warehouse", "warehouse"),
    "pipeline rebuild": ("pipeline", "rebuild", "--warehouse", "warehouse"),
    "pipeline check": ("pipeline", "check", "--warehouse", "warehouse"),
    "pipeline maintain": ("pipeline", "maintain", "--warehouse", "warehouse"),
    "pipeline report": ("pipeline", "report", "--warehouse", "warehouse", "--out", "page.html"),
    "pipeline table": ("pipeline", "table", "findings", "--warehouse", "warehouse"),
    "pipeline export": ("pipeline", "export", "--warehouse", "warehouse", "--out", "tables"),
}
"""The words with which a command runs, where its name alone does not do, without a source."""

RUN_SNAP = ("--snapshot", "live-snapshot.json")
GROUP = ("--bootstrap-server", "group:1")
REFUSED_WRITES = "--allow-refused-writes"
NONE: tuple[str, ...] = ()

OWN: dict[tuple[str, str], Case] = {
    ("snapshot", "--out"): Case(("--out", "written.json")),
    ("audit", "--topic"): Case(("--topic", "orders")),
    ("audit", "--exclude-brokers"): Case(("--exclude-brokers", "1")),
    ("outage", "--lose"): Case(("--lose", "r1")),
    ("outage", "--pairs"): Case(("--pairs",)),
    ("outage", "--topic"): Case(("--topic", "orders")),
    ("place plan", "--spec"): Case(("--spec", "other-spec.json"), NONE),
    ("place plan", "--exclude-brokers"): Case(("--exclude-brokers", "3"), NONE),
    ("place plan", "--allow-fewer-racks"): Case(("--allow-fewer-racks",), ("--exclude-brokers", "0,3")),
    ("place plan", "--output"): Case(("-o", "yaml"), NONE),
    ("place create", "--topic"): Case(("--topic", "other"), RACKED),
    ("place create", "--snapshot"): Case(RACKED, NONE, good=True),
    **{
        (verb, flag): case
        for verb in ("place create", "place extend")
        for flag, case in {
            "--plan": Case(("--plan", "plan.json"), RACKED),
            "--out": Case(("--out", "written.json"), RACKED),
        }.items()
    },
    ("gateway check", "--config"): Case(("--config", "gone.toml"), NONE),
    ("gateway check", "--output"): Case(("-o", "json"), NONE),
    ("gateway confirm", "--config"): Case(("--config", "gone.toml"), NONE),
    ("gateway confirm", "--gone"): Case(("--gone", "other"), NONE, good=True),
    ("gateway confirm", "--output"): Case(("-o", "json"), NONE),
    ("gateway confirm", "--apply"): Case(("--apply",), NONE, good=True),
    ("place create", "--partitions"): Case(("--partitions", "2"), RACKED),
    ("place create", "--replication-factor"): Case(("--replication-factor", "2"), RACKED),
    ("place create", "--config"): Case(("--config", "retention.ms=1"), (*RACKED, "-o", "json")),
    ("place extend", "--topic"): Case(("--topic", "stacked"), RACKED),
    ("place extend", "--snapshot"): Case(RACKED, NONE, good=True),
    ("place extend", "--seed"): Case(("--seed", "3"), (*RACKED, "--placer", "striped")),
    ("place extend", "--partitions"): Case(("--partitions", "4"), RACKED),
    ("place extend", "--bootstrap-server"): Case((*LIVE, "--topic", "live"), NONE, good=True),
    ("place extend", "--cluster"): Case(("--cluster", "here", "--topic", "live"), NONE, good=True),
    ("place extend", "--apply"): Case(("--apply",), (*LIVE, "--topic", "grown"), good=True),
    ("reassign generate", "--bootstrap-server"): Case((*LIVE, "--broker-list", "1,2", "--topics-to-move-json-file", "live-topics.json"), NONE, good=True),
    ("reassign generate", "--cluster"): Case(("--cluster", "here", "--broker-list", "1,2", "--topics-to-move-json-file", "live-topics.json"), NONE, good=True),
    ("reassign generate", "--topics-to-move-json-file"): Case(("--topics-to-move-json-file", "other-topics.json"), RACKED),
    ("reassign generate", "--snapshot"): Case(RACKED, NONE, good=True),
    ("reassign generate", "--broker-list"): Case(("--broker-list", "1,2,3"), RACKED),
    ("reassign plan", "--drain"): Case(("--drain", "4")),
    ("reassign plan", "--replace"): Case(("--replace", "4")),
    ("reassign plan", "--topic"): Case(("--topic", "orders")),
    ("reassign plan", "--replication-factor"): Case(("--replication-factor", "2")),
    ("reassign plan", "--balance"): Case(("--balance",)),
    ("reassign plan", "--keep-leaders"): Case(("--keep-leaders",)),
    ("reassign plan", "--leaders"): Case(("--leaders",)),
    ("reassign plan", "--moves-per-step"): Case(("--moves-per-step", "1")),
    ("reassign plan", "--moves-per-broker"): Case(("--moves-per-broker", "1")),
    ("reassign plan", "--bytes-per-step"): Case(("--bytes-per-step", "3kB")),
    ("reassign plan", "--out"): Case(("--out", "written.json")),
    ("reassign plan", "--exclude-brokers"): Case(("--exclude-brokers", "3", "-o", "json"), (*SNAP, "-o", "json")),
    ("reassign plan", "--allow-fewer-racks"): Case(("--allow-fewer-racks",), ("--snapshot", "racked.json", "--drain", "2,5")),
    ("reassign plan", "--replace-missing-brokers"): Case(("--replace-missing-brokers",), ("--snapshot", "missing.json")),
    ("reassign plan", "--unracked"): Case(("--unracked", "error"), (*SNAP, "-o", "json")),
    ("reassign plan", "--min-insync-racks"): Case(("--min-insync-racks", "3"), (*SNAP, "-o", "json")),
    ("reassign lint", "--reassignment-json-file"): Case(("--plan", "other-plan.json")),
    ("reassign lint", "--drain"): Case(("--drain", "1")),
    ("reassign lint", "--replace"): Case(("--replace", "1")),
    ("reassign lint", "--replication-factor"): Case(("--replication-factor", "2")),
    ("reassign lint", "--balance"): Case(("--balance",)),
    ("reassign lint", "--exclude-brokers"): Case(("--exclude-brokers", "2,3,5")),
    ("reassign lint", "--allow-fewer-racks"): Case(("--allow-fewer-racks",), (*RACKED, "--plan", "worse.json", "--drain", "2,5")),
    ("reassign lint", "--bootstrap-server"): Case((*LIVE, "--plan", "live.json"), NONE, good=True),
    ("reassign lint", "--cluster"): Case(("--cluster", "here", "--plan", "live.json"), NONE, good=True),
    **{
        (verb, flag): case
        for verb in ("place create", "place extend", "reassign generate")
        for flag, case in {
            "--exclude-brokers": Case(("--exclude-brokers", "4"), RACKED),
            "--output": Case(("-o", "json"), RACKED),
            "--rack-locator-class": Case((*FORCED, BY_ID), RACKED),
            "--rack-locator-properties": Case(("--rack-locator-properties", OTHERS), (*RACKED, *FORCED, BY_ID)),
        }.items()
    },
    **{
        (verb, flag): case
        for verb in ("reassign apply", "reassign undo")
        for flag, case in {
            "--plan": Case(("--plan", "other-live.json"), RUN_SNAP),
            "--snapshot": Case(RUN_SNAP, NONE, good=True),
            "--throttle": Case(("--throttle", "50MB/s"), RUN_SNAP),
            "--max-moves": Case(("--max-moves", "1"), RECORDED),
            "--journal": Case(("--journal", "elsewhere"), (*RUN_SNAP, "-o", "json")),
            "--cluster-id": Case(("--cluster-id", "other"), RUN_SNAP),
            "--patience": Case(("--patience", "7"), RECORDED),
            "--apply": Case(("--apply",), LIVE),
            "--details": Case(("--details",), RUN_SNAP),
            "--rack-locator-class": Case((*FORCED, BY_ID), RUN_SNAP),
            "--rack-locator-properties": Case(("--rack-locator-properties", OTHERS), (*RUN_SNAP, *FORCED, BY_ID)),
            "--unracked": Case(("--unracked", "error"), ("--snapshot", "live-partly.json")),
            "--output": Case(("-o", "json"), RUN_SNAP),
        }.items()
    },
    ("reassign cancel", "--allow-refused-writes"): Case((REFUSED_WRITES,), ("--snapshot", "harmful.json")),
    ("reassign undo", "--allow-refused-writes"): Case((REFUSED_WRITES,), ("--snapshot", "harmful.json", "--plan", "begun.json")),
    ("reassign apply", "--allow-refused-writes"): Case((REFUSED_WRITES,), ("--snapshot", "reverting.json", "--plan", "reverted.json")),
    ("reassign apply", "--allow-fewer-racks"): Case(("--allow-fewer-racks",), ("--snapshot", "racked.json", "--plan", "worse.json", "--cluster-id", GOOD["cluster_id"])),
    ("reassign verify", "--plan"): Case(("--plan", "other-live.json"), RUN_SNAP),
    ("reassign verify", "--snapshot"): Case(RUN_SNAP, NONE, good=True),
    ("reassign verify", "--output"): Case(("-o", "json"), RUN_SNAP),
    **{("reassign cancel", words[0]): Case(words, RUN_SNAP) for words in (("--plan", "live.json"), ("--in-flight",), ("--topic", "live"))},
    ("reassign cancel", "--snapshot"): Case(RUN_SNAP, NONE, good=True),
    ("reassign cancel", "--journal"): Case(("--journal", "elsewhere"), RUN_SNAP),
    ("reassign cancel", "--patience"): Case(("--patience", "7"), RECORDED),
    ("reassign cancel", "--apply"): Case(("--apply",), LIVE),
    ("reassign cancel", "--output"): Case(("-o", "json"), RUN_SNAP),
    **{(f"restart {verb}", words[0]): Case(words, ("--snapshot", "restart.json"))
       for verb, own in {"safe": ["--broker 2", "--rack r1"], "plan": ["--brokers 3", "--by rack", "--max-batch 1"]}.items()
       for words in (tuple(text.split()) for text in (*own, "--margin 1", "--accept .*", "--block-on rf1,one-copy"))},
    ("restart safe", "--block-on"): Case(("--block-on", "rf1"), ("--snapshot", "restart.json", "--accept", "soft")),
    **{(f"restart {verb}", "--snapshot"): Case(("--snapshot", "restart.json"), NONE, good=True) for verb in ("safe", "plan")},
    ("restart safe", "--wait"): Case(("--wait", "1")),
    ("restart watch", "--plan"): Case(("--plan", "other-rolling.json"), LIVE),
    ("restart watch", "--exec"): Case(("--exec", "false {{brokers}}"), LIVE),
    ("restart watch", "--apply"): Case(("--apply",), LIVE),
    ("restart watch", "--output"): Case(("-o", "json"), LIVE),
    ("restart watch", "--unracked"): Case(("--unracked", "error"), (*LIVE, *FORCED, "1=a,2=b")),
    ("restart watch", "--min-insync-racks"): Case(("--min-insync-racks", "2"), LIVE),
    ("restart watch", "--rack-locator-class"): Case((*FORCED, "1=a,2=a,3=a"), (*LIVE, "--min-insync-racks", "2")),
    ("restart watch", "--rack-locator-properties"): Case(("--rack-locator-properties", "1=a,2=a,3=a"), (*LIVE, "--min-insync-racks", "2", *FORCED, "1=a,2=b,3=c")),
    **{("restart watch", words[0]): Case(words, RECORDED) for words in (("--journal", "elsewhere"), ("--patience", "7"), ("--every", "9"))},
    ("acks harden", "--topic"): Case(("--topic", "orders"), (*SNAP, "-o", "json")),
    ("acks harden", "--apply"): Case(("--apply",), (*LIVE, "--min-insync-racks", "2", "--topic", "soft"), good=True),
    ("acks harden", "--rack-locator-class"): Case((*FORCED, BY_ID), (*SNAP, "--min-insync-racks", "2")),
    ("acks harden", "--rack-locator-properties"): Case(("--rack-locator-properties", OTHERS), (*SNAP, *FORCED, BY_ID, "--min-insync-racks", "3")),
    ("acks watch", "--metrics-listen"): Case(("--metrics-listen", "127.0.0.1:0")),
    ("acks watch", "--metrics-partitions"): Case(("--metrics-partitions",), (*SNAP, "--metrics-listen", "127.0.0.1:0")),
    ("acks watch", "--every"): Case(("--every", "9")),
    ("acks watch", "--min-insync-racks"): Case(("--min-insync-racks", "3"), (*SNAP, "-o", "json")),
    ("acks watch", "--rack-locator-class"): Case((*FORCED, BY_ID), (*SNAP, "-o", "json", "--min-insync-racks", "3")),
    ("acks watch", "--rack-locator-properties"): Case(("--rack-locator-properties", OTHERS), (*SNAP, *FORCED, BY_ID, "-o", "json", "--min-insync-racks", "3")),
    ("streams assign", "--problem"): Case(("--problem", "previous.json"), NONE),
    ("streams assign", "--assignor"): Case(("--assignor", "sticky"), NONE),
    ("streams assign", "--beyond"): Case(("--beyond", "previous-overlap"), ("--problem", "previous.json")),
    ("streams assign", "--output"): Case(("-o", "yaml"), NONE),
    ("clients", "--group"): Case(("--group", "shop"), LIVE),
    ("clients", "--network"): Case(("--network", "10.0.1.0/24=r2"), LIVE),
    ("clients", "--counters"): Case(("--counters", "http://127.0.0.1:1/metrics"), LIVE),
    ("clients", "--counters-seconds"): Case(("--counters-seconds", "2"), LIVE),
    ("clients", "--cluster"): Case(("--cluster", "here"), NONE),
    ("clients", "--rack-locator-class"): Case((*FORCED, BY_ID), LIVE),
    ("clients", "--rack-locator-properties"): Case(("--rack-locator-properties", OTHERS), (*LIVE, *FORCED, BY_ID)),
    ("clients", "--output"): Case(("-o", "json"), LIVE),
    ("advise", "--seconds"): Case(("--seconds", "2"), (*LIVE, "--least", "1B")),
    ("advise", "--prices"): Case(("--prices", "prices.json"), SNAP),
    ("advise", "--network"): Case(("--network", "10.0.1.0/24=r2"), (*LIVE, "--least", "1B", "-o", "json")),
    ("advise", "--counters"): Case(("--counters", "http://127.0.0.1:1/metrics"), LIVE),
    ("advise", "--least"): Case(("--least", "1B"), LIVE),
    ("advise", "--warehouse"): Case(("--warehouse", "warehouse"), SNAP),
    ("advise", "--cluster-id"): Case(("--cluster-id", "another"), ("--warehouse", "warehouse")),
    ("traffic", "--seconds"): Case(("--seconds", "2"), LIVE),
    ("traffic", "--counters"): Case(("--counters", "http://127.0.0.1:1/metrics"), LIVE),
    ("traffic", "--prices"): Case(("--prices", "prices.json"), LIVE),
    ("traffic", "--network"): Case(("--network", "10.0.1.0/24=r2"), (*LIVE, "-o", "json")),
    ("traffic", "--cluster"): Case(("--cluster", "here"), NONE),
    ("traffic", "--rack-locator-class"): Case((*FORCED, BY_ID), LIVE),
    ("traffic", "--rack-locator-properties"): Case(("--rack-locator-properties", OTHERS), (*LIVE, *FORCED, BY_ID)),
    ("traffic", "--output"): Case(("-o", "json"), LIVE),
    ("streams audit", "--group"): Case(("--group", "other"), LIVE),
    ("streams audit", "--cluster"): Case(("--cluster", "here"), NONE),
    ("streams audit", "--bootstrap-server"): Case(LIVE, NONE),
    ("streams audit", "--rack-locator-class"): Case((*FORCED, BY_ID), GROUP),
    ("streams audit", "--rack-locator-properties"): Case(("--rack-locator-properties", "1=r2,2=r1"), (*GROUP, *FORCED, "1=r1,2=r2")),
    ("streams audit", "--changelog"): Case(("--changelog", "9=orders"), GROUP),
    ("streams audit", "--capture"): Case(("--capture", "written.json"), GROUP),
    ("streams audit", "--output"): Case(("-o", "json"), GROUP),
    ("streams lab", "--problem"): Case(("--problem", "problem.json"), NONE),
    ("streams lab", "--assignor"): Case(("--assignor", "sticky"), NONE),
    ("streams lab", "--strategy"): Case(("--strategy", "none"), NONE),
    ("streams lab", "--weights"): Case(("--weights", "3/2"), NONE),
    ("streams lab", "--beyond"): Case(("--beyond", "previous-overlap"), ("--problem", "previous.json", "-o", "json")),
    ("streams lab", "--out"): Case(("--out", "written.svg"), NONE),
    ("streams lab", "--output"): Case(("-o", "json"), NONE),
    ("pipeline collect", "--warehouse"): Case(("--warehouse", "out-2")),
    ("pipeline collect", "--all-clusters"): Case(("--all-clusters",), NONE),
    ("pipeline collect", "--from-snapshots"): Case(("--from-snapshots", "folder"), NONE, good=True),
    ("pipeline collect", "--every"): Case(("--every", "5")),
    ("pipeline collect", "--period"): Case(("--period", "60")),
    ("pipeline collect", "--traffic-every"): Case(("--traffic-every", "60"), LIVE, good=True),
    ("pipeline collect", "--counters"): Case(
        ("--counters", "http://127.0.0.1:1/metrics"), (*LIVE, "--traffic-every", "60")
    ),
    ("pipeline collect", "--metrics-listen"): Case(("--metrics-listen", "127.0.0.1:0"), (*SNAP, "--every", "5")),
    **{(f"pipeline {verb}", "--warehouse"): Case(("--warehouse", "out"), NONE)
       for verb in ("run", "rebuild", "follow", "maintain", "check", "report", "table", "export")},
    **{(f"pipeline {verb}", words[0]): Case(words, NONE) for verb in ("run", "rebuild", "follow", "report")
       for words in (("--unracked", "own"), ("--min-insync-racks", "3"), ("--survive", "none"), ("--require-controllers",))},
    **{(f"pipeline {verb}", "--master"): Case(("--master", "local[1]"), NONE) for verb in ("run", "rebuild", "follow")},
    **{(f"pipeline {verb}", "--remote"): Case(("--remote", "sc://127.0.0.1:1"), NONE) for verb in ("run", "rebuild")},
    **{(f"pipeline {verb}", "--prices"): Case(("--prices", "prices.json"), NONE) for verb in ("run", "rebuild", "follow")},
    **{(f"pipeline {verb}", "--log-format"): Case(("--log-format", "json"), beside)
       for verb, beside in (("collect", SNAP), ("run", NONE), ("rebuild", NONE), ("follow", NONE))},
    ("pipeline check", "--whole"): Case(("--whole",), NONE),
    ("pipeline check", "--max-age"): Case(("--max-age", "5"), NONE),
    ("pipeline check", "--output"): Case(("-o", "json"), NONE),
    ("pipeline follow", "--every"): Case(("--every", "5"), NONE),
    ("pipeline follow", "--available-now"): Case(("--available-now",), NONE),
    ("pipeline follow", "--metrics-listen"): Case(("--metrics-listen", "127.0.0.1:0"), NONE),
    ("pipeline maintain", "--keep-days"): Case(("--keep-days", "30"), NONE),
    ("pipeline maintain", "--drop-damaged"): Case(("--drop-damaged",), NONE),
    ("pipeline maintain", "--yes"): Case(("--yes",), ("--drop-damaged",)),
    ("pipeline maintain", "--undo-drop"): Case(("--undo-drop",), NONE),
    ("pipeline maintain", "--vacuum-hours"): Case(("--vacuum-hours", "24"), NONE),
    ("pipeline report", "--out"): Case(("--out", "other.html"), NONE),
    ("pipeline table", "--at"): Case(("--at", "2020-01-01T00:00:00Z"), NONE),
    ("pipeline table", "--changes"): Case(("--changes",), NONE),
    ("pipeline table", "--limit"): Case(("--limit", "1"), NONE),
    ("pipeline table", "--output"): Case(("-o", "json"), NONE),
    ("pipeline export", "--out"): Case(("--out", "other"), NONE),
    ("cluster up", "--racks"): Case(("--racks", "2"), NONE),
    ("cluster up", "--brokers"): Case(("--brokers", "3"), NONE),
    ("cluster up", "--kafka"): Case(("--kafka", "4.1.0"), NONE),
    ("cluster up", "--metrics-listen"): Case(("--metrics-listen", "127.0.0.1:0"), NONE),
    ("cluster up", "--metrics-partitions"): Case(("--metrics-partitions",), ("--metrics-listen", "127.0.0.1:0")),
    ("cluster up", "--output"): Case(("-o", "json"), NONE),
    ("cluster up", "--config"): Case(("--config", "num.partitions=2"), NONE),
    **{
        (f"cluster {name}", flag): Case((flag, value), targets)
        for name, targets in (
            *((name, ("r1",)) for name in ("lose", "restore")),
            *((name, ("1",)) for name in ("kill", "restart", "pause", "resume")),
            *((name, NONE) for name in ("undo", "status")),
        )
        for flag, value in (("--control", "127.0.0.1:1"), ("--output", "json"))
    },
    ("demo", "--out"): Case(("--out", "elsewhere"), NONE),
    ("demo", "--kafka"): Case(("--kafka",), NONE),
    ("config show", "--cluster"): Case(("--cluster", "here"), NONE, good=True),
    ("config show", "--output"): Case(("-o", "json"), NONE),
    ("config check", "--cluster"): Case(("--cluster", "here"), ("--offline",), good=True),
    ("config check", "--offline"): Case(("--offline",), NONE),
    ("config check", "--command-config"): Case(("--command-config", "bad.properties"), NONE),
    ("config check", "--output"): Case(("-o", "json"), ("--offline",)),
}  # fmt: skip


def flags() -> Iterator[tuple[str, str]]:
    for words, command in leaf_commands(command_tree()):
        for parameter in command.params:
            if parameter.param_type_name == "option":
                yield words, parameter.opts[0]


def case_of(words: str, flag: str) -> Case | None:
    return OWN.get((words, flag)) or COMMON.get(flag)


def test_every_flag_has_a_case() -> None:
    assert [one for one in flags() if case_of(*one) is None] == []
    assert sorted(set(OWN) - set(flags())) == [], "a case of a flag that is gone"


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SimpleNamespace]:
    """A folder of files, a cluster, and a port that accepts connections and never responds."""
    folder = tmp_path_factory.mktemp("world")
    racked = json.loads(json.dumps(UNEVEN))
    racked["brokers"] = [broker for broker in UNEVEN["brokers"] if broker.get("rack") and broker["id"] != 8]
    racked["topics"][0]["partitions"].pop()
    racked["topics"][0]["partitions"][1] |= {"replicas": [1, 2, 3], "isr": [1, 2, 3]}
    missing = json.loads(json.dumps(racked))
    missing["brokers"].pop()
    missing["topics"][0]["partitions"][0] |= {"replicas": [1, 2, 6], "isr": [1, 2]}
    with EmbeddedCluster(racks=3, brokers=3) as cluster, socket.create_server(("127.0.0.1", 0)) as silent:
        live = cluster.bootstrap_servers
        documents = {
            "uneven.json": UNEVEN,
            "prices.json": {"currency": "USD", "prices": []},
            "racked.json": racked,
            "restart.json": RESTART,
            "managed.json": {**racked, "controllers": []},
            "partly.json": UNEVEN,
            "missing.json": missing,
            "rolling.json": ROLLING,
            "other-rolling.json": {**ROLLING, "batches": [{"brokers": [3]}]},
            "plan.json": PLAN,
            "other-plan.json": {**PLAN, "partitions": PLAN["partitions"][1:]},
            "worse.json": {"version": 1, "partitions": [{"topic": "orders", "partition": 1, "replicas": [1, 4, 3]}]},
            "topics.json": {"version": 1, "topics": [{"topic": "orders"}]},
            "other-topics.json": {"version": 1, "topics": [{"topic": "stacked"}]},
            "live-topics.json": {"version": 1, "topics": [{"topic": "live"}]},
            "spec.json": SPEC,
            "other-spec.json": {**SPEC, "partitions": 2},
            "problem.json": PROBLEM,
            "lab.json": LAB,
            "previous.json": PREVIOUS_CLIENTS,
        }
        for name, document in documents.items():
            (folder / name).write_text(json.dumps(document))
        (folder / "bad.properties").write_text("ssl.colour=red\n")
        (folder / "rackspan.toml").write_text(
            f'[clusters.here]\nbootstrap-server = "{live}"\n[clusters.far]\nbootstrap-server = "127.0.0.1:1"\ntimeout = 200\n'
            '[topics."orders"]\nleader.racks = ["r2"]\n'
        )
        (folder / "gateway.toml").write_text(f'bootstrap.servers = "{live}"\n')
        with running(live, **{"gateway.id": "other"}) as gateway:
            gateway.run(gateway.gateway.heartbeats.register())  # type: ignore[union-attr]
        (folder / "folder").mkdir()
        shutil.copy(folder / "uneven.json", folder / "folder" / "one.json")
        for topic in ("live", "soft", "grown"):
            cluster.create_topic(topic, partitions=2, replication_factor=2)
        written = api.snapshot(api.live_cluster(live, None, 30), folder / "live-snapshot.json").snapshot
        partly = json.loads((folder / "live-snapshot.json").read_text())
        partly["brokers"][2]["rack"] = None
        (folder / "live-partly.json").write_text(json.dumps(partly))
        moves: list[dict[str, Any]] = [
            {"topic": "live", "partition": at, "replicas": [replicas[0], *({1, 2, 3} - set(replicas))]}
            for at, replicas in enumerate(rows_of(written, "live"))
        ]
        plan = {"version": 1, "cluster_id": cluster.cluster_id, "partitions": moves}
        for name in ("live", "begun"):
            (folder / f"{name}.json").write_text(json.dumps(plan))
        (folder / "other-live.json").write_text(json.dumps({**plan, "partitions": moves[:1]}))
        current = [{**one, "replicas": rows_of(written, "live")[one["partition"]]} for one in moves]
        steps = [{**one, "undo": moves[one["partition"]]["replicas"]} for one in current]
        step = {"step": 1, "reason": "by hand", "partitions": steps}
        (folder / "done.json").write_text(json.dumps({**plan, "partitions": current, "steps": [step]}))
        begun: Any = api.carry_out(
            api.Cluster(live), api.read_plan((folder / "begun.json").read_bytes()), folder / "begun.json.journal"
        )
        # The journal begins with the first effect; what it holds is what cancel reads.
        next(begun)
        next(begun)
        begun.close()
        journal = (folder / "begun.json.journal").read_text()
        back = f"{event_line(DirectionSet(Direction.ORIGINALS))}\n"
        shutil.copy(folder / "begun.json", folder / "reverted.json")
        (folder / "reverted.json.journal").write_text(journal + back)
        (stays, leaves), (_, arrives) = rows_of(written, "live")[0], moves[0]["replicas"]
        for name, new, old in (("harmful", arrives, leaves), ("reverting", leaves, arrives)):
            there = under_way(json.loads((folder / "live-snapshot.json").read_text()), "live", stays, new, old)
            (folder / f"{name}.json").write_text(json.dumps(there))
        yield SimpleNamespace(folder=folder, cluster=cluster, live=live, silent=f"127.0.0.1:{silent.getsockname()[1]}")


def under_way(document: Any, topic: str, stays: int, new: int, old: int) -> Any:
    """The document while partition 0 of the topic moves from one broker to another: a cancel leaves too few in sync."""
    (found,) = [one for one in document["topics"] if one["name"] == topic]
    found["config"]["min.insync.replicas"] = "2"
    found["partitions"][0].update(
        replicas=[stays, new, old], adding_replicas=[new], removing_replicas=[old], leader=stays, isr=[stays, new]
    )
    return document


def rows_of(snapshot: Any, topic: str) -> list[list[int]]:
    document = json.loads(api.snapshot_json(snapshot))
    (found,) = [one for one in document["topics"] if one["name"] == topic]
    return [one["replicas"] for one in found["partitions"]]


@dataclass(frozen=True)
class Outcome:
    """All that a user could notice: exit code, both streams, files, and calls of what is not run here."""

    code: int
    out: str
    err: str
    files: dict[str, bytes]
    calls: tuple[str, ...]


_NOISE = re.compile(
    r'\d{4}-\d\d-\d\dT[\d:.]+Z|taken_at=[^/\s]+|"seconds": [\d.e-]+|\d+\.\d s\b|127\.0\.0\.1:\d+|\S*/world\S*|\S*/run\d+/'
)
"""What differs from run to run."""


@pytest.fixture
def outcome(
    cli: Cli, world: SimpleNamespace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Callable[..., Outcome]:
    """Run words in a fresh copy of the world."""
    number = iter(range(100))

    def run(*words: str) -> Outcome:
        folder = tmp_path / f"run{next(number)}"
        shutil.copytree(world.folder, folder)
        monkeypatch.chdir(folder)
        calls: list[str] = []
        replace_what_runs_long(
            monkeypatch,
            calls,
            recorded="--apply" in words and bool({"--patience", "--max-moves", "watch"} & set(words)),
        )
        with monkeypatch.context() as patched:
            if "group:1" in words:
                replace_group(patched)
            ran = cli(*(word.format(live=world.live, silent=world.silent) if "{" in word else word for word in words))
        before = {path.name for path in world.folder.iterdir()}
        files = {
            str(path.relative_to(folder)): path.read_bytes()
            for path in folder.rglob("*")
            if path.is_file() and path.relative_to(folder).parts[0] not in before
        }
        shown = {_NOISE.sub("", name): content for name, content in files.items()}
        return Outcome(ran.code, _NOISE.sub("", ran.out), _NOISE.sub("", ran.err), shown, tuple(calls))

    return run


def replace_what_runs_long(monkeypatch: pytest.MonkeyPatch, calls: list[str], *, recorded: bool) -> None:
    """Spark, real Kafka, the demo and endless loops are recorded instead; tests of their own run them."""

    def record(name: str, result: Any) -> Callable[..., Any]:
        def called(*arguments: Any, **named: Any) -> Any:
            shown = [
                one
                for one in arguments
                if not (isinstance(one, list) and one and isinstance(one[0], Source))
                and not isinstance(one, Source)
                and not callable(one)
                and not isinstance(one, threading.Event)
            ]
            shown_by_name = {
                key: value for key, value in named.items() if not (isinstance(value, Source) or callable(value))
            }
            calls.append(f"{name} {shown} {sorted(shown_by_name.items()) if name != 'watch' else ''}")
            return result(*arguments, **named) if callable(result) else result

        return called

    ran = RunReport(None)
    columns = ("cluster_id", "taken_at", "day", "snapshot_id", "base_id", "run_id", "known_until")
    rows = [dict.fromkeys(columns, name) for name in ("one", "two")]
    monkeypatch.setattr(api, "run_pipeline", record("run", ran))
    monkeypatch.setattr(api, "rebuild_pipeline", record("rebuild", ran))
    monkeypatch.setattr(api, "check_warehouse", record("check", CheckReport(())))
    monkeypatch.setattr(api, "follow_pipeline", record("follow", lambda *_, **__: None))
    monkeypatch.setattr(api, "maintain", record("maintain", []))
    monkeypatch.setattr(api, "report", record("report", []))
    monkeypatch.setattr(api, "advise_stored", record("advise", refused))
    monkeypatch.setattr(api, "export_tables", record("export", []))
    monkeypatch.setattr(api, "collect_every", record("every", []))
    monkeypatch.setattr(
        api, "table", record("table", lambda _warehouse, _name, limit, _left_out, **_: iter(rows[:limit]))
    )
    monkeypatch.setattr(api, "table_columns", lambda _name, **_: columns)
    monkeypatch.setattr("rackspan.demo.run_demo", record("demo", refused))
    monkeypatch.setattr(api, "read_clients", two_groups)
    monkeypatch.setattr(api, "measure_traffic", five_records)
    if recorded:
        monkeypatch.setattr(api, "carry_out", record("apply", refused))
        monkeypatch.setattr(api, "cancel_reassignment", record("cancel", refused))
        monkeypatch.setattr(api, "carry_out_restart", record("restart", refused))
    monkeypatch.setattr(api, "wait_until_safe", record("safe", WAIT_UNTIL_SAFE))
    original = WATCH

    def first(source: Source, policy: Any, seconds: float, **named: Any) -> Iterator[Watch]:
        calls.append(f"watch {seconds}")
        yield next(original(source, policy, seconds, **named))

    monkeypatch.setattr(api, "watch", first)
    monkeypatch.setattr("rackspan.prometheus_metrics.server.MetricsServer", recording_server(calls))
    practice = SimpleNamespace(bootstrap_servers="here:1", brokers=())
    monkeypatch.setattr(
        cluster_command, "_embedded", record("embedded", lambda *_, **__: nullcontext((practice, None)))
    )
    control = {"address": "here:2", "token": "token", "file": "file"}
    monkeypatch.setattr(cluster_command, "_controlled", lambda *_: nullcontext(control))
    monkeypatch.setattr("rackspan.practice.control_file.find_control", record("find_control", None))
    states = {"kind": "embedded", "bootstrap_servers": "here:1", "brokers": []}
    monkeypatch.setattr("rackspan.practice.control_client.send", record("send", states))
    monkeypatch.setattr("rackspan.practice.control_client.read", record("read", states))
    ended = SimpleNamespace(wait=interrupted)
    monkeypatch.setattr(cluster_command, "threading", SimpleNamespace(Event=lambda: ended))
    monkeypatch.setattr(cluster_command, "_real", record("real", refused))


def five_records(
    cluster: api.Cluster,
    seconds: float,
    counters: Sequence[str] = (),
    *,
    of_brokers: bool = True,
    sleep: Callable[[float], None],
) -> Interval:
    """Traffic of five records of 100 bytes in each partition, and of two groups."""
    found = MEASURE_TRAFFIC(cluster, 0, counters, of_brokers=of_brokers, sleep=sleep)
    after = replace(found.after.logs, read_at=LATER)
    before = replace(
        after,
        read_at=LATER - timedelta(seconds=seconds),
        end_offset=after.end_offset - 5,
        replica_bytes=after.replica_bytes - 500,
    )
    leaders = {int(broker.id): ReplicaSelectors.LEADER for broker in after.snapshot.brokers}
    groups = tuple(
        replace(group, members=tuple(replace(member, rack=None) for member in group.members))
        for group in two_groups(cluster, None).groups
    )
    return Interval(ClusterReading(before, groups), replace(found.after, logs=after, groups=groups, selectors=leaders))


MEASURE_TRAFFIC = api.measure_traffic
LATER = datetime(2026, 11, 24, tzinfo=UTC)
WATCH = api.watch
WAIT_UNTIL_SAFE = api.wait_until_safe


def refused(*_: object, **__: object) -> NoReturn:
    raise UsageError("recorded")


def interrupted() -> NoReturn:
    raise KeyboardInterrupt


def recording_server(calls: list[str]) -> type:
    class Server:
        def __init__(self, listen: str, families: Callable[[], Any]) -> None:
            self.address, self._families = listen, families

        def __enter__(self) -> "Server":
            return self

        def __exit__(self, *_: object) -> None:
            calls.append(str([(family.name, len(family.samples)) for family in self._families()]))

    return Server


@pytest.mark.parametrize(
    ("words", "flag"),
    # Eight of nine in make test alone: each runs its command twice.
    [
        pytest.param(*one, id=" ".join(one), marks=[pytest.mark.slow] if number % 9 else [])
        for number, one in enumerate(flags())
    ],
)
def test_the_flag_has_an_effect(outcome: Callable[..., Outcome], words: str, flag: str) -> None:
    case = case_of(words, flag)
    assert case is not None
    command = WORDS.get(words, tuple(words.split()))
    without = outcome(*command, *case.beside)
    given = outcome(*command, *case.beside, *case.flag)
    assert given != without, f"{' '.join((*command, *case.beside, *case.flag))}: {given}"
    assert "Traceback" not in given.err
    assert "No such option" not in given.err
    if case.good:
        assert given.code in (0, 2), given


REFUSED = (
    ("cluster up", ("--metrics-partitions",)),
    ("acks watch", (*SNAP, "--metrics-partitions")),
    ("audit", (*SNAP, "--timeout", "5")),
    ("audit", (*SNAP, "--command-config", "bad.properties")),
    ("audit", (*SNAP, "--cluster", "here")),
    ("audit", (*SNAP, "--rack-locator-properties", "a=b")),
    ("outage", (*SNAP, "--lose", "r1", "--pairs")),
    ("restart safe", ("--snapshot", "-", "--wait", "1")),
    ("reassign plan", (*SNAP, "--leaders", "--balance")),
    ("place create", (*SNAP, "--apply")),
    ("pipeline collect", (*SNAP, "--timeout", "5")),
    ("pipeline collect", (*SNAP, "--every", "5", "--period", "5")),
    ("pipeline collect", (*SNAP, "--metrics-listen", "127.0.0.1:0")),
    ("pipeline collect", (*SNAP, "--traffic-every", "60")),
    ("pipeline collect", (*SNAP, "--counters", "http://127.0.0.1:1/metrics")),
    ("cluster up", ("--kafka", "4.1.0", "--metrics-listen", "127.0.0.1:0")),
)
"""Where a flag could have no effect beside others, it is refused by name."""


@pytest.mark.parametrize(("words", "beside"), REFUSED)
def test_a_flag_that_could_have_no_effect_is_refused(
    outcome: Callable[..., Outcome], words: str, beside: tuple[str, ...]
) -> None:
    ran = outcome(*WORDS.get(words, tuple(words.split())), *beside)
    assert ran.code == 1
    assert any(word in ran.err for word in beside if word.startswith("--")), ran.err


@pytest.mark.slow
def test_what_runs_in_the_same_way_has_the_same_outcome(outcome: Callable[..., Outcome]) -> None:
    """Otherwise chance would pass for an effect."""
    for name in ("audit", "reassign plan", "place create", "reassign generate", "streams lab", "reassign lint"):
        words = (*WORDS.get(name, tuple(name.split())), *(() if name == "streams lab" else SNAP))
        assert outcome(*words) == outcome(*words), name
    assert outcome("audit", *LIVE) == outcome("audit", *LIVE)
