"""The boxes of racks on the page: brokers, leaders and what the loss of each does; what is lost already is not green."""

import pytest

from rackspan.report import render, words
from rackspan.report.data import ReportData
from rackspan.report.page import rack_boxes
from tests.report import story
from tests.report.html_checks import Element, parsed
from tests.report.story import TopicPlan, report_by_hand
from tests.report.test_page import STORIES


@pytest.fixture(
    params=[pytest.param(name, marks=pytest.mark.slow) if "thirty racks" in name else name for name in STORIES]
)
def data(request: pytest.FixtureRequest) -> ReportData:
    return STORIES[request.param]


def test_each_rack_is_a_box_with_its_brokers_and_leaders(data: ReportData) -> None:
    if len(data.clusters) != 1:
        return
    cluster = data.clusters[0]
    drawn = parsed(render(data)).all("article", "card")
    assert len(drawn) == len(cluster.racks)
    for card, rack in zip(drawn, cluster.racks, strict=True):
        assert card.all("h3")[0].text == f"rack {rack.rack or '(no rack)'}"
        tiles = [one for one in card.all("li", "tile") if "controller" not in one.kinds]
        assert [int(one.all("b")[0].text) for one in tiles] == list(rack.brokers)
        assert [int(one.all("b")[0].text) for one in card.all("li", "controller")] == list(rack.controllers)
        for tile, row in zip(tiles, (one for one in cluster.broker_rows if one.broker in rack.brokers), strict=True):
            leads = "down, " if row.fenced else f"{words.count(row.leaders, 'leader')} of "
            assert tile.all("small")[0].text == f"{leads}{words.count(row.replicas, 'replica')}"
            assert ("fenced" in tile.kinds) == row.fenced


def test_each_box_has_the_numbers_of_its_loss_in_the_words_of_outage(data: ReportData) -> None:
    if len(data.clusters) != 1 or len(data.clusters[0].racks) > 9:
        return
    cluster = data.clusters[0]
    drawn = parsed(render(data)).all("article", "card")
    for card, box in zip(drawn, rack_boxes(cluster), strict=True):
        loss = box.loss
        assert loss is not None
        numbers = {pair.all("dt")[0].text: pair.all("dd")[0].text for pair in card.all("dl")[0].all("div")}
        assert list(numbers) == [
            *("offline", "unclean election only", "under min ISR", "under min racks"),
            *("controllers left", "leaders move"),
        ]
        fields = ("offline", "needs_unclean_election", "under_min_isr", "under_min_racks")
        assert list(numbers.values())[:4] == [f"{loss.total(field):,}" for field in fields]
        assert numbers["controllers left"] == words.quorum(loss)
        harmed = f", {words.count(len(loss.topics), 'topic')} harmed" if loss.topics else ""
        assert [one.text for one in card.all("summary")] == [f"in numbers{harmed}"]


def test_a_rack_that_is_down_is_named_first_and_its_box_is_not_green() -> None:
    root, cluster = parsed(render(STORIES["during the loss"])), STORIES["during the loss"].clusters[0]
    (down,) = root.all("p", "down")
    assert down.text == "Rack r2 is down: brokers 2,5, but not controller 102; 42 partitions lack a replica."
    section = next(one for one in root.walk() if one.tag == "section")
    assert [one.kinds[0] for one in section.held if isinstance(one, Element) and one.kinds][:3] == [
        "kicker",
        "down",
        "verdict",
    ]
    boxes = {one.all("h3")[0].text: one for one in root.all("article", "card")}
    assert boxes["rack r2"].all("p", "chip")[0].text == "lost, but for its controllers"
    assert "ok" not in boxes["rack r2"].kinds
    assert not boxes["rack r2"].all("svg", "ok")
    assert cluster.lost_racks[0].partitions == sum(
        any(one in (2, 5) for one in held) for plan in story.SHOP for held in plan.replicas
    )


def test_a_rack_that_is_lost_and_did_no_harm_is_not_green_either() -> None:
    plans = [TopicPlan("orders", [[1, 2, 3], [4, 5, 6]], min_insync_replicas=1)]
    cluster = story.snapshot(plans, brokers=story.SIX_BROKERS, gone=(2, 5), voters={1: "r1", 3: "r3", 101: "r4"})
    root = parsed(render(report_by_hand([cluster])))
    chips = {one.all("h3")[0].text: one for one in root.all("article", "card")}
    assert chips["rack r2"].all("p", "chip")[0].text == "lost"
    assert {"ok"} & set(chips["rack r2"].kinds) == set()
    assert {"ok"} & set(chips["rack r1"].kinds) == {"ok"}


@pytest.mark.slow
def test_with_many_racks_all_losses_stand_in_a_table_and_the_boxes_have_brokers_only() -> None:
    root, cluster = parsed(render(STORIES["thirty racks"])), STORIES["thirty racks"].clusters[0]
    assert len(root.all("article", "card")) == 30
    assert not root.all("article", "card")[0].all("dl")
    rows = root.all("table")[0].all("tbody")[0].all("tr")
    assert sorted(row.all("th")[0].text for row in rows) == sorted(loss.racks[0] for loss in cluster.losses)
    assert {row.all("td")[1].text for row in rows} == {"120"}
