"""rackspan place and reassign generate, as they are typed; one table of what they refuse."""

import json
import re
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.cli.conftest import GOOD, Ran

Cli = Callable[..., Ran]
Write = Callable[[object], Path]

SNAPSHOT = ("--snapshot", "moment.json")
CREATE = ("place", "create", *SNAPSHOT, "--topic", "new", "--partitions", "6", "--replication-factor", "3")
EXTEND = ("place", "extend", *SNAPSHOT, "--topic", "orders", "--partitions")
GENERATE = ("reassign", "generate", *SNAPSHOT, "--topics-to-move-json-file")
SPEC = {
    "brokers": [{"id": broker, "rack": rack} for broker, rack in enumerate(("r1", "r3", "r3", "r2", "r2", "r1"))],
    "partitions": 6,
    "replication_factor": 3,
    "placer": "rack-alternated",
    "start_index": 0,
}
KIP_36 = {"0": [0, 3, 1], "1": [3, 1, 5], "2": [1, 5, 4], "3": [5, 4, 2], "4": [4, 2, 0], "5": [2, 0, 3]}
"""The assignment of the proposal's own text."""

ALONE = {"leaders": {"min": 1, "max": 1}, "replicas": {"min": 3, "max": 3, "bound": 3}}
IN_SUM = {"leaders": {"min": 1, "max": 2}, "replicas": {"min": 4, "max": 4, "bound": 4}}
"""Six partitions of three replicas on six brokers, without and with the two partitions that stand."""


def partly_racked(**moving: Any) -> dict[str, Any]:
    """The good cluster with broker 6 in no rack."""
    document: dict[str, Any] = json.loads(json.dumps(GOOD))
    document["brokers"][5]["rack"] = None
    document["topics"][0]["partitions"][1].update(moving)
    return document


@pytest.fixture
def files(tmp_path: Path, write: Write) -> Path:
    """Everything the table below names."""
    write(GOOD)
    partly = partly_racked(adding_replicas=[4], removing_replicas=[6])
    for name, document in {
        "partly.json": partly,
        "spec.json": SPEC,
        "bad-spec.json": {**SPEC, "partitions": "six"},
        "too-many.json": {**SPEC, "replication_factor": 7},
        "no-placer.json": {**SPEC, "placer": "best"},
        "topics.json": {"topics": [{"topic": "orders"}], "version": 1},
        "quux.json": {"topics": [{"topic": "quux"}], "version": 1},
        "twice.json": {"topics": [{"topic": "orders"}, {"topic": "orders"}], "version": 1},
        "newer.json": {"topics": [], "version": 2},
    }.items():
        (tmp_path / name).write_text(json.dumps(document))
    (tmp_path / "torn.json").write_text('{"topics": [')
    (tmp_path / "deep.json").write_text("[" * 100_000)
    return tmp_path


def test_a_spec_is_placed_from_the_file_alone(cli: Cli, files: Path) -> None:
    ran = cli("place", "plan", "--spec", "spec.json")
    assert (ran.code, ran.err) == (0, "")
    assert ran.document == {
        "assignments": KIP_36,
        "leaders": {"min": 1, "max": 1},
        "replicas": {"min": 3, "max": 3, "bound": 3},
    }


def test_the_placement_of_a_spec_is_a_table_for_people(cli: Cli, files: Path) -> None:
    ran = cli("place", "plan", "--spec", "spec.json", "-o", "human")
    assert re.search(r"^ +1 +3 +3,1,5", ran.out, re.M)
    assert re.search(r"^per broker +1 to 1 +3 to 3 +3", ran.out, re.M)


@pytest.mark.parametrize("placer", ["balanced", "rack-alternated", "striped"])
def test_a_new_topic_is_spread_over_racks_and_shown_only(cli: Cli, files: Path, placer: str) -> None:
    ran = cli(*CREATE, "--placer", placer, "--seed", "3", "--config", "cleanup.policy=compact,delete", "-o", "json")
    document = ran.document
    assert (ran.code, ran.err, document["applied"]) == (2, "", False)
    assert document["config"] == {"cleanup.policy": "compact,delete"}
    for replicas in document["assignments"].values():
        assert sorted((broker - 1) % 3 for broker in replicas) == [0, 1, 2]
    # Only balanced looks at what brokers carry already, so it alone is level in sum; the others are level in themselves.
    expected = {"cluster": IN_SUM} if placer == "balanced" else ALONE
    assert document == document | expected
    again = cli(*CREATE, "--placer", placer, "--seed", "3", "-o", "json")
    assert again.document["assignments"] == document["assignments"]


