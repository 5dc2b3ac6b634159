"""Runs of the pipeline in this process, without Spark: the tasks that executors get, one after another."""

import time
from dataclasses import dataclass, replace
from datetime import UTC, datetime

from rackspan.audit import ClusterPolicies
from rackspan.pipeline import Warehouse, incremental
from rackspan.pipeline.delta.append import NewFile
from rackspan.pipeline.hours.task import write_task as write_hours_of
from rackspan.pipeline.hours.work import HoursWork, hour_tasks
from rackspan.pipeline.incremental import Files, RunReport, RunWork
from rackspan.pipeline.judging.tasks import judge_tasks
from rackspan.pipeline.judging.write import write_task
from rackspan.pipeline.warehouse import FilesRead


def write_hours(warehouse: Warehouse, work: HoursWork, policies: ClusterPolicies) -> Files:
    """The files of tables of hours, by table."""
    files: dict[str, list[NewFile]] = {}
    for task in hour_tasks(warehouse, work, policies):
        for name, file in write_hours_of(task):
            files.setdefault(name, []).append(file)
    return files


@dataclass(slots=True)
class InProcessBuild:
    """Writes the rows of runs as their tasks do. The seconds are processor time of this process so far."""

    warehouse: Warehouse
    judged_seconds: float = 0.0
    hours_seconds: float = 0.0
    run_seconds: float = 0.0
    """All that runs took, planning and commits included."""

    def judged(self, work: RunWork, policies: ClusterPolicies) -> Files:
        began = time.process_time()
        files: dict[str, list[NewFile]] = {name: [] for name in work.tables}
        for task in judge_tasks(self.warehouse, work, policies):
            for name, file in write_task(task):
                files[name].append(file)
        self.judged_seconds += time.process_time() - began
        return files

    def hours(self, work: HoursWork, policies: ClusterPolicies) -> Files:
        began = time.process_time()
        files = write_hours(self.warehouse, work, policies)
        self.hours_seconds += time.process_time() - began
        return files

    def run(self, policies: ClusterPolicies) -> RunReport:
        """`pipeline run` of all snapshots that have no rows yet."""
        began = time.process_time()
        report = incremental.refresh(
            replace(self.warehouse, read=FilesRead()),
            policies,
            self,
            now=lambda: datetime.now(UTC),
            seconds=time.monotonic,
        )
        self.run_seconds += time.process_time() - began
        return report
