import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
import yaml

from rackspan.sources import snapshot_file
from tests.cli.conftest import GOOD, Ran, good

Cli = Callable[..., Ran]
Write = Callable[[object], Path]


def test_a_clean_cluster_ends_with_0(cli: Cli, write: Write) -> None:
    ran = cli("audit", "--snapshot", write(GOOD))
    assert (ran.code, ran.err) == (0, "")
    assert "no violations" in ran.out
    assert "survives the loss of any one rack" in ran.out


def test_a_violation_ends_with_2_and_names_the_remedy(cli: Cli, write: Write) -> None:
    path = write(good(replicas=[1, 4, 2], isr=[1, 4, 2]))
    ran = cli("audit", "--snapshot", path)
    assert ran.code == 2
    assert f"rackspan reassign plan --snapshot {path} --topic orders" in ran.out


def test_the_json_of_an_audit_is_as_scripts_expect(cli: Cli, write: Write) -> None:
    path = write(good(replicas=[1, 4, 2], isr=[1, 4, 2]))
    ran = cli("audit", "--snapshot", path, "-o", "json")
    assert ran.code == 2
    assert ran.document["summary"]["violations"] == 1
    assert [finding for finding in ran.document["findings"] if finding["severity"] == "violation"] == [
        {
            "constraint": "accepts-writes-after-rack-loss",
            "severity": "violation",
            "topic": "orders",
            "partition": 0,
            "reason": "the loss of rack r1 leaves too few in sync for acks=all (r1: 1,4; r2: 2; min.insync.replicas 2)",
            "remedy": f"rackspan reassign plan --snapshot {path} --topic orders",
        }
    ]


def test_yaml_says_what_json_says(cli: Cli, write: Write) -> None:
    path = write(good(replicas=[1, 4, 2], isr=[1, 4, 2]))
    assert (
        yaml.safe_load(cli("audit", "--snapshot", path, "-o", "yaml").out)
        == cli("audit", "--snapshot", path, "-o", "json").document
    )


