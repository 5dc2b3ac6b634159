"""The gateway's config file: what it says, and one line for what is wrong."""

from pathlib import Path

import pytest
from msgspec import structs

from rackspan.client.identity import IdentityMode
from rackspan.errors import UsageError
from rackspan.gateway.config import GatewayConfig, ListenerConfig, parse_config, read_config
from rackspan.gateway.core.acknowledgement.guard import AcknowledgementMode


def written(folder: Path, text: str) -> Path:
    path = folder / "gateway.toml"
    path.write_text(text)
    return path


def test_keys_are_dotted_as_in_kafka(tmp_path: Path) -> None:
    config = read_config(
        written(
            tmp_path,
            """
bootstrap.servers = "a:1,b:2"
listen.host = "0.0.0.0"
listen.first.port = 20000
listen.advertised.host = "gateway.example"
acknowledgements.mode = "pre"
acknowledgements.min.insync.racks = 2
placement.replica.placer.class.name = "balanced"
placement.configs.some.key = "1"
[topics."orders"]
min.insync.racks = 3
fail.open = true
[brokers.7]
port = 9092
advertised.host = "seven.example"
advertised.port = 443
""",
        )
    )
    assert config.mode is AcknowledgementMode.PRE
    assert config.policies.topics["orders"].min_insync_racks == 3
    assert config.policies.min_insync_racks == 2
    assert config.placer_configs == {"some.key": "1"}
    assert config.listener(3) == ListenerConfig("0.0.0.0", 20003, "gateway.example")  # noqa: S104
    assert config.listener(7) == ListenerConfig("0.0.0.0", 9092, "seven.example", 443)  # noqa: S104


def test_the_mode_is_strict_by_default_if_the_controllers_are_named() -> None:
    servers = {"bootstrap": {"servers": "a:1"}}
    assert parse_config(servers).mode is AcknowledgementMode.VERIFIED
    assert (
        parse_config({**servers, "controllers": {"bootstrap": {"servers": "b:1"}}}).mode is AcknowledgementMode.STRICT
    )


def test_a_config_that_names_the_cluster_alone_has_the_defaults_that_the_guide_names() -> None:
    values = structs.asdict(parse_config({"bootstrap.servers": "a:1"}))
    assert {GatewayConfig.key_of(name): value for name, value in values.items()} == {
        "bootstrap.servers": "a:1",
        "command.config": None,
        "controllers.bootstrap.servers": None,
        "controllers.command.config": None,
        "broker.identity": IdentityMode.PROVED,
        "listen.host": "127.0.0.1",
        "listen.first.port": 19092,
        "listen.advertised.host": None,
        "listen.http": None,
        "listen.tls.certificate": None,
        "listen.tls.key": None,
        "listen.tls.client.authorities": None,
        "listen.max.connections": 5000,
        "listen.address.max.connections": None,
        "listen.address.max.new.connections": 500,
        "listen.max.request.bytes": 104_857_600,
        "listen.request.memory.bytes": 268_435_456,
        "log.format": "text",
        "shutdown.timeout.seconds": 30,
        "acknowledgements.mode": AcknowledgementMode.VERIFIED,
        "acknowledgements.config.topic": "__rackspan_configs",
        "acknowledgements.config.topic.create": True,
        "acknowledgements.min.insync.racks": 1,
        "gateway.id": None,
        "acknowledgements.override.min.insync.racks": None,
        "acknowledgements.fail.open": False,
        "acknowledgements.max.staleness.ms": 1000,
        "acknowledgements.hold.memory.bytes": 33_554_432,
        "acknowledgements.deny.weak.acks": False,
        "acknowledgements.extended.error.codes": False,
        "placement.replica.placer.class.name": None,
        "placement.configs": {},
        "racks.rack.locator.class": None,
        "racks.rack.locator.properties": "",
        "readers.rack": None,
        "readers.replace.client.rack": False,
        "readers.networks": {},
        "readers.clients": {},
        "counters.topics.max": 100,
        "counters.clients.max": 100,
        "metrics.partitions": False,
        "topics": {},
        "brokers": {},
        "principals": {},
    }


