"""Each locator that comes with rackspan: what it finds, and what it refuses."""

from pathlib import Path

import pytest

from rackspan.errors import RackspanError
from rackspan.model import Broker, BrokerId, RackId
from rackspan.sources.rack_locator import ClusterView, parse_properties, rack_info
from rackspan.sources.rack_locators import make


def view(*brokers: tuple[int, str | None, str | None]) -> ClusterView:
    """Brokers as (id, rack, host)."""
    return ClusterView(tuple(Broker(BrokerId(i), RackId(r) if r else None, host=h) for i, r, h in brokers))


CLUSTER = view((0, "us-east-1a", "kafka-a-0.example"), (1, "us-east-1b", "kafka-b-1.example"), (2, None, "10.0.0.9"))


def found(name: str, properties: str, cluster: ClusterView = CLUSTER) -> dict[int, str]:
    return {
        int(broker): str(rack) for broker, rack in rack_info(make(name, parse_properties(properties)), cluster).items()
    }


def test_registered_is_what_the_brokers_say() -> None:
    assert found("registered", "") == {0: "us-east-1a", 1: "us-east-1b"}


@pytest.mark.parametrize(
    ("properties", "racks"),
    [
        ("0=rack1,1=rack2", {0: "rack1", 1: "rack2"}),
        # The draft's six brokers in three racks; brokers that are not there do no harm.
        (
            "0=rack1,1=rack1,2=rack2,3=rack2,4=rack3,5=rack3",
            {0: "rack1", 1: "rack1", 2: "rack2", 3: "rack2", 4: "rack3", 5: "rack3"},
        ),
        ("", {}),
    ],
)
def test_properties_are_the_mapping(properties: str, racks: dict[int, str]) -> None:
    assert found("properties", properties) == racks


@pytest.mark.parametrize(
    ("properties", "racks"),
    [
        (r"pattern=kafka-(\w)-", {0: "a", 1: "b"}),
        (r"pattern=(kafka)-(?P<rack>\w)-", {0: "a", 1: "b"}),
        (r"pattern=^(\d{1\,3})\.", {2: "10"}),
        (r"pattern=kafka-(z)?", {}),
    ],
)
def test_a_host_pattern_finds_the_rack_in_the_name(properties: str, racks: dict[int, str]) -> None:
    assert found("host-pattern", properties) == racks


ZONES = "us-east-1a=use1-az4,us-east-1b=use1-az6"


def test_zone_names_become_ids_and_back() -> None:
    mixed = view((0, "us-east-1a", None), (1, "use1-az6", None), (2, None, None))
    assert found("availability-zones", ZONES, mixed) == {0: "use1-az4", 1: "use1-az6"}
    assert found("availability-zones", f"{ZONES},to=id", mixed) == {0: "use1-az4", 1: "use1-az6"}
    assert found("availability-zones", f"{ZONES},to=name", mixed) == {0: "us-east-1a", 1: "us-east-1b"}


@pytest.mark.parametrize(
    "text",
    [
        "0=r1\n1 = rack two \n",
        "# by hand\n! as Java has it\n\n  0=r1\r\n1=rack two",
        '{"0": "r1", "1": "rack two"}',
        ' \n{"1": "rack two", "0": " r1 "}\n',
    ],
)
def test_a_file_is_lines_or_one_json_object(tmp_path: Path, text: str) -> None:
    (tmp_path / "racks").write_text(text)
    assert found("file", f"path={tmp_path / 'racks'}") == {0: "r1", 1: "rack two"}


def test_a_file_may_open_with_a_byte_order_mark(tmp_path: Path) -> None:
    for text in ("0=r1", '{"0": "r1"}'):
        (tmp_path / "racks").write_text(text, encoding="utf-8-sig")
        assert found("file", f"path={tmp_path / 'racks'}") == {0: "r1"}


def test_a_file_is_read_at_every_call(tmp_path: Path) -> None:
    path = tmp_path / "racks"
    locator = make("file", {"path": str(path)})
    for rack in ("before", "after"):
        path.write_text(f"0={rack}")
        assert rack_info(locator, CLUSTER) == {0: rack}
    path.write_text("")
    assert rack_info(locator, CLUSTER) == {}