def test_what_brokers_carry_already_counts(cli: Cli, files: Path) -> None:
    """Brokers 1 and 5 lead a partition each, so that the four others lead the four new ones."""
    words = (*CREATE[:-3], "4", *CREATE[-2:], "--seed", "1", "-o", "json")
    document = cli(*words).document
    leaders = sorted(replicas[0] for replicas in document["assignments"].values())
    assert leaders == [2, 3, 4, 6]
    assert document["cluster"] == {"leaders": {"min": 1, "max": 1}, "replicas": {"min": 3, "max": 3, "bound": 3}}


def test_a_placer_gets_the_configs_of_the_operator(cli: Cli, files: Path) -> None:
    document = cli(*CREATE, "--placer-config", "replica.placer.balanced.draining=1,2", "-o", "json").document
    assert not {1, 2} & {broker for replicas in document["assignments"].values() for broker in replicas}


def test_more_partitions_begin_where_the_topic_ends(cli: Cli, files: Path) -> None:
    document = cli(*EXTEND, "5", "-o", "json").document
    assert list(document["assignments"]) == ["2", "3", "4"]
    assert {len(replicas) for replicas in document["assignments"].values()} == {3}


def test_the_page_says_that_nothing_is_changed(cli: Cli, files: Path) -> None:
    assert (
        cli(*CREATE)
        .out.rstrip()
        .endswith("topic new: 6 partitions would be created; nothing is changed without --apply")
    )
    assert (
        cli(*EXTEND, "3")
        .out.rstrip()
        .endswith("topic orders: 1 partition would be added; nothing is changed without --apply")
    )


def test_partial_racks_are_placed_without_racks_with_ignore_racks(cli: Cli, files: Path) -> None:
    words = ("place", "create", "--snapshot", "partly.json", "--topic", "new", "--partitions", "6")
    for flag in ("--ignore-racks", "--disable-rack-aware"):
        ran = cli(*words, "--replication-factor", "6", flag, "-o", "json")
        assert (ran.code, ran.document["replicas"]) == (2, {"min": 6, "max": 6, "bound": 6})


def test_ignore_racks_places_otherwise_than_by_rack(cli: Cli, files: Path) -> None:
    words = (*CREATE, "--placer", "rack-alternated", "--seed", "3", "-o", "json")
    by_rack, ignoring, kafkas = cli(*words), cli(*words, "--ignore-racks"), cli(*words, "--disable-rack-aware")
    assert ignoring.document["assignments"] == kafkas.document["assignments"] != by_rack.document["assignments"]


SOURCES = ((*CREATE,), (*EXTEND, "40"), (*GENERATE, "topics.json", "--broker-list", "1,2,3,4,5,6"))


@pytest.mark.parametrize("words", SOURCES, ids=["create", "extend", "generate"])
def test_excluded_brokers_get_nothing_by_flag_and_by_file(cli: Cli, files: Path, words: tuple[str, ...]) -> None:
    def used(*more: str) -> set[int]:
        document = cli(*words, "--seed", "4", "-o", "json", *more).document
        rows = document["assignments"].values() if "assignments" in document else document["proposed"]["partitions"]
        return {broker for row in rows for broker in (row if isinstance(row, list) else row["replicas"])}

    assert not {1, 6} & used("--exclude-brokers", "1,6")
    (files / "rackspan.toml").write_text("[brokers]\nexcluded = [1]\n")
    assert not {1, 6} & used("--exclude-brokers", "6")
    assert 1 not in used()


@pytest.mark.parametrize("words", SOURCES, ids=["create", "extend", "generate"])
def test_a_cordoned_broker_gets_nothing_and_is_named(
    cli: Cli, files: Path, write: Write, words: tuple[str, ...]
) -> None:
    document = json.loads(json.dumps(GOOD))
    document["brokers"][0]["cordoned"] = True
    write(document)
    ran = cli(*words, "--seed", "4", "-o", "json")
    rows = ran.document.get("assignments") or {
        str(at): row["replicas"] for at, row in enumerate(ran.document["proposed"]["partitions"])
    }
    assert 1 not in {broker for row in rows.values() for broker in row}
    assert "broker 1: all of its log directories are cordoned, so it is excluded; clear its config" in ran.err
    audited = cli("audit", *SNAPSHOT)
    assert "excluded-broker" in audited.out
    assert "broker 1: all of its log directories are cordoned" in audited.err


