"""From a name to a locator: ours, a package's by entry point, or module:Class."""

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from rackspan.errors import RackspanError
from rackspan.model import Broker, BrokerId, RackId
from rackspan.sources.rack_locator import ClusterView, rack_info
from rackspan.sources.rack_locators import LOCATORS, make

CLUSTER = ClusterView((Broker(BrokerId(4), RackId("a")),))

MODULE = '''
class ByParity:
    """Even and odd brokers, in racks named by a property."""
    def __init__(self, properties):
        self.names = properties["even"], properties["odd"]

    def rack_info(self, cluster):
        return {broker.id: self.names[broker.id % 2] for broker in cluster.brokers}

class NoLocator:
    def __init__(self, properties):
        pass

NOT_A_CLASS = 7
'''


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A package on the path that offers `by-parity`, and `twice` in two ways."""
    (tmp_path / "parity_racks.py").write_text(MODULE)
    (tmp_path / "parity_broken.py").write_text("raise RuntimeError('no licence')")
    metadata = tmp_path / "parity_racks-1.0.dist-info"
    metadata.mkdir()
    (metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: parity-racks\nVersion: 1.0\n")
    (metadata / "entry_points.txt").write_text(
        "[rackspan.rack_locators]\nby-parity = parity_racks:ByParity\ntwice = parity_racks:ByParity\n"
    )
    other = tmp_path / "other_racks-1.0.dist-info"
    other.mkdir()
    (other / "METADATA").write_text("Metadata-Version: 2.1\nName: other-racks\nVersion: 1.0\n")
    (other / "entry_points.txt").write_text("[rackspan.rack_locators]\ntwice = other_racks:Other\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    yield tmp_path
    for name in ("parity_racks", "parity_broken"):
        sys.modules.pop(name, None)


@pytest.mark.parametrize("name", ["by-parity", "parity_racks:ByParity"])
def test_a_locator_of_ones_own_is_found_by_its_name(package: Path, name: str) -> None:
    locator = make(name, {"even": "x", "odd": "y"})
    assert rack_info(locator, CLUSTER) == {4: "x"}


def test_every_short_name_makes_a_locator() -> None:
    properties = {
        "registered": {},
        "properties": {"4": "b"},
        "file": {"path": "racks"},
        "command": {"command": "true"},
        "host-pattern": {"pattern": "(.)"},
        "availability-zones": {"us-east-1a": "use1-az4"},
    }
    assert properties.keys() == LOCATORS.keys()
    for name, given in properties.items():
        assert callable(make(name, given).rack_info)


@pytest.mark.parametrize(
    ("name", "line"),
    [
        (
            "nobodys",
            "not found; there are availability-zones, by-parity, command, file, host-pattern, properties, "
            "registered, twice, or name a module:Class",
        ),
        ("twice", "offered twice, as other_racks:Other and parity_racks:ByParity; name the module:Class you mean"),
        (":ByParity", "write it as module:Class"),
        ("parity_racks:", "write it as module:Class"),
        ("gone:ByParity", "there is no module gone; install it, or add its folder to PYTHONPATH"),
        ("parity_racks:Gone", "module parity_racks has no class Gone; correct the name"),
        ("parity_racks:NOT_A_CLASS", "module parity_racks has no class NOT_A_CLASS; correct the name"),
        ("parity_racks:NoLocator", "has no rack_info(cluster); see rackspan.sources.rack_locator"),
        ("parity_racks:ByParity", "cannot be made: KeyError: 'even'; --debug shows where"),
        ("parity_broken:Any", "importing it failed: RuntimeError: no licence"),
    ],
)
def test_a_locator_that_cannot_be_had_is_one_line(package: Path, name: str, line: str) -> None:
    with pytest.raises(RackspanError) as refusal:
        make(name, {})
    assert str(refusal.value) == f"rack locator {name!r}: {line}"
