"""The files of deploy/: the manifests are Kubernetes', and the gateway's config in them is one, with their ports."""

import os
import re
import shlex
import subprocess
import tomllib
from pathlib import Path
from typing import Any

import pytest
import yaml

from rackspan.gateway.config import read_config
from rackspan.kafka_process import DEFAULT_VERSION, TESTED_VERSIONS
from tests.how_to.test_orchestrate import environment, shell

DEPLOY = Path(__file__).parents[2] / "deploy"
MANIFESTS: dict[str, Any] = {
    manifest["kind"]: manifest for manifest in yaml.safe_load_all((DEPLOY / "kubernetes.yaml").read_text("utf-8"))
}


@pytest.mark.package
def test_the_manifests_are_those_of_kubernetes(tmp_path: Path) -> None:
    programs = environment(tmp_path / "kubernetes", "kubernetes-validate")
    shell(programs / "kubernetes-validate", "--strict", DEPLOY / "kubernetes.yaml", cwd=tmp_path, env=os.environ)


def test_the_config_in_the_manifest_is_one_of_the_gateway_and_its_ports_are_open(tmp_path: Path) -> None:
    (tmp_path / "gateway.toml").write_text(MANIFESTS["ConfigMap"]["data"]["gateway.toml"])
    read_config(tmp_path / "gateway.toml")
    (container,) = MANIFESTS["Deployment"]["spec"]["template"]["spec"]["containers"]
    opened = {port["name"]: port["containerPort"] for port in container["ports"]}
    served = {port["name"]: port["port"] for port in MANIFESTS["Service"]["spec"]["ports"]}
    assert opened == {"broker-0": 19092, "broker-1": 19093, "broker-2": 19094, "http": 9100}
    assert served.items() <= opened.items()


def test_one_gateway_stays_while_nodes_are_drained_and_none_may_do_more_than_it_needs() -> None:
    deployment = MANIFESTS["Deployment"]["spec"]
    pod = deployment["template"]["spec"]
    (container,) = pod["containers"]
    assert MANIFESTS["PodDisruptionBudget"]["spec"]["minAvailable"] < deployment["replicas"]
    assert pod["securityContext"]["runAsNonRoot"]
    assert container["securityContext"]["readOnlyRootFilesystem"]
    assert {"readinessProbe", "livenessProbe", "resources"} <= container.keys()
    (spread,) = pod["topologySpreadConstraints"]
    assert spread["topologyKey"] == "topology.kubernetes.io/zone"
    assert spread["labelSelector"] == deployment["selector"]
    user = pod["securityContext"]["runAsUser"]
    assert f"USER {user}\n" in (DEPLOY / "Containerfile").read_text("utf-8")


def test_clients_reach_no_listener_of_the_brokers_and_metrics_are_open() -> None:
    of_kafka, of_metrics = MANIFESTS["NetworkPolicy"]["spec"]["ingress"]
    assert of_kafka == {
        "from": [{"podSelector": {"matchLabels": {"app": app}}} for app in ("rackspan-gateway", "kafka")]
    }
    gateway = tomllib.loads(MANIFESTS["ConfigMap"]["data"]["gateway.toml"])
    served = {int(server.rpartition(":")[2]) for server in gateway["bootstrap"]["servers"].split(",")}
    assert not served & {port["port"] for port in of_metrics["ports"]}


@pytest.mark.parametrize(("ends_with", "starts"), [(0, True), (2, True), (1, False), (127, False)])
def test_the_unit_starts_after_a_check_with_warnings_and_not_after_one_that_failed(
    tmp_path: Path, ends_with: int, starts: bool
) -> None:
    unit = (DEPLOY / "rackspan-gateway.service").read_text("utf-8")
    (before,) = [line.partition("=")[2] for line in unit.splitlines() if line.startswith("ExecStartPre=")]
    checked = tmp_path / "rackspan"
    checked.write_text(f"#!/bin/sh\nexit {ends_with}\n")
    checked.chmod(0o755)
    # systemd writes a dollar sign twice.
    words = shlex.split(before.replace("$$", "$").replace("/opt/rackspan/bin/rackspan", str(checked)))
    assert (subprocess.run(words, check=False).returncode == 0) is starts


def test_the_workflow_of_ci_does_what_this_repository_passes_itself() -> None:
    """The same programs, targets and strictness as .ci/run, the Pythons of the package, and every release of Kafka that is tested."""
    root = DEPLOY.parent
    jobs = yaml.safe_load((root / "examples/workflows/ci.yml").read_text("utf-8"))["jobs"]
    run = (root / ".ci/run").read_text("utf-8")
    steps = [step["run"] for step in jobs["test"]["steps"] if "run" in step]
    assert installed(steps[0]) == installed(run)
    assert steps[1:] == re.findall(r"^make .*", run, re.MULTILINE)
    assert [f"{name}={value}" for name, value in jobs["test"]["env"].items()] == re.findall(r"^export (.*)", run, re.M)
    declared = re.findall(r'"Programming Language :: Python :: (3\.\d+)"', (root / "pyproject.toml").read_text("utf-8"))
    assert jobs["test"]["strategy"]["matrix"]["python"] == declared
    another = jobs["another-kafka"]
    assert another["strategy"]["matrix"]["kafka"] == [one for one in TESTED_VERSIONS if one != DEFAULT_VERSION]
    assert another["steps"][-1]["env"] == {"RACKSPAN_KAFKA": "${{ matrix.kafka }}"}


def installed(command: str) -> list[str]:
    """The packages of the first apt-get install."""
    packages: str = re.findall(r"apt-get install (?:-\S+ )*((?:[a-z][a-z-]+ ?)+)", command)[0]
    return packages.split()


def test_the_workflow_of_a_release_judges_as_strictly() -> None:
    root = DEPLOY.parent
    read = [
        yaml.safe_load((root / f"examples/workflows/{name}.yml").read_text("utf-8"))["jobs"]
        for name in ("ci", "release")
    ]
    of_ci, of_release = read[0]["test"], read[1]["build"]
    assert of_release["env"] == of_ci["env"]
    assert installed(of_release["steps"][1]["run"]) == installed((root / ".ci/run").read_text("utf-8"))


@pytest.mark.parametrize("workflow", ["ci", "release"])
def test_a_workflow_calls_only_what_the_makefile_has(workflow: str) -> None:
    jobs = yaml.safe_load((DEPLOY.parent / f"examples/workflows/{workflow}.yml").read_text("utf-8"))["jobs"]
    commands = [step["run"] for job in jobs.values() for step in job["steps"] if "run" in step]
    targets = {command.split()[1] for command in commands if command.startswith("make ")}
    makefile = (DEPLOY.parent / "Makefile").read_text("utf-8")
    assert targets
    assert [target for target in targets if f"\n{target}:" not in makefile] == []
