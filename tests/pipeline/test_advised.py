"""Advice by the tables of a warehouse: that of the pure functions, on a synthetic fleet whose right advice is known."""

from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest

from rackspan import api, pipeline
from rackspan.advice import ranked
from rackspan.audit import RackPolicy
from rackspan.demo.fleet import FleetFault, SyntheticFleet, synthetic_fleet
from rackspan.errors import InvalidWarehouse, UsageError
from rackspan.pipeline.advised import _advice, advise_stored
from rackspan.pipeline.landing.store import store_all
from rackspan.pipeline.report.from_warehouse import report_data
from rackspan.pipeline.warehouse import Warehouse
from rackspan.text import utc_text
from tests.cli.conftest import Ran, cli  # noqa: F401 - a fixture
from tests.pipeline import plain_build
from tests.pipeline.examples import NOON, small
from tests.pipeline.readings import store_readings

pytestmark = pytest.mark.slow

HOURS = 3


@pytest.fixture(scope="module")
def fleet() -> SyntheticFleet:
    return synthetic_fleet(1)


@pytest.fixture(scope="module")
def warehouse(fleet: SyntheticFleet, tmp_path_factory: pytest.TempPathFactory) -> Warehouse:
    """The last hours of the fleet, in which only what is planted is wrong."""
    made = pipeline.create_warehouse(tmp_path_factory.mktemp("fleet") / "warehouse")
    times = [fleet.end - timedelta(hours=back) for back in range(HOURS, -1, -1)]
    store_readings(made, [cluster.reading(at) for at in times for cluster in fleet.clusters])
    plain_build.refresh(made, RackPolicy())
    return made


def test_every_fault_of_each_cluster_is_advised_and_nothing_else(fleet: SyntheticFleet, warehouse: Warehouse) -> None:
    for cluster in fleet.clusters:
        snapshot, found, hour, _ = advise_stored(warehouse, RackPolicy(), cluster.name)
        assert (snapshot.cluster_id, snapshot.taken_at, hour) == (cluster.name, fleet.end, fleet.end)
        expected = sorted(
            cluster.faults, key=lambda fault: (fault.bytes_a_month is not None, -(fault.bytes_a_month or 0))
        )
        assert [each.advice.kind for each in found] == [fault.kind for fault in expected]
        for each, fault in zip(found, expected, strict=True):
            if fault.bytes_a_month is not None:
                # The hour before midnight has half of what passes in an average one.
                assert each.advice.bytes_a_month == pytest.approx(fault.bytes_a_month / 2, rel=1e-6)
                assert each.seconds_at_risk is None


def test_a_risk_has_the_seconds_of_its_worst_partition(fleet: SyntheticFleet, warehouse: Warehouse) -> None:
    (fault,) = [fault for fault in fleet.faults if fault.fault is FleetFault.ONE_REPLICA]
    _, found, *_ = advise_stored(warehouse, RackPolicy(), fault.cluster)
    (seconds,) = [each.seconds_at_risk for each in found if each.advice.topic == fault.topic]
    # Each partition is in one rack all the time, and hours end with a snapshot after them.
    assert seconds == HOURS * 3600


def test_a_risk_of_the_cluster_has_not_the_time_that_is_known_for_time_at_risk(tmp_path: Path) -> None:
    """Two hours with nothing at risk, then a quorum of one controller."""
    made = pipeline.create_warehouse(tmp_path / "w")
    safe = [small(taken_at=NOON + timedelta(minutes=20 * number)) for number in range(7)]
    for number, snapshot in enumerate(safe):
        rows = snapshot.partitions
        isr = rows.isr.copy()
        isr[1] = rows.replicas[1]
        safe[number] = replace(snapshot, partitions=replace(rows, isr=isr))
    safe[-1] = replace(safe[-1], controllers=safe[-1].controllers[:1])
    store_all(safe, made)
    plain_build.refresh(made)
    _, found, *_ = advise_stored(made, RackPolicy())
    assert [each.seconds_at_risk for each in found if each.advice.topic is None] == [None]


