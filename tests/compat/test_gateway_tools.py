"""Kafka's console tools, direct and through a gateway: the same status and the same words.

One side runs all commands and then the other, each with a topic and a group of its own. What differs between two runs before the
same brokers too is struck out of both: ids, times, rates, which broker leads or copies, and the side's own addresses, but no others.
"""

import json
import re
import subprocess
from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path
from typing import Final
from uuid import uuid4

import pytest

from rackspan.kafka_process import KafkaCluster
from tests.compat.test_gateway_clients import CONSOLE_CONSUMER, CONSOLE_PRODUCER, GROUP_TOOL
from tests.gateway.running import running
from tests.kafka_fixtures import TOPIC_TOOL
from tests.kafka_tools import CONFIG_TOOL, ELECTION_TOOL, LOG_DIRS_TOOL, REASSIGN_TOOL
from tests.waiting import WITHIN_SECONDS

pytestmark = [pytest.mark.kafka, pytest.mark.soak]

TOOLS: Final = "org.apache.kafka.tools"
SHARE_GROUP_TOOL: Final = f"{TOOLS}.consumer.group.ShareGroupCommand"
RECORDS: Final = "".join(f"key-{number}:{number}\n" for number in range(100))
"""With keys: without them each producer chooses a partition by lot."""

QUICK: Final = ("--timeout-ms", "20000")


@dataclass(frozen=True, slots=True)
class Command:
    """A run of a tool. In its arguments and files T is the side's topic and G its group."""

    tool: str
    arguments: str
    stdin: str | None = None
    measures: bool = False
    """Whether it prints how many and how quickly, so that its numbers are those of one run."""


FILES: Final = {
    "move.json": '{"version": 1, "partitions": [{"topic": "T", "partition": 0, "replicas": [1, 3, 5]}]}',
    "topics.json": '{"version": 1, "topics": [{"topic": "T"}]}',
    "deleted.json": '{"version": 1, "partitions": [{"topic": "T", "partition": 0, "offset": 1}]}',
}
"""Files that the arguments name, with their texts."""

CONSUMED: Final = f"--topic T --from-beginning --group G --max-messages 100 {' '.join(QUICK)}"

