"""Waiting, without a clock, until every broker acts on what has been committed.

A broker under KRaft takes one metadata image after the other, and tells clients of an image before all its parts act on
it. So a mark is committed and waited for until every broker tells of it; and a second one: who tells of that has done
with the image that held the first, and with whatever was committed before.
"""

from itertools import count
from threading import Lock

from tests.conformance.subject import Subject, fresh, new_topic, until

_SET, _TOPIC, _KEY = 0, 2, "retention.ms"
_FIRST = 10**12
"""Ms of retention that nobody lives to see."""


class Marks:
    """A topic of its own whose retention only grows: every mark is larger than the one before."""

    def __init__(self) -> None:
        self._topic = fresh("marks")
        self._numbers = count(_FIRST)
        self._lock = Lock()
        self._made = False

    def await_told(self, subject: Subject) -> None:
        for _ in range(2):
            mark = self._commit(subject)
            until(lambda mark=mark: self._told(subject, mark), "every broker has heard")  # type: ignore[misc]

    def _commit(self, subject: Subject) -> int:
        with self._lock:
            if not self._made:
                subject.create(new_topic(self._topic))
                self._made = True
            mark = next(self._numbers)
            configs = [{"name": _KEY, "config_operation": _SET, "value": str(mark)}]
            resources = [{"resource_type": _TOPIC, "resource_name": self._topic, "configs": configs}]
            (answer,) = subject.ask("IncrementalAlterConfigs", 1, resources=resources, validate_only=False)["responses"]
        assert answer["error_code"] == 0, answer
        return mark

    def _told(self, subject: Subject, mark: int) -> bool:
        alive = [one["node_id"] for one in subject.ask("Metadata", 9, topics=[])["brokers"]]
        return all(self._tells(subject, broker) >= mark for broker in alive)

    def _tells(self, subject: Subject, broker: int) -> int:
        """What a broker tells; nothing where it is dead and not yet missed."""
        resource = {"resource_type": _TOPIC, "resource_name": self._topic, "configuration_keys": [_KEY]}
        try:
            (answer,) = subject.ask("DescribeConfigs", 1, broker=broker, resources=[resource])["results"]
        except OSError:
            return 0
        return max((int(one["value"]) for one in answer["configs"]), default=0)
