"""What the Python of executors must have, how it is looked for, and the package that is sent to it."""

import subprocess
import sys
from collections.abc import Callable
from itertools import count
from pathlib import Path
from random import Random
from typing import Any, Final

import pytest
from pyspark.errors import PySparkRuntimeError

from rackspan import pipeline
from rackspan.errors import UsageError
from rackspan.pipeline import Warehouse
from rackspan.pipeline.spark import executors
from tests.pipeline.readings import history, store_readings


def python(*lines: str) -> str:
    """What a fresh Python prints."""
    done = subprocess.run([sys.executable, "-c", "\n".join(lines)], capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    return done.stdout


NOT_ON_EXECUTORS: Final = {"msgspec", "kafka", "kio", "click", "yaml", "prometheus_client", "deltalake"}


@pytest.mark.slow
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


@pytest.mark.slow
def test_a_task_with_readings_imports_two_packages_more() -> None:
    of_others = python(
        "import sys",
        f"others = {sorted(NOT_ON_EXECUTORS - {'msgspec'} | {'rich', 'typer', 'crc32c', 'jinja2', 'pandas'})}",
        "sys.modules.update(dict.fromkeys(others))",
        "import rackspan.pipeline.hours.rows, ortools.graph.python.min_cost_flow",
        "print([name for name in others if sys.modules[name] is not None], 'msgspec' in sys.modules)",
    )
    assert of_others.strip() == "[] True"


def test_what_tasks_import_depends_on_what_is_stored_and_where(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    warehouse = pipeline.create_warehouse(tmp_path / "w")
    assert executors.required_modules(warehouse) == ("numpy", "pyarrow")
    store_readings(warehouse, history(Random(1), 1))
    assert executors.required_modules(warehouse) == ("numpy", "pyarrow", "msgspec", "ortools")
    monkeypatch.setattr(executors, "open_table", lambda _url: None)
    assert executors.required_modules(Warehouse("s3://bucket/w")) == ("numpy", "pyarrow", "deltalake")


def test_a_python_of_a_local_spark_that_is_another_version_is_reported(tmp_path: Path) -> None:
    (tmp_path / "python").write_text("#!/bin/sh\necho 3.8\necho\n")
    (tmp_path / "python").chmod(0o755)
    with pytest.raises(UsageError, match=r"PYSPARK_PYTHON, is 3\.8, and this one 3\.\d+; unset "):
        executors.require_here(str(tmp_path / "python"), ["numpy"])


def test_this_python_is_to_have_what_tasks_import() -> None:
    executors.require_here(sys.executable, ["numpy", "ortools"])
    with pytest.raises(
        UsageError, match=r"lacks no_such_one, which tasks of Spark import; pip install '\.\[spark\]' in"
    ):
        executors.require_here(sys.executable, ["numpy", "no_such_one"])


APPLICATIONS: Final = count()


class Executors:
    """A Spark on a cluster whose executors run functions of Python here. It records the packages that it is sent."""

    def __init__(self, master: str = "spark://h:1") -> None:
        self.sparkContext = self
        self.pythonExec = sys.executable
        self.applicationId = f"application {next(APPLICATIONS)}"
        self.master = master
        self.sent: list[str] = []

    def addPyFile(self, path: str) -> None:  # noqa: N802 - Spark's name
        self.sent.append(path)

    def range(self, rows: int) -> "Executors":
        self.rows = rows
        return self

    def select(self, function: Callable[[int], str]) -> "Executors":
        self.found = sorted({function(number) for number in range(self.rows)})
        return self

    def collect(self) -> list[tuple[list[str]]]:
        return [(self.found,)]


@pytest.fixture
def functions(monkeypatch: pytest.MonkeyPatch) -> None:
    """Columns that are the functions of Python themselves."""
    monkeypatch.setattr("pyspark.sql.functions.udf", lambda function, *_words, **_options: lambda _column: function)
    monkeypatch.setattr("pyspark.sql.functions.collect_set", lambda column: column)


@pytest.mark.slow
def test_the_package_is_sent_once_to_executors_on_other_machines_only(
    functions: None, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr("pyspark.SparkFiles.getRootDirectory", lambda: str(tmp_path))
    cluster, local = Executors(), Executors("local[2]")
    spark: Any
    for spark in (local, cluster, cluster):
        executors.send_code(spark)
    assert (local.sent, cluster.sent) == ([], [str(tmp_path / "rackspan.zip")])
    assert (tmp_path / "rackspan.zip").is_file()


def test_a_module_is_looked_for_on_executors_once(functions: None, monkeypatch: pytest.MonkeyPatch) -> None:
    looked_for: list[tuple[str, list[str]]] = []
    monkeypatch.setattr(
        executors, "_require_on_workers", lambda _spark, where, needed: looked_for.append((where, needed))
    )
    spark: Any
    for spark in (Executors(), ConnectExecutors()):
        for needed in (("numpy", "pyarrow"), ("numpy", "msgspec"), ("msgspec",)):
            executors.require_on_executors(spark, needed)
    assert looked_for == [
        (where, needed) for where in ("spark://h:1", "Spark Connect") for needed in (["numpy", "pyarrow"], ["msgspec"])
    ]


def test_executors_that_lack_a_module_or_have_another_python_are_reported(
    functions: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    spark: Any = Executors()
    executors._require_on_workers(spark, "spark://h:1")
    with pytest.raises(
        UsageError, match=r"^Python on the executors of spark://h:1 lacks no_such_one and nor_this; set"
    ):
        executors._require_on_workers(spark, "spark://h:1", ("numpy", "no_such_one", "nor_this"))
    monkeypatch.setattr(spark, "collect", lambda: [(["3.8 "],)])
    with pytest.raises(UsageError, match=r"^Python on the executors of spark://h:1 is 3\.8, and this one 3\.\d+; set"):
        executors._require_on_workers(spark, "spark://h:1")


@pytest.mark.parametrize(
    ("message", "cause"),
    [("job aborted\nCaused by: a\nCaused by: Cannot run program", "Cannot run program"), ("lost\n at b", "lost")],
)
def test_executors_that_cannot_run_python_are_reported_by_the_last_cause(
    functions: None, monkeypatch: pytest.MonkeyPatch, message: str, cause: str
) -> None:
    def fail() -> None:
        raise PySparkRuntimeError(message)

    spark: Any = Executors()
    monkeypatch.setattr(spark, "collect", fail)
    with pytest.raises(
        UsageError,
        match=rf"^the executors of yarn cannot run Python: {cause}; install Python 3\.\d+ with numpy and pyarrow there",
    ):
        executors._require_on_workers(spark, "yarn")


class ConnectExecutors(Executors):
    """As `Executors`, by Spark Connect. It records the archives that it is sent, by name."""

    __module__ = "pyspark.sql.connect.session"

    def __init__(self) -> None:
        super().__init__()
        self.session_id = self.applicationId

    def addArtifacts(self, path: str, *, pyfile: bool) -> None:  # noqa: N802 - Spark's name
        assert pyfile
        assert Path(path).is_file()
        self.sent.append(Path(path).name)


@pytest.mark.slow
def test_the_package_is_sent_once_to_a_server_of_spark_connect(
    functions: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(executors, "_SENT_TO", set())
    spark: Any = ConnectExecutors()
    with pytest.raises(UsageError, match=r"^Python on the executors of Spark Connect lacks no_such_one; "):
        executors.send_code(spark, ["no_such_one"])
    for _ in range(2):
        executors.send_code(spark)
    assert spark.sent == ["rackspan.zip"]


@pytest.mark.slow
def test_the_package_that_is_sent_can_be_imported_from_its_zip(tmp_path: Path) -> None:
    archive = executors.packaged(tmp_path)
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
        "from rackspan.pipeline.spark import executors",
        f"print(executors.packaged(Path({str(tmp_path / 'again')!r})))",
    ).strip()
    assert Path(again).read_bytes() == Path(archive).read_bytes()
