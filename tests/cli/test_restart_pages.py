"""What the page of a restart plan says of brokers that are down, and of replicas that lag."""

from typing import Any

import pytest

from rackspan.cli.restart import pages as restart
from tests.cli.test_long_pages import drawn


@pytest.mark.parametrize(
    ("waits_for", "words"),
    [
        (["t-0"], "batch 2 may stop once t-0 has every replica in sync that is on a broker that is up"),
        (
            ["t-0", "u-3"],
            "batch 2 may stop once t-0 and others have every replica in sync that is on a broker that is up",
        ),
    ],
)
def test_a_batch_that_waits_for_replicas_names_a_partition(waits_for: list[str], words: str) -> None:
    batch = {"reason": "", "leaders_moved": 0, "most_leaders": 1.0, "at_minimum": 0, "most_bytes": None, "brokers": [1]}
    document: Any = {"batches": [{**batch, "waits_for": []}, {**batch, "waits_for": waits_for}]}
    assert drawn(restart._batches(document))[-1] == words


@pytest.mark.parametrize(
    ("down", "if_up", "bound", "words"),
    [
        ([], None, 3, "3 batches; no plan needs fewer: why"),
        ([2], 3, 3, "3 batches, broker 2 first, which is down; no plan needs fewer from this state: why"),
        (
            [2, 3],
            2,
            2,
            "3 batches, brokers 2,3 first, which are down (with brokers 2,3 up, 2 batches would do);"
            " fewer than 2 are impossible from this state: why",
        ),
    ],
)
def test_the_verdict_of_a_plan_says_what_is_down_and_for_which_state_its_bound_holds(
    down: list[int], if_up: int | None, bound: int, words: str
) -> None:
    document: Any = {"batches": [{}] * 3, "lower_bound": bound, "bound_reason": "why", "down": down}
    document["batches_if_up"] = if_up
    assert restart._plan_verdict(document).plain == words
