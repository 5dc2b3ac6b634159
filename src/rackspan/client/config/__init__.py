"""The settings of a Java client (`--command-config`), translated for Python's Kafka clients.

Begin with keys.py (the table of settings), then translation.py. properties_file.py reads the file, jaas.py and tls.py the
values. A setting that has no translation is refused by name; no message contains a secret. For your own code,
`librdkafka_settings(read_properties(path))` gives the settings of confluent-kafka (docs/security.md).
"""

from rackspan.client.config.properties_file import read_properties
from rackspan.client.config.translation import kafka_python_settings, librdkafka_settings

__all__ = ["kafka_python_settings", "librdkafka_settings", "read_properties"]