def test_a_spec_is_placed_without_excluded_brokers(cli: Cli, files: Path) -> None:
    document = cli("place", "plan", "--spec", "spec.json", "--exclude-brokers", "0").document
    assert 0 not in {broker for row in document["assignments"].values() for broker in row}


def test_a_broker_the_file_excludes_and_the_cluster_lacks_is_a_warning(cli: Cli, files: Path) -> None:
    (files / "rackspan.toml").write_text("[brokers]\nexcluded = [64, 44]\n")
    assert [line.split(": ")[-1] for line in cli(*CREATE).err.splitlines() if "[brokers] excluded: " in line] == [
        f"the cluster has no broker {broker}" for broker in (44, 64)
    ]
    assert "the cluster has no broker 44" in cli("audit", *SNAPSHOT).err


def test_generate_prints_what_kafkas_tool_prints(cli: Cli, files: Path) -> None:
    ran = cli(*GENERATE, "topics.json", "--broker-list", "1,2,3", "--seed", "5")
    first, current, blank, third, proposed, end = ran.out.split("\n")
    assert (ran.code, first, blank, third, end) == (
        2,
        "Current partition replica assignment",
        "",
        "Proposed partition reassignment configuration",
        "",
    )
    assert current == (
        '{"version":1,"partitions":['
        '{"topic":"orders","partition":0,"replicas":[1,2,3],"log_dirs":["any","any","any"]},'
        '{"topic":"orders","partition":1,"replicas":[5,6,4],"log_dirs":["any","any","any"]}]}'
    )
    moved = json.loads(proposed)["partitions"]
    assert [sorted(one["replicas"]) for one in moved] == [[1, 2, 3], [1, 2, 3]]


def test_generate_as_a_document_holds_both_files(cli: Cli, files: Path) -> None:
    document = cli(
        *GENERATE, "topics.json", "--broker-list", "1,2,3,4,5,6", "--placer", "balanced", "-o", "json"
    ).document
    assert list(document) == ["current", "proposed", "settings"]
    assert all(set(document[key]) == {"version", "partitions"} for key in ("current", "proposed"))


def test_brokers_that_are_not_there_are_passed_over_aloud(cli: Cli, files: Path) -> None:
    ran = cli(*GENERATE, "topics.json", "--broker-list", "1,2,3,77")
    assert (ran.code, ran.err) == (
        2,
        "warning: --broker-list: broker 77 is not alive in the cluster; skipped\nsettings: none\n",
    )


PARTIAL_RACKS = (
    "Not all brokers have rack information. Add --disable-rack-aware in command line to make replica assignment "
    "without rack information. No rack: broker 6"
)
NO_CHANGE = (
    "--apply: a snapshot cannot be changed; name the cluster with --bootstrap-server HOST:PORT or --cluster NAME"
)
NO_SOURCE = "no cluster named: give --bootstrap-server HOST:PORT, --cluster NAME or --snapshot FILE"


def create(**changed: str) -> tuple[str, ...]:
    """CREATE with other values: topic, partitions, replication_factor, snapshot."""
    given = {"snapshot": "moment.json", "topic": "new", "partitions": "6", "replication_factor": "3", **changed}
    return (
        "place",
        "create",
        *(word for key, value in given.items() for word in (f"--{key.replace('_', '-')}", value)),
    )


