"""Rules of the source and the sink, each with the fault that breaks it and the fast test that reports the fault.

A row is the file, the text of the rule, the text with the fault, and the test. make soak plants each in a copy and runs its test. A fault that makes a loop endless fails by the test's timeout.
"""

import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import pytest

ROOT = Path(__file__).parents[2]
SOURCES = ROOT / "src" / "rackspan" / "kafka_source"
TESTS = ROOT / "tests" / "kafka_source"


class Fault(NamedTuple):
    file: str
    rule: str
    fault: str
    test: str


PROGRESS, REPORT, RANGES, FILTERS = "reading/progress.py", "reading/report.py", "ranges.py", "filters.py"
TASK, BATCH = "reading/task.py", "data_source.py"
OFFSETS, LOSS, STREAM = "stream_offsets.py", "data_loss.py", "stream_reader.py"
COLUMNS, ROWS, SENDER, RACK = (
    "records/columns.py", "records/rows.py", "writing/sender.py", "executor_rack.py",
)  # fmt: skip
OF_PROGRESS = "reading/test_progress.py::test_"
OF_REPORT = "reading/test_report.py::test_"
OF_REUSED = "reading/test_reused_cluster.py::test_"
OF_OFFSETS = "test_stream_offsets.py::test_"
OF_LOSS = "test_data_loss.py::test_"
OF_AGAIN = "test_created_again.py::test_"
OF_STREAM = "test_stream_reader.py::test_"
OF_RANGES = "test_ranges.py::test_"
OF_FILTERS = "test_filters.py::test_"
OF_COLUMNS = "records/test_columns.py::test_"
OF_ROWS = "records/test_rows.py::test_"
OF_CODECS = "records/test_compression.py::test_"
OF_SENDER = "writing/test_sender.py::test_"
OF_RACK = "test_executor_rack.py::test_"

