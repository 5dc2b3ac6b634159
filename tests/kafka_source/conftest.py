"""The pipeline's Spark, and an embedded cluster whose topics the tests fill."""

from tests.pipeline.conftest import spark

__all__ = ["spark"]
