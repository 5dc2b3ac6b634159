"""What an embedded cluster imports before it serves: every test that starts one waits for these imports."""

import subprocess
import sys

import pytest

HEAVY = (
    "confluent_kafka",
    "hypothesis",
    "kafka",
    "numpy",
    "pyarrow",
    "pyspark",
    "pytest",
    "rackspan.audit",
    "rackspan.cli",
    "rackspan.cluster.zookeeper_era",
    "rackspan.pipeline",
    "rackspan.reassign",
    "rackspan.sources",
    "rackspan.streams",
    "typer",
)

PACKAGE = "import rackspan.cluster"
CORE = "import rackspan.cluster.core.broker, rackspan.cluster.core.controller"
STARTED = "from rackspan.cluster import EmbeddedCluster\nwith EmbeddedCluster(racks=2, brokers=2): pass"


def _imported(script: str) -> set[str]:
    """The modules that a new interpreter has imported after the script."""
    whole = f"{script}\nimport sys\nprint(*sys.modules)"
    return set(subprocess.run([sys.executable, "-c", whole], check=True, capture_output=True, text=True).stdout.split())


@pytest.mark.slow
@pytest.mark.parametrize("script", [PACKAGE, CORE, STARTED], ids=["package", "core", "started"])
def test_nothing_heavy_is_imported(script: str) -> None:
    assert _imported(script).intersection(HEAVY) == set()


def test_the_package_itself_imports_no_module_of_the_cluster() -> None:
    imported = _imported(PACKAGE)
    assert {name for name in imported if name.startswith("rackspan.cluster.")} == set()


@pytest.mark.slow
def test_the_core_needs_neither_asyncio_nor_the_schemas_of_requests() -> None:
    assert _imported(CORE).intersection({"asyncio", "kio", "rackspan.cluster.handlers"}) == set()
