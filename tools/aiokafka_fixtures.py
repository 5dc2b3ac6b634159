"""The fixtures of aiokafka's test suite for a broker that runs already, in place of those in its conftest.py, which start one.

A pytest plug-in, loaded by tools/client_suites.py with --noconftest in an environment that has aiokafka and not this project.
HOST:PORT is in AIOKAFKA_TEST_BROKER, the version that its tests may expect in AIOKAFKA_TEST_VERSION.
"""

import asyncio
import gc
import os
from collections.abc import Iterator
from typing import Any

import pytest


class _Absent:
    """Stands for what needs TLS, SASL or the tools inside a broker's container: a test that uses it is skipped."""

    def __init__(self, what: str) -> None:
        self._what = what

    def __getattr__(self, name: str) -> Any:
        pytest.skip(f"needs {self._what}")

    def __truediv__(self, name: str) -> Any:
        pytest.skip(f"needs {self._what}")

    def __format__(self, spec: str) -> str:
        pytest.skip(f"needs {self._what}")


@pytest.fixture(scope="class")
def loop() -> Iterator[asyncio.AbstractEventLoop]:
    loop = asyncio.new_event_loop()
    asyncio.set_event_loop(loop)
    yield loop
    if not loop.is_closed():
        loop.close()
    gc.collect()
    asyncio.set_event_loop(None)


@pytest.fixture(scope="session")
def ssl_folder() -> Any:
    pytest.skip("needs TLS")


@pytest.fixture(scope="class")
def setup_test_class_serverless(request: pytest.FixtureRequest, loop: asyncio.AbstractEventLoop) -> None:
    request.cls.loop = loop


@pytest.fixture(scope="class")
def setup_test_class(request: pytest.FixtureRequest, loop: asyncio.AbstractEventLoop) -> None:
    """What conftest.py sets, for one broker without TLS and SASL."""
    broker = os.environ["AIOKAFKA_TEST_BROKER"]
    host, port = broker.split(":")
    tests: Any = request.cls
    tests.loop, tests.hosts, tests.kafka_host, tests.kafka_port = loop, [broker], host, int(port)
    tests.kafka_version = os.environ["AIOKAFKA_TEST_VERSION"]
    tests.ssl_folder, tests.kafka_ssl_port = _Absent("TLS"), _Absent("TLS")
    tests.kafka_sasl_plain_port, tests.kafka_sasl_ssl_port = _Absent("SASL"), _Absent("SASL")
    tests.acl_manager, tests.kerberos_utils = _Absent("an authorizer"), _Absent("Kerberos")
    tests.kafka_config = _Absent("the tools in the broker's container")
