"""The cost of a fleet a day: bytes written and processor seconds, by clusters, partitions, period and share of changed rows.

`make bench-year` prints predictions beside what it measures, and docs/sizing.md has the figures of some fleets (`python -m
benchmarks._cost_model`). The constants were measured with three replicas a partition, sixty brokers, and up to 20 clusters or 100,000
partitions of one, on 2 cores with a load average of 8 to 10; another machine has other seconds. Bytes are those before
`pipeline maintain` joins files and deletes logs.
"""

from dataclasses import dataclass
from typing import Final

DAY_SECONDS: Final = 86_400
HOURS: Final = 24
"""Of a day: landing tables get every row of a cluster once an hour, derived ones once a day."""

WHOLE_ROW_BYTES: Final = 12.4
"""A partition in a landing table."""
DERIVED_ROW_BYTES: Final = 8.6
"""A partition in a day's first snapshot in all derived tables."""
CHANGED_ROW_BYTES: Final = 31.0
"""A changed partition in all tables together: as collected, durability, findings, harm, drift."""
SNAPSHOT_BYTES: Final = 150.0
"""A cluster's snapshot, whatever it holds."""
ROUND_BYTES: Final = 16_000.0
"""A commit of a collector: footers of files, and logs."""
RUN_BYTES: Final = 51_000.0
"""The commits of a run."""

ROUND_SECONDS: Final = 0.070
STORED_SECONDS: Final = 0.002
"""A cluster's snapshot that is stored."""
STORED_PARTITION_SECONDS: Final = 0.4e-6
RUN_SECONDS: Final = 0.45
RUN_CLUSTER_SECONDS: Final = 0.037
"""A cluster with new snapshots in a run, on the driver."""
JUDGED_SECONDS: Final = 0.008
"""A snapshot that is judged."""
JUDGED_PARTITION_SECONDS: Final = 1.3e-6
HOUR_SECONDS: Final = 0.003
"""An hour of a cluster in the tables of hours."""
HOUR_PARTITION_SECONDS: Final = 3.2e-6


@dataclass(frozen=True, slots=True)
class Fleet:
    """Clusters that are alike. `changed`: the share of partitions that differ from one snapshot to the next; `changing`: the share of
    snapshots in which any do. `collectors` are processes, each with a commit a round.
    """

    clusters: int
    partitions: int
    period_seconds: float
    changed: float = 0.002
    changing: float = 1.0
    collectors: int = 1
    runs_a_day: float = HOURS

    @property
    def rounds_a_day(self) -> float:
        return DAY_SECONDS / self.period_seconds

    @property
    def snapshots_a_day(self) -> float:
        return self.clusters * self.rounds_a_day

    @property
    def judged_a_day(self) -> float:
        """Snapshots in which something but sizes differs, and the first of each hour, which is stored whole."""
        whole = min(self.rounds_a_day, HOURS)
        return self.clusters * (whole + (self.rounds_a_day - whole) * self.changing)


def bytes_a_day(fleet: Fleet) -> float:
    """Bytes of data files and logs."""
    changed_rows = fleet.snapshots_a_day * fleet.changing * fleet.changed * fleet.partitions
    return (
        fleet.clusters * fleet.partitions * (min(fleet.rounds_a_day, HOURS) * WHOLE_ROW_BYTES + DERIVED_ROW_BYTES)
        + changed_rows * CHANGED_ROW_BYTES
        + fleet.snapshots_a_day * SNAPSHOT_BYTES
        + fleet.collectors * fleet.rounds_a_day * ROUND_BYTES
        + fleet.runs_a_day * RUN_BYTES
    )


def store_seconds_a_day(fleet: Fleet) -> float:
    """Processor seconds of collectors, without those of requests to brokers."""
    stored = STORED_SECONDS + fleet.partitions * STORED_PARTITION_SECONDS
    return fleet.collectors * fleet.rounds_a_day * ROUND_SECONDS + fleet.snapshots_a_day * stored


def task_seconds_a_day(fleet: Fleet) -> float:
    """Processor seconds of the tasks of runs, which any number of executors share, without those that Spark takes to start."""
    judged = fleet.judged_a_day * (JUDGED_SECONDS + fleet.partitions * JUDGED_PARTITION_SECONDS)
    return judged + fleet.clusters * HOURS * (HOUR_SECONDS + fleet.partitions * HOUR_PARTITION_SECONDS)


def driver_seconds_a_day(fleet: Fleet) -> float:
    """Processor seconds of the process that plans and commits runs."""
    return fleet.runs_a_day * (RUN_SECONDS + fleet.clusters * RUN_CLUSTER_SECONDS)


def policy_change_seconds(fleet: Fleet, days: float) -> float:
    """Processor seconds of another policy for all clusters: the tasks of so many kept days, in one run."""
    return RUN_SECONDS + days * task_seconds_a_day(fleet)


def main() -> None:
    for clusters, period_seconds in ((10, 30), (10, 300), (1_000, 60), (1_000, 300), (100_000, 300)):
        fleet = Fleet(clusters, 10_000, period_seconds, collectors=max(1, clusters // 100))
        print(
            f"| {clusters:,} | {period_seconds} s | {bytes_a_day(fleet) / 1e9:,.2f} GB | {store_seconds_a_day(fleet) / DAY_SECONDS:,.3f} "
            f"| {task_seconds_a_day(fleet) / DAY_SECONDS:,.3f} | {driver_seconds_a_day(fleet) / DAY_SECONDS:,.3f} "
            f"| {policy_change_seconds(fleet, 30) / 3600:,.1f} h |"
        )


if __name__ == "__main__":
    main()
