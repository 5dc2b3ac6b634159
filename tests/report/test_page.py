import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import timedelta

import pytest
from hypothesis import HealthCheck, given

from rackspan.audit import RackPolicy
from rackspan.audit.batch import snapshot_batch
from rackspan.audit.findings import REPAIR_ORDER, Severity
from rackspan.model import ClusterSnapshot, UnrackedPolicy
from rackspan.report import render, words
from rackspan.report.data import ClusterReport, DurabilityState, ReportData, StateCounts, TopicRow
from rackspan.report.page import about, leaders_move, remedy_parts, state_sign, state_words
from rackspan.report.topic_map import topic_map
from tests.depth import examples
from tests.report import story
from tests.report.html_checks import Element, parsed
from tests.report.story import TopicPlan, report_by_hand, spread
from tests.strategies import snapshots

HOSTILE = "\"><script>alert('1')</script><img src=x onerror=alert(2)>&amp;</style>{{ 7*7 }}"


class MadeOnDemand(Mapping[str, ReportData]):
    """Each report is made when it is first read: every test process imports this file."""

    def __init__(self, makers: Mapping[str, Callable[[], ReportData]]) -> None:
        self._makers = makers
        self._made: dict[str, ReportData] = {}

    def __getitem__(self, name: str) -> ReportData:
        if name not in self._made:
            self._made[name] = self._makers[name]()
        return self._made[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._makers)

    def __len__(self) -> int:
        return len(self._makers)


STORIES = MadeOnDemand(
    {
        "shop": lambda: report_by_hand(story.shop_history(20)),
        "during the loss": lambda: report_by_hand(story.shop_history(9)),
        "one snapshot": lambda: report_by_hand(story.shop_history(1)),
        "quorum in one rack": lambda: report_by_hand(story.shop_history(2, voters={1: "r1", 2: "r1", 3: "r3"})),
        "calm": lambda: report_by_hand(
            story.at_times(story.safe_cluster(), [story.NOON, story.NOON + timedelta(days=3)])
        ),
        "no partitions": lambda: report_by_hand([story.empty_cluster()]),
        "thirty racks": lambda: report_by_hand([story.wide_cluster()]),
        "no racks": lambda: report_by_hand(
            [story.snapshot([TopicPlan("orders", spread(3, 3, 3))], brokers={1: None, 2: None, 3: None})]
        ),
        "fleet": lambda: report_by_hand(
            story.shop_history(20), [story.empty_cluster()], *([story.safe_cluster(f"calm-{i}")] for i in range(10))
        ),
        "long names": lambda: report_by_hand(
            [
                story.snapshot(
                    [
                        TopicPlan("x" * 249, [[1, 4]] * 3),
                        TopicPlan("y" * 249, spread(6, 3)),
                        TopicPlan("z" * 249, [[1, 2]]),
                    ],
                    brokers={broker: f"{rack}-{'w' * 120}" for broker, rack in story.SIX_BROKERS.items()},
                    gone=[2],
                    at=story.NOON + timedelta(days=hour),
                    cluster_id="c" * 255,
                    partial=("p" * 300,),
                )
                for hour in (0, 1)
            ],
            [story.safe_cluster()],
        ),
        "five hundred topics": lambda: report_by_hand([story.many_topics(500)]),
        "traffic": lambda: story.with_traffic(report_by_hand(story.shop_history(9)), story.traffic()),
        "traffic of long names": lambda: story.with_traffic(
            report_by_hand([story.safe_cluster()]),
            story.traffic(["eu-west-1a" * 12, "us-east-2b" * 12, None], "x" * 249),
        ),
        "traffic of thirty racks": lambda: story.with_traffic(
            report_by_hand([story.safe_cluster()], [story.safe_cluster("other")]),
            story.traffic([f"rack-{number:02}" for number in range(30)], prices=False),
        ),
        "nothing collected": lambda: report_by_hand(),
    }
)


