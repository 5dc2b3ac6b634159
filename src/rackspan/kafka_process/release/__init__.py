"""One release of Apache Kafka: which can be started, where its jars are, and the Java command lines to run them.

Begin with versions.py, then jars.py (the cache and the download); runtime.py builds command lines. Nothing here
starts a broker.
"""
