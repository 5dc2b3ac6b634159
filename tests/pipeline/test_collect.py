import importlib
import socket
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import timedelta
from itertools import count, islice
from pathlib import Path
from random import Random
from typing import Any

import pytest
from pyarrow import parquet

from rackspan import api
from rackspan.errors import ClusterUnreachable, InvalidSnapshot, UsageError
from rackspan.model.snapshot import ReadSnapshot
from rackspan.pipeline import Warehouse, collect, collect_every, create_warehouse, from_folder, rows, store
from rackspan.pipeline.collect import Collected, CollectTotals, TrafficReadings, metric_families
from rackspan.pipeline.landing.store import SnapshotLocation
from rackspan.pipeline.warehouse import Repair
from rackspan.sources import snapshot_file
from rackspan.sources.source import Source
from rackspan.text import utc_text
from rackspan.traffic import ClusterReading
from tests.pipeline.examples import NOON, small
from tests.pipeline.readings import history


@pytest.fixture
def warehouse(tmp_path: Path) -> Warehouse:
    return create_warehouse(tmp_path / "warehouse")


def source(name: str, *readings: ReadSnapshot | Exception) -> Source:
    """A source that returns one reading after the other, then the last one again and again."""
    left = list(readings)

    def read() -> ReadSnapshot:
        reading = left.pop(0) if len(left) > 1 else left[0]
        if isinstance(reading, Exception):
            raise reading
        return reading

    return Source(name, read)


@pytest.mark.parametrize(
    ("snapshot", "missing"),
    [(small(cluster_id=None), "cluster_id"), (small(""), "cluster_id"), (small(taken_at=None), "taken_at")],
)
def test_a_snapshot_without_its_key_is_refused_by_file_and_with_what_to_do(
    warehouse: Warehouse, tmp_path: Path, snapshot: object, missing: str
) -> None:
    folder = tmp_path / "given"
    snapshot_file.write(snapshot, folder / "today.json")  # type: ignore[arg-type]
    [came] = collect(from_folder(folder), warehouse)
    assert str(came.error) == (
        f"{folder}/today.json: {missing} is missing, and a warehouse is ordered by it; "
        f'add "{missing}" to the snapshot, or take it again'
    )


def test_a_folder_gives_its_json_files_and_parquet_folders_by_name(warehouse: Warehouse, tmp_path: Path) -> None:
    given = tmp_path / "given"
    for hour, name in enumerate(("b.json", "a", "c.json")):
        given.mkdir(exist_ok=True)
        snapshot_file.write(small(taken_at=NOON + timedelta(hours=hour)), given / name)
    (given / "notes.txt").write_text("mine")
    (given / "empty").mkdir()
    came = list(collect(from_folder(given), warehouse))
    assert [Path(one.source).name for one in came] == ["a", "b.json", "c.json"]
    assert all(one.stored and one.stored.new for one in came)


