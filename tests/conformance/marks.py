"""Waiting, without a clock, until every broker acts on what has been committed.

A broker under KRaft applies one metadata image after the other, and clients can read an image before all parts of the
broker act on it. So a mark is committed, and then a second one. A broker that returns the second has finished with the
image that held the first, and with everything committed before it.
"""

from itertools import count
from threading import Lock

from tests.conformance.subject import Subject, fresh, new_topic
from tests.waiting import eventually

_SET, _TOPIC, _KEY = 0, 2, "retention.ms"
_FIRST = 10**12
"""Retention in ms, so long that nothing is ever deleted."""


class Marks:
    """A topic of its own whose retention only grows: every mark is larger than the one before."""

    def __init__(self) -> None:
        self._topic = fresh("marks")
        self._numbers = count(_FIRST)
        self._lock = Lock()
        self._made = False

    def await_applied(self, subject: Subject) -> None:
        for _ in range(2):
            mark = self._commit(subject)
            eventually(lambda mark=mark: self._applied(subject, mark), "every broker has the mark")  # type: ignore[misc]

    def _commit(self, subject: Subject) -> int:
        with self._lock:
            if not self._made:
                subject.create(new_topic(self._topic))
                self._made = True
            mark = next(self._numbers)
            configs = [{"name": _KEY, "config_operation": _SET, "value": str(mark)}]
            resources = [{"resource_type": _TOPIC, "resource_name": self._topic, "configs": configs}]
            (response,) = subject.request("IncrementalAlterConfigs", 1, resources=resources, validate_only=False)[
                "responses"
            ]
        assert response["error_code"] == 0, response
        return mark

    def _applied(self, subject: Subject, mark: int) -> bool:
        alive = [one["node_id"] for one in subject.request("Metadata", 9, topics=[])["brokers"]]
        return all(self._mark_at(subject, broker) >= mark for broker in alive)

    def _mark_at(self, subject: Subject, broker: int) -> int:
        """The mark that a broker returns; 0 while it is dead and still listed."""
        resource = {"resource_type": _TOPIC, "resource_name": self._topic, "configuration_keys": [_KEY]}
        try:
            (response,) = subject.request("DescribeConfigs", 1, broker=broker, resources=[resource])["results"]
        except OSError:
            return 0
        return max((int(one["value"]) for one in response["configs"]), default=0)