REFUSED: list[tuple[tuple[str, ...], str]] = [
    (("place", "plan"), "Missing option '--spec'; see rackspan place plan --help"),
    (("place", "plan", "--spec", "none.json"), "none.json: cannot be read: No such file or directory; name a placement spec"),
    (("place", "plan", "--spec", "torn.json"), "torn.json: not JSON: Expecting value: line 1 column 13 (char 12); is the file complete?"),
    (("place", "plan", "--spec", "deep.json"), "deep.json: brackets nested too deep; write the file again"),
    (("place", "plan", "--spec", "bad-spec.json"), 'bad-spec.json: spec: partitions is "six", not a whole number; fix it in the file'),
    (("place", "plan", "--spec", "too-many.json"), "too-many.json: Replication factor: 7 larger than available brokers: 6."),
    (("place", "plan", "--spec", "no-placer.json"), "no-placer.json: replica.placer.class.name is 'best', but there is no such placer; choose balanced, rack-alternated, striped or write module:Class"),
    (("place", "create", "--topic", "new", "--partitions", "1", "--replication-factor", "1"), NO_SOURCE),
    (("place", "create", "--topic", "new", "--partitions", "1", "--replication-factor", "1", "--apply"), "--apply: no cluster named; give --bootstrap-server HOST:PORT or --cluster NAME"),
    ((*CREATE, "--apply"), NO_CHANGE),
    ((*CREATE, "--apply", "--bootstrap-server", "127.0.0.1:1"), "--bootstrap-server and --snapshot: name one of them"),
    ((*EXTEND, "9", "--apply"), NO_CHANGE),
    (("acks", "harden", *SNAPSHOT, "--apply"), NO_CHANGE),
    (("acks", "harden", "--apply"), "--apply: no cluster named; give --bootstrap-server HOST:PORT or --cluster NAME"),
    (create(topic="orders"), "topic 'orders' already exists; give it more partitions with rackspan place extend, or choose another name"),
    (create(topic="a b"), "topic 'a b': Kafka allows 1 to 249 letters, digits, '.', '_' and '-'; choose another name"),
    (create(topic=".."), "topic '..': Kafka allows 1 to 249 letters, digits, '.', '_' and '-'; choose another name"),
    (create(replication_factor="7"), "Replication factor: 7 larger than available brokers: 6."),
    (create(replication_factor="0"), "Replication factor must be larger than 0."),
    (create(partitions="0"), "Number of partitions must be larger than 0."),
    (create(partitions="10000001"), "10000001 partitions: at most 10000000 are placed at a time; request fewer"),
    ((*create(replication_factor="7"), "--placer", "striped"), "The target replication factor of 7 cannot be reached because only 6 broker(s) are registered."),
    (create(snapshot="partly.json"), PARTIAL_RACKS),
    ((*create(snapshot="partly.json"), "--placer", "striped"), PARTIAL_RACKS),
    ((*CREATE, "--exclude-brokers", "1,4"), "with brokers 1,4 excluded, the replicas of a partition would be 2+1 over racks, not 1+1+1; exclude fewer, add brokers to those racks, or accept it with --allow-fewer-racks"),
    ((*CREATE, "--exclude-brokers", "77"), "--exclude-brokers: the cluster has no broker 77; name one that it has"),
    ((*CREATE, "--exclude-brokers", "one"), "--exclude-brokers one: 'one' is not a broker id; list ids such as 3,4"),
    ((*CREATE, "--allow-fewer-racks"), "--allow-fewer-racks: no broker is excluded; leave it out, or name some with --exclude-brokers"),
    (("place", "plan", "--spec", "spec.json", "--exclude-brokers", "77"), "spec.json: --exclude-brokers: the spec has no broker 77; name one that it has"),
    (("audit", *SNAPSHOT, "--exclude-brokers", "77"), "--exclude-brokers: the cluster has no broker 77; name one that it has"),
    ((*CREATE, "--placer", "best"), "replica.placer.class.name is 'best', but there is no such placer; choose balanced, rack-alternated, striped or write module:Class"),
    ((*CREATE, "--placer-config", "weights"), "--placer-config weights: expected KEY=VALUE"),
    ((*CREATE, "--placer-config", "replica.placer.balanced.weights=1:heavy"), "replica.placer.balanced.weights is 'heavy', expected a number, such as 0.5; fix the config"),
    ((*CREATE, "--config", "a=1", "--config", "a=2"), "--config a=2: a is given twice; leave one of them out"),
    (("place", "extend", *SNAPSHOT, "--topic", "quux", "--partitions", "3"), "topic 'quux' does not exist as expected; create it with rackspan place create"),
    (("place", "extend", *SNAPSHOT, "--partitions", "3"), "--topic is missing; give it, or a kept placement with --plan FILE"),
    (("place", "extend", *SNAPSHOT, "--topic", "orders"), "--partitions is missing; give it, or a kept placement with --plan FILE"),
    (("place", "extend", "--snapshot", "none.json", "--partitions", "3"), "--topic is missing; give it, or a kept placement with --plan FILE"),
    ((*EXTEND, "1"), "topic 'orders' has 2 partitions, and Kafka removes none; name a number above 2"),
    (("place", "extend", "--snapshot", "partly.json", "--topic", "orders", "--partitions", "3"), "topic 'orders': partition 1 is being reassigned; run again when it is done"),
    ((*GENERATE, "none.json", "--broker-list", "1"), "none.json: cannot be read: No such file or directory; name a topics-to-move file"),
    ((*GENERATE, "torn.json", "--broker-list", "1"), "torn.json: not JSON: Expecting value: line 1 column 13 (char 12); is the file complete?"),
    ((*GENERATE, "newer.json", "--broker-list", "1"), "newer.json: Not supported version field value 2"),
    ((*GENERATE, "twice.json", "--broker-list", "1,2,3"), "twice.json: List of topics to reassign contains duplicate entries: [orders]"),
    ((*GENERATE, "topics.json", "--broker-list", "1,1,2"), "Broker list contains duplicate entries: [1]"),
    ((*GENERATE, "topics.json", "--broker-list", "1,two"), "--broker-list 1,two: 'two' is not a broker id; list ids such as 0,1,2"),
    ((*GENERATE, "quux.json", "--broker-list", "1,2,3"), "Topic quux not found."),
    ((*GENERATE, "topics.json", "--broker-list", "1,2"), "Replication factor: 3 larger than available brokers: 2."),
    ((*GENERATE, "topics.json", "--broker-list", "1,2", "--placer", "striped"), "The target replication factor of 3 cannot be reached because only 2 broker(s) are registered."),
    (("reassign", "generate", "--snapshot", "partly.json", "--topics-to-move-json-file", "topics.json", "--broker-list", "1,2,3,6"), PARTIAL_RACKS),
]  # fmt: skip


