"""Racks whose names may be fewer racks than they count as: no verdict is green, until rackspan.toml says that they are different."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.cli.conftest import Ran, good

Cli = Callable[..., Ran]
Write = Callable[[object], Path]

NAMES, IDS = ["us-east-1a", "us-east-1b", "us-east-1c"], ["use1-az1", "use1-az2", "use1-az4"]
ALIKE = "racks 'us-east-1a', 'us-east-1b', 'us-east-1c', 'use1-az1', 'use1-az2', 'use1-az4' count as 6, and some are names of zones, others ids of zones"
APART = f"racks.different = {json.dumps([*NAMES, *IDS])}\n"


def half_renamed(**config: str) -> dict[str, Any]:
    """Brokers 1 to 3 have names of zones, 4 to 6 ids of zones. Each partition is on two of one kind and one of the other."""
    document = good()
    for broker, rack in zip(document["brokers"], [*NAMES, *IDS], strict=True):
        broker["rack"] = rack
    document["controllers"] = [{"id": broker, "rack": rack} for broker, rack in enumerate(NAMES, start=1)]
    (topic,) = document["topics"]
    topic["config"] |= config
    topic["partitions"] = [
        {"partition": number, "leader": held[0], "replicas": held, "isr": held}
        for number, held in enumerate(([1, 4, 2], [2, 5, 3], [3, 6, 1]))
    ]
    return document


@pytest.fixture
def snapshot(write: Write) -> Path:
    return write(half_renamed())


def test_an_audit_finds_them_and_is_certain_of_no_loss(cli: Cli, snapshot: Path) -> None:
    judged = cli("audit", "--snapshot", snapshot, "-o", "json")
    (found,) = (one for one in judged.document["findings"] if one["severity"] == "violation")
    summary = judged.document["summary"]
    assert (judged.code, found["constraint"], summary["survives_any_rack"]) == (2, "rack-names-alike", False)
    assert found["reason"].startswith(ALIKE)
    assert found["remedy"] == (
        "set broker.rack as the other racks are named, such as 'us-east-1a', on brokers 4,5,6 and restart, "
        "or read all of them as ids or as names by --rack-locator-class availability-zones, "
        f"or where they are different racks, write above all tables of rackspan.toml: {APART.strip()}"
    )
    page = cli("audit", "--snapshot", snapshot).out
    assert page.endswith("not certain to survive the loss of a rack: rack-names-alike above\n")
    assert " yes\n" not in page


def test_an_outage_is_certain_of_no_loss(cli: Cli, snapshot: Path) -> None:
    outage = cli("outage", "--snapshot", snapshot)
    assert (outage.code, outage.err) == (
        2,
        f"warning: {ALIKE}; rackspan audit --snapshot {snapshot} says where to correct them\n",
    )
    assert outage.out.endswith(
        f"not certain that no loss stops anything: rack-names-alike; rackspan audit --snapshot {snapshot} says what repairs it\n"
    )
    assert cli("outage", "--snapshot", snapshot, "-o", "json").document["left_open_by"] == ["rack-names-alike"]
    assert cli("outage", "--snapshot", snapshot, "--survive", "none").code == 0


def test_a_plan_is_impossible_to_be_certain_of(cli: Cli, snapshot: Path) -> None:
    plan = cli("reassign", "plan", "--snapshot", snapshot)
    assert plan.code == 1
    assert (
        f"impossible: a plan that is certain to keep racks apart: {ALIKE}; rackspan audit --snapshot {snapshot} says where"
        in plan.out
    )
    assert plan.out.endswith("nothing is planned\n")


def test_a_checked_file_has_the_finding(cli: Cli, snapshot: Path, tmp_path: Path) -> None:
    file = tmp_path / "plan.json"
    moved = {"topic": "orders", "partition": 0, "replicas": [1, 5, 3]}
    file.write_text(json.dumps({"version": 1, "partitions": [moved]}))
    checked = cli("reassign", "lint", "--plan", file, "--snapshot", snapshot, "--balance", "-o", "json")
    assert (checked.code, [one["constraint"] for one in checked.document["findings"]]) == (2, ["rack-names-alike"])


def test_a_stop_may_not_be_where_racks_in_sync_decide(cli: Cli, write: Write) -> None:
    of_replicas = cli("restart", "safe", "--snapshot", write(half_renamed()), "--broker", "1")
    assert (of_replicas.code, of_replicas.err.count(ALIKE)) == (0, 1)
    of_racks = cli("restart", "safe", "--snapshot", write(half_renamed(**{"min.insync.racks": "2"})), "--broker", "1")
    assert of_racks.code == 1
    assert f"could not be read: which racks there are: {ALIKE}" in of_racks.out
    assert "broker 1 may not stop" in of_racks.out
    plan = cli("restart", "plan", "--snapshot", write(half_renamed(**{"min.insync.racks": "2"})), "-o", "json")
    assert (plan.code, [ALIKE in note for note in plan.document["partial"]]) == (1, [True])
    by_rack = cli("restart", "plan", "--snapshot", write(half_renamed()), "--by", "rack")
    assert (by_rack.code, "could not be read: which racks there are" in by_rack.out) == (1, True)


def test_the_brokers_of_a_rack_that_may_have_another_name_are_not_stopped_by_it(cli: Cli, snapshot: Path) -> None:
    stop = cli("restart", "safe", "--snapshot", snapshot, "--rack", "us-east-1a")
    assert stop.code == 1
    assert (
        stop.err
        == f"rackspan: which brokers are in it is not certain: {ALIKE}; name the brokers, or all of these racks\n"
    )
    every = [word for rack in (*NAMES, *IDS) for word in ("--rack", rack)]
    assert cli("restart", "safe", "--snapshot", snapshot, *every).code == 2


def test_hardening_is_not_certain_of_racks(cli: Cli, snapshot: Path) -> None:
    of_racks = cli("acks", "harden", "--snapshot", snapshot, "--min-insync-racks", "2")
    assert (of_racks.code, of_racks.err.count(ALIKE)) == (1, 1)
    assert cli("acks", "harden", "--snapshot", snapshot).code == 0


def test_a_placement_says_so(cli: Cli, snapshot: Path) -> None:
    words = (
        "place",
        "create",
        "--snapshot",
        snapshot,
        "--topic",
        "t",
        "--partitions",
        "1",
        "--replication-factor",
        "2",
    )
    assert ALIKE in cli(*words).err
    assert ALIKE not in cli(*words, "--ignore-racks").err


def test_one_line_of_the_settings_says_that_they_are_different_and_the_verdict_names_it(
    cli: Cli, write: Write, tmp_path: Path
) -> None:
    (tmp_path / "rackspan.toml").write_text(APART)
    path = write(half_renamed(**{"min.insync.racks": "2"}))
    word = "racks 'us-east-1a', 'us-east-1b', 'us-east-1c', 'use1-az1', 'use1-az2', 'use1-az4' count as 6 on the word of rackspan.toml: racks.different"
    audit = cli("audit", "--snapshot", path)
    assert (audit.code, audit.out.splitlines()[-1]) == (0, f"survives the loss of any one rack; {word}")
    outage = cli("outage", "--snapshot", path)
    assert (outage.code, outage.out.splitlines()[-1]) == (0, f"no loss listed above stops anything; {word}")
    plan = cli("reassign", "plan", "--snapshot", path)
    assert (plan.code, plan.err) == (0, f"warning: {word}\n")
    stop = cli("restart", "safe", "--snapshot", path, "--rack", "us-east-1a")
    assert (stop.code, stop.err) == (0, f"warning: {word}\n")
    settings = cli("audit", "--snapshot", path, "-o", "json").document["settings"]
    assert settings["values"] == {"racks different": [*NAMES, *IDS]}


def test_a_name_that_is_not_in_the_line_is_still_found(cli: Cli, snapshot: Path, tmp_path: Path) -> None:
    (tmp_path / "rackspan.toml").write_text(f"[racks]\ndifferent = {json.dumps([*NAMES, *IDS[:2]])}\n")
    judged = cli("audit", "--snapshot", snapshot, "-o", "json")
    (found,) = (one for one in judged.document["findings"] if one["severity"] == "violation")
    assert (judged.code, found["remedy"].endswith(APART.strip())) == (2, True)


def test_the_line_of_a_cluster_counts_for_that_cluster(cli: Cli, snapshot: Path, tmp_path: Path) -> None:
    of_cluster = f'[clusters.eu]\nbootstrap-server = "h:1"\n{APART}'
    (tmp_path / "rackspan.toml").write_text(of_cluster)
    assert cli("audit", "--snapshot", snapshot).code == 2
    shown = cli("config", "show", "--cluster", "eu").out
    assert "racks different" in shown
    assert "rackspan.toml: [clusters.eu]" in shown


@pytest.mark.parametrize(
    ("racks", "why"),
    [
        (["us-east-1a", "use1-az9"], "'use1-az9' has no effect: no such rack"),
        (["r1", "r2"], "'r1' has no effect: no other rack has a name like it"),
    ],
)
def test_a_line_that_changes_nothing_gets_a_warning(
    cli: Cli, write: Write, tmp_path: Path, racks: list[str], why: str
) -> None:
    (tmp_path / "rackspan.toml").write_text(f"racks.different = {json.dumps(racks)}\n")
    ran = cli("audit", "--snapshot", write(good() if racks == ["r1", "r2"] else half_renamed()))
    assert f"warning: rackspan.toml: racks.different: {why}" in ran.err


def test_a_line_of_one_rack_is_refused(cli: Cli, snapshot: Path, tmp_path: Path) -> None:
    (tmp_path / "rackspan.toml").write_text('racks.different = ["us-east-1a"]\n')
    assert cli("audit", "--snapshot", snapshot).err.startswith("rackspan: rackspan.toml: ")


def test_by_the_ids_of_the_zones_the_cluster_is_judged_for_certain(cli: Cli, snapshot: Path) -> None:
    """Each partition has two replicas in one zone, and two must be in sync."""
    zones = ",".join(f"{name}={zone}" for name, zone in zip(NAMES, IDS, strict=True))
    words = ("--rack-locator-class", "availability-zones", "--rack-locator-properties", zones)
    judged = cli("audit", "--snapshot", snapshot, *words, "-o", "json")
    found = [one["constraint"] for one in judged.document["findings"] if one["severity"] == "violation"]
    assert (judged.code, found) == (2, ["accepts-writes-after-rack-loss"] * 3)


def test_racks_of_one_place_are_judged_one_by_one_and_the_verdict_says_so(cli: Cli, write: Write) -> None:
    document = good()
    for broker in document["brokers"]:
        broker["rack"] = ("eu-1a/r1", "eu-1a/r2", "eu-1b/r1")[(broker["id"] - 1) % 3]
    path = write({**document, "controllers": []})
    audit = cli("audit", "--snapshot", path)
    together = (
        "racks are judged one by one, and what several are in is not (eu-1a has 2): "
        f"rackspan outage --snapshot {path} --lose eu-1a/r1,eu-1a/r2 judges the loss of all racks of eu-1a"
    )
    assert (audit.code, together in audit.out) == (0, True)
    assert cli("outage", "--snapshot", path, "--lose", "eu-1a/r1,eu-1a/r2").code == 2


def test_a_rack_whose_name_has_a_comma_can_be_named(cli: Cli, write: Write) -> None:
    document = good()
    for broker in document["brokers"]:
        broker["rack"] = ("10.0.1.0/24", "dc1,row2", "zone c")[(broker["id"] - 1) % 3]
    path = write({**document, "controllers": []})

    def lost(*words: str) -> Any:
        return cli("outage", "--snapshot", path, *words, "-o", "json").document["losses"][0]["racks"]

    assert lost("--lose", "dc1,row2") == ["dc1,row2"]
    assert lost("--lose", "zone c,dc1,row2") == ["dc1,row2", "zone c"]
    assert lost("--lose", "zone c", "--lose", "dc1,row2") == ["dc1,row2", "zone c"]
    stop = cli("restart", "safe", "--snapshot", path, "--rack", "dc1,row2", "-o", "json")
    assert (stop.code, stop.document["brokers"]) == (0, [2, 5])
    unknown = cli("outage", "--snapshot", path, "--lose", "dc1,row3")
    assert (unknown.code, unknown.err) == (
        1,
        "rackspan: rack 'dc1': not in this cluster; it has 10.0.1.0/24, dc1,row2, zone c\n",
    )
