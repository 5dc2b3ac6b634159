"""docs/rack-locators.md has every rack locator and every property that it takes."""

import importlib
import re
from typing import Any

import pytest

from rackspan.errors import UsageError
from rackspan.model import Broker, BrokerId
from rackspan.sources.rack_locator import ClusterView, parse_properties
from rackspan.sources.rack_locators import LOCATORS, make
from tests.reference.pages import codes, rows, section, text

PAGE = "rack-locators.md"
ANY_NAME = {"properties", "availability-zones"}
"""Locators whose properties are the names of brokers or zones."""


def documented(name: str) -> dict[str, str]:
    """The example of each property, by the cell that names it."""
    return {cells[0]: codes(cells[1])[0] for cells in rows(section(PAGE, name)) if cells[0] != "property"}


def test_the_page_has_every_locator() -> None:
    listed = [codes(cells[0])[0] for cells in rows(text(PAGE).partition("\n## ")[0]) if cells[0].startswith("[")]
    assert listed == list(LOCATORS)


@pytest.mark.parametrize("name", LOCATORS)
def test_a_locator_takes_the_documented_properties_and_no_other(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    examples = documented(name)
    required = [example for cell, example in examples.items() if "required" in row_of(name, cell)]
    for example in examples.values():
        make(name, parse_properties(",".join(dict.fromkeys([*required, *zone(name), example]))))
    if name in ANY_NAME:
        return
    with pytest.raises(UsageError, match="no-such-property"):
        make(name, parse_properties(",".join([*required, "no-such-property=1"])))
    accepted: set[str] = set()
    module: Any = importlib.import_module(LOCATORS[name].__module__)
    monkeypatch.setattr(module, "refuse_unknown", lambda _name, _properties, known: accepted.update(known))
    make(name, parse_properties(",".join(required)))
    assert accepted == {codes(cell)[0] for cell in examples}


def test_the_defaults_on_the_page_are_those_of_the_code() -> None:
    from rackspan.sources.rack_locators import command

    defaults = {codes(cells[0])[0]: cells[2] for cells in rows(section(PAGE, "command")) if cells[0].startswith("`")}
    assert f"{command.DEFAULT_TIMEOUT_MS} by default" in defaults["timeout.ms"]
    assert f"{command.DEFAULT_HOSTS_MAX} for each call".split(" ")[0] in defaults["hosts.max"]


def test_the_locator_of_ones_own_works_as_it_is_written() -> None:
    (code,) = re.findall(r"```python\n(.*?)```", section(PAGE, "Your own"), re.DOTALL)
    names: dict[str, Any] = {}
    exec(code, names)  # noqa: S102 - the example of the page
    brokers = (Broker(BrokerId(1), None, host="a", port=9092), Broker(BrokerId(2), None, host="a", port=9192))
    assert names["ByPort"]({}).rack_info(ClusterView(brokers)) == {1: "r0", 2: "r1"}


def row_of(name: str, first: str) -> str:
    return next(" ".join(cells) for cells in rows(section(PAGE, name)) if cells[0] == first)


def zone(name: str) -> list[str]:
    return ["us-east-1a=use1-az4"] if name == "availability-zones" else []