@pytest.mark.parametrize(
    ("key", "least", "most"),
    [
        ("listen.first.port", 0, 65_535),
        ("listen.max.connections", 1, 2_147_483_647),
        ("listen.max.request.bytes", 1024, 2_147_483_647),
        ("listen.request.memory.bytes", 1_048_576, 2_147_483_647),
        ("shutdown.timeout.seconds", 0, 2_147_483_647),
        ("acknowledgements.min.insync.racks", 1, 2_147_483_647),
        ("acknowledgements.max.staleness.ms", 50, 2_147_483_647),
        ("acknowledgements.hold.memory.bytes", 65_536, 2_147_483_647),
    ],
)
def test_a_number_is_accepted_up_to_its_bounds_and_not_beyond(key: str, least: int, most: int) -> None:
    for value in (least, most):
        config = parse_config({"bootstrap.servers": "a:1", key: value})
        assert {GatewayConfig.key_of(name): one for name, one in structs.asdict(config).items()}[key] == value
    for value in (least - 1, most + 1):
        with pytest.raises(UsageError, match=f"{key} is {value}, outside {least} to "):
            parse_config({"bootstrap.servers": "a:1", key: value})


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("", "bootstrap.servers is missing"),
        ("bootstrap.servers = 3", "bootstrap.servers is 3, not a string; see docs/how-to/gateway.md"),
        ('bootstrap.servers = "a:1"\nlisten.prot = 1', 'there is no key "listen.prot"; did you mean listen.host'),
        (
            'bootstrap.servers = "a:1"\nacknowledgements.mode = "strictest"',
            "expected off or advisory or pre or verified or strict",
        ),
        (
            'bootstrap.servers = "a:1"\nacknowledgements.mode = "strict"',
            "write their listeners' addresses as controllers",
        ),
        (
            'bootstrap.servers = "a:1"\ncontrollers.bootstrap.servers = "b:1"\nacknowledgements.mode = "verified"',
            "for acknowledgements.mode strict alone",
        ),
        ('bootstrap.servers = "a:1"\nacknowledgements.min.insync.racks = 0', "is 0, outside 1 to"),
        ('bootstrap.servers = "a:1"\ngateway.id = "a b"', "gateway.id is 'a b'; write up to 200 letters, digits"),
        (
            'bootstrap.servers = "a:1"\ngateway.id = "a"\nacknowledgements.config.topic = ""',
            "gateway.id names this gateway in the config topic, and acknowledgements.config.topic is empty",
        ),
        (
            'bootstrap.servers = "a:1"\nacknowledgements.mode = "off"\n[topics.t]\nmin.insync.racks = 2',
            "remove one of them",
        ),
        ('bootstrap.servers = "a:1"\nlisten.tls.key = "none.pem"', "none.pem is not a file"),
        ('bootstrap.servers = "a:1"\n[brokers.x]\nport = 1', "'x' is not a broker id"),
        (
            'bootstrap.servers = "a:1"\n[brokers.1]\nports = 1',
            r'\[brokers.1\]: there is no key "ports"; there are host, port, ',
        ),
        ('bootstrap.servers = "a:1"\ntopics = 3', "topics is 3, not a table"),
        ('bootstrap.servers = "a:1"\nlog.format = "xml"', "expected text or json"),
        ("bootstrap.servers = ", "not TOML"),
        ('bootstrap.servers = "a:1"\nlisten.tls.key = "gateway.toml"', "add the one that is missing"),
        ('bootstrap.servers = "a:1"\nlisten.tls.client.authorities = "gateway.toml"', "add the one that is missing"),
        (
            'bootstrap.servers = "a:1"\nlisten.tls.key = "gateway.toml"\nlisten.tls.certificate = "gateway.toml"\n'
            '[principals."alice"]\nkey = "gateway.toml"\ncertificate = "gateway.toml"',
            "add listen.tls.client.authorities, which verifies them",
        ),
        (
            'bootstrap.servers = "a:1"\n[principals."alice"]\nkey = "none.pem"\ncertificate = "gateway.toml"',
            r'\[principals\."alice"\] key: .*none.pem is not a file',
        ),
        (
            'bootstrap.servers = "a:1"\nacknowledgements.mode = "off"\nacknowledgements.min.insync.racks = 2',
            "remove one of them",
        ),
        (
            'bootstrap.servers = "a:1"\nacknowledgements.mode = "off"\nacknowledgements.override.min.insync.racks = 1',
            "remove one of them",
        ),
        ('bootstrap.servers = "a:1"\n[brokers.01]\nport = 1', "'01' is not a broker id"),
        (
            'bootstrap.servers = "a:1"\nacknowledgements.mode = "off"\nacknowledgements.deny.weak.acks = true',
            "nothing is denied",
        ),
        *(
            (f'bootstrap.servers = "a:1"\n[topics."{topic}"]\nmin.insync.racks = 2', "no value is enforced")
            for topic in ("__consumer_offsets", "__rackspan_configs", "orders/eu")
        ),
    ],
)
def test_what_is_wrong_is_named(tmp_path: Path, text: str, complaint: str) -> None:
    with pytest.raises(UsageError, match=complaint):
        read_config(written(tmp_path, text))


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"gateway\.toml: cannot be read"):
        read_config(tmp_path / "gateway.toml")


