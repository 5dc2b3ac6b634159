"""A store that is unwell for a while: no command takes what it does not give for damage, and nothing is lost once it is well."""

import re
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from http.client import HTTPConnection
from pathlib import Path

import pytest

from rackspan import pipeline
from rackspan.errors import UnreadableStore
from rackspan.pipeline.check import check
from rackspan.pipeline.delta import table
from rackspan.pipeline.landing.store import store_all
from rackspan.pipeline.maintain import maintain
from rackspan.pipeline.warehouse import Warehouse
from tests.pipeline import object_store, plain_build, unwell_store
from tests.pipeline.examples import NOON, small
from tests.pipeline.spark.standalone import end, free_port
from tests.waiting import WITHIN_SECONDS, eventually

pytestmark = pytest.mark.slow

LATER = NOON + timedelta(hours=9)
ALL = 1_000_000
"""More requests than there are."""


@dataclass(frozen=True)
class Store:
    """An S3 server over a folder, which has one warehouse."""

    folder: Path
    patience: pytest.MonkeyPatch

    @contextmanager
    def unwell(self, fault: str, requests: str, first: int = 0, count: int = ALL) -> Iterator[None]:
        """The matching requests from number `first` on have the fault, so many of them. Nothing is tried again meanwhile."""
        (self.folder / "met").unlink(missing_ok=True)
        timeout = "1s" if fault == "slow" else "60s"
        with self.patience.context() as patched:
            patched.setattr(table, "PATIENCE", {"max_retries": "0", "timeout": timeout})
            (self.folder / "rule").write_text(f"{fault} {first} {count} {requests}")
            try:
                yield
            finally:
                (self.folder / "rule").write_text("")

    @property
    def met(self) -> Sequence[str]:
        """The requests that the last rule matched."""
        return (self.folder / "met").read_text().splitlines()

    def files(self) -> Mapping[Path, bytes]:
        return {file: file.read_bytes() for file in (self.folder / "store").rglob("*") if file.is_file()}


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Path, Mapping[str, str]]]:
    """The folder of a store with a warehouse of two snapshots that a run has judged and one that it has not, and its variables."""
    folder = tmp_path_factory.mktemp("s3")
    (folder / "rule").write_text("")
    warehouse = pipeline.create_warehouse(folder / "store" / object_store.BUCKET / "w")
    snapshots = [small(taken_at=NOON + timedelta(hours=hour), leader=1 + hour % 2) for hour in range(3)]
    store_all(snapshots[:2], warehouse)
    plain_build.refresh(warehouse)
    store_all(snapshots[2:], warehouse)
    port = free_port()
    server = subprocess.Popen([sys.executable, "-m", unwell_store.__name__, str(port), str(folder)])
    try:
        eventually(lambda: responds(port), "the server responds")
        yield (
            folder,
            {
                "AWS_ENDPOINT_URL": f"http://127.0.0.1:{port}",
                "AWS_ALLOW_HTTP": "true",
                "AWS_REGION": "us-east-1",
                "AWS_ACCESS_KEY_ID": object_store.KEY_ID,
                "AWS_SECRET_ACCESS_KEY": object_store.SECRET,
            },
        )
    finally:
        end([server])


def responds(port: int) -> bool:
    connection = HTTPConnection("127.0.0.1", port, timeout=WITHIN_SECONDS)
    try:
        connection.request("GET", f"/{object_store.BUCKET}?list-type=2")
        return connection.getresponse().status == 200
    except OSError:
        return False
    finally:
        connection.close()


@pytest.fixture
def store(served: tuple[Path, Mapping[str, str]], monkeypatch: pytest.MonkeyPatch) -> Store:
    folder, variables = served
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    return Store(folder, monkeypatch)


@pytest.fixture
def warehouse(store: Store) -> Warehouse:
    return pipeline.open_warehouse(f"s3://{object_store.BUCKET}/w")


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
OF_FILE = r" .*/partitions/day.*\.parquet"


@pytest.mark.parametrize("fault", [fault for fault in unwell_store.FAULTS if fault != "missing"])
def test_what_a_store_does_not_give_is_no_damage(store: Store, warehouse: Warehouse, fault: str) -> None:
    before = store.files()
    for command in COMMANDS:
        for requests in (OF_LANDING, OF_LOG):
            with store.unwell(fault, requests), pytest.raises(UnreadableStore, match="could not be read"):
                command(warehouse)
    assert store.files() == before


@pytest.mark.parametrize("command", COMMANDS)
def test_a_file_that_is_not_found_once_is_not_gone(
    store: Store, warehouse: Warehouse, command: Callable[[Warehouse], None]
) -> None:
    with store.unwell("missing", OF_FILE, count=1), pytest.raises(UnreadableStore, match="could not be read"):
        command(warehouse)


@pytest.mark.parametrize("fault", unwell_store.FAULTS)
def test_a_store_that_gives_nothing_is_no_damage(store: Store, warehouse: Warehouse, fault: str) -> None:
    for command in COMMANDS:
        with store.unwell(fault, "."), pytest.raises(UnreadableStore):
            command(warehouse)


def test_a_store_that_does_not_respond_is_reported_within_30_seconds() -> None:
    """Two looks, each of retries that begin within `retry_timeout`, a wait before the last one, and its time-out."""
    seconds = {name: int(re.fullmatch(r"(\d+)s", value)[1]) for name, value in table.PATIENCE.items()}  # type: ignore[index]
    assert set(seconds) == {"timeout", "retry_timeout", "backoff_config.max_backoff"}
    assert 2 * sum(seconds.values()) <= 30


def test_how_long_a_store_is_waited_for_reaches_tables_and_files(store: Store, warehouse: Warehouse) -> None:
    """delta-rs itself tries a request ten times more."""
    with store.unwell("throttled", "_last_checkpoint"), pytest.raises(UnreadableStore):
        table.open_table(warehouse.table("partitions"))
    assert len(store.met) == 1
    with store.unwell("throttled", "absent"), pytest.raises(OSError, match="503"):
        table.filesystem_at(warehouse.table("partitions")).open_input_file("absent")
    assert len(store.met) == 1


@pytest.mark.parametrize("variable", table.OWN_TIMEOUTS)
def test_a_time_out_of_the_environment_takes_precedence(variable: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(variable, "50s")
    assert (table.storage_options("s3://fleet/w") or {})["timeout"] == "50s"
