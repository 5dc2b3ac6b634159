"""Requests to the control server of a practice cluster, for `rackspan cluster lose` and the like."""

import json
from collections.abc import Mapping
from http.client import HTTPConnection, HTTPException
from typing import Any, Final

from rackspan.errors import SourceError, UsageError
from rackspan.practice.control import ControlledCluster
from rackspan.practice.control_file import ControlFile

_SECONDS: Final = 300.0
"""For a rack of real Kafka to start again on a machine under load."""


def send(control: ControlFile, fault: str, targets: Mapping[str, Any]) -> ControlledCluster:
    """Inject a fault, or its inverse. Returns the cluster once it is in effect. Errors: UsageError, SourceError."""
    return _request(control, "POST", f"/{fault}", json.dumps(targets))


def read(control: ControlFile) -> ControlledCluster:
    """The cluster and the states of its brokers. Errors: SourceError."""
    return _request(control, "GET", "/", None)


def _request(control: ControlFile, method: str, path: str, body: str | None) -> ControlledCluster:
    # Not urllib: it would send the token to a proxy that the environment names.
    connection = HTTPConnection(control.address, timeout=_SECONDS)
    try:
        connection.request(method, path, body, {"Authorization": f"Bearer {control.token}"})
        response = connection.getresponse()
        document = json.loads(response.read())
    except (OSError, HTTPException, ValueError) as error:
        raise SourceError(f"practice cluster at {control.address}: no response: {error}; is it ending?") from None
    finally:
        connection.close()
    if response.status == 200:
        found: ControlledCluster = document
        return found
    kind = UsageError if response.status == 400 else SourceError
    raise kind(str(document.get("error")))
