import os
import subprocess
import sys
import venv
from contextlib import AbstractContextManager, nullcontext, suppress
from itertools import count
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Final

import pytest
from pyspark import SparkConf
from pyspark.errors import PySparkRuntimeError
from pyspark.sql import SparkSession

from rackspan.errors import MissingRequirement, UsageError
from rackspan.java import Java
from rackspan.pipeline.spark import session


def python(*lines: str) -> str:
    """What a fresh Python prints."""
    done = subprocess.run([sys.executable, "-c", "\n".join(lines)], capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.slow
def test_the_pipeline_is_imported_without_spark() -> None:
    rows_read = python(
        "import sys, rackspan.pipeline", "print([name for name in sys.modules if 'spark' in name or 'py4j' in name])"
    )
    assert rows_read.strip() == "[]"


def test_a_python_of_a_local_spark_that_lacks_something_is_reported_before_spark_starts(
    without_spark: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    venv.create(tmp_path / "bare")
    bare = str(tmp_path / "bare" / "bin" / "python")
    monkeypatch.setenv("PYSPARK_PYTHON", bare)
    monkeypatch.delenv("PYTHONPATH", raising=False)
    monkeypatch.setattr(session, "_started", None)
    named = rf"^{bare}, the Python of PYSPARK_PYTHON, lacks rackspan and numpy and pyarrow, which tasks of Spark import; unset "
    with pytest.raises(UsageError, match=named) as caught, session.spark_session("local[2]"):
        pass
    assert "\n" not in str(caught.value)
    monkeypatch.setenv("PYSPARK_PYTHON", str(tmp_path / "absent"))
    with (
        pytest.raises(UsageError, match=r"absent, the Python of PYSPARK_PYTHON, cannot be run: .*; unset "),
        session.spark_session(),
    ):
        pass


@pytest.mark.slow
def test_without_java_one_line_says_what_to_install() -> None:
    rows_read = python(
        "import os; os.environ['JAVA_HOME'] = os.environ['PATH'] = ''",
        "from rackspan.errors import MissingRequirement",
        "from rackspan.pipeline.spark import session",
        "try:",
        "    session.spark_session(None).__enter__()",
        "except MissingRequirement as error:",
        "    print(error)",
    )
    assert "install a JDK" in rows_read
    assert len(rows_read.splitlines()) == 1


def test_a_spark_newer_than_delta_lake_is_refused_only_where_tables_are_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.metadata.version", lambda _name: "4.3.0")
    session.require_pyspark(delta=False)
    named = r"^pyspark 4\.3\.0 is installed, .*; rackspan pipeline follow and a notebook need Delta Lake in Spark: install one of 4\.0, 4\.1, 4\.2: "
    with pytest.raises(MissingRequirement, match=named):
        session.require_pyspark()


@pytest.mark.parametrize("delta", [False, True])
def test_a_spark_that_is_too_old_is_refused(monkeypatch: pytest.MonkeyPatch, delta: bool) -> None:
    monkeypatch.setattr("importlib.metadata.version", lambda _name: "3.5.9")
    with pytest.raises(
        MissingRequirement, match=r"^pyspark 3\.5\.9 is installed, and the pipeline runs on 4\.0 or newer; pip"
    ):
        session.require_pyspark(delta=delta)


def test_without_pyspark_one_line_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(session, "find_spec", lambda _name: None)
    with pytest.raises(MissingRequirement, match=r"pip install '\.\[spark\]' in a checkout"):
        session.require_pyspark()


@pytest.mark.parametrize(
    ("master", "local"),
    [("local", True), ("local[*]", True), ("local-cluster[1,1,1024]", False), ("spark://h:1", False), ("yarn", False)],
)
def test_only_a_local_spark_is_bound_to_loopback_and_has_no_page(master: str, local: bool) -> None:
    settings = session.start_settings(master, [Path("/a.jar"), Path("/b.jar")])
    assert settings["spark.master"] == master
    assert settings["spark.jars"] == "/a.jar,/b.jar"
    assert settings["spark.sql.extensions"] == session.EXTENSION
    assert ("spark.driver.bindAddress" in settings) is local
    assert ("spark.ui.enabled" in settings) is local


@pytest.mark.parametrize("light", [False, True])
def test_a_local_driver_logs_as_we_say_and_compiles_less_if_it_is_to_be_light(light: bool) -> None:
    options = session.start_settings("local", [], light=light)["spark.driver.extraJavaOptions"].split()
    assert options[0] == f"-Dlog4j2.configurationFile={Path(session.__file__).with_name('log4j2.properties')}"
    light_options = ["-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-XX:ReservedCodeCacheSize=256m"]
    assert options[1:] == (light_options if light else [])


def test_on_a_cluster_delta_is_added_to_what_spark_defaults_name_and_nothing_else_is_set(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "spark-defaults.conf").write_text(
        "# a comment\nspark.jars  /mine.jar\nspark.sql.extensions=a.Mine\nspark.executor.memory: 1g\n"
        "spark.databricks.delta.snapshotPartitions 8\n"
    )
    monkeypatch.setenv("SPARK_CONF_DIR", str(tmp_path))
    assert session.start_settings("spark://h:1", [Path("/a.jar")]) == {
        "spark.master": "spark://h:1",
        "spark.jars": "/mine.jar,/a.jar",
        "spark.sql.extensions": f"a.Mine,{session.EXTENSION}",
        "spark.sql.catalog.spark_catalog": session.DELTA["spark.sql.catalog.spark_catalog"],
        "spark.databricks.delta.snapshotPartitions": "8",
    }


def test_a_master_beside_spark_submit_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYSPARK_GATEWAY_PORT", "1")
    monkeypatch.setattr("pyspark.SparkContext._active_spark_context", None)
    with (
        pytest.raises(UsageError, match=r"^--master spark://h:1: spark-submit has started Spark already"),
        session.spark_session("spark://h:1"),
    ):
        pass


APPLICATIONS: Final = count()


class Conf(dict[str, str]):
    """Settings of a session."""

    def set(self, name: str, value: str) -> None:
        self[name] = value


class Base:
    """A Spark that was started, and the sessions made of it, as far as `spark_session` uses them."""

    pythonExec = sys.executable  # noqa: N815 - Spark's name

    def __init__(self, extensions: str = session.EXTENSION) -> None:
        self.conf = Conf({"spark.sql.extensions": extensions} if extensions else {})
        self.sparkContext = self
        self.master = "local[1]"
        self.applicationId = f"application {next(APPLICATIONS)}"
        self.stopped = False

    def newSession(self) -> "Base":  # noqa: N802 - Spark's name
        return Base("of its own")

    def stop(self) -> None:
        self.stopped = True


@pytest.mark.parametrize("active", [False, True])
def test_a_spark_that_was_started_here_is_stopped_and_one_that_was_active_is_left(
    monkeypatch: pytest.MonkeyPatch, active: bool
) -> None:
    monkeypatch.delenv("SPARK_REMOTE", raising=False)
    monkeypatch.setattr("pyspark.SparkContext._active_spark_context", object() if active else None)
    started: list[tuple[str | None, bool, bool]] = []
    base = Base()

    def start(master: str | None, delta: bool, short: bool) -> Base:
        started.append((master, delta, short))
        return base

    monkeypatch.setattr(session, "_started", start)
    with suppress(KeyError), session.spark_session("local[1]", light=True) as opened:
        ours: Any = opened
        assert ours is not base
        assert ours.conf["spark.sql.session.timeZone"] == "UTC"
        assert "spark.sql.session.timeZone" not in base.conf
        assert not base.stopped
        raise KeyError
    assert base.stopped is not active
    assert started == [("local[1]", True, True)]


@pytest.mark.parametrize("active", [False, True])
def test_a_session_without_delta_lake_is_refused_only_where_it_is_needed(
    monkeypatch: pytest.MonkeyPatch, active: bool
) -> None:
    monkeypatch.delenv("SPARK_REMOTE", raising=False)
    monkeypatch.setattr("pyspark.SparkContext._active_spark_context", object() if active else None)
    base = Base(extensions="")
    monkeypatch.setattr(session, "_started", lambda *_: base)
    with (
        pytest.raises(
            UsageError, match=r"^Spark at the running session has no Delta Lake; start it with --packages io.delta:"
        ),
        session.spark_session(),
    ):
        pass
    assert base.stopped is not active
    with session.spark_session("local[1]", delta=False):
        pass


class Builder:
    """`SparkSession.builder`, whose sessions are `Base`. It records the settings, and the environment Spark starts in."""

    def __init__(self, fails: Exception | None = None) -> None:
        self.builder = self
        self.fails = fails
        self.settings: dict[str, str] = {}
        self.environment: dict[str, str] = {}
        self.started = StartedSpark()

    def config(self, conf: SparkConf) -> "Builder":
        self.settings = dict(conf.getAll())
        return self

    def getOrCreate(self) -> "StartedSpark":  # noqa: N802 - Spark's name
        if self.fails is not None:
            raise self.fails
        self.environment = dict(os.environ)
        return self.started


class StartedSpark(Base):
    """A Spark whose level of logging can be set."""

    level: str | None = None

    def setLogLevel(self, level: str) -> None:  # noqa: N802 - Spark's name
        self.level = level


JAVA: Final = Java(Path("/a/jdk/bin/java"), 17)


@pytest.fixture
def without_spark(monkeypatch: pytest.MonkeyPatch) -> None:
    """No Spark was started in this process, and a JDK is installed."""
    for name in ("SPARK_REMOTE", "PYSPARK_GATEWAY_PORT", "PYSPARK_PYTHON", "JAVA_HOME"):
        monkeypatch.delenv(name, raising=False)
    for name in ("_active_spark_context", "_gateway", "_jvm"):
        monkeypatch.setattr(f"pyspark.SparkContext.{name}", None)
    monkeypatch.setattr(session, "find_java", lambda: JAVA)
    monkeypatch.setattr(session, "delta_jars", lambda _java: [Path("/delta.jar")])


@pytest.mark.parametrize(("master", "level"), [(None, "ERROR"), ("spark://h:1", None)])
def test_spark_starts_with_the_java_that_was_checked_and_the_environment_is_as_before(
    without_spark: None, monkeypatch: pytest.MonkeyPatch, master: str | None, level: str | None
) -> None:
    builder = Builder()
    monkeypatch.setattr("pyspark.sql.SparkSession", builder)
    with session.spark_session(master):
        assert builder.settings == session.start_settings(master or "local[*]", [Path("/delta.jar")])
        assert builder.environment["JAVA_HOME"] == "/a/jdk"
        assert builder.environment.get("PYSPARK_PYTHON") == (None if master else sys.executable)
        assert os.environ.keys().isdisjoint({"JAVA_HOME", "PYSPARK_PYTHON"})
        assert builder.started.level == level
    assert builder.started.stopped


@pytest.mark.parametrize(("master", "named"), [(None, r"local\[\*\]"), ("spark://h:1", "spark://h:1")])
def test_a_spark_that_does_not_start_is_reported_in_one_line(
    without_spark: None, monkeypatch: pytest.MonkeyPatch, master: str | None, named: str
) -> None:
    monkeypatch.setattr("pyspark.sql.SparkSession", Builder(PySparkRuntimeError("refused\n  at a.java:1")))
    with (
        pytest.raises(UsageError, match=rf"^Spark did not start on {named}: refused; look at --master and Java$"),
        session.spark_session(master),
    ):
        pass


def test_an_active_spark_is_used_as_it_is(without_spark: None, monkeypatch: pytest.MonkeyPatch) -> None:
    builder = Builder()
    monkeypatch.setattr("pyspark.sql.SparkSession", builder)
    monkeypatch.setattr("pyspark.SparkContext._active_spark_context", object())
    with session.spark_session():
        assert (builder.settings, builder.started.level) == ({}, None)
    assert not builder.started.stopped


class Jvm:
    """The JVM of a session that was stopped, whose class loader is given jars."""

    def __init__(self) -> None:
        self.java = self.io = self.Thread = self
        self.jars: list[str] = []

    def File(self, path: str) -> SimpleNamespace:  # noqa: N802 - Java's name
        return SimpleNamespace(toURI=lambda: SimpleNamespace(toURL=lambda: f"file:{path}"))

    def currentThread(self) -> SimpleNamespace:  # noqa: N802 - Java's name
        return SimpleNamespace(getContextClassLoader=lambda: SimpleNamespace(addURL=self.jars.append))


@pytest.mark.parametrize("delta", [False, True])
def test_a_jvm_that_is_there_already_gets_the_jars_of_delta_lake_only_where_tables_are_read(
    without_spark: None, monkeypatch: pytest.MonkeyPatch, delta: bool
) -> None:
    jvm = Jvm()
    monkeypatch.setattr("pyspark.SparkContext._gateway", SimpleNamespace(jvm=jvm))
    monkeypatch.setattr("pyspark.sql.SparkSession", Builder())
    with session.spark_session("local[1]", delta=delta):
        pass
    assert jvm.jars == (["file:/delta.jar"] if delta else [])


class ConnectServer(Base):
    """A session of Spark Connect, its client, and the builder that made it."""

    def __init__(self, extensions: str) -> None:
        super().__init__(extensions)
        self.builder = self.client = self
        self.policies: list[object] = ["Spark's own"]

    def remote(self, _url: str) -> "ConnectServer":
        return self

    def create(self) -> "ConnectServer":
        return self

    def get_retry_policies(self) -> list[object]:
        return self.policies

    def set_retry_policies(self, policies: list[object]) -> None:
        self.policies = policies


@pytest.mark.slow
@pytest.mark.parametrize("extensions", ["", session.EXTENSION])
def test_a_spark_connect_server_needs_delta_lake_only_where_tables_are_read(
    monkeypatch: pytest.MonkeyPatch, extensions: str
) -> None:
    servers = [ConnectServer(extensions), ConnectServer(extensions)]
    monkeypatch.setattr("pyspark.sql.connect.session.SparkSession", servers[0])
    monkeypatch.setattr(session, "send_code", lambda *_: None)
    without = pytest.raises(UsageError, match=r"^Spark at sc://h:1 has no Delta Lake; start it with --packages ")
    with nullcontext() if extensions else without, session.spark_session(remote="sc://h:1"):
        assert not servers[0].stopped
    assert servers[0].stopped
    monkeypatch.setattr("pyspark.sql.connect.session.SparkSession", servers[1])
    with session.spark_session(remote="sc://h:1", delta=False):
        assert servers[1].policies == ["Spark's own"]
    assert servers[1].stopped


@pytest.mark.parametrize(("message", "line"), [("refused\n at b", "refused"), ("", "OSError")])
def test_a_server_of_spark_connect_that_does_not_respond_is_reported_in_one_line(
    monkeypatch: pytest.MonkeyPatch, message: str, line: str
) -> None:
    def fail(_server: ConnectServer) -> None:
        raise OSError(message)

    monkeypatch.setattr(ConnectServer, "create", fail)
    monkeypatch.setattr("pyspark.sql.connect.session.SparkSession", ConnectServer(""))
    with (
        pytest.raises(UsageError, match=rf"^Spark Connect at sc://h:1: {line}; look at --remote$"),
        session.spark_session(remote="sc://h:1"),
    ):
        pass


@pytest.mark.parametrize(
    ("master", "remote", "connected"),
    [(None, None, "sc://of-a-notebook:1"), (None, "sc://named:1", "sc://named:1"), ("local[1]", None, None)],
)
def test_the_variable_of_spark_connect_counts_where_nothing_is_named(
    monkeypatch: pytest.MonkeyPatch, master: str | None, remote: str | None, connected: str | None
) -> None:
    monkeypatch.setenv("SPARK_REMOTE", "sc://of-a-notebook:1")
    used: list[tuple[str, bool]] = []

    def connect(url: str, delta: bool, _required: object) -> AbstractContextManager[None]:
        used.append((url, delta))
        return nullcontext()

    monkeypatch.setattr(session, "_connected", connect)
    monkeypatch.setattr(session, "_started", lambda *_: Base())
    with session.spark_session(master, remote, delta=False):
        pass
    assert used == ([] if connected is None else [(connected, False)])


def test_variables_of_a_block_are_as_before_it_afterwards(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RACKSPAN_THERE", "before")
    monkeypatch.delenv("RACKSPAN_NEW", raising=False)
    with suppress(KeyError), session._environment({"RACKSPAN_THERE": "within", "RACKSPAN_NEW": "within"}):
        assert (os.environ["RACKSPAN_THERE"], os.environ["RACKSPAN_NEW"]) == ("within", "within")
        raise KeyError
    assert (os.environ["RACKSPAN_THERE"], os.environ.get("RACKSPAN_NEW")) == ("before", None)


@pytest.mark.parametrize(("master", "python_of_workers"), [("local[2]", sys.executable), ("yarn", None)])
def test_the_java_that_was_checked_starts_and_local_workers_run_this_python(
    monkeypatch: pytest.MonkeyPatch, master: str, python_of_workers: str | None
) -> None:
    monkeypatch.delenv("PYSPARK_PYTHON", raising=False)
    java = Java(Path("/a/jdk/bin/java"), 17)
    variables = session._launch_variables({"spark.master": master}, java)
    expected = {"JAVA_HOME": "/a/jdk"} | ({"PYSPARK_PYTHON": python_of_workers} if python_of_workers else {})
    assert variables == expected
    monkeypatch.setenv("PYSPARK_PYTHON", "python-of-the-user")
    assert session._launch_variables({"spark.master": master}, None).get("PYSPARK_PYTHON") == (
        "python-of-the-user" if python_of_workers else None
    )


@pytest.mark.spark
def test_ours_is_a_session_of_its_own_and_leaves_the_shared_one_running(spark: SparkSession) -> None:
    zone = spark.conf.get("spark.sql.session.timeZone")
    spark.conf.set("spark.sql.session.timeZone", "Asia/Kathmandu")
    with session.spark_session("local[2]") as ours:
        assert ours.conf.get("spark.sql.session.timeZone") == "UTC"
        assert ours.sparkContext is spark.sparkContext
    assert spark.conf.get("spark.sql.session.timeZone") == "Asia/Kathmandu"
    assert spark.range(3).count() == 3
    spark.conf.set("spark.sql.session.timeZone", zone or "UTC")


@pytest.mark.soak
@pytest.mark.spark
def test_delta_lake_can_be_read_after_a_session_without_it_has_ended(tmp_path: Path) -> None:
    """`run` needs no Delta Lake in Spark, `follow` and `maintain` do; a notebook calls both, and the JVM stays the same."""
    table = str(tmp_path / "five")
    rows_read = python(
        "from rackspan.pipeline.spark import session",
        "with session.spark_session('local[1]', delta=False, light=True) as spark:",
        "    print(spark.range(3).count())",
        "with session.spark_session('local[1]', light=True) as spark:",
        f"    spark.range(5).write.format('delta').save({table!r})",
        f"    print(spark.read.format('delta').load({table!r}).count())",
    )
    assert rows_read.split() == ["3", "5"]
