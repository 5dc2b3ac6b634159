"""One table of wrong inputs, each with the line it gets. All end with 1, none with a trace, none leaves a file."""

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.cli.conftest import GOOD, Ran

Cli = Callable[..., Ran]

SNAPSHOT = ("--snapshot", "moment.json")


@pytest.mark.parametrize(
    ("words", "line"),
    [
        (("audit",), "no cluster named: give --bootstrap-server HOST:PORT, --cluster NAME or --snapshot FILE"),
        (
            ("audit", *SNAPSHOT, "--bootstrap-server", "127.0.0.1:1"),
            "--bootstrap-server and --snapshot: name one of them",
        ),
        (
            ("audit", "--snapshot", "absent.json"),
            "absent.json: no such file or folder; take a snapshot with rackspan snapshot --out absent.json",
        ),
        (("audit", "--bogus"), "No such option: --bogus; see rackspan audit --help"),
        (
            ("audit", *SNAPSHOT, "--snapshott", "x"),
            "No such option: --snapshott (Possible options: --snapshot); see rackspan audit --help",
        ),
        (
            ("audit", *SNAPSHOT, "--topic", "order"),
            "--topic 'order': matches none of 1 topic by its whole name (did you mean 'orders'?)",
        ),
        (
            ("audit", *SNAPSHOT, "--topic", "zzz"),
            "--topic 'zzz': matches none of 1 topic by its whole name; write one such as orders-.*",
        ),
        (
            ("reassign", "plan", *SNAPSHOT, "--topic", "order"),
            "--topic 'order': no topic has such a name (did you mean 'orders'?)",
        ),
        (
            ("place", "extend", *SNAPSHOT, "--topic", "order", "--partitions", "9"),
            "topic 'order' does not exist as expected (did you mean 'orders'?); create it with rackspan place create",
        ),
        (("lint",), "No such command 'lint' (did you mean rackspan reassign lint?); see rackspan --help"),
        (
            ("undo",),
            "No such command 'undo' (did you mean rackspan reassign undo or rackspan cluster undo?); see rackspan --help",
        ),
        (
            ("plan",),
            "No such command 'plan' (did you mean rackspan place plan or rackspan reassign plan or rackspan restart plan?); see rackspan --help",
        ),
        (("aplly",), "No such command 'aplly' (did you mean rackspan reassign apply?); see rackspan --help"),
        (("drain",), "No such command 'drain'; see rackspan --help"),
        (("audti",), "No such command 'audti' (did you mean 'audit'?); see rackspan --help"),
        (
            ("audit", *SNAPSHOT, "-o", "xml"),
            "Invalid value for '--output' / '-o' (env var: 'RACKSPAN_OUTPUT'): 'xml' is not one of 'human', 'json', 'yaml', 'csv', 'html'; see rackspan audit --help",
        ),
        (
            ("audit", *SNAPSHOT, "--min-insync-racks", "0"),
            "Invalid value for '--min-insync-racks' (env var: 'RACKSPAN_MIN_INSYNC_RACKS'): expected at least 1; see rackspan audit --help",
        ),
        (
            ("reassign", "plan", *SNAPSHOT, "--replication-factor", "many"),
            "Invalid value for '--replication-factor': expected a whole number; see rackspan reassign plan --help",
        ),
        (
            ("audit", *SNAPSHOT, "--timeout", "soon"),
            "Invalid value for '--timeout' (env var: 'RACKSPAN_TIMEOUT'): expected a whole number; see rackspan audit --help",
        ),
        (
            ("audit", *SNAPSHOT, "--unracked", "maybe"),
            "Invalid value for '--unracked' (env var: 'RACKSPAN_UNRACKED'): 'maybe' is not one of 'shared', 'own', 'error', 'ignore'; see rackspan audit --help",
        ),
        *(
            (
                (*words.split(), value),
                f"Invalid value for '{words.split()[-1]}': expected at most {most}; see rackspan {words.split(' --')[0]} --help",
            )
            for words, value, most in (
                ("traffic --seconds", "inf", 36_500 * 86_400),
                ("advise --seconds", "1e300", 36_500 * 86_400),
                ("clients --counters-seconds", "1e300", 36_500 * 86_400),
                ("acks watch --every", "1e300", 36_500 * 86_400),
                ("restart watch --every", "1e300", 36_500 * 86_400),
                ("pipeline collect --every", "1e300", 36_500 * 86_400),
                ("pipeline collect --traffic-every", "1e300", 36_500 * 86_400),
                ("pipeline follow --every", "1e300", 36_500 * 86_400),
                ("pipeline check --max-age", "1e300", 36_500 * 24 * 60),
                ("pipeline maintain --vacuum-hours", "1e300", 36_500 * 24),
                ("pipeline maintain --keep-days", str(10**12), 36_500),
            )
        ),
        (("outage", *SNAPSHOT, "--lose", "r9"), "rack 'r9': not in this cluster; it has r1, r2, r3"),
        (("outage", *SNAPSHOT, "--lose", "r1,"), "rack '': not in this cluster; it has r1, r2, r3"),
        (("snapshot", *SNAPSHOT), "Missing option '--out'; see rackspan snapshot --help"),
        (
            ("snapshot", *SNAPSHOT, "--out", "/proc/nowhere/x.json"),
            "/proc/nowhere/x.json: cannot be written: No such file or directory; choose another --out",
        ),
    ],
)
def test_a_mistake_gets_one_line(
    cli: Cli, write: Callable[[object], Path], tmp_path: Path, words: tuple[str, ...], line: str
) -> None:
    write(GOOD)
    ran = cli(*words)
    assert (ran.code, ran.out, ran.err) == (1, "", f"rackspan: {line}\n")
    assert [path.name for path in tmp_path.iterdir()] == ["moment.json"]


