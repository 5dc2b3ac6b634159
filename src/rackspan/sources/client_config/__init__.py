"""The settings of a Java client (`--command-config`), translated for Python's Kafka clients.

Begin with keys.py (the table of settings), then translation.py. properties_file.py reads the file, jaas.py and tls.py what
the values hold. A setting that has no translation is refused by name; no secret is ever shown in a message.
"""
