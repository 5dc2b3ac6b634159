"""The picture of docs/min-insync-racks.md shows what it says it shows."""

from tests.simulation.picture import picture


def test_one_panel_leaks_and_the_other_breaks_no_rule() -> None:
    drawn = picture()
    assert drawn.count('class="leak"') == 1
    assert drawn.count("No rule broken.") == 1
    assert drawn.count('class="bad"') >= 1