@pytest.fixture(
    params=[pytest.param(name, marks=pytest.mark.slow) if "thirty racks" in name else name for name in STORIES]
)
def data(request: pytest.FixtureRequest) -> ReportData:
    return STORIES[request.param]


def test_the_page_is_well_formed(data: ReportData) -> None:
    root = parsed(render(data))
    assert root.all("html")[0].attributes["lang"] == "en"
    assert any(one.attributes.get("name") == "viewport" for one in root.all("meta"))
    assert root.all("title")[0].text.endswith("rackspan report")


def test_the_page_needs_nothing_from_elsewhere(data: ReportData) -> None:
    page = render(data)
    assert not re.search(r"https?:|url\((?!#)|@import|//[a-z]", page)
    root = parsed(page)
    # The one script is in the page itself, and loads nothing.
    assert [one.attributes for one in root.all("script")] == [{}]
    assert not re.search(r"fetch|XMLHttpRequest|import|WebSocket|innerHTML|eval", root.all("script")[0].text)
    loading = {"link", "iframe", "img", "object", "embed", "audio", "video", "base", "form"}
    assert not loading & {one.tag for one in root.walk()}
    assert not any(name in ("src", "srcset") or name.startswith("on") for one in root.walk() for name in one.attributes)


def test_the_same_data_gives_the_same_bytes() -> None:
    assert render(report_by_hand(story.shop_history(5))) == render(report_by_hand(story.shop_history(5)))


@pytest.mark.slow
def test_a_map_of_sixty_topics_over_thirty_racks_stays_below_500_kb() -> None:
    assert len(render(STORIES["thirty racks"]).encode()) < 500_000


@pytest.mark.slow
def test_a_fleet_of_forty_clusters_stays_below_1_mb() -> None:
    shop = story.shop_history(20)
    fleet = report_by_hand(*([replace(one, cluster_id=f"shop-{i}") for one in shop[-3:]] for i in range(40)))
    assert len(render(fleet).encode()) < 1_000_000


def test_names_are_text_whatever_they_hold() -> None:
    brokers = {broker: f"{HOSTILE}{rack}" for broker, rack in story.SIX_BROKERS.items()}
    plans = [TopicPlan("payments", [[1, 4]], min_insync_replicas=1)]
    hostile = story.snapshot(plans, brokers=brokers, cluster_id=HOSTILE, partial=(HOSTILE,))
    data = report_by_hand([hostile])
    finding = replace(data.clusters[0].findings[0], reason=HOSTILE, remedy=f"rackspan {HOSTILE}")
    data = ReportData((replace(data.clusters[0], findings=(finding,)),), HOSTILE)
    root = parsed(render(data))
    assert [one.text for one in root.all("script")] == [parsed(render(STORIES["calm"])).all("script")[0].text]
    assert not root.all("img")
    assert len(root.all("style")) == 1
    assert not any(name.startswith("on") for one in root.walk() for name in one.attributes)
    shown = " ".join(HOSTILE.split())
    assert root.all("p", "kicker")[0].all("b")[0].text == shown
    assert root.all("article", "card")[0].all("h3")[0].text == f"rack {shown}r1"
    assert shown in root.all("p", "caveat")[0].text
    assert root.all("li", "step")[0].all("p", "do")[0].text.startswith("rackspan ")
    assert shown in root.all("li", "step")[0].text


def test_names_are_text_in_a_fleet_too() -> None:
    data = report_by_hand([story.safe_cluster(HOSTILE)], [story.safe_cluster("<b>")])
    root = parsed(render(data))
    assert [one.text for one in root.all("table")[0].all("a")] == [" ".join(HOSTILE.split()), "<b>"]


def test_names_in_traffic_are_text_too() -> None:
    data = story.with_traffic(STORIES["calm"], story.traffic([HOSTILE, "r2"], HOSTILE))
    root = parsed(render(data))
    shown = " ".join(HOSTILE.split())
    assert [one.text for one in root.all("script")] == [parsed(render(STORIES["calm"])).all("script")[0].text]
    assert not root.all("img")
    assert not any(name.startswith("on") for one in root.walk() for name in one.attributes)
    savings = root.all("li", "money")
    assert savings[0].all("p", "do")[0].text == f"set {shown}"
    bills = root.all("table", "bill")
    assert [one.all("tbody")[0].all("th")[0].text for one in bills] == [shown, shown]


