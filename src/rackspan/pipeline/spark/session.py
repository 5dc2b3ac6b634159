"""The Spark session of a run: started, connected to or reused, with Delta Lake, and with this package sent to the executors.

A session that is active already (of a notebook, a test, spark-submit) is reused and left running, and must have Delta Lake
configured; otherwise one is started and stopped. The run uses a session of its own in each case (`newSession()`, or a new
connection for Spark Connect), so the settings below affect no other user of it. Of a cluster's own settings none is changed:
Delta Lake's jars and extension are added to those that spark-defaults.conf names.
"""

import os
import re
import signal
import sys
import threading
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from rackspan.ends import end_within
from rackspan.errors import MissingRequirement, UsageError, how_to_install
from rackspan.java import Java, find_java
from rackspan.pipeline.spark.executors import LOCAL, REQUIRED_BY_WORKERS, first_line, is_local, require_here, send_code
from rackspan.pipeline.spark.jars import SPARK_VERSIONS, artifact, delta_jars

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SETTINGS: Final[Mapping[str, str]] = {"spark.sql.session.timeZone": "UTC"}
"""Settings of the run's own session. None of them is static, so a session that is running already can have them."""

EXTENSION: Final = "io.delta.sql.DeltaSparkSessionExtension"
DELTA: Final[Mapping[str, str]] = {
    "spark.sql.extensions": EXTENSION,
    "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
    # Its default of 50 is 50 tasks for each read of a log.
    "spark.databricks.delta.snapshotPartitions": "2",
}
"""What Delta Lake needs when Spark starts."""

LIGHT_JAVA: Final = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC -XX:ReservedCodeCacheSize=256m"
"""For a JVM that hands out tasks of Python: otherwise it spends half of its processor time on compiling what it hardly runs again.

With one compiler Java reserves 48 MB for compiled code, fills them after some fifty seconds, and then compiles nothing more.
"""

STOP_SECONDS: Final = 60.0
"""For Spark to end. A cluster on a busy machine takes seconds."""

FIRST_RETRIES: Final = 5
"""Of the first request to a Spark Connect server: less than a minute."""


@contextmanager
def spark_session(
    master: str | None = None,
    remote: str | None = None,
    *,
    delta: bool = True,
    light: bool = False,
    required: Collection[str] = REQUIRED_BY_WORKERS,
) -> Iterator["SparkSession"]:
    """A session for one run. `master` None means that of spark-submit where it started us, `local[*]` otherwise.

    `remote` is the URL of a Spark Connect server, sc://HOST:PORT. Without `delta` the session need not read Delta tables. `light`
    means that the work of a Spark started here is done in Python. `required` are the modules that tasks import: of a local Spark they
    are looked for before it starts, of another one before its first job. Errors: MissingRequirement without pyspark,
    Java or Delta Lake; UsageError where Spark does not come up, or its executors lack something.
    """
    require_pyspark(delta=delta)
    if remote is None and master is None:
        # Spark's own variable, which notebooks of Spark Connect set.
        remote = os.environ.get("SPARK_REMOTE")
    if remote is not None:
        with _connected(remote, delta, required) as session:
            yield session
        return
    from pyspark import SparkContext

    # Not getActiveSession(), which returns only sessions of its own thread.
    active = SparkContext._active_spark_context is not None
    if not active and "PYSPARK_GATEWAY_PORT" not in os.environ and is_local(master or LOCAL):
        require_here(os.environ.get("PYSPARK_PYTHON", sys.executable), required)
    base = _started(master, delta, light)
    try:
        if delta:
            _require_delta(base, master or "the running session")
        send_code(base, required)
        session = base.newSession()
        apply_settings(session)
        yield session
    finally:
        if not active:
            end_within("Spark", base.stop, STOP_SECONDS)


def apply_settings(session: Any) -> None:
    """Set what the run needs."""
    for name, value in SETTINGS.items():
        session.conf.set(name, value)


@contextmanager
def _connected(remote: str, delta: bool, required: Collection[str]) -> Iterator[Any]:
    """A new session of a Spark Connect server. While it is open, `pyspark.sql.functions` makes columns for Spark Connect."""
    with _environment({"SPARK_CONNECT_MODE_ENABLED": "1"}), _connection(remote, delta, required) as session:
        yield session


