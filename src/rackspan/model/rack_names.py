"""Names of racks that may be one rack: written in two ways, or by two naming schemes, and names that are paths.

`broker.rack` is any text. A zone that has two names in one cluster counts as two racks, and what counts racks is then wrong.
"""

import ipaddress
import re
import unicodedata
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Final, TypeAlias

from rackspan.model.ids import RackId

Tokens: TypeAlias = tuple[str, ...]
"""A name without its separators: words, single letters, and numbers without leading zeros."""

NAMES_SHOWN: Final = 12
"""So many names of a group are listed in a sentence."""

_SEPARATOR: Final = r"\s_\-\u2010-\u2015\u2212./\\:,;|"
_TOKEN: Final = re.compile(rf"(?<!\S)-\d+|\d+|[^\d{_SEPARATOR}]+")
"""A minus before a number is its sign where nothing stands before it: a floor -1 is not floor 1."""

_ZONE_NAME: Final = re.compile(r"(?:[a-z]+(?:-[a-z]+)+-)?\d+(?:-[a-z]+-\d+)?[a-z]")
"""`us-east-1a`, `us-west-2-lax-1a` of a local zone, and `1a` without its region."""

_ZONE_ID: Final = re.compile(r"(?:[a-z]+\d+-(?:[a-z]+\d+-)?)?az\d+")
"""`use1-az1`, `usw2-lax1-az1` of a local zone, and `az1` without its region. Which name has which id differs by account."""

_SHORT_WORDS: Final[Mapping[str, tuple[str, str]]] = {
    "rack": ("r", "rk"),
    "row": ("r", "r"),
    "zone": ("z", "az"),
    "datacenter": ("dc", "dc"),
    "datacentre": ("dc", "dc"),
}
_PLACES: Final = frozenset({*_SHORT_WORDS, "az", "dc", "room", "hall", "site", "building", "region"})
_QUALIFIERS: Final = frozenset(
    [
        "north",
        "south",
        "east",
        "west",
        "central",
        "center",
        "centre",
        "middle",
        "new",
        "old",
        "upper",
        "lower",
        "inner",
        "outer",
        "left",
        "right",
        "front",
        "back",
    ]
)
"""`north-hall-1` is no long form of `hall-1`."""

_SUFFIX_MOST: Final = 8
"""Tokens of a name that are compared with whole names."""

_LABELS: Final = frozenset(
    ["project", "projects", "region", "regions", "zone", "zones", "rack", "racks", "location", "locations"]
)
"""Parts of a path that name what stands behind them."""


@dataclass(frozen=True, slots=True)
class AlikeRacks:
    """Names that count as a rack each, and may be fewer racks. `difference` says how they differ.

    `kept` are the names to keep, `others` those to change: into the first of `kept` if `same` (all of them are one name),
    else by hand, since which of them are one rack is not known.
    """

    kept: tuple[RackId, ...]
    others: tuple[RackId, ...]
    difference: str
    same: bool = False

    @property
    def names(self) -> tuple[RackId, ...]:
        return self.kept + self.others

    def __str__(self) -> str:
        """`racks 'a', 'A' count as 2`: names as ASCII, since their difference may not be visible. At most NAMES_SHOWN."""
        names = self.names
        if len(names) > NAMES_SHOWN:
            half = NAMES_SHOWN // 2
            names = (*self.kept[: NAMES_SHOWN - min(half, len(self.others))], *self.others)[:NAMES_SHOWN]
        more = f" and {len(self.names) - len(names)} more" if len(names) < len(self.names) else ""
        return f"racks {', '.join(map(ascii, names))}{more} count as {len(self.names)}"


def racks_alike(racks: Iterable[RackId | None]) -> tuple[AlikeRacks, ...]:
    """The names that may be fewer racks than they count as, a group for each way in which they differ.

    Names that are one but for case, blanks, separators, leading zeros or Unicode form are a group each, the most frequent
    first. Names by two schemes are one group: zone names and zone ids, paths of several depths, short and long forms.
    Cost: linear in the names.
    """
    times = Counter(rack for rack in racks if rack is not None)
    names = [_Name(rack) for rack in times]
    groups = list(_written_alike(names, times))
    for others in (_zone_names_and_ids(names), _paths(names, times), _short_and_long(names)):
        for sides, difference in others:
            found = _two_schemes(sides, difference, times)
            if not any(set(found.names) <= set(group.names) for group in groups):
                groups.append(found)
    return tuple(groups)


