"""Everything a broker does as a follower."""

from rackspan.cluster.core.broker.fetching import Fetcher
from rackspan.cluster.core.broker.follower import Follower, Heeded
from rackspan.cluster.core.broker.local import Local
from rackspan.cluster.core.ids import TopicId
from rackspan.cluster.core.messages import ReplicaFetchResponse, Send, WatermarkMoved
from rackspan.cluster.core.metadata import NO_LEADER, PartitionState
from rackspan.model.ids import BrokerId, TopicPartition


class Following:
    """One fetcher a leader. `_stirred` are those that may have something to ask."""

    def __init__(self, local: Local) -> None:
        self._local = local
        self.followers: dict[TopicPartition, Follower] = {}
        self._fetchers: dict[BrokerId, Fetcher] = {}
        self._stirred: dict[BrokerId, None] = {}

    def follow(self, partition: TopicPartition, topic_id: TopicId, state: PartitionState) -> None:
        """Follow the leader of a newer state; an equal epoch changes nothing."""
        before = self.followers.get(partition)
        if before is not None and before.leader_epoch == state.leader_epoch and before.log.topic_id == topic_id:
            return
        self.leave(partition)
        log = self._local.log(partition, topic_id)
        follower = self.followers[partition] = Follower(
            partition, log, state.leader, state.leader_epoch, self._local.rules
        )
        if state.leader != NO_LEADER:
            self._fetcher(state.leader).follow(follower)
            self._stirred[state.leader] = None

    def leave(self, partition: TopicPartition) -> None:
        follower = self.followers.pop(partition, None)
        fetcher = None if follower is None else self._fetchers.get(follower.leader)
        if fetcher is not None:
            fetcher.unfollow(partition)

    def _fetcher(self, leader: BrokerId) -> Fetcher:
        fetcher = self._fetchers.get(leader)
        if fetcher is None:
            fetcher = self._fetchers[leader] = Fetcher(leader)
        return fetcher

    def register_anew(self) -> None:
        """A new broker epoch: every session starts over."""
        for fetcher in self._fetchers.values():
            fetcher.start_over, fetcher.awaits_answer = True, False
        self._stirred.update(dict.fromkeys(self._fetchers))

    def heed(self, now: int, leader: BrokerId, response: ReplicaFetchResponse) -> None:
        fetcher = self._fetchers.get(leader)
        if fetcher is None or response.broker_epoch != self._local.broker_epoch:
            return
        sizes = {fetched.partition: fetched for fetched in response.partitions}
        for follower, heeded in fetcher.heed(now, response, self._local.settings.fetch_backoff_ms):
            if heeded is Heeded.COPIED:
                copied = sum(batch.size_bytes for batch in sizes[follower.partition].batches)
                self._count(follower, leader, copied)
            self._tell(follower, heeded)
        self._stirred[leader] = None

    def _count(self, follower: Follower, leader: BrokerId, size_bytes: int) -> None:
        local = self._local
        key = (follower.partition.topic, local.rack_of(leader), local.rack_of(local.id))
        local.counters.replicated_bytes[key] += size_bytes

    def _tell(self, follower: Follower, heeded: Heeded) -> None:
        if heeded is Heeded.TRUNCATED:
            self._local.counters.truncations += 1
        if heeded in (Heeded.COPIED, Heeded.WATERMARK):
            self._local.effects.append(WatermarkMoved(follower.partition))

    def ask_stirred(self, now: int) -> None:
        """Send every question there is; called once a message, when all is heeded."""
        if not self._stirred:
            return
        stirred, self._stirred = self._stirred, {}
        for leader in stirred:
            self._ask(now, self._fetchers[leader])

    def tick(self, now: int) -> None:
        for fetcher in self._fetchers.values():
            fetcher.return_from_backoff(now)
            self._ask(now, fetcher)

    def _ask(self, now: int, fetcher: Fetcher) -> None:
        local = self._local
        retry = local.settings.fetch_retry_ms
        if not fetcher.is_due(now, retry):
            return
        request = fetcher.request(now, local.id, local.broker_epoch, retry)
        local.effects.append(Send(fetcher.leader, request))