@pytest.mark.parametrize(("words", "line"), REFUSED)
def test_a_mistake_gets_one_line(cli: Cli, files: Path, words: tuple[str, ...], line: str) -> None:
    before = sorted(path.name for path in files.iterdir())
    ran = cli(*words)
    assert (ran.code, ran.out, ran.err) == (1, "", f"rackspan: {line}\n")
    assert sorted(path.name for path in files.iterdir()) == before


def test_listed_brokers_alone_need_racks(cli: Cli, files: Path) -> None:
    """As in Kafka: a broker without a rack that is not in the list does not matter."""
    words = ("reassign", "generate", "--snapshot", "partly.json", "--topics-to-move-json-file", "topics.json")
    assert cli(*words, "--broker-list", "1,2,3,4").code == 2
    ignoring = cli(*words, "--broker-list", "1,2,3,6", "--ignore-racks", "-o", "json")
    brokers = Counter(broker for one in ignoring.document["proposed"]["partitions"] for broker in one["replicas"])
    assert set(brokers) <= {1, 2, 3, 6}


OF_PLACER = "rackspan: --plan: its replicas are placed already; leave out the options of the placer\n"
ANEW = "make it again with --out"


def test_what_was_shown_is_what_its_plan_makes(cli: Cli, files: Path) -> None:
    shown = cli(*CREATE, "--config", "retention.ms=1000", "--out", "kept.json", "-o", "json")
    assert shown.code == 2
    again = cli("place", "create", *SNAPSHOT, "--plan", "kept.json", "-o", "json")
    assert (again.code, again.err, again.document) == (2, "", shown.document)
    more = cli(*EXTEND, "5", "--out", "more.json", "-o", "json")
    assert cli("place", "extend", *SNAPSHOT, "--plan", "more.json", "-o", "json").document == more.document


@pytest.mark.parametrize(
    ("words", "line"),
    [
        (
            ("create", "--plan", "kept.json", "--topic", "new"),
            "--topic and --plan: the plan says it; leave one of them out",
        ),
        (("create", "--plan", "kept.json", "--seed", "3"), OF_PLACER.removeprefix("rackspan: ").strip()),
        (
            ("create", "--plan", "kept.json", "--out", "b.json"),
            "--out and --plan: keep the placement first, then give it with --plan FILE --apply",
        ),
        (("create",), "--topic is missing; give it, or a kept placement with --plan FILE"),
        (
            ("extend", "--plan", "kept.json"),
            "the plan is one of rackspan place create; run rackspan place create --plan, or extend again",
        ),
        (
            ("create", "--plan", "kept.json", "--exclude-brokers", "1"),
            f"the plan places replicas on broker 1, which is excluded; {ANEW}",
        ),
        (("create", "--plan", "torn.json"), "torn.json: "),
        (("create", "--plan", "spec.json"), f"spec.json: not a plan of rackspan place create or extend; {ANEW}"),
    ],
)
def test_a_plan_that_does_not_fit_is_refused_in_one_line(
    cli: Cli, files: Path, words: tuple[str, ...], line: str
) -> None:
    cli(*CREATE, "--out", "kept.json")
    verb, *flags = words
    ran = cli("place", verb, *SNAPSHOT, *flags)
    assert (ran.code, ran.out) == (1, "")
    assert ran.err.startswith(f"rackspan: {line}")
    assert not (files / "b.json").exists()