COMMANDS: Final = (
    Command(TOPIC_TOOL, "--create --topic T --partitions 2 --replication-factor 3"),
    Command(TOPIC_TOOL, "--create --topic T --partitions 2 --replication-factor 3"),
    Command(TOPIC_TOOL, "--create --topic T-wide --partitions 1 --replication-factor 9"),
    Command(TOPIC_TOOL, "--alter --topic T --partitions 3"),
    Command(TOPIC_TOOL, "--describe --topic T"),
    Command(TOPIC_TOOL, "--describe --under-replicated-partitions --topic T"),
    Command(TOPIC_TOOL, "--list --topic T"),
    Command(TOPIC_TOOL, "--describe --topic T-none"),
    Command(CONFIG_TOOL, "--alter --entity-type topics --entity-name T --add-config retention.ms=86400000"),
    Command(CONFIG_TOOL, "--describe --entity-type topics --entity-name T"),
    Command(CONFIG_TOOL, "--describe --all --entity-type topics --entity-name T"),
    Command(CONFIG_TOOL, "--alter --entity-type topics --entity-name T --add-config retention.ms=never"),
    Command(CONFIG_TOOL, "--alter --entity-type topics --entity-name T --delete-config retention.ms"),
    Command(CONFIG_TOOL, "--describe --all --entity-type brokers --entity-name 1"),
    Command(CONFIG_TOOL, "--alter --entity-type brokers --entity-name 1 --add-config log.cleaner.backoff.ms=150"),
    Command(CONFIG_TOOL, "--alter --entity-type brokers --entity-name 1 --delete-config log.cleaner.backoff.ms"),
    Command(CONFIG_TOOL, "--describe --entity-type broker-loggers --entity-name 1"),
    Command(CONFIG_TOOL, "--alter --entity-type groups --entity-name G --add-config consumer.session.timeout.ms=50000"),
    Command(CONFIG_TOOL, "--describe --entity-type groups --entity-name G"),
    Command(CONFIG_TOOL, "--alter --entity-type users --entity-name G --add-config SCRAM-SHA-256=[password=p]"),
    Command(CONFIG_TOOL, "--describe --entity-type users --entity-name G"),
    Command(CONFIG_TOOL, "--alter --entity-type users --entity-name G --delete-config SCRAM-SHA-256"),
    Command(CONFIG_TOOL, "--alter --entity-type clients --entity-name G --add-config producer_byte_rate=1e9"),
    Command(CONFIG_TOOL, "--describe --entity-type clients --entity-name G"),
    Command(f"{TOOLS}.ClientMetricsCommand", "--alter --name G --metrics org.apache.kafka.producer. --interval 30000"),
    Command(f"{TOOLS}.ClientMetricsCommand", "--describe --name G"),
    Command(f"{TOOLS}.ClientMetricsCommand", "--delete --name G"),
    Command(
        CONSOLE_PRODUCER,
        "--topic T --request-required-acks all --reader-property parse.key=true --reader-property key.separator=:",
        stdin=RECORDS,
    ),
    Command(CONSOLE_CONSUMER, CONSUMED),
    Command(GROUP_TOOL, "--describe --group G"),
    Command(GROUP_TOOL, "--describe --members --group G"),
    Command(GROUP_TOOL, "--describe --state --group G"),
    Command(GROUP_TOOL, "--describe --offsets --group G-none"),
    Command(GROUP_TOOL, "--reset-offsets --group G --topic T --to-earliest --execute"),
    Command(GROUP_TOOL, "--delete-offsets --group G --topic T:0"),
    Command(GROUP_TOOL, "--delete --group G"),
    Command(f"{TOOLS}.GroupsCommand", "--list --protocol anyone"),
    Command(SHARE_GROUP_TOOL, "--describe --group G-share"),
    Command(f"{TOOLS}.streams.StreamsGroupCommand", "--describe --group G-streams"),
    Command(f"{TOOLS}.GetOffsetShell", "--topic T"),
    Command(f"{TOOLS}.GetOffsetShell", "--topic T --time earliest"),
    Command(f"{TOOLS}.DeleteRecordsCommand", "--offset-json-file deleted.json"),
    Command(LOG_DIRS_TOOL, "--describe --topic-list T"),
    Command(ELECTION_TOOL, "--election-type preferred --topic T --partition 0"),
    Command(ELECTION_TOOL, "--election-type unclean --topic T --partition 0"),
    Command(
        REASSIGN_TOOL,
        "--generate --topics-to-move-json-file topics.json --broker-list 1,3,5",
    ),
    Command(REASSIGN_TOOL, "--execute --reassignment-json-file move.json"),
    Command(f"{TOOLS}.TransactionsCommand", "describe-producers --topic T --partition 0", measures=True),
    Command(f"{TOOLS}.TransactionsCommand", "describe --transactional-id G"),
    Command(f"{TOOLS}.TransactionsCommand", "find-hanging --topic T --partition 0"),
    Command(f"{TOOLS}.ClusterTool", "cluster-id"),
    Command(f"{TOOLS}.ClusterTool", "list-endpoints"),
    Command(f"{TOOLS}.FeatureCommand", "describe"),
    Command(f"{TOOLS}.MetadataQuorumCommand", "describe --status"),
    Command(f"{TOOLS}.BrokerApiVersionsCommand", ""),
    Command(f"{TOOLS}.AclCommand", "--list"),
    Command(
        f"{TOOLS}.ProducerPerformance", "--topic T --num-records 500 --record-size 100 --throughput -1", measures=True
    ),
    Command(f"{TOOLS}.ConsumerPerformance", "--topic T --num-records 500 --timeout 20000", measures=True),
    Command(
        f"{TOOLS}.EndToEndLatency", "--topic T --num-records 50 --producer-acks all --record-size 100", measures=True
    ),
    Command(f"{TOOLS}.VerifiableProducer", "--topic T --max-messages 50 --acks -1", measures=True),
    Command(
        f"{TOOLS}.VerifiableConsumer",
        "--topic T --group-id G-verifiable --max-messages 50 --reset-policy earliest",
        measures=True,
    ),
    Command(f"{TOOLS}.StreamsResetter", "--application-id G-streams --input-topics T --dry-run"),
    Command(TOPIC_TOOL, "--delete --topic T"),
    Command(TOPIC_TOOL, "--delete --topic T"),
)

