"""The configs that a broker reports without any being set: where the embedded cluster's defaults differ from Kafka's."""

from rackspan.cluster.core.configs import ConfigSource, broker_values, static_configs
from rackspan.cluster.core.metadata import EMPTY_IMAGE, BrokerRegistered, apply_records
from rackspan.cluster.core.settings import ClusterSettings
from rackspan.model.ids import BrokerId, RackId

RACK_AWARE = "org.apache.kafka.common.replica.RackAwareReplicaSelector"
"""A class of Kafka, by its name."""


def test_the_clusters_settings_are_reported_under_kafkas_names_where_they_differ_from_its_defaults() -> None:
    assert static_configs(ClusterSettings()) == {
        "broker.heartbeat.interval.ms": "300",
        "broker.session.timeout.ms": "3000",
        "leader.imbalance.check.interval.seconds": "5",
        "replica.fetch.backoff.ms": "50",
        "replica.lag.time.max.ms": "2000",
    }


def test_every_setting_that_is_chosen_is_reported() -> None:
    settings = ClusterSettings(
        *(4_000, 400, 40, 5_000, 600),
        fetch_backoff_ms=70,
        default_replication_factor=2,
        num_partitions=6,
        min_insync_replicas=2,
        min_insync_racks=3,
        unclean_leader_election=True,
        auto_create_topics=False,
        auto_leader_rebalance=True,
        leader_imbalance_check_interval_ms=7_999,
        extended_error_codes=True,
        replica_selector_class=RACK_AWARE,
        fetch_max_bytes=800,
        fetch_max_partition_bytes=80,
        message_max_bytes=90,
        retention_check_interval_ms=91,
        cleaner_backoff_ms=92,
        extra_configs={"replica.placer.class.name": "balanced", "num.partitions": "9"},
    )
    assert static_configs(settings) == {
        "min.insync.replicas": "2",
        "replica.selector.class": RACK_AWARE,
        "min.insync.racks": "3",
        "unclean.leader.election.enable": "true",
        "auto.create.topics.enable": "false",
        "auto.leader.rebalance.enable": "true",
        "default.replication.factor": "2",
        "num.partitions": "9",
        "replica.lag.time.max.ms": "5000",
        "broker.heartbeat.interval.ms": "400",
        "broker.session.timeout.ms": "4000",
        "leader.imbalance.check.interval.seconds": "7",
        "replica.fetch.backoff.ms": "70",
        "replica.fetch.max.bytes": "80",
        "replica.fetch.response.max.bytes": "800",
        "replica.fetch.wait.max.ms": "600",
        "log.cleaner.backoff.ms": "92",
        "log.retention.check.interval.ms": "91",
        "message.max.bytes": "90",
        "extended.error.codes": "true",
        "replica.placer.class.name": "balanced",
    }


def test_a_registered_broker_has_its_ids_and_its_rack_as_static_configs() -> None:
    records = [BrokerRegistered(BrokerId(one), one, 4, rack, "h", 9) for one, rack in ((1, RackId("a")), (2, None))]
    image = apply_records(EMPTY_IMAGE, records)
    for number, rack in ((1, "a"), (2, None), (3, None)):
        shown = {one.key: one for one in broker_values(image, ClusterSettings(), BrokerId(number))}
        known = None if number == 3 else str(number)
        assert [shown[key].value for key in ("broker.id", "node.id", "broker.rack")] == [known, known, rack]
        assert shown["broker.id"].source is (ConfigSource.DEFAULT if known is None else ConfigSource.STATIC)


def test_a_follower_waits_longer_for_a_response_than_its_leader_parks_the_fetch() -> None:
    settings = ClusterSettings()
    assert settings.fetch_retry_ms > settings.fetch_max_wait_ms
    assert settings.heartbeat_interval_ms < settings.session_timeout_ms
    assert settings.log_max_bytes == 256 * 2**20