def test_savings_have_a_list_and_risks_are_the_findings_only() -> None:
    root = parsed(render(STORIES["traffic"]))
    assert "could not read all" in root.text
    savings = root.all("li", "money")
    assert [one.all("p", "why")[0].text for one in savings] == [
        "read-in-rack, group orders: 1.0 TiB less across racks and 10.00 USD less in 30 days",
        "read-in-rack, group orders: 1.0 GiB more across racks and 2.00 USD less in 30 days",
        "read-in-rack, group orders: 1.0 GiB less across racks in 30 days",
    ]
    assert "Of 12 savings these are the first 3; rackspan advise prints the others." in root.text
    assert [one.text for one in root.all("h2")].count("What to do") == 1


def test_each_command_has_a_button_and_every_step_stands_once(data: ReportData) -> None:
    root = parsed(render(data))
    steps = [one.all("p", "do")[0].text.removesuffix(" copy") for one in root.all("li", "step")]
    if len(data.clusters) == 1:
        assert len(steps) == len(set(steps))
    for line in root.all("p", "do"):
        assert len(line.all("button", "copy")) == len(line.all("code"))
        assert all("hidden" in button.attributes for button in line.all("button", "copy"))


def test_a_command_in_a_remedy_ends_where_another_way_out_begins() -> None:
    plan = "rackspan reassign plan --topic orders --replication-factor 3"
    assert remedy_parts(f"{plan}, or lower min.insync.replicas to 1") == [
        (plan, True),
        (", or lower min.insync.replicas to 1", False),
    ]
    assert remedy_parts(f"bring back rack b; then {plan}") == [("bring back rack b; then ", False), (plan, True)]
    assert remedy_parts("bring back broker 9, or rackspan reassign plan --drain 9") == [
        ("bring back broker 9, or ", False),
        ("rackspan reassign plan --drain 9", True),
    ]
    assert remedy_parts("add brokers") == [("add brokers", False)]


def test_the_bill_says_what_is_not_known_and_shows_no_zero_for_it() -> None:
    by_topic, by_group = parsed(render(STORIES["traffic"])).all("table", "bill")
    rows = [[one.text for one in row.walk() if one.tag in ("th", "td")] for row in by_topic.all("tr")]
    unknown = "some bytes: a rack is not known"
    gibibytes = "3.0 GiB: the price of replicate is not known"
    several = "2.00 EUR + under 0.01 USD, and more that is not known"
    assert [row[0] for row in rows] == ["topic", "orders", "orders-2", "orders-3", "of no group", "7 more", "all"]
    assert rows[1] == ["orders", "1,234.50 USD", "1.0 TiB", ""]
    for row, money in ((2, several), (3, "not known"), (5, "not known")):
        assert rows[row][1] == money
        assert sorted(rows[row][3].split("; ")) == [gibibytes, unknown]
    assert rows[6][1] == "2.00 EUR + 1,234.50 USD, and more that is not known"
    assert by_group.all("thead")[0].all("th")[0].text == "group"


def test_a_report_without_readings_has_no_part_about_traffic(data: ReportData) -> None:
    traffic = [cluster.traffic for cluster in data.clusters if cluster.traffic is not None]
    root = parsed(render(data))
    assert len(root.all("svg", "flows")) == 2 * len(traffic)
    assert ("What it cost" in root.text) == ("What would stay in its rack" in root.text) == bool(traffic)


def test_the_page_opens_with_the_verdict() -> None:
    verdicts = {
        "shop": "does not survive the loss of a rack",
        "calm": "survives the loss of any one rack",
        "no partitions": "not judged",
    }
    for name, verdict in verdicts.items():
        root = parsed(render(STORIES[name]))
        assert root.all("h1")[0].text == verdict
        assert root.all("div", "verdict")[0].all("p")[0].text == words.headline(STORIES[name].clusters[0])


