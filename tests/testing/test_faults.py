"""Each fault as a block, on an embedded cluster: it is there within the block and undone after it, also after an exception."""

from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any

import pytest

from rackspan.cluster import EmbeddedCluster
from rackspan.testing import faults
from rackspan.testing.faults import cutting, fencing, isolating, killing, lagging, losing, pausing


def states(cluster: EmbeddedCluster) -> list[str]:
    return ["/".join(broker.states) for broker in cluster.status().brokers]


WHOLE = ["up", "up", "up"]

BLOCKS: list[tuple[Callable[[EmbeddedCluster], AbstractContextManager[None]], list[str], list[str]]] = [
    (lambda it: losing(it, "r1", "r3"), ["down/fenced", "up", "down/fenced"], []),
    (lambda it: killing(it, 2), ["up", "down/fenced", "up"], []),
    (lambda it: pausing(it, 1, 2), ["paused", "paused", "up"], []),
    (lambda it: lagging(it, 2, 3, milliseconds=250), WHOLE, ["250 ms late"] * 4),
    (lambda it: cutting(it, 1, 3), WHOLE, ["cut"] * 2),
]
"""The block, the states of the brokers within it, and the end of each line about a link."""


@pytest.mark.parametrize(("block", "within", "links"), BLOCKS, ids=["lose", "kill", "pause", "lag", "cut"])
@pytest.mark.parametrize("fails", [False, True])
def test_a_fault_lasts_as_long_as_its_block(
    cluster: EmbeddedCluster, block: Any, within: list[str], links: list[str], fails: bool
) -> None:
    try:
        with block(cluster):
            assert states(cluster) == within
            lines = cluster.status().links
            assert [line.endswith(end) for line, end in zip(lines, links, strict=True)] == [True] * len(links), lines
            if fails:
                raise ZeroDivisionError
    except ZeroDivisionError:
        assert fails
    cluster.wait_for_isr()
    assert states(cluster) == WHOLE
    assert cluster.status().links == ()


class Recorder:
    """Records calls: of an isolation and of fencing the status shows the effect only after a session has ended."""

    def __init__(self) -> None:
        self.calls: list[tuple[Any, ...]] = []

    def __getattr__(self, name: str) -> Callable[..., None]:
        assert callable(getattr(EmbeddedCluster, name)), name
        return lambda *values, **named: self.calls.append((name, *values, *named.items()))


@pytest.mark.parametrize(
    ("block", "calls"),
    [
        (isolating, [("isolate_rack", 1), ("isolate_rack", 2), ("rejoin_rack", 2), ("rejoin_rack", 1)]),
        (fencing, [("fence", 1), ("fence", 2), ("unfence", 2), ("unfence", 1)]),
        (
            faults.killing,
            [("kill", 1, ("power_loss", False)), ("kill", 2, ("power_loss", False)), ("restart", 2), ("restart", 1)],
        ),
    ],
    ids=["isolate", "fence", "kill"],
)
def test_faults_end_in_the_reverse_order_of_their_beginning(block: Any, calls: list[tuple[Any, ...]]) -> None:
    recorder = Recorder()
    with block(recorder, 1, 2):
        assert recorder.calls == calls[:2]
    assert recorder.calls == calls


def test_a_power_loss_is_passed_on() -> None:
    recorder = Recorder()
    with killing(recorder, 1, power_loss=True):  # type: ignore[arg-type]
        assert recorder.calls == [("kill", 1, ("power_loss", True))]


def test_of_a_fault_that_cannot_begin_only_what_began_is_undone() -> None:
    calls: list[str] = []

    def begin(target: int) -> None:
        calls.append(f"begin {target}")
        if target == 2:
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError), faults._each((1, 2, 3), begin, lambda target: calls.append(f"end {target}")):
        raise AssertionError("the block must not run")
    assert calls == ["begin 1", "begin 2", "end 1"]
