from rackspan.advice import Advice, ranked, risks
from rackspan.advice.advice import Concern
from rackspan.audit import Finding
from rackspan.audit.findings import Severity


def finding(
    constraint: str, topic: str | None, partition: int | None, remedy: str, *, warning: bool = False
) -> Finding:
    severity = Severity.WARNING if warning else Severity.VIOLATION
    return Finding(constraint, severity, topic, partition, f"why {constraint}", remedy)


def saving(kind: str, money: float | None, size: int) -> Advice:
    return Advice(Concern.MONEY, kind, "", "", "", "", bytes_a_month=size, money_a_month=money)


def test_findings_of_one_constraint_and_remedy_are_one_piece_in_the_order_of_repair() -> None:
    found = list(
        risks(
            [
                finding("rack-spread", "a", 0, "rackspan reassign plan"),
                finding("rack-spread", "b", 2, "rackspan reassign plan"),
                finding("leader-racks", "c", None, "rackspan reassign plan --leaders --topic c", warning=True),
                finding("offline", "a", 1, "bring back broker 3"),
                finding("unracked-broker", None, None, "set broker.rack on broker 9 and restart it"),
            ]
        )
    )
    assert [(each.concern, each.kind, each.topic, each.command) for each in found] == [
        (Concern.RISK, "offline", "a", "bring back broker 3"),
        (Concern.RISK, "unracked-broker", None, "set broker.rack on broker 9 and restart it"),
        (Concern.RISK, "rack-spread", None, "rackspan reassign plan"),
        (Concern.WARNING, "leader-racks", "c", "rackspan reassign plan --leaders --topic c"),
    ]
    assert [each.reason for each in found] == [
        "1 partition of 1 topic, such as a-1: why offline",
        "why unracked-broker",
        "2 partitions of 2 topics, such as a-0: why rack-spread",
        "why leader-racks",
    ]
    assert [bool(each.undo) for each in found] == [False, False, True, True]
    # What the audit put last stays last, whatever order advice comes in.
    assert ranked(reversed(found)) == found


def test_risk_comes_before_money_and_money_before_what_has_no_price() -> None:
    risk = Advice(Concern.RISK, "offline", "", "", "", "")
    warning = Advice(Concern.WARNING, "leader-racks", "", "", "", "")
    dear, cheap, unpriced = saving("dear", 900.0, 1), saving("cheap", 2.0, 10**15), saving("unpriced", None, 10**16)
    assert ranked([unpriced, cheap, warning, dear, risk]) == [risk, warning, dear, cheap, unpriced]
    assert ranked([saving("less", None, 1), saving("more", None, 2)])[0].kind == "more"