def test_a_safe_verdict_on_a_partial_snapshot_says_so() -> None:
    partial = replace(story.safe_cluster(), partial=("topic secret: not authorized",))
    root = parsed(render(report_by_hand([partial])))
    assert root.all("h1")[0].text == "not judged"
    assert root.all("div", "verdict")[0].kinds == ["verdict", "unknown"]
    assert root.all("p", "caveat")[0].text == "Could not be read: topic secret: not authorized"


def map_rows(root: Element) -> Sequence[Element]:
    return root.all("table", "map")[0].all("tbody")[0].all("tr")


def test_of_the_brokers_that_take_over_leaders_those_with_the_most_come_first() -> None:
    [loss, *_] = report_by_hand(story.shop_history(1)).clusters[0].losses
    assert (
        leaders_move(replace(loss, leader_surge={3: 1, 5: 1_200, 2: 1})) == "broker 5 +1,200, broker 2 +1, broker 3 +1"
    )


def test_the_map_shows_the_replicas_and_leaders_of_each_topic_in_each_rack() -> None:
    root, cluster = parsed(render(STORIES["during the loss"])), STORIES["during the loss"].clusters[0]
    rows = map_rows(root)
    assert len(rows) == len(cluster.topic_map.rows) == 7
    for row, drawn in zip(cluster.topic_map.rows, rows, strict=True):
        name, state, *cells = (one for one in drawn.held if isinstance(one, Element))
        assert name.all("b")[0].text == row.topic
        assert ("(internal)" in name.text) == row.internal
        assert state.text == state_words(row)
        assert [cell.attributes["data-l"] for cell in cells] == list(cluster.topic_map.racks)
        for cell, held in zip(cells, row.cells, strict=True):
            numbers = [int(one) for one in re.findall(r"\d+", re.split("if lost|now:", cell.text)[0])]
            expected = [held.replicas] if held.in_sync == held.replicas else [held.in_sync, held.replicas]
            assert numbers == (expected + ([held.leaders] if held.leaders else []) if held.replicas else [])
            assert ("if lost" in cell.text or "now:" in cell.text) == (held.harm is not None)


def test_the_state_of_a_topic_is_no_green_where_the_loss_of_a_rack_does_harm() -> None:
    rows = STORIES["calm"].clusters[0].topic_map.rows
    sound = replace(rows[0], partitions=3, states=StateCounts(ok=3), cells=())
    harmed = replace(sound, cells=next(row.cells for row in every_topic() if any(cell.harm for cell in row.cells)))
    assert [
        (state_sign(row), state_words(row))
        for row in (
            sound,
            harmed,
            replace(harmed, states=StateCounts(offline=1, under_min_isr=1, ok=1)),
            replace(sound, partitions=0, states=StateCounts()),
        )
    ] == [
        ("ok", "ok, and without any one rack"),
        ("unknown", "ok now, harmed if a rack is lost"),
        ("offline", "1 offline, 1 under-min-isr"),
        ("ok", "all ok"),
    ]


def every_topic() -> list[TopicRow]:
    return [row for story in STORIES.values() for cluster in story.clusters for row in cluster.topic_map.rows]


@pytest.mark.slow
def test_the_dense_map_has_a_number_in_every_cell_that_holds_replicas() -> None:
    cluster = STORIES["thirty racks"].clusters[0]
    for row, drawn in zip(cluster.topic_map.rows, map_rows(parsed(render(STORIES["thirty racks"]))), strict=True):
        assert drawn.all("b")[0].attributes["title"] == row.topic
        assert len(row.topic) == 249
        counts = [re.match(r"\d+", cell.text) for cell in drawn.all("td", "c")]
        # A replica count and "1 led" stand on two lines, which the text alone runs together.
        assert all(one is not None for one in counts)
        assert [cell.all("i")[0].text for cell in drawn.all("td", "c")] == ["2"] * 30
        assert [cell.all("small")[0].text for cell in drawn.all("td", "c")] == [
            f"{cell.leaders} led" for cell in row.cells
        ]


