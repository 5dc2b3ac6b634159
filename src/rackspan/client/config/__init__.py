"""The settings of a Java client (`--command-config`), translated for Python's Kafka clients.

Begin with keys.py (the table of settings), then translation.py. properties_file.py reads the file, providers.py replaces its
variables, jaas.py and tls.py read the values. A setting of security that cannot be carried out is refused by name, one of
other clients and tools ignored; no message contains a secret. For your own code,
`librdkafka_settings(read_properties(path))` gives the settings of confluent-kafka (docs/security.md).
"""

from rackspan.client.config.properties_file import load_properties
from rackspan.client.config.translation import (
    JudgedLine,
    judged_lines,
    kafka_python_settings,
    librdkafka_settings,
    read_properties,
)

__all__ = [
    "JudgedLine",
    "judged_lines",
    "kafka_python_settings",
    "librdkafka_settings",
    "load_properties",
    "read_properties",
]