@pytest.mark.parametrize(
    ("change", "line"),
    [
        ({"cluster_id": "other"}, "the plan is for cluster other, and this is "),
        ({"topic": "orders"}, "topic 'orders' already exists; "),
        (
            {"assignments": {"0": [1, 9]}},
            f"the plan places replicas on broker 9, which is gone; bring it back, or {ANEW}",
        ),
        ({"assignments": {"0": [1, 1]}}, "partition 0: [1, 1] names a broker twice"),
        ({"assignments": {"0": [1], "2": [2]}}, "assignments does not hold partitions 0 to 1"),
        ({"assignments": {"0": [1, 2], "1": [2]}}, "partition 1 has 1 replica, partition 0 2"),
        (
            {"start_partition": 1, "topic": "orders", "assignments": {"1": [1, 2, 3]}},
            "topic 'orders' has 2 partitions, and the plan begins at 1",
        ),
        (
            {"start_partition": 2, "topic": "orders", "assignments": {"2": [1, 2]}},
            "topic 'orders' has 3 replicas a partition, and the plan 2",
        ),
        (
            {"start_partition": 2, "topic": "quux", "assignments": {"2": [1, 2]}},
            "topic 'quux' does not exist as expected",
        ),
        ({"config": {"a": 1}}, "plan: config: a is 1, not a string"),
    ],
)
def test_a_plan_that_the_cluster_no_longer_fits_is_refused(
    cli: Cli, files: Path, change: dict[str, Any], line: str
) -> None:
    cli(*CREATE, "--out", "kept.json")
    document = {**json.loads((files / "kept.json").read_text()), **change}
    (files / "kept.json").write_text(json.dumps(document))
    ran = cli("place", "extend" if document["start_partition"] else "create", *SNAPSHOT, "--plan", "kept.json")
    assert (ran.code, ran.out) == (1, "")
    assert line in ran.err


def test_fenced_brokers_that_get_replicas_are_named_and_a_kept_placement_with_them_is_made(
    cli: Cli, files: Path
) -> None:
    """As without --plan: Kafka takes replicas on fenced brokers where another one can lead."""
    fence(files, 3, 6)
    kept = cli(*CREATE, "--out", "kept.json", "-o", "json")
    line = "warning: brokers 3,6 are fenced: replicas there are not in sync before they are back\n"
    assert (kept.code, kept.err) == (2, line)
    again = cli("place", "create", *SNAPSHOT, "--plan", "kept.json", "-o", "json")
    assert (again.code, again.err, again.document) == (2, line, kept.document)
    added = cli(*EXTEND, "8", "-o", "json")
    assert (added.code, added.err) == (2, line)
    leader = kept.document["assignments"]["0"][0]
    fence(files, leader)
    ran = cli("place", "create", *SNAPSHOT, "--plan", "kept.json")
    assert (ran.code, ran.err) == (
        1,
        f"rackspan: the plan has broker {leader} lead, which is fenced; bring it back, or {ANEW}\n",
    )


def fence(files: Path, *ids: int) -> None:
    snapshot = json.loads((files / "moment.json").read_text())
    snapshot["brokers"] = [{**broker, "fenced": broker["id"] in ids} for broker in snapshot["brokers"]]
    (files / "moment.json").write_text(json.dumps(snapshot))


def test_a_topic_that_has_as_many_partitions_gets_none(cli: Cli, files: Path) -> None:
    ran = cli(*EXTEND, "2", "--out", "placed.json")
    assert (ran.code, ran.out, ran.err) == (
        0,
        "settings: none\ntopic orders has as many partitions already: nothing to add\n",
        "",
    )
    assert not Path("placed.json").exists()
    assert cli(*EXTEND, "2", "-o", "json").document["assignments"] == {}