@pytest.mark.slow
def test_a_map_that_leaves_topics_out_says_how_many_there_are() -> None:
    plans = [TopicPlan(f"t{code}", [[1, 2, 3]]) for code in range(1000)]
    root = parsed(render(report_by_hand([story.snapshot(plans, brokers=story.SIX_BROKERS)])))
    assert any("Drawn are the 60 worst of 1,000 topics." in one.text for one in root.all("p", "read"))
    assert len(map_rows(root)) == 60
    assert len(root.all("ul", "names")[0].all("li")) == 940


def test_time_in_each_state_is_shown_as_computed() -> None:
    cluster = STORIES["shop"].clusters[0]
    table = next(
        one
        for one in parsed(render(STORIES["shop"])).all("div")
        if one.attributes.get("aria-label") == "Time in each state"
    )
    lines = [[cell.text for cell in row.walk() if cell.tag in ("th", "td")] for row in table.all("tbody")[0].all("tr")]
    assert lines == [
        [one.state.value, words.span(one.seconds), f"{one.most:,}", words.utc(one.most_at)]
        for one in story.history_of(cluster).states
    ]
    assert lines[0] == ["offline", "2 min 30 s", "4", "2026-11-21 12:03:00 UTC"]


def test_the_picture_stands_as_a_table_too_a_line_a_change() -> None:
    table = next(
        one
        for one in parsed(render(STORIES["shop"])).all("div")
        if one.attributes.get("aria-label") == "Durability over time as a table"
    )
    lines = [[cell.text for cell in row.walk() if cell.tag in ("th", "td")] for row in table.all("tr")]
    assert lines[0] == ["from", *(state.value for state in DurabilityState)]
    assert [line[0][11:19] for line in lines[1:]] == ["12:00:00", "12:03:00", "12:05:30", "12:06:30"]
    assert lines[2][1:] == ["4", "4", "0", "2", "37"]


def test_one_snapshot_is_drawn_without_a_timeline() -> None:
    root = parsed(render(STORIES["one snapshot"]))
    assert not root.all("svg", "timeline")
    assert root.all("figcaption")[0].text == "2026-11-21 12:00:00 UTC: 47 partitions, 6 one-rack"


def test_findings_stand_under_their_remedy_and_those_that_are_over_apart() -> None:
    cluster = STORIES["shop"].clusters[0]
    root = parsed(render(STORIES["shop"]))
    steps = root.all("li", "step")
    for group in cluster.findings:
        if group.findings:
            (step,) = [one for one in steps if one.all("p", "do")[0].text.removesuffix(" copy") == group.remedy]
            (line,) = [one for one in step.all("p", "why") if one.all("b")[0].text == group.constraint]
            assert group.reason in line.text
            assert f"since {words.utc(group.since)}" in line.text
    over = [one for one in cluster.findings if not one.findings]
    drawn = root.all("article", "finding")
    assert [one.all("b")[0].text for one in drawn] == [one.constraint for one in over]
    for card, group in zip(drawn, over, strict=True):
        assert group.reason in card.text
        assert f"in {group.snapshots} of 20 snapshots" in card.text
    assert over
    assert any(group.severity is Severity.WARNING for group in cluster.findings)


def test_a_fleet_begins_with_a_table_that_links_to_every_cluster() -> None:
    root, data = parsed(render(STORIES["fleet"])), STORIES["fleet"]
    rows = root.all("table")[0].all("tbody")[0].all("tr")
    assert [row.all("a")[0].text for row in rows] == [cluster.cluster_id for cluster in data.clusters]
    assert [row.all("td")[0].text for row in rows] == [cluster.verdict.value for cluster in data.clusters]
    assert len(root.all("details", "cluster")) == 12
    assert root.all("h1")[0].text == "1 of 12 clusters does not survive the loss of a rack. 1 could not be judged."