KNOWN: Final = {
    f"{TOOLS}.BrokerApiVersionsCommand ": "a gateway withholds what only brokers send each other",
    f"{TOOLS}.MetadataQuorumCommand describe --status": "a gateway leaves out the addresses of controllers",
}
"""Commands whose words differ by intention, and why."""

STRUCK_OUT: Final = (
    (r"(Leader|Replicas|Isr|Elr|LastKnownElr): [\d,]+", r"\1: BROKERS"),
    (r"TopicId: \S+", "TopicId: ID"),
    (r'"(replicas|leader|isr)":(\[[\d,]*\]|\d+)', r'"\1":BROKERS'),
    (r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d[:.,]\d+|\d\d:\d\d:\d\d\.\d+|\d{13}", "TIME"),
    (r"/\S+", "PATH"),
    (r'"partitions":\[[^\]]*\]', '"partitions":[PARTITIONS]'),
    (r"ADDRESS +\(\d\)", "COORDINATOR"),
    (r"(Epoch|HighWatermark|LeaderId|MaxFollowerLag|MaxFollowerLagTimeMs): +\d+", r"\1: N"),
)


@dataclass(frozen=True, slots=True)
class Side:
    """Brokers or a gateway, and what its commands may name."""

    servers: str
    topic: str
    group: str
    ports: Collection[int]
    folder: Path

    def run(self, kafka: KafkaCluster, command: Command) -> tuple[int, list[str]]:
        """The status, and the comparable lines of the output."""
        for name, text in FILES.items():
            (self.folder / name).write_text(text.replace('"T"', f'"{self.topic}"'), encoding="utf-8")
        words = [
            re.sub(r"^G(?=$|-)", self.group, re.sub(r"^T(?=$|[-:])", self.topic, word))
            for word in command.arguments.split()
        ]
        # After the sub-command of the one tool that wants them there.
        at = 1 if command.tool.endswith("ClusterTool") else 0
        arguments = (*words[:at], "--bootstrap-server", self.servers, *words[at:])
        ended = subprocess.run(
            kafka.runtime.command(command.tool, *arguments, log_level="off"),
            input=command.stdin,
            capture_output=True,
            text=True,
            timeout=WITHIN_SECONDS,
            check=False,
            cwd=self.folder,
        )
        lines = self._comparable(ended.stdout + ended.stderr)
        if command.measures:
            lines = sorted({re.sub(r"(TIME|[\d.])+", "N", line) for line in lines})
        return ended.returncode, lines

    def _comparable(self, output: str) -> list[str]:
        """Sorted: partitions and brokers respond in any order."""
        text = re.sub(r"(?:127\.0\.0\.1|localhost)[: ]+(\d+)", self._address, output)
        text = text.replace(self.topic, "T").replace(self.group, "G")
        for pattern, word in STRUCK_OUT:
            text = re.sub(pattern, word, text)
        return sorted(" ".join(line.split()) for line in text.splitlines() if "min.insync.racks" not in line)

    def _address(self, found: re.Match[str]) -> str:
        return "ADDRESS" if int(found[1]) in self.ports else "ADDRESS-OF-OTHERS"


def test_each_command_of_kafkas_tools_says_the_same(
    kafka: KafkaCluster, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    stem = uuid4().hex[:8]
    brokers = kafka.bootstrap_servers
    with running(brokers, acknowledgements={"config": {"topic": f"configs-{stem}"}}) as gateway:
        through = [gateway.address(broker)[1] for broker in kafka.brokers]
        own = [int(address.rpartition(":")[2]) for address in brokers.split(",")]
        sides = [
            Side(brokers, f"direct-{stem}", f"direct-g-{stem}", own, tmp_path),
            Side(gateway.bootstrap_servers, f"gateway-{stem}", f"gateway-g-{stem}", through, tmp_path),
        ]
        direct, passed = ([side.run(kafka, command) for command in COMMANDS] for side in sides)
    different = {
        f"{command.tool} {command.arguments}": results
        for command, *results in zip(COMMANDS, direct, passed, strict=True)
        if results[0] != results[1]
    }
    with capsys.disabled():
        equal = len(COMMANDS) - len(different)
        failed = sum(status != 0 for status, _ in direct)
        print(
            f"\n{equal} of {len(COMMANDS)} commands of Kafka's tools say the same through a gateway, {failed} of them errors"
        )
    assert different.keys() == KNOWN.keys(), json.dumps(different, indent=1)
