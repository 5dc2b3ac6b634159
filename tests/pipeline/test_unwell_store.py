"""A store that is unwell for a while: no command takes what it does not give for damage, and nothing is lost once it is well."""

import os
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path

import pytest

from rackspan import pipeline
from rackspan.errors import UnreadableStore
from rackspan.pipeline.check import check
from rackspan.pipeline.landing.store import store_all
from rackspan.pipeline.maintain import maintain
from rackspan.pipeline.warehouse import Warehouse
from tests.pipeline import object_store, plain_build, unwell_store
from tests.pipeline.examples import NOON, small
from tests.pipeline.spark.standalone import end, free_port
from tests.waiting import eventually

pytestmark = pytest.mark.slow

LATER = NOON + timedelta(hours=9)


@dataclass(frozen=True)
class Store:
    """A proxy before an S3 server. `rule` is read at each request."""

    rule: Path

    @contextmanager
    def unwell(self, fault: str, requests: str) -> Iterator[None]:
        self.rule.write_text(f"{fault} {requests}")
        try:
            yield
        finally:
            self.rule.write_text("")


@pytest.fixture(scope="module")
def variables(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Mapping[str, str]]:
    folder = tmp_path_factory.mktemp("s3")
    (folder / "rule").write_text("")
    with object_store.s3_server(folder) as variables:
        port, target = free_port(), variables["AWS_ENDPOINT_URL"].removeprefix("http://")
        command = [sys.executable, "-m", unwell_store.__name__, str(port), target, str(folder / "rule")]
        proxy = subprocess.Popen(command)
        try:
            url = f"http://127.0.0.1:{port}"
            eventually(lambda: object_store.created(f"{url}/other"), "the proxy passes requests on")
            yield {**variables, "AWS_ENDPOINT_URL": url, "RULE": str(folder / "rule")}
        finally:
            end([proxy])


@pytest.fixture
def store(variables: Mapping[str, str], monkeypatch: pytest.MonkeyPatch) -> Store:
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    return Store(Path(variables["RULE"]))


@pytest.fixture(scope="module")
def stored(variables: Mapping[str, str]) -> Iterator[str]:
    """A warehouse with two snapshots that a run has judged and one that it has not, which no test changes."""
    with pytest.MonkeyPatch.context() as patched:
        for name, value in variables.items():
            patched.setenv(name, value)
        root = f"s3://{object_store.BUCKET}/{os.getpid()}"
        warehouse = pipeline.create_warehouse(root)
        snapshots = [small(taken_at=NOON + timedelta(hours=hour), leader=1 + hour % 2) for hour in range(3)]
        store_all(snapshots[:2], warehouse)
        plain_build.refresh(warehouse)
        store_all(snapshots[2:], warehouse)
        yield root


def drop(warehouse: Warehouse) -> None:
    maintain(warehouse, now=lambda: LATER, give_up=lambda _line: None)


def judge(warehouse: Warehouse) -> None:
    check(warehouse, now=LATER, whole=True)


def read(warehouse: Warehouse) -> None:
    list(pipeline.rows(warehouse, "snapshots"))
    list(pipeline.rows(warehouse, "partitions"))
    list(pipeline.rows(warehouse, "partition_durability"))


def run(warehouse: Warehouse) -> None:
    plain_build.refresh(warehouse)


COMMANDS = (judge, drop, read, run)
OF_LANDING, OF_LOG = r"GET .*/partitions/day.*\.parquet", r"GET .*partitions.*_delta_log"


@pytest.mark.parametrize("fault", ["throttled", "forbidden"])
def test_what_a_store_does_not_give_is_no_damage(store: Store, stored: str, fault: str) -> None:
    warehouse = pipeline.open_warehouse(stored)
    for command in COMMANDS:
        for requests in (OF_LANDING, OF_LOG):
            with store.unwell(fault, requests), pytest.raises(UnreadableStore, match="could not be read"):
                command(warehouse)
    report = check(warehouse, now=LATER, whole=True)
    assert report.problems == ()
    assert report.tables["snapshots"] == 3


@pytest.mark.parametrize("fault", ["throttled", "forbidden", "missing"])
def test_a_store_that_gives_nothing_is_no_damage(store: Store, stored: str, fault: str) -> None:
    warehouse = pipeline.open_warehouse(stored)
    for command in COMMANDS:
        with store.unwell(fault, "."), pytest.raises(UnreadableStore):
            command(warehouse)
