"""A standalone Spark master with one worker in each of two racks, as processes that the test starts and ends."""

import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

import pyspark

from rackspan.child_process.keeper import die_with_parent
from tests import spark_classes
from tests.waiting import WITHIN_SECONDS

SPARK_HOME = Path(pyspark.__file__).parent
FIRST_HOST = "127.0.0.1"
QUICK = f"-XX:TieredStopAtLevel=1 -XX:+UseSerialGC {spark_classes.options()}"


@contextmanager
def standalone(folder: Path, racks: Sequence[str]) -> Iterator[str]:
    """The master's URL. A worker has one core, and its rack in RACKSPAN_RACK, as a machine or a pod would."""
    with ExitStack() as held:
        log = folder / "master.log"
        held.enter_context(_started(log, "master.Master", *_address(FIRST_HOST)))
        url = _found(r"Starting Spark master at (spark://\S+)", log)
        for number, rack in enumerate(racks):
            # Spark runs a speculative copy of a task on another host only; Linux has all of 127.0.0.0/8.
            host = f"127.0.0.{1 + number}" if sys.platform == "linux" else FIRST_HOST
            log, work = folder / f"worker-{rack}.log", folder / f"work-{rack}"
            size = ("--cores", "1", "--memory", "1g", "--work-dir", str(work))
            held.enter_context(
                _started(
                    log,
                    "worker.Worker",
                    *_address(host),
                    *size,
                    url,
                    SPARK_LOCAL_IP=host,
                    RACKSPAN_RACK=rack,
                    PYSPARK_PYTHON=sys.executable,
                )
            )
        for rack in racks:
            _found(r"(Successfully registered) with master", folder / f"worker-{rack}.log")
        yield url


def _address(host: str) -> tuple[str, ...]:
    return ("--host", host, "--port", "0", "--webui-port", "0")


@contextmanager
def _started(log: Path, main_class: str, *arguments: str, **environment: str) -> Iterator[None]:
    command = [str(SPARK_HOME / "bin" / "spark-class"), f"org.apache.spark.deploy.{main_class}", *arguments]
    more = {
        "SPARK_HOME": str(SPARK_HOME),
        "SPARK_LOCAL_IP": FIRST_HOST,
        "SPARK_DAEMON_JAVA_OPTS": QUICK,
        **environment,
    }
    with log.open("w") as output, group(command, more, stdout=output) as process:
        yield
        assert process.poll() is None, log.read_text()[-2000:]


@contextmanager
def group(command: Sequence[str], environment: Mapping[str, str], **more: object) -> Iterator["subprocess.Popen[str]"]:
    """A process with a group of its own, which ends with it, and with the process of the test."""
    process = subprocess.Popen(
        command,
        env={**os.environ, **environment},
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
        # Executors end without their worker, and the JVM of a driver without the driver.
        preexec_fn=die_with_parent(),
        **more,
    )  # type: ignore[call-overload]
    try:
        yield process
    finally:
        kill_group(process)


def kill_group(process: "subprocess.Popen[str]") -> None:
    """At once, as a machine that fails."""
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait(WITHIN_SECONDS)


def _found(pattern: str, log: Path) -> str:
    until = time.monotonic() + WITHIN_SECONDS
    while True:
        match = re.search(pattern, log.read_text())
        if match:
            return match.group(1)
        assert time.monotonic() < until, log.read_text()[-2000:]
        time.sleep(0.1)