def test_the_table_has_what_the_pure_functions_find(fleet: SyntheticFleet, warehouse: Warehouse) -> None:
    rows = [
        row for row in pipeline.rows(warehouse, "advice") if str(row["hour"]).startswith(f"{fleet.end:%Y-%m-%dT%H}")
    ]
    by_cluster = {cluster.name: sum(row["cluster_id"] == cluster.name for row in rows) for cluster in fleet.clusters}
    assert by_cluster == {cluster.name: len(cluster.faults) for cluster in fleet.clusters}


def test_savings_keep_the_order_in_which_the_table_has_them() -> None:
    """A smaller one may be what a larger one rests on."""
    columns = ("topic", "group_id", "reason", "money_a_month", "command", "cost", "undo", "assumption")
    rows = [
        dict.fromkeys(columns, "") | {"concern": "money", "kind": kind, "bytes_a_month": size, "rank": rank}
        for kind, size, rank in (("largest", 900, 3), ("first", 5, 2), ("last", 7, 4))
    ]
    assert [advice.kind for advice in ranked(map(_advice, rows))] == ["first", "largest", "last"]


def test_a_warehouse_of_several_clusters_needs_a_name_of_one(warehouse: Warehouse) -> None:
    with pytest.raises(UsageError, match="it has 5 clusters; name one with --cluster-id: cluster-1, cluster-2"):
        advise_stored(warehouse, RackPolicy())
    with pytest.raises(UsageError, match="--cluster-id 'none': the warehouse has no such cluster; it has cluster-1"):
        advise_stored(warehouse, RackPolicy(), "none")


def test_what_readings_could_not_read_is_reported_with_exit_code_1(
    cli: Callable[..., Ran],  # noqa: F811
    fleet: SyntheticFleet,
    tmp_path: Path,
) -> None:
    """A group that could not be read has no bytes, so that the sums look whole."""
    made = pipeline.create_warehouse(tmp_path / "warehouse")
    cluster = fleet.clusters[0]
    notes = {26: "an older note", 25: "group shop: not authorized", 0: "offsets of group shop: not authorized"}
    store_readings(
        made,
        [
            replace(cluster.reading(fleet.end - timedelta(hours=back)), partial=(notes[back],) if back in notes else ())
            for back in (26, 25, 2, 1, 0)
        ],
    )
    plain_build.refresh(made, RackPolicy())
    assert advise_stored(made, RackPolicy())[3] == (notes[0],)
    ran = cli("advise", "--warehouse", str(made.root))
    assert (ran.code, notes[0] in ran.out) == (1, True)
    _, data = report_data(made, RackPolicy())
    traffic = data.clusters[0].traffic
    assert traffic is not None
    assert traffic.unread == (notes[0],)


def test_a_warehouse_without_a_run_says_what_to_run(tmp_path: Path) -> None:
    made = pipeline.create_warehouse(tmp_path / "new")
    with pytest.raises(InvalidWarehouse, match="run rackspan pipeline run --warehouse"):
        advise_stored(made, RackPolicy())


def test_the_command_prints_the_advice_of_a_warehouse(
    cli: Callable[..., Ran],  # noqa: F811
    fleet: SyntheticFleet,
    warehouse: Warehouse,
) -> None:
    (fault,) = [fault for fault in fleet.faults if fault.fault is FleetFault.ONE_REPLICA]
    words = ("advise", "--warehouse", str(warehouse.root), "--cluster-id", fault.cluster)
    document = cli(*words, "-o", "json").document
    assert [each["seconds_at_risk"] for each in document["advice"] if each["kind"] == fault.kind] == [HOURS * 3600]
    ran = cli(*words)
    assert ran.code == 2
    at = utc_text(fleet.end)
    assert f"cluster {fault.cluster} at {at}, traffic of 3600.0 s from {at}: " in " ".join(ran.out.split())
    assert f"at risk for {HOURS * 3600:,} s of the last 30 days" in ran.out
    refused = cli(*words, "--seconds", "5")
    assert (refused.code, refused.out) == (1, "")
    assert "--seconds: the tables of a warehouse are made already" in refused.err
    assert api.advise_stored(str(warehouse.root), cluster_id="cluster-1")[1] == []
