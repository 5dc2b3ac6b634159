"""A standalone master with two workers on loopback, and a Spark Connect server on it, as processes of their own.

The executors' Python has NumPy and PyArrow and nothing else, not even rackspan: what the pipeline needs beyond that it must send.
"""

import os
import shutil
import signal
import socket
import subprocess
import sys
import tarfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path

import pyspark

from rackspan.java import find_java
from rackspan.pipeline.spark import session
from rackspan.pipeline.spark.jars import delta_jars
from tests.pipeline.conftest import QUICK_JAVA
from tests.processes import below, gone_within
from tests.waiting import WITHIN_SECONDS

SPARK_HOME = Path(pyspark.__file__).parent
EXECUTOR = {
    "spark.cores.max": "2",
    "spark.executor.cores": "1",
    "spark.executor.memory": "640m",
    "spark.sql.shuffle.partitions": "2",
    "spark.ui.enabled": "false",
}
"""Each application has an executor on each of the two workers, so that several run at once."""


@dataclass
class Standalone:
    """The running processes. `environment` is that of a user of this cluster."""

    folder: Path
    master: str
    python: Path
    environment: Mapping[str, str]
    processes: list[subprocess.Popen[bytes]] = field(default_factory=list)

    def rackspan(self, *words: str | Path) -> str:
        """What `rackspan WORDS` prints, both streams."""
        return self.run(sys.executable, "-m", "rackspan", *words)

    def run(self, *words: str | Path, **variables: str) -> str:
        done = subprocess.run(
            list(map(str, words)),
            env={**self.environment, **variables},
            cwd=self.folder,
            capture_output=True,
            text=True,
            timeout=600,
        )
        printed = done.stdout + done.stderr
        assert done.returncode == 0, "\n".join(line for line in printed.splitlines() if " INFO " not in line)[-4000:]
        return printed

    def applications(self) -> list[int]:
        """How many applications each worker had an executor for."""
        return [len(list((self.folder / f"worker{number}").glob("app-*/*"))) for number in (1, 2)]

    def executors(self) -> list[int]:
        """The processes of executors that run."""
        found = []
        for pid in (child for process in self.processes for child in below(process.pid)):
            with suppress(OSError):
                words = Path(f"/proc/{pid}/cmdline").read_bytes()
                found += [pid] * (b"CoarseGrainedExecutorBackend" in words)
        return found

    def start(self, stack: ExitStack, name: str, *words: str | Path) -> None:
        log = stack.enter_context((self.folder / f"{name}.log").open("wb"))
        command = list(map(str, words))
        self.processes.append(
            subprocess.Popen(command, env={**self.environment}, stdout=log, stderr=log, cwd=self.folder)
        )


@contextmanager
def standalone(folder: Path) -> Iterator[Standalone]:
    """Start a master and two workers, and end them, their executors included."""
    python = executors_python(folder / "python", "numpy", "pyarrow")
    port = free_port()
    started = Standalone(folder, f"spark://127.0.0.1:{port}", python, environment(folder, python, EXECUTOR))
    spark_class = SPARK_HOME / "bin" / "spark-class"
    with ExitStack() as stack:
        stack.callback(end, started.processes)
        place = ("--host", "127.0.0.1", "--webui-port", "0")
        started.start(
            stack, "master", spark_class, "org.apache.spark.deploy.master.Master", *place, "--port", f"{port}"
        )
        wait_for(port, folder / "master.log")
        for number in (1, 2):
            size = ("--cores", "4", "--memory", "4g", "--work-dir", folder / f"worker{number}")
            started.start(
                stack,
                f"worker{number}",
                spark_class,
                "org.apache.spark.deploy.worker.Worker",
                *place,
                *size,
                started.master,
            )
        yield started


@contextmanager
def connect_server(cluster: Standalone) -> Iterator[str]:
    """Start a Spark Connect server with Delta Lake on the cluster. Gives its URL."""
    port = free_port()
    settings = {
        **session.DELTA,
        "spark.connect.grpc.binding.address": "127.0.0.1",
        "spark.connect.grpc.binding.port": f"{port}",
    }
    with ExitStack() as stack:
        before = len(cluster.processes)
        stack.callback(lambda: end(cluster.processes[before:]))
        cluster.start(
            stack,
            "connect",
            *(SPARK_HOME / "bin" / "spark-submit", "--master", cluster.master, "--jars", jars()),
            *("--class", "org.apache.spark.sql.connect.service.SparkConnectServer"),
            *(word for name, value in settings.items() for word in ("--conf", f"{name}={value}")),
            "spark-internal",
        )
        wait_for(port, cluster.folder / "connect.log")
        yield f"sc://127.0.0.1:{port}"


def jars() -> str:
    return ",".join(map(str, delta_jars(find_java())))


def environment(folder: Path, python: Path, defaults: Mapping[str, str]) -> dict[str, str]:
    """The variables of a user of the cluster, whose spark-defaults.conf has these settings."""
    (folder / "conf").mkdir()
    (folder / "conf" / "spark-defaults.conf").write_text("".join(f"{name} {one}\n" for name, one in defaults.items()))
    return {
        **os.environ,
        "JAVA_HOME": str(find_java().home),
        "SPARK_CONF_DIR": str(folder / "conf"),
        "SPARK_LOCAL_IP": "127.0.0.1",
        "PYSPARK_PYTHON": str(python),
        "PYSPARK_DRIVER_PYTHON": sys.executable,
        **QUICK_JAVA,
    }


def executors_python(folder: Path, *packages: str) -> Path:
    """A Python with these packages alone, taken from the one that runs the tests."""
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(folder)], check=True, timeout=WITHIN_SECONDS)
    (site,) = folder.glob("lib/python*/site-packages")
    for package in packages:
        spec = find_spec(package)
        assert spec is not None
        assert spec.origin is not None
        installed = Path(spec.origin).parent
        for part in (installed, installed.with_name(f"{package}.libs")):
            if part.is_dir():
                (site / part.name).symlink_to(part)
    return folder / "bin" / "python"


def archive_of(python: Path, folder: Path) -> Path:
    """A .tar.gz with bin/python, which starts `python`, in place of a whole environment."""
    program = folder / "environment" / "bin" / "python"
    program.parent.mkdir(parents=True)
    program.write_text(f'#!/bin/sh\nexec {python} "$@"\n')
    program.chmod(0o755)
    made = folder / "environment.tar.gz"
    with tarfile.open(made, "w:gz") as archive:
        archive.add(program, "bin/python")
    shutil.rmtree(folder / "environment")
    return made


def free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return int(listener.getsockname()[1])


def wait_for(port: int, log: Path) -> None:
    until = time.monotonic() + WITHIN_SECONDS
    while time.monotonic() < until:
        with socket.socket() as client:
            client.settimeout(1)  # short: tried again
            if client.connect_ex(("127.0.0.1", port)) == 0:
                return
        time.sleep(0.1)
    raise AssertionError(f"nothing listens on port {port}: {log.read_text()[-2000:]}")


def end(processes: Sequence[subprocess.Popen[bytes]]) -> None:
    """End processes, the youngest first; a worker ends its executors."""
    for process in reversed(processes):
        process.send_signal(signal.SIGTERM)
    for process in reversed(processes):
        try:
            process.wait(WITHIN_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait(WITHIN_SECONDS)
    assert gone_within(WITHIN_SECONDS, *(process.pid for process in processes))