FAULTS = [
    Fault(PROGRESS, "topic.topic_id and topic.topic_id != self.topic_id:", "False:", OF_PROGRESS + "a_topic_created_again_ends_the_read"),
    Fault(PROGRESS, "if self.topic_id and topic.topic_id and", "if", OF_PROGRESS + "an_unknown_topic_id_is_compared_with_none"),
    Fault(PROGRESS, "        self.topic_id = wanted.topic_id\n", "        self.topic_id: str | None = None\n", OF_PROGRESS + "a_topic_created_again_is_skipped_where_losses_are_allowed"),
    Fault(PROGRESS, "            if self._other_ids >= OTHER_IDS:\n", "            if True:\n", OF_PROGRESS + "a_broker_that_is_late_to_list_a_topic_is_no_loss"),
    Fault(PROGRESS, "topic.topic_id\n        self._other_ids = 0\n", "topic.topic_id\n", OF_PROGRESS + "a_broker_that_is_late_to_list_a_topic_is_no_loss"),
    Fault(OFFSETS, "if (old := earlier.topic_ids.get(topic, new)) != new", "if (old := earlier.topic_ids.get(topic, '')) != new", OF_OFFSETS + "only_an_id_that_is_known_and_differs_is_of_another_topic"),
    Fault(OFFSETS, "for partition in sorted(self.offsets):", "for partition in self.offsets:", OF_OFFSETS + "topic_ids_stand_beside_the_offsets_in_one_order"),
    Fault(LOSS, "range(ATTEMPTS)", "range(1)", OF_LOSS + "a_leader_that_is_late_once_is_no_loss"),
    Fault(LOSS, "if end < offsets[partition]", "if end <= offsets[partition]", OF_LOSS + "an_end_that_is_reached_is_no_loss"),
    Fault(LOSS, "committed=False", "committed=True", OF_LOSS + "an_end_below_is_believed_when_it_is_reported_each_time"),
    Fault(STREAM, "            if not end.of_another_topic(before) and before.offsets.keys() <= end.offsets.keys():\n", "            if True:\n", OF_AGAIN + "a_broker_that_is_late_to_list_the_new_topic_is_no_other_one"),
    Fault(STREAM, "        for topic, (old, new) in again.items():", "        for topic, (old, new) in dict[str, tuple[str, str]]().items():", OF_AGAIN + "it_fails_the_query_or_is_read_from_its_first_record"),
    Fault(STREAM, "if partition.topic not in again}", "}", OF_AGAIN + "it_fails_the_query_or_is_read_from_its_first_record"),
    Fault(STREAM, "if partition.topic not in again else offset\n", "\n", OF_AGAIN + "an_open_transaction_of_the_new_topic_is_not_waited_for"),
    Fault(STREAM, "until.offsets[partition], until.topic_ids.get(partition.topic))", "until.offsets[partition])", OF_AGAIN + "it_happens_between_planning_and_reading"),
    Fault(STREAM, "{**known_ids, **end.topic_ids}", "end.topic_ids", OF_AGAIN + "brokers_without_topic_ids_are_read_with_a_line"),
    Fault(STREAM, "            if partition not in end.offsets:\n", "            if partition not in end.offsets and False:\n", OF_AGAIN + "a_topic_that_is_deleted_and_not_created_again"),
    Fault(STREAM, "{**kept, **ends_below(self._connected(), read_further, self._sleep)}", "kept", OF_STREAM + "offsets_that_went_backwards_are_lost_records"),
    Fault(STREAM, "max(offset, before.offsets.get(partition, 0))", "offset", OF_STREAM + "an_open_transaction_is_no_loss"),
    Fault(STREAM, "            if offset and partition.topic in again:\n", "            if False:\n", OF_AGAIN + "records_of_the_new_topic_that_are_gone_already_are_reported"),
    Fault(STREAM, "        if what not in self._logged:", "        if True:", OF_AGAIN + "it_fails_the_query_or_is_read_from_its_first_record"),
    Fault(TASK, "        if by_name:\n", "        if False:\n", OF_AGAIN + "brokers_that_fetch_by_name_are_compared_before_and_after"),
    Fault(BATCH, "ids.get(partition.topic)", "None", OF_AGAIN + "it_happens_under_a_batch"),
    Fault(BATCH, "ends_below(cluster, end)", "dict(end).__class__()", OF_LOSS + "an_end_beyond_the_log_is_refused_when_the_query_is_planned"),
    Fault(BATCH, "ends_below(cluster, start)", "dict(start).__class__()", OF_LOSS + "a_start_beyond_the_end_is_a_loss"),
    Fault(PROGRESS, "return self.broker in metadata.racks", "return True", OF_PROGRESS + "a_partition_without_a_live_leader_has_no_broker_to_fetch_from"),
    Fault(PROGRESS, "if self._rack not in metadata.racks.values():", "if False:", OF_PROGRESS + "the_replica_in_the_tasks_rack_is_read"),
    Fault(PROGRESS, "if self._leader in here:", "if False:", OF_PROGRESS + "the_replica_in_the_tasks_rack_is_read"),
    Fault(PROGRESS, "in_sync = [broker for broker in here if broker in isr]", "in_sync = here", OF_PROGRESS + "the_replica_in_the_tasks_rack_is_read"),
    Fault(PROGRESS, "usable = [broker for broker in in_sync if broker not in self._failed_followers]", "usable = in_sync", OF_PROGRESS + "a_follower_that_fails_is_left_for_the_leader"),
    Fault(PROGRESS, "best = min([self._leader, *followers], key=cost)", "best = min([*followers, self._leader], key=cost)", OF_PROGRESS + "without_a_replica_in_its_rack_a_task_reads_where_that_costs_least"),
    Fault(PROGRESS, "followers = [broker for broker in isr if broker not in self._failed_followers]", "followers = isr", OF_PROGRESS + "a_cheap_follower_that_fails_is_left_for_the_leader"),
    Fault(PROGRESS, "        if self.broker != self._leader:\n            self._failed_followers.add", "        if True:\n            self._failed_followers.add", OF_PROGRESS + "a_leader_that_failed_is_read_again_as_the_follower_in_the_rack"),
    Fault(PROGRESS, "            if self.broker == self._leader:\n", "            if True:\n", OF_PROGRESS + "only_the_leader_decides_that_offsets_are_out_of_range"),
    Fault(PROGRESS, "if error_code(response.error_code).is_retriable:", "if False:", OF_PROGRESS + "an_error_that_passes_and_a_corrupt_batch_are_read_again_elsewhere"),
    Fault(PROGRESS, "self.position, self._empty = fetched.next_offset, 0", "self.position = fetched.next_offset", OF_PROGRESS + "progress_begins_the_wait_anew"),
    Fault(PROGRESS, "        if response.records:\n", "        if False:\n", OF_PROGRESS + "a_batch_larger_than_a_fetch_names_the_option_to_raise"),
    Fault(PROGRESS, "if log_start <= begin <= log_end:", "if False:", OF_PROGRESS + "a_log_that_has_the_position_after_all_is_read_again"),
    Fault(PROGRESS, "        if self._fail_on_data_loss:", "        if False:", OF_PROGRESS + "lost_records_are_an_error_or_skipped"),
    Fault(PROGRESS, "check_crcs=self._check_crcs)", "check_crcs=False)", OF_PROGRESS + "a_changed_byte_is_found_by_the_crc_unless_crcs_are_not_checked"),
    Fault(PROGRESS, "response.aborted, check", "(), check", OF_PROGRESS + "records_of_a_transaction_that_the_response_names_as_aborted_are_left_out"),
    Fault(REPORT, "if self.rack.rack is None or rack is None or rack != self.rack.rack", "if rack != self.rack.rack", OF_REPORT + "bytes_between_unknown_racks_count_as_across_racks"),
    Fault(REPORT, "if not self.choices or self.choices[-1] != choice:", "if True:", OF_REPORT + "a_choice_is_listed_when_it_changes"),
    Fault(REPORT, 'if len({path.rsplit(".", 2)[0] for path in written}) != batch.tasks:', "if len(written) != batch.tasks:", OF_REPORT + "the_last_task_logs_a_line_about_the_batch"),
    Fault(PROGRESS, "int((self.range.end - self.position) * per_offset) + _SPARE_BYTES", "most", OF_PROGRESS + "no_more_is_requested_than_the_rest_of_the_range_is_about"),
    Fault(PROGRESS, "            self._batch_is_larger = True\n", "", OF_PROGRESS + "a_batch_larger_than_a_fetch_names_the_option_to_raise"),
    Fault(TASK, "if options == client and", "if", OF_REUSED + "the_next_task_gets_the_connection_of_the_last_one_with_its_options"),
    Fault(TASK, "time.monotonic() - since < IDLE_SECONDS", "True", OF_REUSED + "a_connection_is_closed_after_an_error_and_when_it_was_idle_for_long"),
    Fault(TASK, "kept, _kept.cluster = _kept.cluster, None", "kept = _kept.cluster", OF_REUSED + "two_tasks_at_once_have_two_connections"),
    Fault(RANGES, "    if missing := wanted - given:", "    if missing := set():", OF_RANGES + "positions_name_exactly_the_partitions_that_are_read"),
    Fault(RANGES, "    if surplus := given - wanted:", "    if surplus := set():", OF_RANGES + "positions_name_exactly_the_partitions_that_are_read"),
    Fault(RANGES, "if too_young and not young_is_end:", "if False:", OF_RANGES + "no_record_so_young_is_an_error_unless_the_end_is_meant"),
    Fault(RANGES, "found | cluster.offsets(dict.fromkeys(too_young, LATEST_OFFSET))", "found", OF_RANGES + "positions_become_offsets"),
    Fault(RANGES, "for name, error in sorted(metadata.errors.items()):", "for name, error in ():", OF_RANGES + "a_topic_or_partition_that_there_is_not_is_an_error"),
    Fault(RANGES, "        if partition not in existing:", "        if False:", OF_RANGES + "a_topic_or_partition_that_there_is_not_is_an_error"),
    Fault(RANGES, "{**position.offsets, **cluster.offsets(by_name)}", "{**position.offsets}", OF_RANGES + "positions_become_offsets"),
    Fault(RANGES, "math.floor(size / total * tasks + 0.5)", "math.floor(size / total * tasks)", OF_RANGES + "tasks_follow_sparks_formula"),
    Fault(RANGES, "math.ceil(share) if share < 1 else math.floor(share)", "math.floor(share)", OF_RANGES + "a_limit_draws_back_ends_in_proportion_and_starves_no_partition"),
    Fault(RANGES, "total = sum(size * weight[partition] for", "total = sum(size for", OF_RANGES + "a_limit_of_bytes_weighs_records"),
    Fault(FILTERS, '"GreaterThan": (value + 1, INT64_MAX)', '"GreaterThan": (value, INT64_MAX)', OF_FILTERS + "each_comparison_of_offsets_has_its_bounds"),
    Fault(FILTERS, "        if value is None:\n", "        if False:\n", OF_FILTERS + "a_condition_on_null_stays_with_spark"),
    Fault(FILTERS, "self.topics & values", "values", OF_FILTERS + "conditions_on_one_column_hold_together"),
    Fault(FILTERS, "self.numbers & values", "values", OF_FILTERS + "conditions_on_one_column_hold_together"),
    Fault(COLUMNS, "        if marker == _ABORT:", "        if False:", OF_COLUMNS + "markers_are_no_records_and_aborted_transactions_are_left_out_up_to_their_marker"),
    Fault(COLUMNS, "        if check_crcs:", "        if False:", OF_COLUMNS + "a_changed_byte_is_corrupt"),
    Fault(COLUMNS, "if not (skipped or header.control) and", "if not skipped and", OF_COLUMNS + "markers_are_no_records_and_aborted_transactions_are_left_out_up_to_their_marker"),
    Fault(ROWS, "min(begin + _BATCH_ROWS, max(by_bytes, begin + 1), len(records))", "min(begin + _BATCH_ROWS, len(records))", OF_ROWS + "batches_are_bounded_by_rows_and_by_bytes"),
    Fault(ROWS, "max(by_bytes, begin + 1)", "by_bytes", OF_ROWS + "batches_are_bounded_by_rows_and_by_bytes"),
    Fault(COLUMNS, "if bytes(payload[: len(_JAVA_FRAMING)]) != _JAVA_FRAMING:", "if True:", OF_CODECS + "each_codec_gives_back_what_was_compressed"),
    Fault(COLUMNS, "        if at + _BLOCK_SIZE.size > len(payload):", "        if False:", OF_CODECS + "a_cut_frame_is_corrupt"),
    Fault(SENDER, "if self._clock() > until:\n", "if True:\n", OF_SENDER + "acknowledgements_are_waited_for_until_the_timeout"),
    Fault(SENDER, "if self._clock() > until:", "if False:", OF_SENDER + "acknowledgements_are_waited_for_until_the_timeout"),
    Fault(SENDER, "if (row.topic, partition) in lacking", "if True", OF_SENDER + "waiting_sends_again_what_was_acknowledged_by_too_few_racks"),
    Fault(SENDER, "            if not lacking:\n                return\n", "            return\n", OF_SENDER + "racks_that_are_lost_after_the_append_fail_the_write"),
    Fault(SENDER, "            self._await_racks(rows, deadline)\n", "", OF_SENDER + "without_enough_racks_nothing_is_sent"),
    Fault(RACK, "    if done.returncode:", "    if False:", OF_RACK + "a_script_that_fails_or_is_not_there_is_an_error"),
]  # fmt: skip


