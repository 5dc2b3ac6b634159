import pytest

from rackspan.errors import PartialRacks
from rackspan.model import BrokerId, RackId
from rackspan.placement import UsableBroker
from rackspan.placement.rack_modes import RackAwareMode, aware

ALL = [UsableBroker(BrokerId(broker), RackId("a"), False) for broker in range(2)]
NONE = [UsableBroker(BrokerId(broker), None, False) for broker in range(2, 4)]


@pytest.mark.parametrize(
    ("mode", "of_all", "of_none"),
    [(RackAwareMode.ENFORCED, True, False), (RackAwareMode.SAFE, True, False), (RackAwareMode.DISABLED, False, False)],
)
def test_all_racks_or_none_leave_nothing_to_decide(mode: RackAwareMode, of_all: bool, of_none: bool) -> None:
    assert (aware(ALL, mode), aware(NONE, mode)) == (of_all, of_none)


@pytest.mark.parametrize("mode", [RackAwareMode.SAFE, RackAwareMode.DISABLED])
def test_a_mixture_counts_as_no_racks_unless_enforced(mode: RackAwareMode) -> None:
    assert aware(ALL + NONE, mode) is False


def test_an_enforced_mixture_is_refused_in_the_words_of_kafkas_tools() -> None:
    with pytest.raises(PartialRacks) as refusal:
        aware(ALL + NONE, RackAwareMode.ENFORCED)
    assert (
        str(refusal.value)
        == "Not all brokers have rack information. Add --disable-rack-aware in command line to make replica assignment without rack information."
        " No rack: brokers 2,3"
    )
