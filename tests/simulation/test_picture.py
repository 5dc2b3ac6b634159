"""The picture of docs/min-insync-racks.md shows what it says it shows, and is what its seed gives on every machine."""

import pytest

from tests.simulation.picture import TARGET, picture


@pytest.mark.slow
def test_one_panel_leaks_and_the_other_breaks_no_rule() -> None:
    drawn = picture()
    assert drawn.count('class="leak"') == 1
    assert drawn.count("No rule broken.") == 1
    assert drawn.count('class="bad"') >= 1
    assert TARGET.read_text(encoding="utf-8") == drawn, "python -m tests.simulation.picture draws it again"