@contextmanager
def _connection(remote: str, delta: bool, required: Collection[str]) -> Iterator[Any]:
    try:
        from pyspark.errors import PySparkException
        from pyspark.sql.connect.client.retries import DefaultPolicy
        from pyspark.sql.connect.session import SparkSession as ConnectSession
    except ImportError as error:
        raise MissingRequirement(f"Spark Connect needs {error.name}; {how_to_install('spark')}") from None
    try:
        session: Any = ConnectSession.builder.remote(remote).create()
        # By default a wrong address is tried for ten minutes.
        usual = session.client.get_retry_policies()
        session.client.set_retry_policies([DefaultPolicy(max_retries=FIRST_RETRIES)])
        if delta:
            _require_delta(session, remote)
        apply_settings(session)
        session.client.set_retry_policies(usual)
        send_code(session, required)
    except UsageError:
        end_within("the session of Spark Connect", session.stop, STOP_SECONDS)
        raise
    except (PySparkException, OSError, RuntimeError) as error:
        raise UsageError(f"Spark Connect at {remote}: {first_line(error)}; look at --remote") from error
    try:
        yield session
    finally:
        end_within("the session of Spark Connect", session.stop, STOP_SECONDS)


def require_pyspark(*, delta: bool = True) -> None:
    """Raise MissingRequirement if pyspark is not installed or is too old, and with `delta` if Delta Lake has no build for it."""
    if find_spec("pyspark") is None:
        raise MissingRequirement(f"pyspark is not installed, and the pipeline runs on it; {how_to_install('spark')}")
    from importlib.metadata import version

    pyspark = version("pyspark")
    if _minor(pyspark) < _minor(SPARK_VERSIONS[0]):
        raise MissingRequirement(
            f"pyspark {pyspark} is installed, and the pipeline runs on {SPARK_VERSIONS[0]} or newer; {how_to_install('spark')}"
        )
    if delta:
        artifact(pyspark)


def _minor(version: str) -> tuple[int, ...]:
    return tuple(map(int, version.split(".")[:2]))


def start_settings(master: str, jars: list[Path], *, light: bool = False) -> dict[str, str]:
    """Settings that have effect only before Spark starts: on a cluster Delta Lake alone, on a local Spark some of our own.

    Without `jars`, those of Delta Lake, Spark reads no Delta tables.
    """
    everywhere = {**(_delta_settings(jars) if jars else {}), "spark.master": master}
    if not is_local(master):
        return everywhere
    logging = f"-Dlog4j2.configurationFile={Path(__file__).with_name('log4j2.properties')}"
    return {
        **everywhere,
        "spark.ui.enabled": "false",
        # The progress bar would overwrite our lines.
        "spark.ui.showConsoleProgress": "false",
        # A local Spark needs no address that others can reach.
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.memory": os.environ.get("SPARK_DRIVER_MEMORY", "2g"),
        "spark.driver.extraJavaOptions": f"{logging} {LIGHT_JAVA}" if light else logging,
        # Spark's 200 are for a cluster: on one machine each is a file and a task with next to nothing in it.
        "spark.sql.shuffle.partitions": str(max(4, 2 * (os.cpu_count() or 2))),
    }


def _delta_settings(jars: list[Path]) -> dict[str, str]:
    """Delta Lake beside what spark-defaults.conf has."""
    theirs = spark_defaults(os.environ)
    delta = dict(DELTA) | {name: theirs[name] for name in DELTA if name in theirs and name != "spark.sql.extensions"}
    added = {"spark.jars": list(map(str, jars)), "spark.sql.extensions": [EXTENSION]}
    for name, ours in added.items():
        given = [word for word in theirs.get(name, "").split(",") if word and word not in ours]
        delta[name] = ",".join([*given, *ours])
    return delta


