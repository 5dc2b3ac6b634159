"""The Spark session of a run: started or reused, with its settings, and with this package sent to the executors.

A session that is active already (of a notebook, a test, spark-submit) is reused and left running; otherwise one is started
and stopped. The run uses its `newSession()` in both cases, so the settings below affect no other user of it.
"""

import os
import shutil
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Final

import rackspan
from rackspan.errors import MissingRequirement, UsageError
from rackspan.java import find_java

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
    # Below so many folders, listing them on the driver is faster than starting a task for each.
    "spark.sql.sources.parallelPartitionDiscovery.threshold": "1000",
}


@contextmanager
def spark_session(master: str | None) -> Iterator["SparkSession"]:
    """A session for one run. `master` None means that of spark-submit where it started us, `local[*]` otherwise.

    Errors: MissingRequirement without pyspark or Java; UsageError where Spark does not come up.
    """
    require_pyspark()
    from pyspark import SparkContext

    # Not getActiveSession(), which returns only sessions of its own thread.
    active = SparkContext._active_spark_context is not None
    base = _started(master)
    try:
        _ship_code(base)
        session = base.newSession()
        for name, value in SETTINGS.items():
            session.conf.set(name, value)
        yield session
    finally:
        if not active:
            base.stop()


def require_pyspark() -> None:
    """Raise MissingRequirement where pyspark is not installed."""
    if find_spec("pyspark") is None:
        raise MissingRequirement("pyspark is not installed, and the pipeline runs on it; pip install 'rackspan[spark]'")


def is_local(master: str) -> bool:
    return master.startswith("local") and not master.startswith("local-cluster")


def start_settings(master: str | None) -> dict[str, str]:
    """Settings that have effect only before Spark starts. Without a master, spark-submit's own settings stay."""
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
    from py4j.protocol import Py4JError
    from pyspark import SparkConf, SparkContext
    from pyspark.errors import PySparkException
    from pyspark.sql import SparkSession

    if SparkContext._active_spark_context is not None:
        return SparkSession.builder.getOrCreate()
    submitted = "PYSPARK_GATEWAY_PORT" in os.environ
    settings = start_settings(master if submitted or master else LOCAL)
    try:
        with _environment(_launch_variables(settings, submitted=submitted)):
            session = SparkSession.builder.config(conf=SparkConf().setAll(list(settings.items()))).getOrCreate()
    except (PySparkException, Py4JError, OSError) as error:
        line = str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
        raise UsageError(f"Spark did not start on {master or LOCAL}: {line}; look at --master and Java") from error
    session.sparkContext.setLogLevel("ERROR")
    return session


def _launch_variables(settings: Mapping[str, str], *, submitted: bool) -> dict[str, str]:
    """Environment variables for starting the JVM and Python workers. Errors: MissingRequirement without Java."""
    # Spark's start script does not check the version of JAVA_HOME; find_java has checked this one.
    variables = {} if submitted else {"JAVA_HOME": str(find_java().home)}
    if settings.get("spark.master", "").startswith("local"):
        # Without it workers start with the python3 of the PATH, which has neither rackspan nor NumPy.
        variables["PYSPARK_PYTHON"] = os.environ.get("PYSPARK_PYTHON", sys.executable)
    return variables


@contextmanager
def _environment(variables: Mapping[str, str]) -> Iterator[None]:
    """Set environment variables for a block only, since the caller may start programs of its own."""
    before = {name: os.environ.get(name) for name in variables}
    os.environ.update(variables)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value


def _ship_code(session: "SparkSession") -> None:
    """Send this package to executors on other machines, once a session; local ones import the installed one."""
    from pyspark import SparkFiles

    context = session.sparkContext
    if is_local(context.master or LOCAL):
        return
    # Executors fetch it from this folder while the session runs, and Spark removes the folder afterwards.
    folder = Path(SparkFiles.getRootDirectory())
    if not (folder / "rackspan.zip").exists():
        context.addPyFile(packaged(folder))


def packaged(folder: Path) -> str:
    """The package as a zip that Python can import from. Returns its path."""
    source = Path(rackspan.__file__).parent
    return shutil.make_archive(str(folder / "rackspan"), "zip", source.parent, source.name)
