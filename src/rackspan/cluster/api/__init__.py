"""What users of the embedded cluster call: start and stop it, inject faults, create topics, read its state.

Begin with embedded.py (EmbeddedCluster), then faults.py. Methods called from other threads run in the cluster's own event loop.
Nothing here takes part in serving a request.
"""