def test_every_row_names_a_rule_of_the_code_and_a_test() -> None:
    for fault in FAULTS:
        assert (SOURCES / fault.file).read_text().count(fault.rule) == 1, fault.rule
        file, name = fault.test.split("::")
        assert f"def {name}(" in (TESTS / file).read_text(), fault.test


@pytest.fixture(scope="module")
def copy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("copy")
    for name in ("src", "tests"):
        shutil.copytree(ROOT / name, folder / name, ignore=shutil.ignore_patterns("__pycache__"))
    return folder


@pytest.mark.soak
@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: f"{fault.file}-{fault.rule.strip()[:40]}")
def test_the_fault_is_reported_by_its_test(copy: Path, fault: Fault) -> None:
    path = copy / "src" / "rackspan" / "kafka_source" / fault.file
    whole = path.read_text()
    path.write_text(whole.replace(fault.rule, fault.fault))
    words = [sys.executable, "-m", "pytest", "-q", "--noconftest", "-c", os.devnull, "--rootdir", str(copy)]
    words += ["--import-mode=importlib", "-p", "no:cacheprovider", "--timeout=120", f"tests/kafka_source/{fault.test}"]
    try:
        done = subprocess.run(
            words,
            cwd=copy,
            env={**os.environ, "PYTHONPATH": os.pathsep.join((str(copy / "src"), str(copy)))},
            capture_output=True,
            text=True,
            timeout=300,
        )
    finally:
        path.write_text(whole)
    assert done.returncode == 1, done.stdout[-2000:] + done.stderr[-2000:]
    assert "failed" in done.stdout.splitlines()[-1]
