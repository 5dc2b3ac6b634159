"""The placer of each config (vectors 260-262), and the tags and racks over which it spreads standbys."""

from collections.abc import Mapping
from typing import Any

import pytest

from rackspan.streams import assign, from_document, options_named
from rackspan.streams.client_state import empty_states
from rackspan.streams.standby.placement import ByLoad, ByTags, placer_for


def group(racks: list[str | None], tags: list[str] | None = None, tasks: int = 6, standbys: int = 2) -> dict[str, Any]:
    partitions = {
        f"{kind}:{number}": sorted({rack for rack in racks if rack}) or ["r"]
        for kind in ("in", "log")
        for number in range(tasks)
    }
    return {
        "config": {"strategy": "min_traffic", "num_standbys": standbys, "rack_aware_assignment_tags": tags or []},
        "clients": [
            {
                "process_id": f"00000000-0000-0000-0000-{at:012d}",
                "rack": rack,
                "threads": 1,
                "tags": {"az": f"az{at % 2}"},
            }
            for at, rack in enumerate(racks)
        ],
        "tasks": [
            {"id": f"0_{number}", "stateful": True, "source": [f"in:{number}"], "changelog": [f"log:{number}"]}
            for number in range(tasks)
        ],
        "partitions": partitions,
    }


@pytest.mark.parametrize("across_racks", [True, False])
@pytest.mark.parametrize("racks", [["r1", "r2"], ["r1", None]])
def test_tags_decide_wherever_they_are_configured(across_racks: bool, racks: list[str | None]) -> None:
    given = from_document(group(racks, tags=["az"]))
    placer = placer_for(given, empty_states(given), across_racks)
    assert isinstance(placer, ByTags)
    assert placer.keys == {"az"}


def test_without_tags_racks_are_one_synthetic_tag_across_racks() -> None:
    given = from_document(group(["r1", "r2"]))
    placer = placer_for(given, empty_states(given), across_racks=True)
    assert isinstance(placer, ByTags)
    assert placer.keys == {"rack"}


@pytest.mark.parametrize(("racks", "across_racks"), [(["r1", "r2"], False), (["r1", None], True)])
def test_load_decides_otherwise(racks: list[str | None], across_racks: bool) -> None:
    given = from_document(group(racks))
    assert isinstance(placer_for(given, empty_states(given), across_racks), ByLoad)


def racks_of_each_task(assigned: Mapping[str, Any], racks: list[str]) -> list[list[str]]:
    """The racks of a task's active and standby clients."""
    held: dict[str, list[str]] = {}
    for at, client in enumerate(assigned["assignment"].values()):
        for task in (*client["active"], *client["standby"]):
            held.setdefault(task, []).append(racks[at])
    return list(held.values())


@pytest.mark.parametrize("joint", [(), ("joint-standbys",)])
def test_rack_spread_standbys_are_in_other_racks_than_their_task_and_each_other(joint: tuple[str, ...]) -> None:
    racks = ["r1", "r1", "r1", "r2", "r2", "r2", "r3", "r3", "r3"]
    document = group(list(racks), tasks=18)
    spread = assign(document, "high-availability", options_named("rack-spread-standbys", *joint))
    assert all(len(set(held)) == 3 for held in racks_of_each_task(spread, racks))
    by_load = assign(document, "high-availability")
    assert not all(len(set(held)) == 3 for held in racks_of_each_task(by_load, racks))


@pytest.mark.parametrize(("standbys", "missing"), [(2, {}), (3, {0: 1})])
def test_only_tasks_that_lack_standbys_are_reported(standbys: int, missing: dict[int, int]) -> None:
    given = from_document(group(["r1", "r2"], tags=["az"], tasks=1))
    assert placer_for(given, empty_states(given), across_racks=False).place([0], standbys) == missing


def test_standbys_beyond_the_clients_are_missing() -> None:
    assigned = assign(group(["r1", "r2"], tasks=1, standbys=2), "high-availability")
    assert assigned["warnings"] == ["task 0_0: 1 of 2 standbys found no client; start more instances"]