def spark_defaults(environ: Mapping[str, str]) -> dict[str, str]:
    """The settings of the user's spark-defaults.conf: in SPARK_CONF_DIR, or in SPARK_HOME/conf. Spark's own are empty."""
    folder = environ.get("SPARK_CONF_DIR") or os.path.join(environ.get("SPARK_HOME", ""), "conf")
    try:
        lines = Path(folder, "spark-defaults.conf").read_text(encoding="utf-8").splitlines()
    except OSError:
        return {}
    pairs = (re.split(r"\s*[\s=:]\s*", line.strip(), maxsplit=1) for line in lines if line.strip()[:1] not in ("#", ""))
    return {pair[0]: pair[1] for pair in pairs if len(pair) == 2}


def _started(master: str | None, delta: bool, light: bool) -> "SparkSession":
    from py4j.protocol import Py4JError
    from pyspark import SparkConf, SparkContext
    from pyspark.errors import PySparkException
    from pyspark.sql import SparkSession

    if SparkContext._active_spark_context is not None:
        return SparkSession.builder.getOrCreate()
    submitted = "PYSPARK_GATEWAY_PORT" in os.environ
    if submitted and master is not None:
        raise UsageError(f"--master {master}: spark-submit has started Spark already; give --master to spark-submit")
    java = None if submitted else find_java()
    jars = delta_jars(java) if delta and java is not None else []
    settings = {} if java is None else start_settings(master or LOCAL, jars, light=light)
    try:
        # The JVM of a session that was stopped, ours or the user's, goes on, with the jars it began with.
        if jars and SparkContext._gateway is not None:
            add_jars(SparkContext._gateway.jvm, jars)
        with _environment(_launch_variables(settings, java)), _own_ctrl_c():
            session = SparkSession.builder.config(conf=SparkConf().setAll(list(settings.items()))).getOrCreate()
    except (PySparkException, Py4JError, OSError) as error:
        raise UsageError(
            f"Spark did not start on {master or LOCAL}: {first_line(error)}; look at --master and Java"
        ) from error
    if is_local(master or LOCAL) and not submitted:
        session.sparkContext.setLogLevel("ERROR")
    return session


def add_jars(jvm: Any, jars: list[Path]) -> None:
    """Add jars to a JVM that spark-submit or pyspark has started; those it has already are not looked at again."""
    loader = jvm.Thread.currentThread().getContextClassLoader()
    for jar in jars:
        loader.addURL(jvm.java.io.File(str(jar)).toURI().toURL())


def _require_delta(session: "SparkSession", where: str) -> None:
    """Raise UsageError where a session that others have configured lacks Delta Lake."""
    extensions = session.conf.get("spark.sql.extensions", "") or ""
    if EXTENSION not in extensions:
        raise UsageError(
            f"Spark at {where} has no Delta Lake; start it with --packages io.delta:{artifact(_pyspark_version())}:4.4.0 "
            f"--conf spark.sql.extensions={EXTENSION} "
            f"--conf spark.sql.catalog.spark_catalog={DELTA['spark.sql.catalog.spark_catalog']}"
        )


def _pyspark_version() -> str:
    import pyspark

    return str(pyspark.__version__)


def _launch_variables(settings: Mapping[str, str], java: Java | None) -> dict[str, str]:
    """Environment variables for starting the JVM and Python workers."""
    # Spark's start script does not check the version of JAVA_HOME; find_java has checked this one.
    variables = {} if java is None else {"JAVA_HOME": str(java.home)}
    if settings.get("spark.master", "").startswith("local"):
        # Without it workers start with the python3 of the PATH, which has neither rackspan nor NumPy.
        variables["PYSPARK_PYTHON"] = os.environ.get("PYSPARK_PYTHON", sys.executable)
    return variables


@contextmanager
def _own_ctrl_c() -> Iterator[None]:
    """Keep the handler of Ctrl-C: Spark's own cancels the jobs first, and waits for the JVM to do so."""
    before = signal.getsignal(signal.SIGINT)
    try:
        yield
    finally:
        if threading.current_thread() is threading.main_thread():
            signal.signal(signal.SIGINT, before)


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
                # Stopping a session of Spark Connect may have removed its variable already.
                os.environ.pop(name, None)
            else:
                os.environ[name] = value
