import pytest
from kafka.errors import KafkaConnectionError, KafkaError, SaslAuthenticationFailedError

from rackspan.sources.live.error_messages import login_refused, no_server_responded


@pytest.mark.parametrize(
    "error",
    [
        KafkaConnectionError("socket disconnected"),
        SaslAuthenticationFailedError("Authentication failed: Invalid username"),
    ],
    ids=["its words were lost", "its words came"],
)
def test_a_refused_login_reads_the_same_whether_the_brokers_words_came_or_not(error: KafkaError) -> None:
    refusal = no_server_responded({"kafka:9092": login_refused(error, "PLAIN")}, seconds=30)
    assert str(refusal) == (
        "kafka:9092 refused the login: user, password or mechanism PLAIN is wrong; "
        "check sasl.mechanism and sasl.jaas.config in --command-config"
    )
