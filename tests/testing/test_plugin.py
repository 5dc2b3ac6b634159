"""The pytest plug-in as somebody else's test run sees it: a folder of its own, a pytest of its own."""

import pytest

from tests.kafka_versions import KAFKA
from tests.waiting import WITHIN_SECONDS

pytestmark = pytest.mark.slow

ORDERS = """
    from rackspan.testing import losing

    def test_it(rackspan_cluster):
        rackspan_cluster.create_topic("orders", 1, 3)
"""


def ran(pytester: pytest.Pytester, text: str, *options: str, **outcomes: int) -> pytest.RunResult:
    """What pytest says of a file with this text. A process of its own, as the plug-in must be found by its entry point."""
    pytester.makepyfile(text)
    result = pytester.runpytest_subprocess("-p", "no:cacheprovider", *options, timeout=WITHIN_SECONDS)
    result.assert_outcomes(**outcomes)
    return result


def test_a_test_gets_the_cluster_of_its_markers(pytester: pytest.Pytester) -> None:
    ran(
        pytester,
        """
        import pytest
        pytestmark = pytest.mark.rackspan(racks=2)

        def test_the_default_is_three_racks_unless_the_module_says_so(rackspan_cluster):
            assert (rackspan_cluster.racks, rackspan_cluster.brokers) == (("r1", "r2"), (1, 2, 3))

        @pytest.mark.rackspan(brokers=4, config={"min.insync.racks": "2"})
        class TestOfAClass:
            @pytest.mark.rackspan(racks=("a", "b", "c"))
            def test_the_nearest_marker_overrides_the_others(self, rackspan_cluster):
                assert (rackspan_cluster.racks, len(rackspan_cluster.brokers)) == (("a", "b", "c"), 4)
                rackspan_cluster.create_topic("orders")
                assert rackspan_cluster.snapshot().topics[0].config["min.insync.racks"] == "2"

        @pytest.mark.lose_rack("r2")
        @pytest.mark.pause_brokers(1)
        def test_faults_are_there_from_the_beginning(rackspan_cluster):
            assert [one.states for one in rackspan_cluster.status().brokers] == [
                ("paused",), ("down", "fenced"), ("up",),
            ]
        """,
        "--strict-markers",
        passed=3,
    )


@pytest.mark.parametrize("scope", ["function", "session"])
def test_every_test_gets_a_cluster_without_traces_of_the_one_before(pytester: pytest.Pytester, scope: str) -> None:
    pytester.makeini(f"[pytest]\nrackspan_cluster_scope = {scope}\n")
    pytester.makeconftest("""
        import threading

        def pytest_unconfigure():
            print("left:", [thread.name for thread in threading.enumerate() if thread.name == "rackspan-cluster"])
    """)
    result = ran(
        pytester,
        """
        import pytest
        from confluent_kafka import Consumer, Producer
        from rackspan.testing import losing

        cluster_ids = set()

        @pytest.mark.parametrize("turn", range(2))
        def test_it(rackspan_cluster, turn):
            cluster = rackspan_cluster
            cluster_ids.add(cluster.cluster_id)
            assert [one.states for one in cluster.status().brokers] == [("up",)] * 3
            assert not cluster.status().links
            assert not cluster.snapshot().topics
            assert not cluster.traffic()
            producer = Producer({"bootstrap.servers": cluster.bootstrap_servers, "log_level": 0})
            producer.produce("orders", str(turn))
            assert producer.flush(30) == 0
            consumer = Consumer({"bootstrap.servers": cluster.bootstrap_servers, "group.id": "g", "log_level": 0,
                                 "auto.offset.reset": "earliest", "allow.auto.create.topics": True})
            consumer.subscribe(["orders"])
            message = None
            for _ in range(30):
                message = consumer.poll(1)
                if message and not message.error():
                    break
            assert message.value() == str(turn).encode()
            consumer.close()
            with losing(cluster, "r1"):
                assert cluster.status().brokers[0].states == ("down", "fenced")
            cluster.lose_rack("r3")
            cluster.pause(1)
            cluster.change_rack(2, "r1")
            cluster.cut(1, 2)

        def test_there_were_as_many_clusters():
            assert len(cluster_ids) == CLUSTERS
        """.replace("CLUSTERS", {"function": "2", "session": "1"}[scope]),
        passed=3,
    )
    result.stdout.fnmatch_lines(["left: []"])


