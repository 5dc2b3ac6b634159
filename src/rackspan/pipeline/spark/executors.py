"""The Python of a session's executors: what it must have for the tasks of a warehouse, and this package, which is sent to it.

Begin with required_modules and send_code. A local Spark imports the package that is installed.
"""

import re
import shutil
import subprocess
import sys
from collections.abc import Collection
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, Final

import rackspan
from rackspan.errors import UsageError, how_to_install
from rackspan.pipeline.delta.credentials import redacted
from rackspan.pipeline.delta.table import data_files, open_table
from rackspan.pipeline.schemas.readings import READINGS
from rackspan.pipeline.warehouse import Warehouse

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

LOCAL: Final = "local[*]"

_SENT_TO: Final[set[str]] = set()
"""The sessions of Spark Connect whose server has this package."""

REQUIRED_BY_WORKERS: Final = ("numpy", "pyarrow")
REQUIRED_BY_READINGS: Final = ("msgspec", "ortools")
"""Hours of readings are made by the functions of `traffic`, `clients` and `streams`."""
REQUIRED_BY_OBJECT_STORES: Final = ("deltalake",)

_FOUND: Final[set[tuple[str, str]]] = set()
"""The modules that the executors of each Spark application or session of Spark Connect have."""

WORKERS_CHECKED: Final = 256
"""Rows, over as many tasks as the cluster has cores."""


def is_local(master: str) -> bool:
    return master.startswith("local") and not master.startswith("local-cluster")


def first_line(error: Exception) -> str:
    text = str(error).strip()
    return redacted(text.splitlines()[0]) if text else type(error).__name__


def required_modules(warehouse: Warehouse) -> tuple[str, ...]:
    """The modules beside rackspan's own that tasks of this warehouse import, as of now. Errors: InvalidWarehouse."""
    readings = open_table(warehouse.table(READINGS.name))
    return (
        *REQUIRED_BY_WORKERS,
        *(REQUIRED_BY_READINGS if readings is not None and data_files(readings) else ()),
        *(REQUIRED_BY_OBJECT_STORES if warehouse.folder is None else ()),
    )


def send_code(session: "SparkSession", required: Collection[str] = REQUIRED_BY_WORKERS) -> None:
    """Send this package to executors on other machines, once a session; local ones import the installed one.

    Errors: UsageError where their Python lacks one of the modules `required`.
    """
    if type(session).__module__.startswith("pyspark.sql.connect"):
        _send_by_connect(session)
    elif not is_local(session.sparkContext.master or LOCAL):
        from pyspark import SparkFiles

        # Executors fetch it from this folder while the session runs, and Spark removes the folder afterwards.
        folder = Path(SparkFiles.getRootDirectory())
        if not (folder / "rackspan.zip").exists():
            session.sparkContext.addPyFile(packaged(folder))
    require_on_executors(session, required)


def _send_by_connect(session: Any) -> None:
    if session.session_id not in _SENT_TO:
        with TemporaryDirectory() as folder:
            session.addArtifacts(packaged(Path(folder)), pyfile=True)
        _SENT_TO.add(session.session_id)


def require_on_executors(session: Any, required: Collection[str]) -> None:
    """Raise UsageError if Python on the executors lacks one of these modules. Each is looked for once."""
    connect = type(session).__module__.startswith("pyspark.sql.connect")
    name = session.session_id if connect else session.sparkContext.applicationId
    unknown = [module for module in required if (name, module) not in _FOUND]
    if not unknown:
        return
    if connect:
        _require_on_workers(session, "Spark Connect", unknown)
    elif is_local(session.sparkContext.master or LOCAL):
        require_here(session.sparkContext.pythonExec, unknown)
    else:
        _require_on_workers(session, session.sparkContext.master or LOCAL, unknown)
    _FOUND.update((name, module) for module in unknown)


_LACKING: Final = """\
import sys
from importlib.util import find_spec
print(sys.version_info[0], sys.version_info[1], sep=".")
print(" and ".join(name for name in sys.argv[1:] if find_spec(name) is None))
"""


def require_here(python: str, required: Collection[str]) -> None:
    """Raise UsageError if a Python on this machine, with which a local Spark runs tasks, is of another version or lacks a module."""
    modules = ("rackspan", *required)
    named = f"{python}, the Python of PYSPARK_PYTHON,"
    remedy = f"unset PYSPARK_PYTHON, or install rackspan there: {how_to_install('spark')}"
    if python == sys.executable:
        named, remedy = f"Python at {python}", how_to_install("spark")
        version, lacking = _version(), " and ".join(name for name in modules if find_spec(name) is None)
    else:
        try:
            ran = subprocess.run([python, "-c", _LACKING, *modules], capture_output=True, text=True, check=True)
        except (OSError, subprocess.CalledProcessError) as error:
            raise UsageError(f"{named} cannot be run: {first_line(error)}; {remedy}") from None
        version, lacking = ran.stdout.splitlines()
    if version != _version():
        raise UsageError(f"{named} is {version}, and this one {_version()}; {remedy}")
    if lacking:
        raise UsageError(f"{named} lacks {lacking}, which tasks of Spark import; {remedy}")


def _version() -> str:
    return f"{sys.version_info.major}.{sys.version_info.minor}"


def _require_on_workers(session: "SparkSession", where: str, needed: Collection[str] = REQUIRED_BY_WORKERS) -> None:
    """Raise UsageError where an executor's Python differs from ours, or lacks what the jobs import."""
    from py4j.protocol import Py4JError
    from pyspark.errors import PySparkException
    from pyspark.sql import functions as F

    needed = tuple(needed)

    # A local function is sent by value, and without Arrow: it has to run where neither rackspan nor PyArrow is.
    def lacking(_number: int) -> str:
        import sys
        from importlib.util import find_spec

        missing = " and ".join(name for name in needed if find_spec(name) is None)
        return f"{sys.version_info.major}.{sys.version_info.minor} {missing}"

    ours = _version()
    try:
        # A task for each core, so that other executors than the first one are looked at too.
        column = F.collect_set(F.udf(lacking, "string", useArrow=False)("id"))
        ((found,),) = session.range(WORKERS_CHECKED).select(column).collect()
    except (PySparkException, Py4JError) as error:
        # Without the program itself Spark gives a Java error, whose first line names no cause.
        causes = re.findall(r"Caused by: (.*)", str(error))
        cause = redacted(causes[-1]) if causes else first_line(error)
        raise UsageError(
            f"the executors of {where} cannot run Python: {cause}; install Python {ours} with {' and '.join(needed)} "
            "there, or ship it with --archives"
        ) from error
    for host in sorted(found):
        python, _, missing = host.partition(" ")
        if python != ours or missing:
            lacks = f"lacks {missing}" if missing else f"is {python}, and this one {ours}"
            raise UsageError(
                f"Python on the executors of {where} {lacks}; set PYSPARK_PYTHON to one that fits, or ship one with --archives"
            )


def packaged(folder: Path) -> str:
    """The package as a zip that Python can import from. Returns its path."""
    archive = getattr(rackspan.__loader__, "archive", None)
    if archive is not None:
        # Imported from a zip already, as from the wheel that spark-submit was given.
        return str(shutil.copyfile(archive, folder / "rackspan.zip"))
    source = Path(rackspan.__file__).parent
    return shutil.make_archive(str(folder / "rackspan"), "zip", source.parent, source.name)
