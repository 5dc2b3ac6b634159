"""Hours on Spark, by `run` and by `follow` with late and doubled readings: equal to the pure functions."""

import threading
from pathlib import Path
from random import Random

import pytest
from pyspark.sql import SparkSession

from rackspan import pipeline
from rackspan.audit import RackPolicy
from rackspan.pipeline.follow import follow
from rackspan.pipeline.schemas import HOURLY
from tests.pipeline.hours.prices import PRICES
from tests.pipeline.hours.test_hours import check, stored_rows
from tests.pipeline.readings import history, store_readings

pytestmark = pytest.mark.spark


def test_a_run_and_a_stream_make_the_rows_of_the_pure_functions(spark: SparkSession, tmp_path: Path) -> None:
    readings = [*history(Random(1), 8), *history(Random(2), 5, "two")]
    order = list(readings)
    Random(3).shuffle(order)
    streamed, at_once = (pipeline.create_warehouse(tmp_path / name) for name in ("streamed", "at once"))
    for some in (order[:5], order[3:], order[:1]):
        store_readings(streamed, some)
        follow(streamed, RackPolicy(), lambda _: None, threading.Event(), available_now=True, prices=PRICES)
    store_readings(at_once, readings)
    pipeline.run(at_once, RackPolicy(), prices=PRICES)
    check(at_once, readings)
    for name in HOURLY:
        assert stored_rows(streamed, name) == stored_rows(at_once, name), name
    assert spark.version
