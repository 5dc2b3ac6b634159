"""A streaming query that is awaited, and started again where Spark's limit for a Python process was too short."""

from collections.abc import Callable

from pyspark.errors import StreamingQueryException
from pyspark.sql.streaming.query import StreamingQuery

STARTS_MAX = 3


def ended(start: Callable[[], StreamingQuery], seconds: int = 240) -> StreamingQuery:
    """Spark gives the Python process of a stream ten seconds to connect, more than a busy machine may need to start one."""
    for left in reversed(range(STARTS_MAX)):
        query = start()
        try:
            assert query.awaitTermination(seconds), query.lastProgress
            return query
        except StreamingQueryException as error:
            if not left or "Python worker failed to connect back" not in str(error):
                raise
    raise AssertionError("unreachable")
