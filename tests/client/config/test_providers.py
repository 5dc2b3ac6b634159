"""Variables are resolved as by Kafka's config providers; tests/compat/test_client_files.py holds them to Kafka's own classes."""

from pathlib import Path

import pytest

from rackspan.client.config.providers import resolved
from rackspan.errors import UsageError

PACKAGE = "org.apache.kafka.common.config.provider"
DECLARED = {
    "config.providers": "file,dir,env",
    "config.providers.file.class": f"{PACKAGE}.FileConfigProvider",
    "config.providers.dir.class": f"{PACKAGE}.DirectoryConfigProvider",
    "config.providers.env.class": f"{PACKAGE}.EnvVarConfigProvider",
}


@pytest.fixture
def secrets(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "login.properties").write_text("user=alice\n", encoding="utf-8")
    (tmp_path / "password").write_text("sécret", encoding="utf-8")
    monkeypatch.setenv("RACKSPAN_TEST_CLIENT", "me")
    return tmp_path


def test_variables_come_from_files_folders_and_the_environment(secrets: Path) -> None:
    values = {
        "a": f"<${{file:{secrets}/login.properties:user}}>",
        "b": f"${{dir:{secrets}:password}}${{env:RACKSPAN_TEST_CLIENT}}",
        "c": "${other:x}",
    }
    assert resolved({**DECLARED, **values}) == {"a": "<alice>", "b": "sécretme", "c": "${other:x}"}


def test_without_providers_nothing_is_a_variable() -> None:
    assert resolved({"a": "${file:/x:y}"}) == {"a": "${file:/x:y}"}


@pytest.mark.parametrize(
    ("properties", "why"),
    [
        ({"a": "${file:/absent:x}"}, "/absent, which --command-config names by a config provider, cannot be read: No such file"),
        ({"a": "${file:{secrets}/login.properties:x}"}, "a in --command-config: ${file:{secrets}/login.properties:x} has no value"),
        ({"a": "${dir:{secrets}:../x}"}, "a in --command-config: ${dir:{secrets}:../x} has no value: dir finds no ../x in {secrets}"),
        ({"a": "${env:RACKSPAN_ABSENT}"}, "has no value: env finds no RACKSPAN_ABSENT"),
        ({"a": "${env:path:NAME}"}, "an environment variable has no path"),
        ({"a": "${env:RACKSPAN_TEST_CLIENT}", "config.providers.env.param.allowlist.pattern": "RACKSPAN"}, "has no value"),
        ({"config.providers.env.param.allowlist.pattern": "("}, "'(' is not a regular expression"),
        ({"config.providers.file.param.allowed.paths": "here"}, "here is not an absolute path of what exists"),
        ({"config.providers.env.class": "io.example.Vault"}, "'io.example.Vault' is a class that only Java can load"),
        ({"config.providers": "vault"}, "config.providers.vault.class is missing"),
    ],
)  # fmt: skip
def test_what_cannot_be_resolved_is_named(secrets: Path, properties: dict[str, str], why: str) -> None:
    filled = {name: value.replace("{secrets}", str(secrets)) for name, value in properties.items()}
    with pytest.raises(UsageError) as refused:
        resolved({**DECLARED, **filled})
    assert why.replace("{secrets}", str(secrets)) in str(refused.value)


def test_a_folder_that_is_not_allowed_is_not_read(secrets: Path) -> None:
    (secrets / "sub").mkdir()
    (secrets / "sub" / "name").write_text("inside")
    limited = {f"config.providers.{name}.param.allowed.paths": f"{secrets}/sub" for name in ("file", "dir")}
    assert resolved({**DECLARED, **limited, "a": f"${{dir:{secrets}/sub:name}}"}) == {"a": "inside"}
    for variable in (
        f"${{dir:{secrets}:password}}",
        f"${{dir:{secrets}/sub/..:password}}",
        f"${{file:{secrets}/login.properties:user}}",
    ):
        with pytest.raises(UsageError, match=r"has no value: .* check the variable and the allowed\.paths"):
            resolved({**DECLARED, **limited, "a": variable})
