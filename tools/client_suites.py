"""Runs the public test suites of Kafka clients against a cluster, and holds their failures to a list with reasons.

    python -m tools.client_suites kgo [--kafka VERSION] [--gateway off|readers|verified]
    python -m tools.client_suites aiokafka --source CHECKOUT [--kafka VERSION] [--gateway …]
    python -m tools.client_suites librdkafka --source CHECKOUT [--kafka VERSION] [--gateway …]
    python -m tools.client_suites sarama --kafka VERSION [--gateway …]

Without --kafka the cluster is an embedded one; with it, real Apache Kafka of that version. --log FILE keeps what a suite printed.

kgo is franz-go's: its tests are part of the module, which Go's own client downloads; so are sarama's functional tests, which
run against sarama_cluster.py. aiokafka's tests are in no package, so
that CHECKOUT is a copy of its repository; they run against the release of aiokafka named below, in an environment made for
them. librdkafka's are C: CHECKOUT is a copy of its repository in which tests/test-runner has been built. Nothing of any of
them is part of this project. Exits with 0 if nothing failed but what KNOWN names. docs/conformance.md has the results.
"""

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from rackspan.kafka_process import KafkaCluster
from tests.gateway.process import gateway_process
from tools.sarama_cluster import sarama_cluster

KGO: Final = "github.com/twmb/franz-go"
KGO_VERSION: Final = "v1.22.2"
SARAMA: Final = "github.com/IBM/sarama"
SARAMA_VERSION: Final = "v1.50.2"
SARAMA_RERUNS: Final = 2
"""Tests that failed are run again so many times, as sarama's own runs do (gotestsum --rerun-fails)."""

TOXIPROXY: Final = "github.com/Shopify/toxiproxy/v2/cmd/server@v2.12.0"
AIOKAFKA: Final = ("aiokafka==0.14.0", "pytest", "pytest-asyncio", "pytest-mock", "pytest-timeout", "cramjam")
LIBRDKAFKA_TESTS: Final = ("0045", "0107", "0113", "0081")
LOCAL_LIBRDKAFKA_TESTS: Final = "0045_subscribe_update_mock,0045_subscribe_update_racks_mock"
"""They run against librdkafka's own mock cluster."""

EMBEDDED_VERSION: Final = "4.1.0"

KNOWN: Final[Mapping[str, str]] = {
    "tests/test_sender.py::TestSender::test_sender__handler_base_do": "sends to broker 0; brokers here begin at 1",
    "do_test_DescribeConsumerGroups": "waits 6.02 s for sessions of 6 s, which end here at the next tick of 50 ms",
    "do_test_CreateAcls": "wants an authorizer",
    "do_test_DescribeAcls": "wants an authorizer",
    "do_test_DeleteAcls": "wants an authorizer",
}
"""The reason of each failure on the embedded cluster, by the name of its test."""

KNOWN_ON_KAFKA: Final = {name: reason for name, reason in KNOWN.items() if not name.startswith("do_test_")}
"""The same on Apache Kafka, which has an authorizer where a suite wants one."""

AUTHORIZER: Final[Mapping[str, str]] = {
    "authorizer_class_name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "super_users": "User:ANONYMOUS",
}
"""Configs with which ACLs are kept, and every client may do everything."""

OUTPUT: Final = "output.txt"
"""What a suite printed, in its folder."""

GATEWAYS: Final[Mapping[str, str]] = {
    "off": 'acknowledgements.mode = "off"\n',
    "readers": 'acknowledgements.mode = "off"\n[readers]\nrack = "r2"\n',
    "verified": "",
}
"""The lines of a gateway's config, by the name of the way through it. verified, the default, follows the config topic."""

PLUGIN: Final = Path(__file__).with_name("aiokafka_fixtures.py")

_SERVER: Final = """
import json, sys
from rackspan.cluster import EmbeddedCluster
brokers, config = json.loads(sys.argv[1])
with EmbeddedCluster(racks=3, brokers=brokers, config=config) as cluster:
    print(cluster.bootstrap_servers, flush=True)
    sys.stdin.read()
"""


@dataclass(frozen=True, slots=True)
class SuiteResult:
    """How many tests passed and were skipped, and the names of those that failed."""

    passed: int
    skipped: int
    failed: tuple[str, ...]

    known: Mapping[str, str] = field(default_factory=lambda: KNOWN)
    """The reasons of failures."""

    @property
    def unexpected(self) -> tuple[str, ...]:
        return tuple(name for name in self.failed if name not in self.known)


@dataclass(frozen=True, slots=True)
class Servers:
    """What a suite runs against: real Kafka of a version or an embedded cluster, through a gateway or not."""

    folder: Path
    """For the files of a gateway."""
    kafka: str | None = None
    gateway: str | None = None

    @property
    def version(self) -> str:
        """What the suites may expect of the brokers."""
        return self.kafka or EMBEDDED_VERSION

    @property
    def known(self) -> Mapping[str, str]:
        return KNOWN if self.kafka is None else KNOWN_ON_KAFKA

    @contextmanager
    def started(self, brokers: int = 3, **config: str) -> Iterator[str]:
        """Bootstrap servers. Configs are written with _ for the dot."""
        configs = {key.replace("_", "."): value for key, value in config.items()}
        with _kafka(brokers, configs, self.kafka) if self.kafka else _embedded(brokers, configs) as servers:
            if self.gateway is None:
                yield servers
                return
            with gateway_process(self.folder, servers, GATEWAYS[self.gateway]) as process:
                yield process.bootstrap_servers


