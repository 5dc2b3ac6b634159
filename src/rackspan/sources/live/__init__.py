"""Reading a running cluster over Kafka's protocol: a snapshot of it, or one of its consumer groups.

Begin with cluster.py (a snapshot) or group.py; connection.py bounds every request by one deadline, requests.py has one
function a Kafka request, error_messages.py words what went wrong. Nothing here writes to a cluster.
"""
