from dataclasses import replace

from rackspan.audit import RackPolicy, Severity, audit
from rackspan.model import MIN_INSYNC_REPLICAS, ClusterSnapshot
from rackspan.reassign import ReassignmentRequest, plan
from tests.snapshots import of_one_topic


def cluster(
    replicas: list[list[int]], *, leaders: list[int] | None = None, sizes: list[int] | None = None
) -> ClusterSnapshot:
    """Six brokers, two in each of three racks."""
    racks = {broker: f"r{broker % 3}" for broker in range(6)}
    return of_one_topic(racks, replicas, leader=leaders, config={MIN_INSYNC_REPLICAS: "2"}, more={"size_bytes": sizes})


def warnings(snapshot: ClusterSnapshot) -> dict[str, str]:
    found = audit(snapshot, RackPolicy()).findings
    assert {finding.severity for finding in found} <= {Severity.WARNING}
    return {finding.constraint: finding.reason for finding in found}


EVEN = [[b, (b + 1) % 6, (b + 2) % 6] for b in range(6)] * 10


def test_an_even_cluster_has_no_warnings() -> None:
    assert warnings(cluster(EVEN)) == {}


def test_one_broker_that_leads_everything_is_named_with_what_would_be_even() -> None:
    """Broker 3 holds nothing that it could lead."""
    found = warnings(cluster([[0, 1, 2]] * 30 + [[0, 4, 5]] * 30))
    assert found["leader-balance"] == "broker 0 is preferred leader of 60 partitions, 12 would be even"
    assert found["replica-balance"] == "broker 0 holds 60 replicas, 30 are possible with racks kept"
    assert found["rack-leader-balance"] == "rack r0 is preferred leader of 60 partitions, its share is 12"


def test_a_tenth_and_one_above_the_even_share_is_accepted_and_no_more() -> None:
    """Even are 10 leaders and 30 replicas on each of six brokers, 20 leaders in each of three racks."""

    def led_by_0(more: int, others: tuple[int, ...]) -> dict[str, str]:
        held = [list(row) for row in EVEN]
        for row in [row for row in held if 0 in row and row[0] in others][:more]:
            row.remove(0)
            row.insert(0, 0)
        return warnings(cluster(held))

    assert "leader-balance" not in led_by_0(2, (4, 5))
    assert led_by_0(3, (4, 5))["leader-balance"] == "broker 0 is preferred leader of 13 partitions, 10 would be even"
    assert "rack-leader-balance" not in led_by_0(3, (4, 5))
    assert led_by_0(4, (4, 5))["rack-leader-balance"] == "rack r0 is preferred leader of 24 partitions, its share is 20"

    def held_by_0(more: int) -> dict[str, str]:
        held = [list(row) for row in EVEN]
        for row in [row for row in held if 3 in row and row[0] != 3][:more]:
            row[row.index(3)] = 0
        return warnings(cluster(held))

    assert "replica-balance" not in held_by_0(4)
    assert held_by_0(5)["replica-balance"] == "broker 0 holds 35 replicas, 30 are possible with racks kept"


def test_the_broker_whose_leaders_are_most_often_away_is_named() -> None:
    leaders = [held[1] if held[0] == 3 or (held[0] == 2 and at < 18) else held[0] for at, held in enumerate(EVEN)]
    assert warnings(cluster(EVEN, leaders=leaders))["preferred-leader"] == (
        "10 of 10 partitions with broker 3 as preferred leader are not led by it; likewise 1 other broker"
    )


def test_leaders_that_moved_away_are_left_to_kafkas_election() -> None:
    found = warnings(cluster(EVEN, leaders=[held[1] for held in EVEN]))
    assert found == {
        "preferred-leader": "10 of 10 partitions with broker 0 as preferred leader are not led by it; likewise 5 other brokers"
    }