@contextmanager
def _kafka(brokers: int, config: Mapping[str, str], version: str) -> Iterator[str]:
    with KafkaCluster(racks=("r1", "r2", "r3"), brokers=brokers, version=version, config=config) as cluster:
        yield cluster.bootstrap_servers


@contextmanager
def _embedded(brokers: int, config: Mapping[str, str]) -> Iterator[str]:
    """In a process of its own."""
    process = subprocess.Popen(
        [sys.executable, "-c", _SERVER, json.dumps([brokers, config])],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        assert process.stdout is not None
        yield process.stdout.readline().strip()
    finally:
        process.communicate()


def kgo(folder: Path, server: Servers) -> SuiteResult:
    """franz-go's kgo. Errors: CalledProcessError where Go cannot download or compile it."""
    _run(["go", "mod", "init", "suite"], folder)
    _run(["go", "get", "-t", f"{KGO}/pkg/kgo@{KGO_VERSION}"], folder)
    with server.started() as servers:
        environment = {**os.environ, "KGO_SEEDS": servers, "KGO_LOG_LEVEL": "none"}
        return _go_result(_go_test(folder, environment, [f"{KGO}/pkg/kgo"]), server)


def sarama(folder: Path, server: Servers) -> SuiteResult:
    """sarama's functional tests, on real Kafka alone: they stop brokers. Errors: CalledProcessError, as `kgo`."""
    if server.kafka is None:
        raise ValueError("sarama's functional tests stop brokers of real Kafka: name its version")
    _run(["go", "mod", "init", "suite"], folder)
    _run(["go", "get", "-t", f"{SARAMA}@{SARAMA_VERSION}"], folder)
    _run(["go", "install", TOXIPROXY], folder, {**os.environ, "GOBIN": str(folder)})
    source = Path(_run(["go", "list", "-m", "-f", "{{.Dir}}", SARAMA], folder).strip())
    texts = [path.read_text("utf-8") for path in sorted(source.glob("*_test.go"))]
    tests = [
        name
        for text in texts
        if text.startswith("//go:build functional")
        for name in re.findall(r"^func (Test(?!Main)\w+)\(", text, re.M)
    ]
    lines = None if server.gateway is None else GATEWAYS[server.gateway]
    with sarama_cluster(folder, server.kafka, folder / "server", lines) as environment:
        found = dict[str, str]()
        for chosen in (tests, *[None] * SARAMA_RERUNS):
            again = chosen or [test for test in tests if found.get(test) == "FAIL"]
            if again:
                # Its go.sum names what tests without a tag import.
                options = ["-mod=mod", "-tags=functional", f"-run=^({'|'.join(again)})$", SARAMA]
                found |= _go_test(folder, {**os.environ, **environment}, options)
        return _go_result(found, server)


def _go_test(folder: Path, environment: Mapping[str, str], options: Sequence[str]) -> dict[str, str]:
    """PASS, FAIL or SKIP by test and subtest. `options` end with the package."""
    before = (folder / OUTPUT).stat().st_size if (folder / OUTPUT).exists() else 0
    _logged(["go", "test", "-v", "-count=1", "-timeout", "40m", *options], folder, environment)
    output = (folder / OUTPUT).read_bytes()[before:].decode(errors="replace")
    found = {name: how for how, name in re.findall(r"^ *--- (PASS|FAIL|SKIP): (\S+)", output, re.M)}
    if not re.search(rf"^(ok|FAIL)\s+{re.escape(options[-1])}\s", output, re.M):
        found["the suite did not end"] = "FAIL"
    return found


def _go_result(found: Mapping[str, str], server: Servers) -> SuiteResult:
    names = {how: tuple(name for name in found if found[name] == how) for how in ("PASS", "FAIL", "SKIP")}
    return SuiteResult(len(names["PASS"]), len(names["SKIP"]), names["FAIL"], server.known)


def aiokafka(source: Path, folder: Path, server: Servers) -> SuiteResult:
    """aiokafka's tests, without its conftest.py, whose fixtures start brokers in containers."""
    # The tests alone: beside them the sources of aiokafka, which are not compiled, would be imported.
    shutil.copytree(source / "tests", folder / "tests")
    shutil.copy(PLUGIN, folder)
    (folder / "pytest.ini").write_text(
        "[pytest]\nasyncio_mode = auto\nmarkers =\n    ssl: needs certificates\n", encoding="utf-8"
    )
    _run([sys.executable, "-m", "venv", "environment"], folder)
    python = str(folder / "environment" / "bin" / "python")
    _run([python, "-m", "pip", "install", "--quiet", *AIOKAFKA], folder)
    options = ["-p", PLUGIN.stem, "--noconftest", "--timeout", "120", "-v", "-rfE", "tests"]
    config = {"num_partitions": "2", "auto_create_topics_enable": "true", "group_initial_rebalance_delay_ms": "0"}
    with server.started(brokers=1, **config) as servers:
        environment = {
            **os.environ,
            "AIOKAFKA_TEST_BROKER": servers,
            "AIOKAFKA_TEST_VERSION": server.version,
            "PYTHONPATH": str(folder),
        }
        _logged([python, "-m", "pytest", *options], folder, environment)
    output = (folder / OUTPUT).read_text(encoding="utf-8", errors="replace")
    counts = {how: int(number) for number, how in re.findall(r"(\d+) (passed|skipped)", output.rsplit("\n", 2)[-2])}
    failed = re.findall(r"^(?:FAILED|ERROR) (\S+)", output, re.M)
    return SuiteResult(counts.get("passed", 0), counts.get("skipped", 0), tuple(failed), server.known)


def librdkafka(source: Path, folder: Path, server: Servers) -> SuiteResult:
    """LIBRDKAFKA_TESTS. 0081 goes on after no failure, so that each of its parts is run by itself."""
    tests = source / "tests"
    parts = sorted(set(re.findall(r"^ +(do_test_\w+)\(", (tests / "0081-admin.c").read_text("utf-8"), re.M)))
    runs = [(test, part) for test in LIBRDKAFKA_TESTS for part in (parts if test == "0081" else [""])]
    failed = []
    # Members that join a group one after the other are expected in one rebalance, as Kafka's default delay gives it.
    more = {} if server.kafka is None else AUTHORIZER
    with server.started(brokers=3, group_initial_rebalance_delay_ms="3000", **more) as servers:
        config = folder / "test.conf"
        config.write_text(f"metadata.broker.list={servers}\ntest.topic.random=true\n", encoding="utf-8")
        environment = {
            **os.environ,
            "RDKAFKA_TEST_CONF": str(config),
            "LD_LIBRARY_PATH": f"{source / 'src'}:{source / 'src-cpp'}",
            "TEST_KAFKA_VERSION": server.version,
            "TESTS_SKIP": LOCAL_LIBRDKAFKA_TESTS,
        }
        for test, part in runs:
            subtest = {"SUBTESTS": part} if part else {}
            chosen = {**environment, "TESTS": test, **subtest}
            if _logged(["./test-runner", "-p1"], folder, chosen, at=tests) != 0:
                failed.append(part or test)
    return SuiteResult(len(runs) - len(failed), 0, tuple(failed), server.known)


def _logged(command: Sequence[str], folder: Path, environment: Mapping[str, str], *, at: Path | None = None) -> int:
    """The status of the command, run in the folder unless `at` is another. OUTPUT has what it prints while it runs."""
    with (folder / OUTPUT).open("a", encoding="utf-8") as log:
        return subprocess.run(
            command, cwd=at or folder, env=environment, stdout=log, stderr=subprocess.STDOUT
        ).returncode


def _run(command: Sequence[str], folder: Path, environment: Mapping[str, str] | None = None) -> str:
    """What the command prints. Errors: CalledProcessError where it fails."""
    return subprocess.run(
        command, cwd=folder, env=environment, check=True, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
    ).stdout


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(description="Test suites of Kafka clients against a cluster.")
    parser.add_argument("suite", choices=("kgo", "aiokafka", "librdkafka", "sarama"))
    parser.add_argument("--source", type=Path, help="a copy of the repository of aiokafka or librdkafka")
    parser.add_argument("--kafka", metavar="VERSION", help="before real Apache Kafka; without it, the embedded cluster")
    parser.add_argument(
        "--gateway", choices=tuple(GATEWAYS), help="through a gateway: off, with [readers], or verified"
    )
    parser.add_argument("--log", type=Path, help="a file for what the suite printed")
    options = parser.parse_args(arguments)
    if options.suite in {"aiokafka", "librdkafka"} and options.source is None:
        parser.error(f"{options.suite} needs --source, a copy of its repository")
    if options.suite == "sarama" and options.kafka is None:
        parser.error("sarama needs --kafka: its tests stop brokers of real Kafka")
    with tempfile.TemporaryDirectory() as folder:
        result = run_suite(options.suite, options.source, Path(folder), options.kafka, options.gateway)
        if options.log is not None:
            shutil.copy(Path(folder) / OUTPUT, options.log)
    print(f"{options.suite}: {result.passed} passed, {len(result.failed)} failed, {result.skipped} skipped")
    for name in result.failed:
        print(f"  {name}: {result.known.get(name, 'not known to fail')}")
    return 1 if result.unexpected or not result.passed else 0


def run_suite(
    suite: str, source: Path | None, folder: Path, kafka: str | None = None, gateway: str | None = None
) -> SuiteResult:
    """The suite's result. `folder` is for its files."""
    server = Servers(folder, kafka, gateway)
    if suite == "sarama":
        return sarama(folder, server)
    if suite == "kgo" or source is None:
        return kgo(folder, server)
    resolved = source.resolve()
    return aiokafka(resolved, folder, server) if suite == "aiokafka" else librdkafka(resolved, folder, server)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