@pytest.mark.parametrize(
    ("text", "line"),
    [
        (
            "min-insync-racks = \n",
            "rackspan.toml: not TOML: Invalid value (at line 1, column 20); fix it in the file",
        ),
        (
            "colour = 'red'\n",
            'rackspan.toml: there is no key "colour"; there are topics, controllers, brokers, racks, clusters, survive, '
            "require-controllers, min-insync-racks, unracked, bootstrap-server, command-config, timeout, rack-locator-class, "
            "rack-locator-properties, cluster, output, warehouse, master",
        ),
        (
            "unracked = 'own '\n",
            'rackspan.toml: unracked is "own ", expected shared or own or error or ignore; fix it in the file',
        ),
        ("timeout = [1]\n", "rackspan.toml: timeout is [1], not a whole number; fix it in the file"),
        (
            '[topics."orders"]\nmin.insync.racks = "two"\n',
            'rackspan.toml: [topics."orders"]: min.insync.racks is "two", not a whole number; fix it in the file',
        ),
        (
            '[topics."orders"]\nmin.insync.replicas = 2\n',
            'rackspan.toml: [topics."orders"]: there is no key "min.insync.replicas"; there are min.insync.racks, survive, leader.racks',
        ),
        (
            "[topics.\"orders\"]\nsurvive = 'two'\n",
            'rackspan.toml: [topics."orders"]: survive is "two", expected rack or broker or none; fix it in the file',
        ),
        ("topics = 1\n", "rackspan.toml: topics is 1, not a table; fix it in the file"),
        (
            "[brokers]\nexcluded = [4, true]\n",
            "rackspan.toml: [brokers]: excluded[1] is true, not a whole number; fix it in the file",
        ),
        (
            "[brokers]\nretired = [4]\n",
            'rackspan.toml: [brokers]: there is no key "retired"; there is excluded',
        ),
        (
            "[controllers]\none = 'r1'\n",
            'rackspan.toml: [controllers] one is not a controller id; write a line such as 101 = "r1"',
        ),
    ],
)
def test_a_mistake_in_the_settings_gets_one_line(
    cli: Cli, write: Callable[[object], Path], tmp_path: Path, text: str, line: str
) -> None:
    write(GOOD)
    (tmp_path / "rackspan.toml").write_text(text)
    ran = cli("audit", *SNAPSHOT)
    assert (ran.code, ran.out, ran.err) == (1, "", f"rackspan: {line}\n")


def test_debug_shows_the_trace_before_the_line(cli: Cli) -> None:
    for words in (("--debug", "audit"), ("audit", "--debug")):
        ran = cli(*words)
        assert "Traceback" in ran.err
        assert ran.err.endswith(
            "rackspan: no cluster named: give --bootstrap-server HOST:PORT, --cluster NAME or --snapshot FILE\n"
        )


def test_unracked_error_refuses_the_cluster_by_name(cli: Cli, write: Callable[[object], Path]) -> None:
    write({**GOOD, "brokers": [*GOOD["brokers"], {"id": 7}]})
    ran = cli("audit", *SNAPSHOT, "--unracked", "error")
    assert (ran.code, ran.err) == (
        1,
        "rackspan: brokers without a rack: 7; set broker.rack on them, or choose --unracked shared, own or ignore\n",
    )