def shared_places(racks: Collection[RackId]) -> dict[str, tuple[RackId, ...]]:
    """Racks by the first part of their names, where names are paths (`eu-1a/r1`) and several share it.

    Racks are flat: the loss of all racks of one place together is not judged.
    """
    paths = {rack: name.parts for rack in racks if len((name := _Name(rack)).parts) > 1}
    at = 0
    # A first part that every path has is no place, unless the paths have two parts only.
    while paths and len({parts[at] for parts in paths.values()}) == 1 and min(map(len, paths.values())) > at + 2:
        at += 1
    places: dict[str, list[RackId]] = {}
    for rack, parts in sorted(paths.items()):
        if len(parts) > at + 1 and parts[at] not in _LABELS:
            places.setdefault("/".join(parts[: at + 1]), []).append(rack)
    return {place: tuple(inside) for place, inside in places.items() if len(inside) > 1}


def region_of_zone_name(name: str) -> str | None:
    """`us-east-1a` → `use1`: the region as zone ids have it."""
    match = re.fullmatch(r"([a-z]+)((?:-[a-z]+)+)-?(\d+)-?[a-z]", name.strip().lower())
    if match is None:
        return None
    short = "".join(map(_short_direction, match[2].split("-")))
    return f"{match[1]}{short}{match[3]}"


def region_of_zone_id(name: str) -> str | None:
    """`use1-az1` → `use1`."""
    match = re.fullmatch(r"([a-z]+\d+)-az\d+", name.strip().lower())
    return match[1] if match else None


def _short_direction(part: str) -> str:
    compass = {"north": "n", "south": "s", "east": "e", "west": "w", "central": "c", "gov": "g"}
    first = next((word for word in ("north", "south") if part.startswith(word)), "")
    rest = part.removeprefix(first)
    return compass.get(first, "") + compass.get(rest, rest)


class _Name:
    """A name of a rack, read once. `plain`: without what a reader does not see, or easily overlooks."""

    def __init__(self, rack: RackId) -> None:
        self.rack = rack
        self.plain = _plain(rack)
        self.is_network = _is_network(self.plain)
        # A network is no path and has no words.
        self.parts = [] if self.is_network else [part for part in re.split(r"[/\\]+", self.plain) if part]
        self.tokens: Tokens = () if self.is_network else tuple(map(_without_zeros, _TOKEN.findall(self.plain)))

    @property
    def zone(self) -> str:
        """The name with hyphens as separators, as clouds write zones."""
        return re.sub(rf"[{_SEPARATOR}]+", "-", self.plain).strip("-")

    @property
    def joined(self) -> Tokens:
        """The tokens without separators between letters: `us-east-1a` and `useast1a` have the same."""
        found: list[str] = []
        for token in self.tokens:
            if found and not _is_number(found[-1]) and not _is_number(token):
                found[-1] += token
            else:
                found.append(token)
        return tuple(found)

    @property
    def other_readings(self) -> Iterator[Tokens]:
        """What the name is with words in short, and with its region as zone ids have it."""
        if not _SHORT_WORDS.keys().isdisjoint(self.tokens):
            for form in range(2):
                yield tuple(_SHORT_WORDS[token][form] if token in _SHORT_WORDS else token for token in self.tokens)
        if region := region_of_zone_name(self.zone):
            yield (*map(_without_zeros, _TOKEN.findall(region)), self.tokens[-1])


Sides: TypeAlias = tuple[list[RackId], list[RackId]]
"""The names by two schemes."""


def _two_schemes(sides: Sides, difference: str, times: Mapping[RackId, int]) -> AlikeRacks:
    """The scheme of more members is kept; of equals the first."""
    kept, others = sorted(sides, key=lambda side: -sum(times[rack] for rack in side))
    return AlikeRacks(tuple(sorted(kept)), tuple(sorted(others)), difference)


def _written_alike(names: Collection[_Name], times: Mapping[RackId, int]) -> Iterator[AlikeRacks]:
    by_key: dict[object, list[_Name]] = {}
    for name in sorted(names, key=lambda name: (-times[name.rack], name.rack != name.plain, name.rack)):
        by_key.setdefault(name.joined or name.plain, []).append(name)
    for together in by_key.values():
        if any(name.tokens == name.joined for name in together):
            groups = [together]
        else:
            # a-bc and ab-c: both have separators, at other places.
            groups = [
                [name for name in together if name.tokens == key] for key in dict.fromkeys(n.tokens for n in together)
            ]
        for group in groups:
            if len(group) > 1:
                plainly = len({name.plain for name in group}) == 1
                by = (
                    "case, blanks or Unicode form"
                    if plainly
                    else "separators, leading zeros, case, blanks or Unicode form"
                )
                first, *others = (name.rack for name in group)
                yield AlikeRacks((first,), tuple(others), f"their names differ by {by} only", same=True)


