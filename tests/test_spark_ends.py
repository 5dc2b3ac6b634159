"""What tools/spark_ends.py installs; that the tests pass there is for it to find out."""

import pytest

from tools import spark_ends


def test_the_ends_are_the_newest_patch_of_the_least_version_and_the_newest_below_the_bound() -> None:
    assert spark_ends.ends("pyspark>=4.0,<4.4") == ("pyspark==4.0.*", "pyspark>=4.0,<4.4")
    assert spark_ends.ends(spark_ends.declared_range())


def test_a_range_without_a_least_version_is_refused() -> None:
    with pytest.raises(SystemExit, match="names no least version"):
        spark_ends.ends("pyspark<4.4")


def test_all_else_is_as_locked_but_what_would_bring_a_spark_of_its_own() -> None:
    names = {line.split("==")[0] for line in spark_ends.locked()}
    assert {"pyarrow", "pandas", "pytest", "hypothesis"} <= names
    assert not names & set(spark_ends.REPLACED)
