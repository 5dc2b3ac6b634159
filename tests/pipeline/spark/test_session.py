import subprocess
import sys
from pathlib import Path
from typing import Final

import pytest
from pyspark.sql import SparkSession

from rackspan.errors import MissingRequirement, UsageError
from rackspan.pipeline.spark import session


def python(*lines: str) -> str:
    """What a fresh Python prints."""
    done = subprocess.run([sys.executable, "-c", "\n".join(lines)], capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    return done.stdout


NOT_ON_EXECUTORS: Final = {"msgspec", "kafka", "kio", "click", "yaml", "prometheus_client", "deltalake"}


def test_the_pipeline_is_imported_without_spark() -> None:
    rows_read = python(
        "import sys, rackspan.pipeline", "print([name for name in sys.modules if 'spark' in name or 'py4j' in name])"
    )
    assert rows_read.strip() == "[]"


def test_a_task_imports_only_what_executors_must_have() -> None:
    """rackspan is sent to them; msgspec, click and the like are not."""
    of_others = python(
        "import sys",
        f"others = {sorted(NOT_ON_EXECUTORS)}",
        "sys.modules.update(dict.fromkeys(others))",
        "import rackspan.pipeline.hours.task, rackspan.pipeline.judging.task",
        "print([name for name in others if sys.modules[name] is not None])",
    )
    assert of_others.strip() == "[]"


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


@pytest.mark.slow
def test_the_package_that_is_sent_can_be_imported_from_its_zip(tmp_path: Path) -> None:
    archive = session.packaged(tmp_path)
    rows_read = python(
        f"import sys; sys.path.insert(0, {archive!r})",
        "import rackspan, rackspan.pipeline.judging",
        "print(rackspan.__file__)",
    )
    assert rows_read.startswith(archive)
    (tmp_path / "again").mkdir()
    again = python(
        f"import sys; sys.path.insert(0, {archive!r})",
        "from pathlib import Path",
        "from rackspan.pipeline.spark import session",
        f"print(session.packaged(Path({str(tmp_path / 'again')!r})))",
    ).strip()
    assert Path(again).read_bytes() == Path(archive).read_bytes()


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


@pytest.mark.spark
def test_delta_lake_can_be_read_after_a_session_without_it_has_ended(tmp_path: Path) -> None:
    """`run` needs no Delta Lake in Spark, `follow` and `maintain` do; a notebook calls both, and the JVM stays the same."""
    table = str(tmp_path / "five")
    rows_read = python(
        "from rackspan.pipeline.spark import session",
        "with session.spark_session('local[1]', delta=False, short=True) as spark:",
        "    print(spark.range(3).count())",
        "with session.spark_session('local[1]', short=True) as spark:",
        f"    spark.range(5).write.format('delta').save({table!r})",
        f"    print(spark.read.format('delta').load({table!r}).count())",
    )
    assert rows_read.split() == ["3", "5"]
