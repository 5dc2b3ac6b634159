"""Every page of docs/ that has commands: each prints what the page says. RACKSPAN_REWRITE=1 writes the outputs anew.

On the embedded cluster; where a page says so, on Apache Kafka too.
"""

import difflib
import os
import re
import shlex
import socket
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path

import pytest
from confluent_kafka.admin import AdminClient

from rackspan import api
from rackspan.cluster import EmbeddedCluster
from rackspan.kafka_process import KafkaCluster
from tests.depth import one_in
from tests.how_to.page import DOCS, WIDTH, Command, File, Page, Shell, pattern, read, rewritten
from tests.kafka_fixtures import started
from tests.kafka_tools import CONFIG_TOOL
from tests.kafka_versions import KAFKA
from tests.waiting import WITHIN_SECONDS, eventually

ALL = [page for page in map(read, sorted(DOCS.rglob("*.md"))) if any(isinstance(step, Command) for step in page.steps)]
REWRITE = bool(os.environ.get("RACKSPAN_REWRITE"))
EMBEDDED = [page for page in ALL if page.needs != "kafka"]
ON_KAFKA = [page for page in ALL if "kafka" in (page.also_on, page.needs)]


@pytest.fixture
def terminal(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, documents_validated: None) -> Path:
    """An empty folder, a terminal of 80 columns, and no settings but those of the page."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / ".config"))
    monkeypatch.setenv("NO_COLOR", "1")
    monkeypatch.setenv("COLUMNS", str(WIDTH))
    # What `export` sets is gone after the page.
    monkeypatch.setattr(os, "environ", os.environ.copy())
    return tmp_path


@pytest.mark.parametrize(
    "page",
    [
        pytest.param(page, marks=[getattr(pytest.mark, page.needs)] if page.needs else [pytest.mark.slow])
        for page in EMBEDDED
    ],
    ids=lambda page: page.name,
)
def test_every_command_of_the_page_prints_what_stands_below_it(page: Page, terminal: Path) -> None:
    with ExitStack() as opened:
        clusters = {
            address: opened.enter_context(EmbeddedCluster(size["racks"], size["brokers"])).bootstrap_servers
            for address, size in page.clusters.items()
        }
        follow(page, terminal, clusters | free_ports(page.ports))


@pytest.fixture(scope="module")
def apache_kafka() -> Iterator[KafkaCluster]:
    """As `rackspan cluster up --kafka`, with the controller apart as in the embedded cluster."""
    yield from started(KafkaCluster(racks=("r1", "r2", "r3"), brokers=6, version=KAFKA, controllers={3000: None}))


@pytest.mark.rest
@pytest.mark.kafka
@pytest.mark.parametrize("page", one_in(4, ON_KAFKA), ids=lambda page: page.name)
def test_the_page_holds_on_apache_kafka(
    page: Page, terminal: Path, apache_kafka: KafkaCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    delete_topics(apache_kafka)
    monkeypatch.setenv("PATH", f"{console_scripts(apache_kafka, terminal / '.kafka')}:{os.environ['PATH']}")
    (address,) = page.clusters
    addresses = {address: apache_kafka.bootstrap_servers} | free_ports(page.ports)
    follow(page, terminal, addresses, settle_seconds=2)


def test_a_page_says_where_it_holds() -> None:
    assert [page.name for page in ON_KAFKA] != []
    for page in ALL:
        sizes = list(page.clusters.values())
        assert page not in ON_KAFKA or sizes == [{"racks": 3, "brokers": 6}], page.name


def test_no_terminal_example_is_wider_than_80_columns() -> None:
    wide = [
        f"{path.name}: {line}"
        for path in sorted(DOCS.rglob("*.md"))
        for block in re.findall(r"^```console\n(.*?)^```$", path.read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE)
        for line in block.split("\n")
        # A command that is to be copied is never wrapped.
        if len(line) > WIDTH and not re.match(r"(fix with|do)? +(rackspan|kafka-)", line)
    ]
    assert wide == []


def follow(page: Page, folder: Path, addresses: Mapping[str, str], settle_seconds: float = 0) -> None:
    """Errors: AssertionError for the first command that prints something else."""
    shell = Shell(folder, addresses, settle_seconds)
    outputs: list[Sequence[str]] = []
    try:
        for step in page.steps:
            if isinstance(step, File):
                shell.save(step)
                continue
            lines = shell.run(step.line)
            if pattern(step.output).fullmatch("".join(f"{line}\n" for line in lines)):
                outputs.append(step.output)
                continue
            outputs.append([varying(line) for line in lines])
            if not REWRITE:
                difference = "\n".join(
                    difflib.unified_diff(step.output, lines, "the page", "printed", lineterm="", n=99)
                )
                pytest.fail(f"{page.name}.md: $ {step.line}\n{difference}", pytrace=False)
    finally:
        shell.close()
    if REWRITE:
        page.path.write_text(rewritten(page.path.read_text(encoding="utf-8"), iter(outputs)), encoding="utf-8")


def varying(line: str) -> str:
    """The line with … for ids and times."""
    line = re.sub(r"\bcluster [\w-]{22}", "cluster …", line)
    return re.sub(r"\d{4}-\d\d-\d\dT[\d:.]+Z|\d{8}T\d+[0-9a-f]+|[\d.]+ s$", "…", line)


SCRIPTS = {
    "kafka-topics.sh": "org.apache.kafka.tools.TopicCommand",
    "kafka-configs.sh": CONFIG_TOOL,
    "kafka-console-producer.sh": "org.apache.kafka.tools.ConsoleProducer",
    "kafka-console-consumer.sh": "org.apache.kafka.tools.consumer.ConsoleConsumer",
}
"""The scripts of a Kafka download that pages use, and the class that each of them starts."""


def console_scripts(cluster: KafkaCluster, folder: Path) -> Path:
    """A folder with the scripts: the jars by their Maven coordinates come without them."""
    folder.mkdir()
    for name, main_class in SCRIPTS.items():
        script = folder / name
        script.write_text(
            f'#!/bin/sh\nexec {shlex.join(cluster.runtime.command(main_class, log_level="error"))} "$@"\n'
        )
        script.chmod(0o755)
    return folder


def free_ports(named: Sequence[str]) -> dict[str, str]:
    """Free ports in place of those that a page writes, as far from each other."""
    if not named:
        return {}
    for shift in range(1000, 30_000, 10):
        with ExitStack() as held:
            try:
                for port in named:
                    held.enter_context(socket.create_server(("127.0.0.1", int(port) + shift)))
            except OSError:
                continue
            return {port: str(int(port) + shift) for port in named}
    raise RuntimeError(f"no free ports as far from each other as {', '.join(named)}")


def delete_topics(cluster: KafkaCluster) -> None:
    admin = AdminClient({"bootstrap.servers": cluster.bootstrap_servers})
    names = list(admin.list_topics(timeout=WITHIN_SECONDS).topics)
    if names:
        for deleted in admin.delete_topics(names).values():
            deleted.result(WITHIN_SECONDS)
    eventually(lambda: not admin.list_topics(timeout=WITHIN_SECONDS).topics, "every topic is deleted")
    source = api.live_cluster(cluster.bootstrap_servers, None, 30)
    eventually(lambda: not source.read().snapshot.partial, "no log of a deleted topic is left on a disk")
