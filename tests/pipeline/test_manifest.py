from pathlib import Path

from rackspan.audit import RackPolicy
from rackspan.model import RackId, UnrackedPolicy
from rackspan.pipeline import create_warehouse
from rackspan.pipeline.manifest import Manifest, policy_warnings, read_manifest, write_manifest

RICH = RackPolicy(UnrackedPolicy.OWN, 2, {"orders": 3}, {9: RackId("r1")})


def made_with(policy: RackPolicy, folder: Path) -> Manifest:
    """A manifest as the next reader finds it."""
    warehouse = create_warehouse(folder / "warehouse")
    warehouse.tables.mkdir()
    write_manifest(warehouse, Manifest().replaced("run", {}, policy))
    return read_manifest(warehouse)


def test_the_policy_of_the_run_is_kept_whole(tmp_path: Path) -> None:
    assert policy_warnings(made_with(RICH, tmp_path), RICH) == []


def test_each_part_that_differs_is_named_as_either_has_it(tmp_path: Path) -> None:
    given = RackPolicy(UnrackedPolicy.SHARED, 1, {"orders": 3}, {9: RackId("r1")})
    assert policy_warnings(made_with(RICH, tmp_path), given) == [
        "the tables were made with unracked own, min_insync_racks 2, the verdicts on the page with unracked shared, "
        "min_insync_racks 1; say the same to run and report"
    ]


def test_a_manifest_without_a_policy_gives_no_warning() -> None:
    assert policy_warnings(Manifest("run of an earlier rackspan"), RICH) == []