@pytest.mark.parametrize(
    ("content", "line"),
    [
        ("0=r1\n1\n", " line 2: '1' has no =; a line reads like 0=rack1"),
        ("x=r1\n", " line 1: 'x' is not a broker id; a line reads like 0=rack1"),
        ("0=\n", " line 1: broker 0 in rack '', but a rack is a name; leave the broker out instead"),
        ("0=a\n1=b\n0=c\n", ": broker 0 is given twice; leave one of them out"),
        ('{"0": "a", "0": "b"}', ': key "0" occurs twice in one object; leave one of them out'),
        ('{"0": "a", "00": "b"}', ": broker 0 is given twice; leave one of them out"),
        ('{"0": "a"', ": not JSON: Expecting ',' delimiter: line 1 column 10 (char 9); is the file complete?"),
        ('{"0": NaN}', ": NaN is not a JSON number; fix it in the file"),
        (
            '{"0": "\\ud800"}',
            ": \\ud800 at line 1 column 8 is half of a surrogate pair and not a character; fix it in the file",
        ),
        ('{"0": 7}', ": broker 0 in rack 7, but a rack is a name; leave the broker out instead"),
        ('{"-1": "a"}', ": '-1' is not a broker id; a line reads like 0=rack1"),
        (b"0=\xff", ": not UTF-8 text; correct path"),
        (None, ": No such file or directory; correct path"),
    ],
)
def test_a_wrong_file_is_one_line_that_names_the_place(tmp_path: Path, content: str | bytes | None, line: str) -> None:
    path = tmp_path / "racks"
    if content is not None:
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
    with pytest.raises(RackspanError) as refusal:
        found("file", f"path={path}")
    assert str(refusal.value) == f"rack locator file: {path}{line}"


@pytest.mark.parametrize(
    ("name", "properties", "line"),
    [
        ("registered", "a=1", "registered: property 'a' is unknown; it takes none"),
        ("properties", "zero=rack1", "properties: 'zero' is not a broker id; a line reads like 0=rack1"),
        ("properties", "0=", "properties: broker 0 in rack '', but a rack is a name; leave the broker out instead"),
        ("properties", "2147483648=a", "properties: '2147483648' is not a broker id; a line reads like 0=rack1"),
        ("properties", "-1=a", "properties: '-1' is not a broker id; a line reads like 0=rack1"),
        ("properties", "1=a,01=b", "properties: broker 1 is given twice; leave one of them out"),
        ("file", "", "file: property path is missing; give --rack-locator-properties path=…"),
        ("file", "path=a,pth=b", "file: property 'pth' is unknown; it takes path"),
        ("host-pattern", "", "host-pattern: property pattern is missing; give --rack-locator-properties pattern=…"),
        ("host-pattern", "pattern=kafka", "host-pattern: 'kafka' has no group; put the rack in (…)"),
        (
            "host-pattern",
            "pattern=(a",
            "host-pattern: '(a' is not a regular expression: missing ), unterminated subpattern at position 0; write one such as ^(?P<rack>[a-z]+)-",
        ),
        (
            "availability-zones",
            "",
            "availability-zones: no zones; give them as us-east-1a=use1-az4,us-east-1b=use1-az6",
        ),
        ("availability-zones", "a=x,to=both", "availability-zones: to is 'both'; it is id or name"),
        ("availability-zones", "a=", "availability-zones: zone a has no id; write it as a=ID"),
        (
            "availability-zones",
            "a=x,b=x",
            "availability-zones: a and b are both x; a zone has one name an account",
        ),
        (
            "availability-zones",
            "us-east-1a=x",
            "availability-zones: broker 1 is in rack 'us-east-1b', which is neither a name nor an id of the map; "
            "add it to --rack-locator-properties",
        ),
        ("command", "", "command: property command is missing; give --rack-locator-properties command=…"),
        ("command", "command='a", 'command: "\'a": No closing quotation; correct the quotes'),
        ("command", "command=a,timeout.ms=0", "command: timeout.ms is '0'; it is a whole number of at least 1"),
        ("command", "command=a,hosts.max=many", "command: hosts.max is 'many'; it is a whole number of at least 1"),
        (
            "command",
            "command=a,shell=yes",
            "command: property 'shell' is unknown; it takes command, hosts.max, timeout.ms",
        ),
        (
            "command",
            "command=/gone/topology.sh",
            "command: /gone/topology.sh: cannot be started: No such file or directory; correct command",
        ),
    ],
)
def test_wrong_properties_are_one_line(name: str, properties: str, line: str) -> None:
    with pytest.raises(RackspanError) as refusal:
        found(name, properties)
    assert str(refusal.value) == f"rack locator {line}"
