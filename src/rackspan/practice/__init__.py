"""Practice clusters, embedded or of real Apache Kafka: the same faults for both, and their control by other processes.

Begin with faults.py (the methods that both have), then kafka.py (real Kafka with them), control.py (faults over HTTP on loopback)
and control_file.py (how other processes of the same user find a cluster).
Never a cluster for production, and never a listener off loopback.
Depends on: apply, client, cluster, kafka_bytes, kafka_process, model, wire.
"""
