"""Packages with lazy exports give what they list, and import nothing heavy before it is used."""

import pkgutil
import subprocess
import sys
from importlib import import_module

import pytest

PACKAGES = ("rackspan.model", "rackspan.acks", "rackspan.placement", "rackspan.cluster", "rackspan.producers")


@pytest.mark.parametrize("package", PACKAGES)
def test_every_listed_name_is_found(package: str) -> None:
    page = import_module(package)
    assert [name for name in page.__all__ if not hasattr(page, name)] == []


@pytest.mark.parametrize("package", PACKAGES)
def test_no_listed_name_is_a_module_too_which_would_hide_it(package: str) -> None:
    page = import_module(package)
    modules = {module.name for module in pkgutil.iter_modules(page.__path__)}
    assert modules & set(page.__all__) == set()


@pytest.mark.parametrize("package", PACKAGES)
def test_a_name_that_is_not_there_is_an_attribute_error(package: str) -> None:
    with pytest.raises(AttributeError, match="no attribute 'Nonsense'"):
        import_module(package).Nonsense  # noqa: B018


def test_the_help_of_every_verb_waits_neither_for_arrow_nor_for_a_kafka_client() -> None:
    script = "import rackspan.cli, sys; print(*sys.modules)"
    output = subprocess.run([sys.executable, "-c", script], check=True, capture_output=True, text=True)
    heavy = {
        "pyarrow",
        "pyspark",
        "kafka",
        "confluent_kafka",
        "yaml",
        "rackspan.pipeline",
        "rackspan.cluster.api.embedded",
    }
    assert heavy.intersection(output.stdout.split()) == set()


def test_using_an_id_type_imports_no_numpy() -> None:
    script = "from rackspan.model import BrokerId; import sys; print('numpy' in sys.modules)"
    output = subprocess.run([sys.executable, "-c", script], check=True, capture_output=True, text=True)
    assert output.stdout.strip() == "False"
