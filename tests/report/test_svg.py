from rackspan.audit import RackPolicy, outage
from rackspan.report import svg
from rackspan.report.data import Cell, StateCounts
from tests.report import story
from tests.report.html_checks import drawn


def widths(picture: str) -> dict[str, float]:
    return {one.kinds[-1]: float(one.attributes["width"].rstrip("%")) for one in drawn(picture).all("rect")}


def test_a_bar_of_states_is_as_long_as_all_partitions() -> None:
    assert widths(svg.state_bar(StateCounts(offline=1, one_rack=1, ok=2), "so")) == {
        "offline": 25,
        "one-rack": 25,
        "ok": 50,
    }


def test_a_partition_under_both_minimums_is_drawn_once() -> None:
    cluster = story.shop_history(9)[-1]
    loss = next(one for one in outage(cluster, RackPolicy())[1] if one.racks == ("r1",))
    harmed = story.report_by_hand([cluster]).clusters[0].harmed[loss.racks[0]]
    assert loss.total("offline") + loss.total("under_min_isr") + loss.total("under_min_racks") > harmed
    bar = widths(svg.loss_bar(loss, harmed, len(cluster.partitions), "so"))
    assert abs(sum(bar.values()) - 100) < 0.2
    assert bar["ok"] == round(100 * (47 - harmed) / 47, 1)


def test_replicas_out_of_sync_are_hollow_beside_those_in_sync() -> None:
    assert widths(svg.cell_bar(Cell(replicas=4, in_sync=3, leaders=1, harm=None), 8)) == {"i": 37.5, "o": 12.5}
    assert widths(svg.cell_bar(Cell(replicas=4, in_sync=4, leaders=1, harm=None), 4)) == {"i": 100}
    assert widths(svg.cell_bar(Cell(replicas=4, in_sync=0, leaders=0, harm=None), 4)) == {"o": 100}