def test_where_no_broker_counts_in_a_rack_the_page_says_what_to_set() -> None:
    cluster_snapshot = story.snapshot([TopicPlan("orders", [[1, 2]])], brokers={1: None, 2: None})
    ignoring = RackPolicy(unracked=UnrackedPolicy.IGNORE)
    partition_batch = snapshot_batch(cluster_snapshot, ignoring)
    cluster = replace(
        report_by_hand([cluster_snapshot]).clusters[0],
        losses=(),
        harmed={},
        racks=(),
        topic_map=topic_map(cluster_snapshot, partition_batch, (), {}, 60),
    )
    root = parsed(render(ReportData((cluster,), "0")))
    assert root.all("h1")[0].text == "not judged"
    assert "Set broker.rack on every broker." in root.text
    assert "2 replicas in no known rack" in map_rows(root)[0].text


def test_a_topic_without_rack_rules_or_lost_racks_is_described_by_its_counts_alone() -> None:
    plan = TopicPlan("orders", [[1, 4], [4, 1]], min_insync_replicas=1)
    [row] = report_by_hand([story.snapshot([plan], brokers=story.SIX_BROKERS)]).clusters[0].topic_map.rows
    assert about(row).replace("\N{NO-BREAK SPACE}", " ") == "2 partitions, replication factor 2, min.insync.replicas 1"


def test_a_topic_that_requires_several_racks_in_sync_says_so() -> None:
    plans = [TopicPlan(f"t{racks}", [[1, 4], [4, 1]], min_insync_racks=racks) for racks in (1, 2)]
    rows = report_by_hand([story.snapshot(plans, brokers=story.SIX_BROKERS)]).clusters[0].topic_map.rows
    described = {row.topic: about(row).replace("\N{NO-BREAK SPACE}", " ").rpartition(", ")[2] for row in rows}
    assert described == {"t1": "min.insync.replicas 2", "t2": "min.insync.racks 2"}


def test_an_empty_warehouse_says_what_to_do_next() -> None:
    assert "rackspan pipeline collect" in parsed(render(STORIES["nothing collected"])).all("p", "lead")[0].text


def test_colour_never_speaks_alone(data: ReportData) -> None:
    """Every sign has words beside it: the element around it says more than the sign."""
    root = parsed(render(data))
    for sign in root.all("svg", "k"):
        assert sign.parent is not None
        assert sign.parent.text, sign.attributes
    for bar in root.all("svg", "bar"):
        assert bar.attributes["aria-label"]


@examples(0.25, suppress_health_check=[HealthCheck.too_slow])
@given(snapshots())
def test_any_cluster_makes_a_well_formed_page(snapshot: ClusterSnapshot) -> None:
    data = report_by_hand([replace(snapshot, taken_at=story.NOON)])
    cluster: ClusterReport = data.clusters[0]
    root = parsed(render(data))
    assert root.all("div", "verdict")[0].all("p")[0].text == " ".join(words.headline(cluster).split())


def test_the_next_steps_stand_beside_the_verdict_in_the_order_of_repair() -> None:
    root, cluster = parsed(render(STORIES["during the loss"])), STORIES["during the loss"].clusters[0]
    current = {one.constraint for one in cluster.findings if one.findings}
    lines = [one.all("p", "why") for one in root.all("li", "step")]
    assert {line.all("b")[0].text for step in lines for line in step} == current
    first = [step[0].all("b")[0].text for step in lines if "violation" in step[0].text]
    assert first == sorted(first, key=REPAIR_ORDER.index)
    assert "Nothing has to be done: no constraint of the policy is broken." in parsed(render(STORIES["calm"])).text


def test_no_topic_is_green_beside_the_harm_of_a_loss(data: ReportData) -> None:
    root = parsed(render(data))
    for row in (row for row in root.all("tr") if "data-topic" in row.attributes):
        green = bool(row.all("td", "state")[0].all("svg", "ok"))
        harmed = any(cell.all("i") for cell in row.all("td", "c"))
        assert not (green and harmed), row.text