def _zone_names_and_ids(names: Collection[_Name]) -> Iterator[tuple[Sides, str]]:
    zone_names = [name.rack for name in names if _ZONE_NAME.fullmatch(name.zone)]
    zone_ids = [name.rack for name in names if _ZONE_ID.fullmatch(name.zone)]
    # Azure's westeurope-1 is a logical zone of a subscription, westeurope-az1 a physical one.
    physical = [name for name in names if name.tokens[-2:-1] == ("az",) and name.tokens[:-2]]
    regions = {name.tokens[:-2] for name in physical}
    logical = [name.rack for name in names if name.tokens[:-1] in regions and _is_number(name.tokens[-1])]
    for sides in ((zone_names, zone_ids), (logical, [name.rack for name in physical])):
        if all(sides):
            yield sides, ZONES


ZONES: Final = "some are names of zones, others ids of zones"
"""The difference of names that the rack locator availability-zones can bring together."""


def _paths(names: Collection[_Name], times: Mapping[RackId, int]) -> Iterator[tuple[Sides, str]]:
    by_depth: dict[int, list[RackId]] = {}
    for name in names:
        if name.parts:
            by_depth.setdefault(len(name.parts), []).append(name.rack)
    if len(by_depth) > 1:
        usual = max(by_depth, key=lambda depth: (sum(times[rack] for rack in by_depth[depth]), depth))
        others = [rack for depth, racks in by_depth.items() if depth != usual for rack in racks]
        bare = min(by_depth) == 1
        yield (by_depth[usual], others), f"some are paths, others {'bare names' if bare else 'paths of another depth'}"


def _short_and_long(names: Collection[_Name]) -> Iterator[tuple[Sides, str]]:
    # Numbers in hexadecimal have no forms: 1f, a1 and 10 are three racks of one scheme.
    if all(re.fullmatch(r"(?:0x)?[0-9a-f]{2,}", name.plain) for name in names):
        return
    longer: dict[object, list[RackId]] = {}
    for name in names:
        for reading, first in ((name.tokens, 1), *((other, 0) for other in name.other_readings)):
            for at in range(max(first, len(reading) - _SUFFIX_MOST), len(reading)):
                if (key := _form(reading[at:])) and not _only_qualified(reading[:at], reading[at:]):
                    longer.setdefault(key, []).append(name.rack)
        if name.tokens[:1] and name.tokens[0] in _PLACES:
            longer.setdefault(name.tokens[1:], []).append(name.rack)
    long, short = dict[RackId, None](), dict[RackId, None]()
    for name in names:
        others = [rack for rack in longer.get(_form(name.tokens) or name.tokens, ()) if rack != name.rack]
        if others and name.tokens:
            short[name.rack] = None
            long.update(dict.fromkeys(others))
    if short:
        yield ([rack for rack in long if rack not in short], list(short)), "some are short forms, others long ones"


def _form(tokens: Tokens) -> tuple[Tokens, str] | None:
    """The tokens before the last, and whether that is a number or a letter; None if it is neither, so that it numbers nothing."""
    last = tokens[-1] if tokens else ""
    if _is_number(last):
        return tokens[:-1], "number"
    return (tokens[:-1], "letter") if len(last) == 1 else None


def _only_qualified(before: Tokens, rest: Tokens) -> bool:
    return bool(before) and _QUALIFIERS.issuperset(before) and any(len(token) > 1 for token in rest[:-1])


def _is_number(token: str) -> bool:
    return token[-1:].isdecimal()


def _without_zeros(token: str) -> str:
    digits = token.removeprefix("-")
    if not digits.isdecimal():
        return token
    return token.removesuffix(digits) + (digits.lstrip("0") or "0")


def _is_network(plain: str) -> bool:
    """Whether the name is an address or a network: `10.0.1.0/24`."""
    try:
        ipaddress.ip_network(plain, strict=False)
    except ValueError:
        return False
    return True


def _plain(rack: RackId) -> str:
    """The name without what a reader does not see, or easily overlooks."""
    return unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", rack).casefold()).strip()
