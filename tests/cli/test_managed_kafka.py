"""docs/managed-kafka.md: what an audit shows to a user without rights on the cluster and its configs, on Kafka with ACLs."""

import re
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.cli.conftest import Ran
from tests.cli.test_rights import Right, Users
from tests.cli.test_rights import users as users  # a fixture
from tests.kafka_fixtures import client_properties
from tests.secured_fixtures import Secured
from tests.waiting import eventually

pytestmark = pytest.mark.kafka

PAGE = (Path(__file__).parents[2] / "docs" / "managed-kafka.md").read_text(encoding="utf-8")

Cli = Callable[..., Ran]


def test_what_rights_hide_is_reported_and_the_verdict_is_no_success(
    cli: Cli, users: Users, secured: Secured, tmp_path: Path
) -> None:
    topic = users.fresh_topic(1, 2)
    users.may(topic, (Right("Describe", f"Topic {topic}"),))
    (tmp_path / "user.properties").write_text(
        "".join(f"{key}={value}\n" for key, value in client_properties(users.name).items())
    )
    words = ("audit", "--bootstrap-server", secured.cluster.bootstrap_servers, "--command-config", "user.properties")
    eventually(lambda: cli(*words).code != 1 or "could not be read" in cli(*words).out, "the right is in force")
    ran, document = cli(*words), cli(*words, "-o", "json").document
    shown = re.findall(r"^could not be read: (.*)$", PAGE, re.MULTILINE)
    expected = [line.replace("orders", topic).partition(": ")[0] for line in shown]
    assert len(expected) == 4
    unread = " ".join(ran.out.split())
    assert all(
        re.sub(r" of \d+ partitions?", "", line) in re.sub(r" of \d+ partitions?", "", unread) for line in expected
    )
    assert ran.code == 1
    assert ("as far as it could be read" in unread) == ("survives the loss of any one rack" in unread)
    assert document["summary"]["complete"] is False
    assert len(document["summary"]["partial"]) == 4
