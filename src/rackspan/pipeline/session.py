"""A Spark session set up for us: whose it is, how it is set, and how our code reaches its executors.

A session that is at work already (a notebook's, a test's, spark-submit's) is used and left running; otherwise one is
started and stopped. Ours is `newSession()` of it either way, so the settings below are nobody else's.
"""

import os
import shutil
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Final

import rackspan
from rackspan.errors import MissingRequirement, UsageError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

LOCAL: Final = "local[*]"

SETTINGS: Final[Mapping[str, str]] = {
    "spark.sql.session.timeZone": "UTC",
    # Cluster ids such as 007 are names, not numbers.
    "spark.sql.sources.partitionColumnTypeInference.enabled": "false",
    # INT96, the default, has no unit that other readers agree on.
    "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS",
    "spark.sql.parquet.compression.codec": "zstd",
    # Wide enough that NumPy, not the crossing into Python, is where the time goes; 5 MB a batch.
    "spark.sql.execution.arrow.maxRecordsPerBatch": "50000",
    # A task lists a folder; below so many the driver is faster than the tasks are started.
    "spark.sql.sources.parallelPartitionDiscovery.threshold": "1000",
}


@contextmanager
def spark_session(master: str | None) -> Iterator["SparkSession"]:
    """A session for one run. `master` None means spark-submit's where it started us, `local[*]` otherwise.

    Errors: MissingRequirement without pyspark or Java; UsageError where Spark does not come up.
    """
    require_pyspark()
    from pyspark import SparkContext

    # Not getActiveSession(), which knows only the sessions of its own thread.
    at_work = SparkContext._active_spark_context is not None
    base = _started(master)
    try:
        _ship_code(base)
        ours = base.newSession()
        for name, value in SETTINGS.items():
            ours.conf.set(name, value)
        yield ours
    finally:
        if not at_work:
            base.stop()


def require_pyspark() -> None:
    """Errors: MissingRequirement."""
    if find_spec("pyspark") is None:
        raise MissingRequirement("pyspark is not installed, and the pipeline runs on it; pip install 'rackspan[spark]'")


def require_java() -> None:
    """Errors: MissingRequirement. The one place here that looks for Java."""
    home = os.environ.get("JAVA_HOME")
    if shutil.which("java", path=f"{home}/bin" if home else None) is None:
        where = f"JAVA_HOME={home} holds no bin/java" if home else "no java on the PATH"
        raise MissingRequirement(f"{where}, and Spark needs Java 17 or newer; install a JDK (openjdk-17-jdk-headless)")


def is_local(master: str) -> bool:
    return master.startswith("local") and not master.startswith("local-cluster")


def start_settings(master: str | None) -> dict[str, str]:
    """What must be set before Spark starts. Without a master spark-submit's own settings are left as they are."""
    common = {"spark.ui.enabled": "false", "spark.ui.showConsoleProgress": "false"}
    if master is None:
        return common
    if not is_local(master):
        return {**common, "spark.master": master}
    return {
        **common,
        "spark.master": master,
        # A local Spark needs no address that others can reach.
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.memory": os.environ.get("SPARK_DRIVER_MEMORY", "2g"),
        "spark.driver.extraJavaOptions": f"-Dlog4j2.configurationFile={Path(__file__).with_name('log4j2.properties')}",
        # Spark's 200 are for a cluster: on one machine each is a file and a task with next to nothing in it.
        "spark.sql.shuffle.partitions": str(max(4, 2 * (os.cpu_count() or 2))),
    }


def _started(master: str | None) -> "SparkSession":
    from pyspark import SparkConf, SparkContext
    from pyspark.sql import SparkSession

    if SparkContext._active_spark_context is not None:
        return SparkSession.builder.getOrCreate()
    submitted = "PYSPARK_GATEWAY_PORT" in os.environ
    if not submitted:
        require_java()
    # Without it workers start with the python3 of the PATH, which has neither rackspan nor NumPy.
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    settings = start_settings(master if submitted or master else LOCAL)
    try:
        session = SparkSession.builder.config(conf=SparkConf().setAll(list(settings.items()))).getOrCreate()
    except Exception as error:
        line = str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
        raise UsageError(f"Spark did not start on {master or LOCAL}: {line}; look at --master and Java") from error
    session.sparkContext.setLogLevel("ERROR")
    return session


def _ship_code(session: "SparkSession") -> None:
    """Send this very package to executors on other machines; local ones import it as we did."""
    context = session.sparkContext
    if is_local(context.master or LOCAL):
        return
    folder = Path(tempfile.mkdtemp(prefix="rackspan-"))
    try:
        context.addPyFile(packaged(folder))
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def packaged(folder: Path) -> str:
    """The package as a zip that Python can import from. Returns its path."""
    source = Path(rackspan.__file__).parent
    return shutil.make_archive(str(folder / "rackspan"), "zip", source.parent, source.name)
