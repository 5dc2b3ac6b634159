"""The rack that a client.rack of no broker probably means: written otherwise, or in a cloud's other naming."""

import re
from collections.abc import Collection
from difflib import get_close_matches
from typing import Final

from rackspan.model.ids import RackId
from rackspan.model.rack_names import region_of_zone_id, region_of_zone_name

_CLOSE: Final = 0.8
"""difflib's ratio from which two names of more than a few letters differ by a slip."""


def likely_rack(declared: str, racks: Collection[RackId]) -> RackId | None:
    """The only rack that the name can mean; None if none or several could be meant.

    Meant are: equal but for case, blanks and separators; one the end of the other (`1a`, `eu-west-1a`); the same zone of a
    region as a zone name and as a zone id (`us-east-1a`, `use1-az1`: the letters of the two depend on the AWS account, so
    only a cluster with one zone of that region gets a guess); else the only close match by difflib of the same digits and the
    same last letter, since names that differ in those are of different places: `us-east-1a` is never `us-east-1b`.
    """
    for meant in (_same_letters, _one_ends_with_the_other, _same_region):
        found = [rack for rack in racks if meant(declared, rack)]
        if found:
            return found[0] if len(found) == 1 else None
    alike = {_letters(rack): rack for rack in racks if _place(rack) == _place(declared)}
    close = get_close_matches(_letters(declared), alike, n=2, cutoff=_CLOSE)
    return alike[close[0]] if len(close) == 1 else None


def _letters(name: str) -> str:
    return re.sub(r"[\W_]+", "", name).casefold()


def _place(name: str) -> tuple[str, str]:
    """The digits and the last letter: what numbers and letters zones and racks."""
    letters = _letters(name)
    return re.sub(r"\D", "", letters), letters[-1:]


def _same_letters(declared: str, rack: str) -> bool:
    return _letters(declared) == _letters(rack)


def _one_ends_with_the_other(declared: str, rack: str) -> bool:
    one, other = sorted((_letters(declared), _letters(rack)), key=len)
    # 1 is no end of 11.
    return bool(one) and re.search(rf"(?<!\d){one}$" if one[0].isdigit() else f"{one}$", other) is not None


def _same_region(declared: str, rack: str) -> bool:
    return any(
        region_of_zone_name(name) == region
        for name, zone_id in ((declared, rack), (rack, declared))
        if (region := region_of_zone_id(zone_id)) is not None
    )