def test_healthy_topics_are_closed_away_and_the_others_are_not() -> None:
    root, cluster = parsed(render(STORIES["shop"])), STORIES["shop"].clusters[0]
    (closed,) = root.all("details", "healthy")
    assert "open" not in closed.attributes
    healthy = [row.topic for row in cluster.topic_map.rows if row.healthy]
    assert [row.attributes["data-topic"] for row in closed.all("tr") if "data-topic" in row.attributes] == healthy
    assert 0 < len(healthy) < len(cluster.topic_map.rows)


def test_the_name_of_a_cluster_stands_beside_its_id() -> None:
    named = STORIES["calm"].named({"calm": "Production, Europe"})
    root = parsed(render(named))
    assert root.all("title")[0].text.startswith("Production, Europe: survives the loss of any one rack")
    assert root.all("p", "kicker")[0].text.startswith("cluster Production, Europe (calm) at ")


def test_every_broker_has_a_row() -> None:
    root, cluster = parsed(render(STORIES["during the loss"])), STORIES["during the loss"].clusters[0]
    rows = root.all("table", "brokers")[0].all("tbody")[0].all("tr")
    assert [row.all("th")[0].text.split()[0] for row in rows] == [str(one.broker) for one in cluster.broker_rows]
    assert [row.all("td")[1].text for row in rows if "(fenced)" in row.text] == ["lost already"] * 2


def test_no_broker_is_green_where_partitions_are_harmed_already(data: ReportData) -> None:
    """The loss of a broker that holds nothing in sync adds nothing; what is harmed stays so."""
    root = parsed(render(data))
    for cluster, table in zip(
        (one for one in data.clusters if one.broker_rows), root.all("table", "brokers"), strict=True
    ):
        cells = [row.all("td")[1] for row in table.all("tbody")[0].all("tr")]
        assert not (words.already_harmed(cluster) and any(cell.all("svg", "ok") for cell in cells))


def test_a_loss_that_adds_no_harm_to_what_is_there_says_so() -> None:
    behind = story.snapshot([TopicPlan("orders", [[1, 2, 3], [2, 3, 1]])], brokers=story.SIX_BROKERS, lagging=(1, 3))
    rows = parsed(render(report_by_hand([behind]))).all("table", "brokers")[0].all("tbody")[0].all("tr")
    assert [row.all("td")[1].text for row in rows][:4] == [
        "no more than now",
        "2 offline",
        "no more than now",
        "no more than now",
    ]


def test_a_step_links_to_the_row_of_its_topic() -> None:
    root = parsed(render(STORIES["shop"]))
    rows = {one.attributes["id"] for one in root.all("tr") if "data-topic" in one.attributes}
    links = [one.attributes["href"].removeprefix("#") for step in root.all("li", "step") for one in step.all("a")]
    assert links
    assert set(links) <= rows


def test_the_time_for_which_a_rack_could_not_be_lost_stands_with_the_verdict() -> None:
    verdict = parsed(render(STORIES["shop"])).all("div", "verdict")[0]
    cluster = STORIES["shop"].clusters[0]
    assert words.losses_over_time(cluster.loss_history, story.history_of(cluster)) in verdict.text


def test_a_violation_that_leaves_the_losses_open_is_no_green_verdict() -> None:
    cluster = STORIES["calm"].clusters[0]
    finding = STORIES["shop"].clusters[0].findings[0]
    doubtful = replace(finding, constraint="rack-names-alike", severity=Severity.VIOLATION)
    root = parsed(render(ReportData((replace(cluster, findings=(doubtful,)),), "0")))
    assert root.all("h1")[0].text == "not certain to survive the loss of a rack"
    assert root.all("div", "verdict")[0].kinds == ["verdict", "offline"]
    over = replace(doubtful, findings=0)
    root = parsed(render(ReportData((replace(cluster, findings=(over,)),), "0")))
    assert root.all("h1")[0].text == "survives the loss of any one rack"
