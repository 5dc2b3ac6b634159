"""Front pages that import late give what they list, and nothing heavy before it is asked for."""

import pkgutil
import subprocess
import sys
from importlib import import_module

import pytest

ROOMS = ("rackspan.model", "rackspan.acks", "rackspan.placement", "rackspan.cluster")


@pytest.mark.parametrize("room", ROOMS)
def test_every_listed_name_is_found(room: str) -> None:
    page = import_module(room)
    assert [name for name in page.__all__ if not hasattr(page, name)] == []


@pytest.mark.parametrize("room", ROOMS)
def test_no_listed_name_is_a_module_too_which_would_hide_it(room: str) -> None:
    page = import_module(room)
    modules = {module.name for module in pkgutil.iter_modules(page.__path__)}
    assert modules & set(page.__all__) == set()


@pytest.mark.parametrize("room", ROOMS)
def test_a_name_that_is_not_there_is_an_attribute_error(room: str) -> None:
    with pytest.raises(AttributeError, match="no attribute 'Nonsense'"):
        import_module(room).Nonsense  # noqa: B018


def test_the_help_of_every_verb_waits_neither_for_arrow_nor_for_a_kafka_client() -> None:
    script = "import rackspan.cli, sys; print(*sys.modules)"
    said = subprocess.run([sys.executable, "-c", script], check=True, capture_output=True, text=True)
    heavy = {
        "pyarrow",
        "pyspark",
        "kafka",
        "confluent_kafka",
        "yaml",
        "rackspan.pipeline",
        "rackspan.cluster.api.embedded",
    }
    assert heavy.intersection(said.stdout.split()) == set()


def test_asking_for_an_id_type_imports_no_numpy() -> None:
    script = "from rackspan.model import BrokerId; import sys; print('numpy' in sys.modules)"
    said = subprocess.run([sys.executable, "-c", script], check=True, capture_output=True, text=True)
    assert said.stdout.strip() == "False"