def test_no_election_is_recommended_that_would_change_nothing() -> None:
    """Broker 0 is alive and not in sync: an election of preferred leaders passes these partitions over. So it does those without a leader."""
    racks = {broker: f"r{broker % 3}" for broker in range(6)}
    led_by_another = [row[1] if row[0] == 0 else row[0] for row in EVEN]
    behind = [[one for one in row if one != 0] for row in EVEN]
    without_leader = [-1 if row[0] == 0 else row[0] for row in EVEN]
    for isr, leader in ((behind, led_by_another), (EVEN, without_leader)):
        found = audit(of_one_topic(racks, EVEN, isr=isr, leader=leader), RackPolicy()).findings
        assert "preferred-leader" not in {one.constraint for one in found}
    found = audit(of_one_topic(racks, EVEN, leader=led_by_another), RackPolicy()).findings
    assert "preferred-leader" in {one.constraint for one in found}


def test_bytes_are_fair_up_to_one_partition() -> None:
    lumpy = [10**12 if index == 0 else 10 for index in range(len(EVEN))]
    assert warnings(cluster(EVEN, sizes=lumpy)) == {}
    skewed = [10**9 if held[0] == 0 else 10 for held in EVEN]
    assert "byte-balance" in warnings(cluster(EVEN, sizes=skewed))


def test_a_rack_too_small_for_its_share_is_no_reason_to_warn() -> None:
    """Three racks of 2, 2 and 1 with RF 3: the lone broker must hold a replica of everything."""
    held = [[(0, 2, 4), (2, 4, 1), (4, 1, 3), (1, 3, 4), (3, 0, 4)][p % 5] for p in range(50)]
    assert warnings(of_one_topic(dict(enumerate("aabbc")), held, config={MIN_INSYNC_REPLICAS: "2"})) == {}


def findings_with(excluded: set[int], replicas: list[list[int]]) -> dict[str, tuple[str, str]]:
    found = audit(cluster(replicas), RackPolicy(excluded_brokers=frozenset(excluded))).findings
    return {finding.constraint: (finding.reason, finding.remedy) for finding in found}


def test_an_excluded_broker_has_no_share_to_hold() -> None:
    """Broker 0 holds nothing and broker 3 of its rack everything: uneven, unless broker 0 is excluded."""
    held = [[3, (b % 2) * 3 + 1, (b % 2) * 3 + 2] if b % 3 else [(b % 2) * 3 + 1, 3, 2] for b in range(60)]
    assert "replica-balance" in findings_with(set(), held)
    assert "replica-balance" not in findings_with({0}, held)


def test_an_excluded_broker_that_holds_replicas_is_a_warning_whose_remedy_empties_it() -> None:
    assert findings_with({0}, EVEN) == {
        "excluded-broker": (
            "broker 0 is excluded: it gets nothing new, and holds 30 replicas",
            "rackspan reassign plan --drain 0, or end the exclusion when it is back in service",
        )
    }


def test_a_rack_that_would_be_empty_without_excluded_brokers_is_not_drained() -> None:
    found = findings_with({0, 3}, EVEN)
    assert found["excluded-broker"][1] == "add brokers to rack r0, or end the exclusion when it is back in service"


def test_what_only_a_broker_that_is_down_can_receive_is_drained_once_it_is_back() -> None:
    """Broker 3 is the only other one of rack r0. Until it is back no plan can drain broker 0."""
    held = cluster(EVEN)
    down = replace(held, brokers=tuple(replace(broker, fenced=broker.id == 3) for broker in held.brokers))
    policy, drain = RackPolicy(excluded_brokers=frozenset({0})), ReassignmentRequest(drain=frozenset({0}))
    found = {one.constraint: one.remedy for one in audit(down, policy).findings}
    assert found["excluded-broker"].startswith("bring back broker 3; then rackspan reassign plan --drain 0, or end")
    assert plan(down, policy, drain).infeasible
    assert not plan(held, policy, drain).infeasible


def test_a_cordoned_broker_is_as_an_excluded_one_and_its_remedy_ends_that() -> None:
    held = cluster(EVEN)
    snapshot = replace(held, brokers=tuple(replace(broker, cordoned=broker.id == 0) for broker in held.brokers))
    [finding] = audit(snapshot, RackPolicy()).findings
    assert (finding.constraint, finding.reason) == (
        "excluded-broker",
        "all log directories of broker 0 are cordoned: it gets nothing new, and holds 30 replicas",
    )
    assert finding.remedy.endswith("--entity-name 0 --delete-config cordoned.log.dirs")