def test_the_report_of_a_failed_test_has_the_cluster_status_and_warnings(pytester: pytest.Pytester) -> None:
    result = ran(
        pytester,
        """
        def test_it(rackspan_cluster):
            rackspan_cluster.create_topic("orders", 1, 3, config={"min.insync.racks": "9"})
            rackspan_cluster.lose_rack("r1")
            rackspan_cluster.lag(2, 250)
            assert False
        """,
        failed=1,
    )
    result.stdout.fnmatch_lines(
        [
            "*- rackspan cluster -*",
            "broker 1  rack r1  127.0.0.1:*  down, fenced",
            "broker 2  rack r2  127.0.0.1:*  up",
            "  broker 1 to broker 2: 250 ms late",
            "  orders-0: leader *, replicas *, in sync * (racks r2,r3)",
            '  rackspan_under_min_rack_isr_partitions{broker="?"} 1',
            "*- rackspan warnings -*",
            "*min.insync.racks 9: the cluster has 3 racks*",
        ]
    )


def test_without_a_warning_a_report_has_none(pytester: pytest.Pytester) -> None:
    result = ran(pytester, "def test_it(rackspan_cluster): assert False", failed=1)
    result.stdout.fnmatch_lines(["*- rackspan cluster -*"])
    result.stdout.no_fnmatch_line("*rackspan warnings*")


def test_the_scopes_and_their_default_are_in_pytests_help(pytester: pytest.Pytester) -> None:
    words = " ".join(pytester.runpytest_subprocess("-p", "no:cacheprovider", "--help").stdout.str().split())
    assert "--rackspan-cluster-scope={function,session}" in words
    assert "one cluster for each test, or one for the session that is reset between tests" in words
    assert "the default of --rackspan-cluster-scope: function or session" in words


def test_an_error_in_a_marker_is_reported_in_one_line(pytester: pytest.Pytester) -> None:
    result = ran(
        pytester,
        """
        import pytest

        @pytest.mark.rackspan(rack=2)
        def test_an_argument_that_is_none(rackspan_cluster): ...

        @pytest.mark.rackspan(config={"min.insync.rakcs": "2"})
        def test_a_config_that_is_none(rackspan_cluster): ...

        @pytest.mark.lose_rack("r9")
        def test_a_rack_that_is_none(rackspan_cluster): ...

        @pytest.mark.rackspan(5)
        def test_an_argument_without_a_name(rackspan_cluster): ...

        @pytest.mark.rackspan(racks="r1")
        def test_racks_that_are_letters(rackspan_cluster): ...

        @pytest.mark.rackspan(config={"min.insync.racks": 2})
        def test_a_config_that_is_no_text(rackspan_cluster): ...

        @pytest.mark.lose_rack
        def test_a_fault_of_nothing(rackspan_cluster): ...

        @pytest.mark.kill_brokers(brokers=1)
        def test_a_fault_by_name(rackspan_cluster): ...

        @pytest.mark.pause_brokers()
        def test_another_fault_of_nothing(rackspan_cluster): ...
        """,
        errors=9,
    )
    output = result.stdout.str()
    assert (
        "marker rackspan: 'rack' shapes no cluster; there are racks, brokers, config, settings, seed, kafka" in output
    )
    assert "config 'min.insync.rakcs': not a broker config of this cluster" in output
    assert "rack 'r9': this cluster has r1, r2, r3" in output
    assert "marker rackspan: 5 has no name; write racks=… or brokers=…" in output
    assert "racks 'r1': a cluster has a number of racks, or a list of names; write ['r1']" in output
    assert "config 'min.insync.racks': 2 is not a string, as Kafka's configs are; write '2'" in output
    assert 'marker lose_rack: there are no targets in it; write lose_rack("r1")' in output
    assert "marker kill_brokers: there are no targets in it; write kill_brokers(1)" in output
    assert "marker pause_brokers: there are no targets in it; write pause_brokers(1)" in output
    assert "Traceback" not in output
    assert "During handling" not in output
    assert "clusters.py" not in output


def test_a_test_does_not_pass_without_the_fault_that_it_names(pytester: pytest.Pytester) -> None:
    result = ran(
        pytester,
        """
        import pytest

        @pytest.mark.lose_rack("r1")
        def test_no_cluster(): ...

        @pytest.mark.lose_rack("r1")
        def test_the_cluster_by_name(request):
            assert "down" in request.getfixturevalue("rackspan_cluster").status().brokers[0].states

        @pytest.mark.lose_rack("r1")
        class TestOfAClass:
            def test_that_needs_none(self): ...
        """,
        failed=1,
        passed=2,
    )
    assert "marker lose_rack: the test does not use rackspan_cluster, so that it had no effect" in result.stdout.str()


def test_an_invalid_scope_is_refused(pytester: pytest.Pytester) -> None:
    pytester.makeini("[pytest]\nrackspan_cluster_scope = module\n")
    result = pytester.runpytest_subprocess("-p", "no:cacheprovider")
    assert "rackspan_cluster_scope 'module': there are function and session" in result.stderr.str()


def test_a_run_without_a_cluster_imports_none(pytester: pytest.Pytester) -> None:
    ran(
        pytester,
        """
        import sys

        def test_it():
            heavy = {"rackspan.cluster", "kio", "numpy", "pyarrow", "confluent_kafka", "prometheus_client"}
            assert "rackspan.testing.plugin" in sys.modules
            assert not heavy & set(sys.modules)
        """,
        passed=1,
    )


