import shutil
import subprocess
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

import rackspan
from rackspan.errors import MissingRequirement
from rackspan.pipeline.spark import session


def python(*lines: str) -> str:
    """What a fresh Python prints."""
    done = subprocess.run([sys.executable, "-c", "\n".join(lines)], capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_the_pipeline_is_imported_without_spark() -> None:
    rows_read = python(
        "import sys, rackspan.pipeline", "print([name for name in sys.modules if 'spark' in name or 'py4j' in name])"
    )
    assert rows_read.strip() == "[]"


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
    with pytest.raises(MissingRequirement, match=r"pip install 'rackspan\[spark\]'"):
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


def test_without_a_master_spark_submit_has_its_way() -> None:
    assert session.start_settings(None, []) == {}


def test_the_package_that_is_sent_can_be_imported_from_its_zip(tmp_path: Path) -> None:
    archive = session.packaged(tmp_path)
    rows_read = python(
        f"import sys; sys.path.insert(0, {archive!r})",
        "import rackspan, rackspan.pipeline.frames",
        "print(rackspan.__file__)",
    )
    assert rows_read.startswith(archive)


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


def where(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for _batch in batches:
        yield pa.record_batch({"file": [rackspan.__file__]})


@pytest.mark.spark
@pytest.mark.soak
def test_executors_on_other_machines_are_sent_the_package() -> None:
    """Spark's own stand-in for other machines: an executor in a process of its own, with a folder of its own."""
    assert shutil.which("java")
    rows_read = python(
        "import sys; sys.path.insert(0, '.')",
        "from pyspark import cloudpickle",
        "from tests.pipeline.spark import test_session as mine",
        "cloudpickle.register_pickle_by_value(mine)",
        "from rackspan.pipeline.spark import session",
        "with session.spark_session('local-cluster[1,1,1024]') as spark:",
        "    print(spark.range(1).mapInArrow(mine.where, 'file string').first().file)",
    )
    assert ".zip/rackspan/__init__.py" in rows_read
