"""A JAAS line gives up its user and password, and never lands in a message."""

import pytest

from rackspan.client.config.jaas import JaasLogin, entry, login
from rackspan.errors import UsageError

PLAIN = "org.apache.kafka.common.security.plain.PlainLoginModule"
SCRAM = "org.apache.kafka.common.security.scram.ScramLoginModule"


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        (f'{PLAIN} required username="alice" password="secret";', ("alice", "secret")),
        (f"{SCRAM} required\n  username='al ice'\n  password=secret ;", ("al ice", "secret")),
        (f'{PLAIN} required password="a\\"b\\\\c=;d" username="x" user_x="y";', ("x", 'a"b\\c=;d')),
        (f'{SCRAM} required username="u" password="p" tokenauth="false";', ("u", "p")),
        (f'{SCRAM} Required /* who */ username="u"password=p-_$.1 // why\n;', ("u", "p-_$.1")),
        (f'{SCRAM} OPTIONAL username="u" password="\\101\\t\\8\\477" / all of this is a comment\n;', ("u", "A\t8'7")),
    ],
)
def test_user_and_password_are_read(line: str, expected: tuple[str, str]) -> None:
    assert login(entry(line)[1]) == JaasLogin(*expected)


@pytest.mark.parametrize(
    ("line", "why"),
    [
        (f'{PLAIN} required username="alice" password="topsecret"', "does not end with a semicolon"),
        (
            f'{PLAIN} username="alice" password="topsecret";',
            "is not followed by required, requisite, sufficient or opt",
        ),
        (f'{PLAIN} required username="alice" password="topsecret"; {PLAIN} required;', "it holds 2 login modules"),
        ('"topsecret!" required;', "its login module is none of PlainLoginModule"),
        ("software.amazon.msk.auth.iam.IAMLoginModule required;", "use SCRAM or TLS, or OAUTHBEARER with a token"),
        (" // nothing", "it names no login module"),
        (f"{PLAIN} required username=alice password=1topsecret;", "put the value in double quotes"),
        (f"{PLAIN} required username=alice password=topsecret+;", "put the value in double quotes"),
        (f'{SCRAM} required username="u" password="topsecret" tokenauth="TRUE";', "a login by a delegation token"),
        ('com.example.TopLoginModule required keyTab="topsecret";', "login module TopLoginModule"),
        (f'{PLAIN} required username="alice" "topsecret";', "an option in it"),
        (f'{PLAIN} required password="topsecret";', "gives no username"),
        (f"{PLAIN} required ;", "gives no username and no password"),
    ],
)
def test_what_cannot_be_followed_says_why_without_the_secret(line: str, why: str) -> None:
    with pytest.raises(UsageError, match=why) as failure:
        login(entry(line)[1])
    assert "topsecret" not in str(failure.value)


def test_a_login_does_not_print_its_password() -> None:
    assert "secret" not in repr(JaasLogin("alice", "secret"))