ON_KAFKA = """
    import pytest

    @pytest.mark.rackspan(config={"min.insync.racks": "2"})
    def test_a_config_that_kafka_would_ignore(rackspan_cluster): ...

    @pytest.mark.rackspan(seed=1)
    def test_an_argument_that_kafka_has_not(rackspan_cluster): ...

    @pytest.mark.rackspan(config={"min.insync.racks": "2"}, kafka=False)
    def test_that_says_so(rackspan_cluster): ...

    def test_that_needs_none(): ...
"""


@pytest.mark.parametrize("by", ["option", "ini"])
def test_on_real_kafka_what_it_cannot_do_is_refused_or_skipped_by_name(pytester: pytest.Pytester, by: str) -> None:
    if by == "ini":
        pytester.makeini("[pytest]\nrackspan_kafka = 4.3.1\n")
    options = ("--rackspan-kafka", "4.3.1") if by == "option" else ()
    result = ran(pytester, ON_KAFKA, *options, "-rs", errors=2, skipped=1, passed=1)
    output = result.stdout.str()
    assert "rackspan: Apache Kafka 4.3.1, a cluster for each test" in output
    assert "config min.insync.racks: Apache Kafka 4.3.1 has no such config and would ignore it" in output
    assert (
        "marker rackspan: Apache Kafka has no seed; the marker of a test that needs it says kafka=False too" in output
    )
    assert "its marker rackspan says kafka=False: not run on Apache Kafka by --rackspan-kafka" in output


def test_on_the_embedded_cluster_the_same_tests_run(pytester: pytest.Pytester) -> None:
    result = ran(pytester, ON_KAFKA, passed=4)
    assert "Apache Kafka" not in result.stdout.str()


@pytest.mark.parametrize(
    ("options", "line"),
    [
        (("four",), "--rackspan-kafka four: "),
        (("4.3.1", "--rackspan-cluster-scope", "session"), "each test has a cluster of its own; leave out"),
    ],
)
def test_a_switch_that_cannot_be_followed_is_refused(
    options: tuple[str, ...], line: str, pytester: pytest.Pytester
) -> None:
    result = pytester.runpytest_subprocess("-p", "no:cacheprovider", "--rackspan-kafka", *options)
    assert line in result.stderr.str()
    assert result.ret == pytest.ExitCode.USAGE_ERROR


@pytest.mark.kafka
@pytest.mark.rest
def test_the_same_test_runs_on_the_embedded_cluster_and_on_real_kafka(pytester: pytest.Pytester) -> None:
    text = """
        import pytest
        from confluent_kafka import Consumer, Producer
        from rackspan.testing import READS_IN_RACK, assert_reads_in_rack, lagging, losing

        @pytest.mark.rackspan(racks=("a", "b", "c"), config=READS_IN_RACK)
        @pytest.mark.lose_rack("c")
        def test_reads(rackspan_cluster):
            cluster = rackspan_cluster
            cluster.create_topic("orders", replicas=[[1, 2], [2, 1]])
            servers = {"bootstrap.servers": cluster.bootstrap_servers, "log_level": 0}
            producer = Producer(servers)
            for number in range(20):
                producer.produce("orders", b"x", partition=number % 2)
            assert producer.flush(30) == 0
            config = {"group.id": "shop", "client.id": "app", "auto.offset.reset": "earliest"}
            consumer = Consumer({**servers, **config, "client.rack": "b"})
            consumer.subscribe(["orders"])
            assert len(consumer.consume(20, 60)) == 20
            assert_reads_in_rack(cluster, "shop")
            consumer.close()

        def test_far(rackspan_cluster):
            rackspan_cluster.create_topic("orders", replicas=[[1, 2, 3]])
            consumer = Consumer({"bootstrap.servers": rackspan_cluster.bootstrap_servers, "group.id": "shop",
                                 "client.id": "app", "client.rack": "r2", "auto.offset.reset": "earliest"})
            consumer.subscribe(["orders"])
            producer = Producer({"bootstrap.servers": rackspan_cluster.bootstrap_servers, "log_level": 0})
            producer.produce("orders", b"x")
            assert producer.flush(30) == 0
            assert len(consumer.consume(1, 60)) == 1
            with pytest.raises(AssertionError, match="client app in r2 read"):
                assert_reads_in_rack(rackspan_cluster, "shop")
            consumer.close()
    """
    ran(pytester, text, passed=2)
    version = ("--rackspan-kafka", KAFKA)
    pytester.makepyfile(text)
    result = pytester.runpytest_subprocess("-p", "no:cacheprovider", *version, timeout=500)
    result.assert_outcomes(passed=2)
