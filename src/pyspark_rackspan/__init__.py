"""Found by Spark, which imports every package named pyspark_* and registers its DefaultSource: format "rackspan-kafka".

Nothing is defined here."""

from rackspan.kafka_source.data_source import RackspanKafkaDataSource as DefaultSource

__all__ = ["DefaultSource"]