def test_a_port_beyond_the_last_is_refused(tmp_path: Path) -> None:
    config = read_config(written(tmp_path, 'bootstrap.servers = "a:1"\nlisten.first.port = 65000'))
    with pytest.raises(UsageError, match="leaves no port for broker 1000"):
        config.listener(1000)


def test_an_empty_config_topic_is_none(tmp_path: Path) -> None:
    config = read_config(written(tmp_path, 'bootstrap.servers = "a:1"\nacknowledgements.config.topic = ""'))
    assert config.config_topic is None
    assert parse_config({"bootstrap.servers": "a:1"}).config_topic == "__rackspan_configs"


@pytest.mark.parametrize("files", [{"tls_certificate": Path("own.pem")}, {"tls_key": Path("own.key")}, {}])
def test_without_both_a_certificate_and_its_key_there_is_no_tls(files: dict[str, Path]) -> None:
    assert GatewayConfig(bootstrap_servers="a:1", **files).tls is None  # type: ignore[arg-type]


def test_files_are_beside_the_config_and_those_with_secrets_are_known(tmp_path: Path) -> None:
    for name in ("own.key", "own.pem", "all.pem", "alice.key", "alice.pem", "command.properties"):
        (tmp_path / name).write_text("")
    text = """
bootstrap.servers = "a:1"
command.config = "command.properties"
listen.tls.key = "own.key"
listen.tls.certificate = "own.pem"
listen.tls.client.authorities = "all.pem"
[principals."alice"]
key = "alice.key"
certificate = "alice.pem"
"""
    config = read_config(written(tmp_path, text))
    assert config.tls is not None
    assert config.tls.client_authorities == tmp_path / "all.pem"
    assert config.tls.principals == {"alice": (tmp_path / "alice.pem", tmp_path / "alice.key")}
    assert config.secret_files == [tmp_path / name for name in ("command.properties", "own.key", "alice.key")]


def test_every_mode_that_reads_logs_has_brokers_proved_unless_the_file_says_otherwise() -> None:
    """Every mode but off reads them to raise a value."""
    address = {"broker": {"identity": "address"}}
    for mode in ("advisory", "pre", "verified"):
        least = {"bootstrap.servers": "a:1", "acknowledgements.mode": mode}
        assert parse_config(least).identity is IdentityMode.PROVED
        assert parse_config(least | address).identity is IdentityMode.ADDRESS
    off = {"bootstrap.servers": "a:1", "acknowledgements.mode": "off"}
    assert parse_config(off).identity is IdentityMode.ADDRESS
    with pytest.raises(
        UsageError, match=r"^config: broker\.identity is address, and acknowledgements\.mode is off: no"
    ):
        parse_config(off | address)
