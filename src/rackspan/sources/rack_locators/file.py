"""`file`: a mapping in a file, `path=FILE`, read at every call.

Either one JSON object, `{"0": "rack1", "1": "rack2"}`, or lines as in a .properties file, `0=rack1`, where `#` and `!`
start a comment.
"""

from collections.abc import Iterator
from pathlib import Path

from rackspan import json_text
from rackspan.errors import RackLocatorFailed, UsageError
from rackspan.json_text import NotJson
from rackspan.model.ids import BrokerId, RackId
from rackspan.sources.rack_locator import ClusterView, Properties, broker_and_rack, once_each, refuse_unknown, required


class RackFile:
    def __init__(self, properties: Properties) -> None:
        refuse_unknown("file", properties, frozenset({"path"}))
        self._path = Path(required("file", properties, "path"))

    def rack_info(self, _cluster: ClusterView) -> dict[BrokerId, RackId]:
        """Errors: RackLocatorFailed where the file cannot be read, UsageError for its content, by line."""
        place = f"rack locator file: {self._path}"
        try:
            # With or without a byte order mark, as some editors save.
            text = self._path.read_text(encoding="utf-8-sig")
        except OSError as error:
            raise RackLocatorFailed(f"{place}: {error.strerror}; correct path") from None
        except UnicodeDecodeError:
            raise RackLocatorFailed(f"{place}: not UTF-8 text; correct path") from None
        entries = _json_entries(place, text) if text.lstrip().startswith("{") else _line_entries(place, text)
        return once_each(place, entries)


def _json_entries(place: str, text: str) -> Iterator[tuple[BrokerId, RackId]]:
    try:
        racks = json_text.parse(text)
    except NotJson as error:
        raise UsageError(f"{place}: {error}") from None
    return (broker_and_rack(place, broker, rack) for broker, rack in racks.items())


def _line_entries(place: str, text: str) -> Iterator[tuple[BrokerId, RackId]]:
    for number, line in enumerate(text.splitlines(), start=1):
        if not line.strip() or line.lstrip()[0] in "#!":
            continue
        broker, equals, rack = line.partition("=")
        if not equals:
            raise UsageError(f"{place} line {number}: {line.strip()!r} has no =; a line reads like 0=rack1")
        yield broker_and_rack(f"{place} line {number}", broker.strip(), rack)
