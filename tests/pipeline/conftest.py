"""One Spark for all tests of the pipeline: it takes seconds to start and none to share."""

import os
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

import pytest
from pyspark.sql import SparkSession

from rackspan.pipeline.judging import task
from rackspan.pipeline.judging.kept import KeptSnapshots
from rackspan.pipeline.spark import session

QUICK_JAVA = {"JDK_JAVA_OPTIONS": session.LIGHT_JAVA}
"""The environment of a JVM that a test starts, as that of `run`."""


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    with ExitStack() as stack:
        with quick_java():
            started = stack.enter_context(session.spark_session("local[2]"))
        # Only now: Java prints a line about the variable, which tests of Kafka's tools would read.
        yield started


@pytest.fixture(autouse=True)
def unflushed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Flushes take most of the time of fast tests. test_power_cut.py observes every one of them instead."""
    monkeypatch.setattr(os, "fsync", lambda _descriptor: None)


@pytest.fixture(autouse=True)
def nothing_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    """No test sees rows that another one made, of the same snapshot by a planted mistake perhaps."""
    monkeypatch.setattr(task, "KEPT", KeptSnapshots())


@contextmanager
def quick_java() -> Iterator[None]:
    """A JVM that runs for a minute spends most of it compiling, unless a flag forbids it."""
    with pytest.MonkeyPatch.context() as patch:
        for name, value in QUICK_JAVA.items():
            patch.setenv(name, value)
        yield
