from rackspan.audit.findings import Finding, Severity, in_order

ORDER = [
    "offline",
    "under-min-isr",
    "under-min-racks",
    "unknown-broker",
    "unracked-broker",
    "controller-quorum-spread",
    "min-insync-racks-satisfiable",
    "survives-rack-loss",
    "accepts-writes-after-rack-loss",
    "survives-broker-loss",
    "accepts-writes-after-broker-loss",
    "rack-spread",
    "min-insync-replicas-forces-racks",
    "any-other",
]
"""Present states, then who is missing a rack, then placements by the worst loss, then configs."""


def finding(
    constraint: str, severity: Severity, topic: str | None = None, partition: int | None = None, reason: str = ""
) -> Finding:
    return Finding(constraint, severity, reason, "", topic, partition)


def test_violations_come_in_the_order_of_repair_then_warnings() -> None:
    violations = [finding(one, Severity.VIOLATION) for one in ORDER]
    warnings = [finding(one, Severity.WARNING) for one in (*ORDER, "another")]
    assert in_order(reversed([*warnings[:-2], *violations])) == [*violations, *warnings[:-2]]
    assert [one.constraint for one in in_order(warnings)][-2:] == ["another", "any-other"]


def test_findings_of_a_constraint_come_by_topic_partition_and_reason() -> None:
    listed = [
        finding("offline", Severity.VIOLATION),
        finding("offline", Severity.VIOLATION, "a", 2, "x"),
        finding("offline", Severity.VIOLATION, "a", 10, "x"),
        finding("offline", Severity.VIOLATION, "a", 10, "y"),
        finding("offline", Severity.VIOLATION, "b", 0, "x"),
    ]
    assert in_order(reversed(listed)) == listed