def test_a_topic_of_one_replica_is_a_violation_unless_its_loss_is_accepted(
    cli: Cli, write: Write, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = write(good(replicas=[1], isr=[1]))
    ran = cli("audit", "--snapshot", path, "-o", "json")
    assert ran.code == 2
    violations = [one for one in ran.document["findings"] if one["severity"] == "violation"]
    assert [one["constraint"] for one in violations] == ["survives-rack-loss"]
    assert cli("audit", "--snapshot", path, "--survive", "broker").code == 2
    assert cli("audit", "--snapshot", path, "--survive", "none").code == 0
    monkeypatch.setenv("RACKSPAN_SURVIVE", "none")
    assert cli("audit", "--snapshot", path).code == 0
    (tmp_path / "rackspan.toml").write_text('survive = "none"\n[topics."orders"]\nsurvive = "rack"\n')
    overruled = cli("audit", "--snapshot", path)
    assert overruled.code == 0
    assert "survive = rack has no effect: RACKSPAN_SURVIVE none counts for every topic" in overruled.err
    monkeypatch.delenv("RACKSPAN_SURVIVE")
    assert cli("audit", "--snapshot", path).code == 2
    (tmp_path / "rackspan.toml").write_text('[topics."orders"]\nsurvive = "none"\n')
    assert cli("audit", "--snapshot", path).code == 0


@pytest.mark.parametrize(
    ("brokers_down", "heading"), [((2, 5), "Already harmed"), ((2,), "Already harmed, with no rack lost")]
)
def test_harm_is_there_with_no_rack_lost_only_if_no_rack_is_down(
    brokers_down: tuple[int, ...], heading: str, cli: Cli, write: Write
) -> None:
    # Rack r2 has the brokers 2 and 5.
    snapshot = good(isr=[1])
    for broker in snapshot["brokers"]:
        broker["fenced"] = broker["id"] in brokers_down
    ran = cli("outage", "--snapshot", write(snapshot))
    assert [line for line in ran.out.splitlines() if line.startswith("Already")] == [heading]


@pytest.mark.parametrize("verb", ["audit", "outage"])
def test_a_quorum_in_one_rack_ends_with_2_unless_its_loss_is_accepted(
    cli: Cli, write: Write, tmp_path: Path, verb: str
) -> None:
    path = write({**GOOD, "controllers": [{"id": one, "rack": "r1"} for one in (101, 102, 103)]})
    assert cli(verb, "--snapshot", path).code == 2
    assert cli(verb, "--snapshot", path, "--survive", "broker").code == 0
    (tmp_path / "rackspan.toml").write_text('survive = "none"\n[topics."orders"]\nsurvive = "rack"\n')
    assert cli(verb, "--snapshot", path).code == 2


@pytest.mark.parametrize("survive", ["rack", "broker", "none"])
def test_an_outage_ends_as_the_audit_does(cli: Cli, write: Write, survive: str) -> None:
    for document in (GOOD, good(replicas=[2, 3], isr=[2, 3]), good(replicas=[1], isr=[1]), {**GOOD, "topics": []}):
        path = write(document)
        codes = {cli(verb, "--snapshot", path, "--survive", survive).code for verb in ("audit", "outage")}
        # Without a rack to survive, an audit still judges brokers, which an outage does not lose.
        assert len(codes) == 1 or survive == "broker"


def test_an_audit_of_some_topics_judges_these_alone(cli: Cli, write: Write) -> None:
    bad = {"name": "bad", "config": {}, "partitions": [{"partition": 0, "leader": 1, "replicas": [1], "isr": [1]}]}
    path = write({**GOOD, "topics": [*GOOD["topics"], bad]})
    assert cli("audit", "--snapshot", path).code == 2
    assert cli("audit", "--snapshot", path, "--topic", "ord.*").code == 0
    assert cli("audit", "--snapshot", path, "--topic", "b.d").code == 2
    ran = cli("audit", "--snapshot", path, "--topic", "ba")
    assert (ran.code, ran.err.count("\n")) == (1, 1)
    assert "matches none of 2 topics" in ran.err


def test_a_pattern_that_matches_nothing_is_refused_after_what_the_snapshot_lacks(cli: Cli, write: Write) -> None:
    """What is missing may be why."""
    lines = cli("audit", "--snapshot", write({**GOOD, "colour": "red"}), "--topic", "hid").err.splitlines()
    assert lines[0] == "warning: snapshot: unknown key 'colour' ignored"
    assert lines[1].startswith("rackspan: --topic 'hid': matches none of 1 topic")


@pytest.mark.parametrize(("words", "code"), [(("audit",), 2), (("restart", "safe", "--broker", "1"), 1)])
@pytest.mark.parametrize("required", [False, True])
def test_controllers_that_are_required_may_be_so_by_the_file(
    cli: Cli, write: Write, tmp_path: Path, words: tuple[str, ...], code: int, required: bool
) -> None:
    """Of restart safe there is no flag for it, and what it judges by is then not known."""
    (tmp_path / "rackspan.toml").write_text(f"require-controllers = {str(required).lower()}\n")
    ran = cli(*words, "--snapshot", write({**GOOD, "controllers": []}))
    assert ran.code == (code if required else 0)


def test_a_cluster_without_any_rack_ends_with_2(cli: Cli, write: Write) -> None:
    path = write({**GOOD, "brokers": [{"id": broker} for broker in range(1, 7)], "controllers": []})
    for verb in ("audit", "outage"):
        assert cli(verb, "--snapshot", path, "--unracked", "ignore").code == 2
        assert cli(verb, "--snapshot", path).code == 2


def test_an_outage_that_is_survived_ends_with_0(cli: Cli, write: Write) -> None:
    ran = cli("outage", "--snapshot", write(GOOD), "-o", "json")
    assert ran.code == 0
    assert [(loss["racks"], loss["topics"], loss["leader_surge"]) for loss in ran.document["losses"]] == [
        (["r1"], [], {"2": 1}),
        (["r2"], [], {"6": 1}),
        (["r3"], [], {}),
    ]


def test_an_outage_that_takes_something_offline_ends_with_2(cli: Cli, write: Write) -> None:
    ran = cli("outage", "--snapshot", write(good(replicas=[1, 4], isr=[1, 4])), "--lose", "r1", "-o", "json")
    assert ran.code == 2
    (loss,) = ran.document["losses"]
    assert loss["racks"] == ["r1"]
    assert loss["topics"] == [
        {
            "topic": "orders",
            "internal": False,
            "survive": "rack",
            "offline": 1,
            "needs_unclean_election": 0,
            "under_min_isr": 0,
            "under_min_racks": 0,
            "after_reassignment": 0,
        }
    ]


def test_pairs_judges_each_pair_once(cli: Cli, write: Write) -> None:
    ran = cli("outage", "--snapshot", write(GOOD), "--pairs", "-o", "json")
    assert [loss["racks"] for loss in ran.document["losses"]] == [["r1", "r2"], ["r1", "r3"], ["r2", "r3"]]
    assert ran.code == 2


def test_racks_are_demanded_by_flag_variable_and_file_in_that_order(
    cli: Cli, write: Write, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = write(good(replicas=[1, 4, 2, 3, 5], isr=[1, 4, 2, 3, 5]))

    def findings(*words: str) -> list[str]:
        found = cli("audit", "--snapshot", path, "-o", "json", "--survive", "none", *words).document["findings"]
        return [
            one["reason"].split("; ")[-1] for one in found if one["constraint"] == "min-insync-replicas-forces-racks"
        ]

    assert findings() == []
    (tmp_path / "rackspan.toml").write_text("min-insync-racks = 2\n")
    assert findings() == ["3 would force 2 racks"]
    monkeypatch.setenv("RACKSPAN_MIN_INSYNC_RACKS", "3")
    assert findings() == ["5 would force 3 racks", "3 would force 3 racks"]
    assert findings("--min-insync-racks", "2") == ["3 would force 2 racks"]
    (tmp_path / "rackspan.toml").write_text('min-insync-racks = 2\n[topics."orders"]\nmin.insync.racks = 1\n')
    assert findings() == ["5 would force 3 racks", "3 would force 3 racks"]
    monkeypatch.delenv("RACKSPAN_MIN_INSYNC_RACKS")
    assert findings() == []


def test_controllers_get_their_racks_from_the_file(cli: Cli, write: Write, tmp_path: Path) -> None:
    document = {**GOOD, "controllers": [{"id": 101}, {"id": 102}, {"id": 103}]}
    (tmp_path / "rackspan.toml").write_text('[controllers]\n101 = "r1"\n102 = "r1"\n103 = "r2"\n')
    ran = cli("audit", "--snapshot", write(document))
    assert ran.code == 2
    assert "rack r1 holds 2 of 3 voters (101,102)" in " ".join(ran.out.split())


def test_a_controller_in_the_process_of_a_broker_is_in_its_rack_whatever_the_file_names(
    cli: Cli, write: Write, tmp_path: Path
) -> None:
    document = {**GOOD, "controllers": [{"id": 1, "rack": "r3"}, {"id": 4}, {"id": 2}]}
    (tmp_path / "rackspan.toml").write_text('[controllers]\n1 = "r1"\n4 = "r3"\n')
    ran = cli("audit", "--snapshot", write(document))
    assert ran.err == (
        "warning: [controllers] 4 has no effect: it is in the process of broker 4, which is in rack r1\n"
    )
    assert ran.code == 2
    assert "rack r1 holds 2 of 3 voters (1,4)" in " ".join(ran.out.split())


@pytest.mark.parametrize("name", ["copy.json", "copy"])
def test_a_snapshot_of_a_snapshot_is_the_same(cli: Cli, write: Write, tmp_path: Path, name: str) -> None:
    path = write(GOOD)
    ran = cli("snapshot", "--snapshot", path, "--out", tmp_path / name)
    assert (ran.code, ran.out) == (0, "")
    assert snapshot_file.read(tmp_path / name).snapshot.same_as(snapshot_file.read(path).snapshot)


def test_an_unknown_key_is_a_warning_on_stderr_and_the_data_stay_clean(cli: Cli, write: Write) -> None:
    ran = cli("audit", "--snapshot", write({**GOOD, "colour": "red"}), "-o", "json")
    assert (ran.code, ran.err) == (0, "warning: snapshot: unknown key 'colour' ignored\n")
    assert ran.document["summary"]["violations"] == 0


def test_a_snapshot_that_is_saved_warns_of_what_it_lacks(cli: Cli, write: Write, tmp_path: Path) -> None:
    lacking = write({**GOOD, "partial": ["sizes: broker 3 did not answer"]})
    for out in ("copy.json", "-"):
        warned = cli("snapshot", "--snapshot", lacking, "--out", out).err.splitlines()
        assert warned[0] == "warning: sizes: broker 3 did not answer"


def test_controllers_that_the_file_names_and_the_cluster_lacks_are_a_warning_with_those_there_are(
    cli: Cli, write: Write, tmp_path: Path
) -> None:
    (tmp_path / "rackspan.toml").write_text('[controllers]\n9 = "r1"\n')
    voters = [{"id": number} for number in (3000, 16, 1, 100)]
    ran = cli("audit", "--snapshot", write({**GOOD, "controllers": voters}))
    assert "warning: [controllers] 9 has no effect: no such controller; there are 1, 16, 100, 3000\n" in ran.err


def test_what_could_not_be_read_is_reported(cli: Cli, write: Write) -> None:
    ran = cli("audit", "--snapshot", write({**GOOD, "partial": ["sizes: broker 3 did not answer"]}))
    assert "could not be read: sizes: broker 3 did not answer" in ran.out
    assert ran.code == 0


@pytest.mark.parametrize("verb", ["audit", "outage"])
def test_what_a_constraint_needs_and_could_not_be_read_ends_with_1(cli: Cli, write: Write, verb: str) -> None:
    path = write({**GOOD, "partial": ["min.insync.replicas of orders: unknown, needs DescribeConfigs on Topic orders"]})
    ran = cli(verb, "--snapshot", path)
    assert ran.code == 1
    assert "as far as it could be read" in ran.out
    document = cli(verb, "--snapshot", path, "-o", "json").document
    assert document.get("summary", document)["complete"] is False


@pytest.mark.parametrize("verb", ["audit", "outage"])
def test_controllers_of_unknown_rack_that_decide_are_not_green(cli: Cli, write: Write, verb: str) -> None:
    path = write({**GOOD, "controllers": [{"id": 101}, {"id": 102}, {"id": 103}]})
    ran = cli(verb, "--snapshot", path)
    assert ran.code == 2
    assert "the racks of controllers 101,102,103 are not known" in " ".join(ran.out.split())
    assert "survives" not in ran.out.splitlines()[-1].split("whether")[0]


def test_every_remedy_of_a_topic_is_on_the_page(cli: Cli, write: Write) -> None:
    """Broker 3 is down, and orders-1 is on brokers of one rack: its remedy is another than those of orders-0 and orders-2."""
    document = good()
    document["brokers"] = [{**one, "fenced": one["id"] == 3} for one in document["brokers"]]
    placed = [([1, 3], [1]), ([1, 4], [1, 4]), ([4, 3], [4])]
    rows = [
        {"partition": at, "leader": isr[0], "replicas": replicas, "isr": isr}
        for at, (replicas, isr) in enumerate(placed)
    ]
    document["topics"] = [{"name": "orders", "config": {}, "partitions": rows}]
    path = write(document)
    page = cli("audit", "--snapshot", path).out
    lines = [line for line in page.splitlines() if "survives-rack-loss" in line]
    assert [line.split()[3] for line in lines] == ["0,2", "1"]
    assert lines[0].rstrip().endswith("bring back broker 3")
    assert lines[1].rstrip().endswith(f"rackspan reassign plan --snapshot {path} --topic orders")


def test_the_page_begins_with_what_the_cluster_has(cli: Cli, write: Write) -> None:
    document = good()
    rows = document["topics"][0]["partitions"]
    document["topics"][0]["partitions"] = [{**rows[0], "partition": at} for at in range(1200)]
    first = cli("audit", "--snapshot", write(document)).out.splitlines()[1]
    assert first.rstrip().endswith(": 6 brokers in 3 racks (r1, r2, r3), 1 topic, 1,200 partitions")


def test_names_with_brackets_are_shown_as_they_are(cli: Cli, write: Write) -> None:
    document = json.loads(json.dumps(GOOD).replace('"r1"', '"[red]r1[/red]"'))
    assert "[red]r1[/red]" in cli("audit", "--snapshot", write(document)).out


@pytest.mark.slow
def test_the_module_runs_as_the_command_does(write: Write) -> None:
    words = [sys.executable, "-m", "rackspan", "audit", "--snapshot", str(write(GOOD)), "-o", "json"]
    ran = subprocess.run(words, capture_output=True, text=True, check=False)
    assert (ran.returncode, ran.stderr) == (0, "")
    assert json.loads(ran.stdout)["summary"]["violations"] == 0


@pytest.mark.slow
def test_a_reader_that_closes_the_pipe_causes_no_traceback(write: Write) -> None:
    many = [
        {"name": f"t{n}", "partitions": [{"partition": 0, "leader": 1, "replicas": [1], "isr": [1]}]}
        for n in range(3000)
    ]
    command = f"{sys.executable} -m rackspan audit --snapshot {write({**GOOD, 'topics': many})} -o json | head -1"
    ran = subprocess.run(["bash", "-c", command], capture_output=True, text=True, check=False)
    assert (ran.stdout, ran.stderr) == ("{\n", "")


@pytest.mark.slow
@pytest.mark.parametrize("output_format", ["human", "csv"])
def test_a_reader_that_closes_the_pipe_ends_it_as_sigpipe_does(write: Write, output_format: str) -> None:
    """Whatever the command would have ended with: 2 here, as there is a violation."""
    snapshot = write(
        GOOD | {"topics": [{"name": "t", "partitions": [{"partition": 0, "leader": 1, "replicas": [1], "isr": [1]}]}]}
    )
    reading, writing = os.pipe()
    os.close(reading)
    words = [sys.executable, "-m", "rackspan", "audit", "--snapshot", str(snapshot), "-o", output_format]
    ran = subprocess.run(words, stdout=writing, stderr=subprocess.PIPE, text=True, check=False)
    os.close(writing)
    assert (ran.returncode, ran.stderr) == (128 + signal.SIGPIPE, "")


def test_a_cluster_without_a_rack_has_none_in_the_heading(cli: Callable[..., Ran], write: Write) -> None:
    without = [{"id": one["id"]} for one in GOOD["brokers"]]
    page = cli("audit", "--snapshot", write(GOOD | {"brokers": without})).out
    assert ": 6 brokers (no rack is set on any broker), 1 topic" in page.splitlines()[1]


def crowded_topics(count: int) -> object:
    """Topics with two of three replicas in rack r1, which one plan repairs."""
    document = good(replicas=[1, 4, 2], isr=[1, 4, 2])
    [topic] = document["topics"]
    return {**document, "topics": [{**topic, "name": f"topic-{one}"} for one in range(count)]}


def test_equal_findings_of_many_topics_are_one_line_with_one_plan(cli: Cli, write: Write) -> None:
    joined = " ".join(cli("audit", "--snapshot", write(crowded_topics(50))).out.split())
    assert "topic-0 and 49 more topics" in joined
    assert "--topic" not in joined
    assert "rackspan reassign plan" in joined
    apart = " ".join(cli("audit", "--snapshot", write(crowded_topics(3))).out.split())
    assert all(f"--topic topic-{one}" in apart for one in range(3))
    assert len(cli("audit", "--snapshot", write(crowded_topics(50)), "-o", "json").document["findings"]) >= 50


def last_line(ran: Ran) -> str:
    """The last sentence, however it was wrapped."""
    return " ".join(ran.out.split("warning")[-1].split())


def test_the_last_line_says_survives_beside_no_violation_that_leaves_it_open(cli: Cli, write: Write) -> None:
    unracked = good()
    unracked["brokers"][0]["rack"] = None
    path = write(unracked)
    audit, outage = cli("audit", "--snapshot", path), cli("outage", "--snapshot", path)
    assert audit.code == 2
    assert cli("audit", "--snapshot", path, "-o", "json").document["summary"]["survives_any_rack"] is False
    assert "not certain to survive the loss of a rack: unracked-broker above" in " ".join(audit.out.split())
    assert "survives the loss" not in audit.out
    assert "broker 1 without a rack counted as one rack together" in " ".join(outage.out.split())


def test_the_last_line_names_configs_that_are_assumed_of_the_chosen_topics(cli: Cli, write: Write) -> None:
    orders = good()["topics"][0]
    moving = {**orders["partitions"][0], "replicas": [1, 2, 3, 6], "adding_replicas": [6], "removing_replicas": [3]}
    topics = [{**orders, "config": {}}, {**orders, "name": "moves", "partitions": [moving]}]
    path = write({**good(), "topics": topics})
    for command, survives in (
        ("audit", "survives the loss of any one rack"),
        ("outage", "no loss listed above stops anything"),
    ):
        unknown = f"{survives}; unknown min.insync.replicas of 1 topic counted as 1\n"
        assert cli(command, "--snapshot", path, "--topic", "orders").out.endswith(unknown)
        only_moves = f"{survives}; 1 partition being reassigned judged now and by its target\n"
        assert cli(command, "--snapshot", path, "--topic", "moves").out.endswith(only_moves)


def test_racks_that_look_alike_are_warned_of_and_shown_apart(cli: Cli, write: Write) -> None:
    """The rack of brokers 2 and 5 is that of 1 and 4 with a blank; that of 3 and 6 has a letter in two code points."""
    document = good()
    for broker in document["brokers"]:
        broker["rack"] = ("az1", "az1 ", "e\u0301")[(broker["id"] - 1) % 3]
    path = write({**document, "controllers": []})
    warning = (
        "warning: racks 'az1', 'az1 ' count as 2, and their names differ by case, blanks or Unicode form only; "
        f"rackspan audit --snapshot {path} says where to correct them\n"
    )
    outage = cli("outage", "--snapshot", path)
    assert (outage.code, outage.err) == (2, warning)
    headings = [line for line in outage.out.splitlines() if line.startswith("Without")]
    assert headings == ["Without rack az1", "Without rack 'az1 '", "Without rack 'e\\u0301'"]
    plan = cli("reassign", "plan", "--snapshot", path)
    assert (plan.code, plan.err, "impossible: a plan that is certain to keep racks apart: " in plan.out) == (
        1,
        "",
        True,
    )
    assert "(az1, 'az1 ', 'e\\u0301')" in cli("audit", "--snapshot", path).out
    assert cli("outage", "--snapshot", write(good())).err == ""


def test_without_topics_there_is_nothing_to_judge(cli: Cli, write: Write) -> None:
    path = write({**good(), "topics": []})
    for command in ("audit", "outage"):
        ran = cli(command, "--snapshot", path)
        assert ran.code == 0
        assert "nothing to judge: the cluster has no topics" in ran.out
        assert "survives the loss" not in ran.out
        assert "survives every" not in ran.out
    hardened = cli("acks", "harden", "--min-insync-racks", "3", "--snapshot", path)
    assert (hardened.code, hardened.out) == (0, "settings: none\nnothing to judge: the cluster has no topics\n")


def test_controllers_that_no_snapshot_has_are_not_judged_and_the_last_line_says_so(cli: Cli, write: Write) -> None:
    path = write({**good(), "controllers": []})
    for command in ("audit", "outage"):
        ran = cli(command, "--snapshot", path)
        assert ran.code == 0
        assert "controllers not judged" in ran.out


def test_an_audit_as_a_page_has_the_exit_code_of_the_audit_and_no_other_output(
    cli: Callable[..., Ran], write: Callable[[object], Path]
) -> None:
    down = json.loads(json.dumps(GOOD))
    for broker in down["brokers"]:
        broker["fenced"] = broker["rack"] == "r2"
    page = cli("audit", "--snapshot", write(down), "-o", "html")
    assert page.code == cli("audit", "--snapshot", write(down)).code == 2
    assert page.out.startswith("<!doctype html>")
    assert "Rack r2 is down: brokers 2,5, controller 2; 2 partitions lack a replica." in page.out
    assert cli("audit", "--snapshot", write(GOOD), "-o", "html").code == 0


def test_only_an_audit_is_a_page(cli: Callable[..., Ran], write: Callable[[object], Path]) -> None:
    refused = cli("outage", "--snapshot", write(GOOD), "-o", "html")
    assert (refused.code, refused.out) == (1, "")
    assert "'html' is not one of 'human', 'json', 'yaml', 'csv'" in refused.err