def test_the_order_of_a_folder_is_that_of_names_and_not_that_of_the_disk(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    names = ["2.json", "3.json", "1.json"]
    for name in names:
        (tmp_path / name).touch()
    monkeypatch.setattr(Path, "iterdir", lambda folder: (folder / name for name in names))
    assert [Path(one.name).name for one in from_folder(tmp_path)] == sorted(names)


def test_a_folder_without_rows_is_a_mistake(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"holds no snapshots"):
        from_folder(tmp_path)
    with pytest.raises(UsageError, match=r"no such folder"):
        from_folder(tmp_path / "nowhere")


def test_a_source_that_fails_does_not_keep_others_from_being_read(warehouse: Warehouse) -> None:
    down = source("down:9092", ClusterUnreachable("down:9092: nobody answered"))
    up = source("up:9092", ReadSnapshot(small(), ("a warning",)))
    first, second = collect([down, up], warehouse)
    assert (first.source, str(first.error), first.stored) == ("down:9092", "down:9092: nobody answered", None)
    assert second.stored is not None
    assert second.warnings == ("a warning",)


@pytest.mark.parametrize(("lost", "error"), [((), None), (("a is lost", "b is lost"), "a is lost; b is lost")])
def test_what_was_repaired_comes_first_and_what_is_lost_is_an_error(
    warehouse: Warehouse, lost: tuple[str, ...], error: str | None
) -> None:
    repaired = replace(warehouse, repair=Repair(("a log was torn",), lost))
    first, second = collect([source("up:9092", ReadSnapshot(small(), ()))], repaired)
    assert (first.source, first.warnings, first.stored) == (warehouse.root, ("a log was torn",), None)
    assert (first.error and str(first.error)) == error
    assert second.stored is not None


def test_rounds_keep_their_time_and_are_not_made_up_for(warehouse: Warehouse) -> None:
    clock = [100.0]
    slept: list[float] = []
    takes = iter([4.0, 25.0, 1.0, 1.0])

    def read() -> ReadSnapshot:
        clock[0] += next(takes)
        return ReadSnapshot(small(taken_at=NOON + timedelta(seconds=clock[0])), ())

    def sleep(seconds: float) -> None:
        slept.append(seconds)
        clock[0] += seconds

    rounds = collect_every([Source("one", read)], warehouse, 10, now=lambda: clock[0], sleep=sleep)
    assert all(one.stored for one in islice(rounds, 4))
    assert slept == [6.0, 0.0, 9.0]
    # Three periods of --every, however far they are apart.
    known = [row["known_until"] for row in rows(warehouse, "snapshots")]
    assert known == [utc_text(NOON + timedelta(seconds=at + 30)) for at in (104.0, 135.0, 136.0, 146.0)]


def test_a_round_that_cannot_be_stored_is_lost_and_ends_no_collector(
    warehouse: Warehouse, monkeypatch: pytest.MonkeyPatch
) -> None:
    write, numbers, number = parquet.write_table, count(), 0

    def full(*words: Any, **options: Any) -> None:
        if number == 1:
            raise OSError(28, "No space left on device")
        write(*words, **options)

    def read() -> ReadSnapshot:
        nonlocal number
        number = next(numbers)
        return ReadSnapshot(small(taken_at=NOON + timedelta(seconds=number), leader=1 + number % 3), ())

    monkeypatch.setattr(parquet, "write_table", full)
    rounds = collect_every([Source("one", read)], warehouse, 10, now=lambda: 0.0, sleep=lambda _: None)
    first, second, third = islice(rounds, 3)
    assert (second.source, second.stored, str(second.error).partition("No space")[1]) == (
        warehouse.root,
        None,
        "No space",
    )
    assert [one.error for one in (first, third)] == [None, None]
    assert [row["taken_at"][17:19] for row in rows(warehouse, "snapshots")] == ["00", "02"]
    assert {row["leader"] for row in rows(warehouse, "partitions") if row["taken_at"][17:19] == "02"} == {2, 3}


def test_running_clusters_are_read_in_threads_that_have_a_name(warehouse: Warehouse) -> None:
    names: list[str] = []

    def read() -> ReadSnapshot:
        names.append(threading.current_thread().name)
        return ReadSnapshot(small(), ())

    def with_traffic(_seconds: float, _groups: Sequence[str]) -> ClusterReading:
        raise AssertionError

    list(collect([Source("a", read, with_traffic)], warehouse))
    assert [name.rpartition("_")[0] for name in names] == ["read-cluster"]


def test_files_are_read_one_after_another_by_the_thread_that_collects(warehouse: Warehouse) -> None:
    names: list[str] = []

    def read() -> ReadSnapshot:
        names.append(threading.current_thread().name)
        return ReadSnapshot(small(), ())

    list(collect([Source("a.json", read), Source("b.json", read)], warehouse))
    assert names == [threading.current_thread().name] * 2


def test_as_many_snapshots_are_stored_at_once_as_have_so_many_partitions(
    warehouse: Warehouse, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The partitions of a batch are counted from nothing, of the first one too."""
    module = importlib.import_module("rackspan.pipeline.collect")
    sizes: list[int] = []
    stored = module._stored

    def counted(batch: list[Any], *words: Any) -> Iterator[Collected]:
        sizes.append(len(batch))
        return stored(batch, *words)  # type: ignore[no-any-return]

    monkeypatch.setattr(module, "_stored", counted)
    monkeypatch.setattr(module, "PARTITIONS_MAX", len(small().partitions) + 1)
    sources = [source(name, ReadSnapshot(small(name), ())) for name in "abcde"]
    assert [one.error for one in collect(sources, warehouse)] == [None] * 5
    assert sizes == [2, 2, 1]


def test_a_snapshot_taken_by_two_collectors_is_kept_once(warehouse: Warehouse) -> None:
    came = list(collect([source("a", ReadSnapshot(small(), ())), source("b", ReadSnapshot(small(), ()))], warehouse))
    assert [one.stored.new for one in came if one.stored] == [True, False]


def test_time_zones_do_not_make_two_timestamps_of_one(warehouse: Warehouse) -> None:
    assert store(small(), warehouse).new
    assert not store(replace(small(), taken_at=NOON.astimezone()), warehouse).new


def test_the_metrics_count_what_was_stored_and_what_failed() -> None:
    totals = CollectTotals(30)
    stored = SnapshotLocation("w", "1", new=True)
    assert "rackspan_collect_last_stored_timestamp_seconds" not in {family.name for family in metric_families(totals)}
    for collected in (Collected("a", stored), Collected("b", error=InvalidSnapshot("torn")), Collected("c", stored)):
        totals.add(collected, 1700.5)
    values = {sample.name: sample.value for family in metric_families(totals) for sample in family.samples}
    assert values == {
        "rackspan_collect_snapshots_total": 2,
        "rackspan_collect_failures_total": 1,
        "rackspan_collect_failing_sources": 1,
        "rackspan_collect_interval_seconds": 30,
        "rackspan_collect_last_stored_timestamp_seconds": 1700.5,
    }


def test_a_source_is_failing_until_it_is_stored_again_and_so_is_the_warehouse() -> None:
    totals, failing = CollectTotals(30), []
    stored, torn = SnapshotLocation("w", "1", new=True), InvalidSnapshot("torn")
    for collected in (
        Collected("a", error=torn),
        Collected("b", error=torn),
        Collected("a", error=torn),
        Collected("w", error=torn),
        Collected("a", stored),
        Collected("b", stored),
    ):
        totals.add(collected, 1700.5)
        values = {sample.name: sample.value for family in metric_families(totals) for sample in family.samples}
        failing.append(values["rackspan_collect_failing_sources"])
    assert failing == [1, 2, 2, 3, 1, 0]


@pytest.fixture
def hanging() -> Iterator[tuple[str, list[socket.socket]]]:
    """The address of a server that accepts connections and never responds, and the connections."""
    accepted: list[socket.socket] = []
    with socket.create_server(("127.0.0.1", 0)) as server:

        def accept() -> None:
            with suppress(OSError):
                while True:
                    accepted.append(server.accept()[0])

        thread = threading.Thread(target=accept)
        thread.start()
        yield f"127.0.0.1:{server.getsockname()[1]}", accepted
        server.shutdown(socket.SHUT_RDWR)
        thread.join()
    for connection in accepted:
        connection.close()


@pytest.mark.slow
def test_readings_of_a_cluster_that_hangs_hold_up_no_other_cluster(
    warehouse: Warehouse, monkeypatch: pytest.MonkeyPatch, hanging: tuple[str, list[socket.socket]]
) -> None:
    # The package has a function of the module's name.
    monkeypatch.setattr(importlib.import_module("rackspan.pipeline.collect"), "STORE_SECONDS", 0.05)
    address, accepted = hanging
    readings = iter(history(Random(1), 5))
    there = Source("there", lambda: pytest.fail("read without traffic"), lambda period, urls: next(readings))
    rounds = collect_every(
        # Longer than any test may take: a round that waited for it would have no result of the others.
        [api.live_cluster(address, None, 3_600.0), there],
        warehouse,
        0.2,
        now=time.monotonic,
        sleep=time.sleep,
        traffic=TrafficReadings(0.2),
    )
    found = list(islice(rounds, 4))
    assert [(one.source, one.error) for one in found] == [("there", None)] * 4
    assert len(list(rows(warehouse, "readings"))) == 4
    # It is still being read, and is not read once more in each round.
    assert len(accepted) == 1
