from __future__ import annotations

import hashlib
import json
import re
import tomllib
from pathlib import Path
from typing import Any

import pytest
import yaml
from jsonschema import Draft202012Validator

import worker

ROOT = Path(__file__).parents[2]
SCHEMA = Path(__file__).with_name("schema") / "compose-spec.json"


@pytest.fixture(scope="module")
def compose() -> dict[str, Any]:
    return yaml.safe_load((ROOT / "docker-compose.yml").read_text())


def test_the_schema_is_the_one_its_source_note_names() -> None:
    note = SCHEMA.with_name("SOURCE.md").read_text()
    assert hashlib.sha256(SCHEMA.read_bytes()).hexdigest() in note
    assert "Apache License" in SCHEMA.with_name("LICENSE").read_text()


def test_the_compose_file_follows_the_compose_specification(compose: dict[str, Any]) -> None:
    problems = Draft202012Validator(json.loads(SCHEMA.read_text())).iter_errors(compose)
    assert [problem.message for problem in problems] == []


def test_the_schema_refuses_what_is_not_a_compose_file(compose: dict[str, Any]) -> None:
    wrong = {**compose, "services": {"worker": {"imagine": "postgres"}}}
    assert not Draft202012Validator(json.loads(SCHEMA.read_text())).is_valid(wrong)


def test_it_runs_postgresql_temporal_its_web_ui_and_the_worker(compose: dict[str, Any]) -> None:
    assert set(compose["services"]) == {
        "postgresql",
        "temporal-schema",
        "temporal",
        "temporal-namespace",
        "temporal-ui",
        "worker",
    }


def test_every_image_has_a_version(compose: dict[str, Any]) -> None:
    images = [service["image"] for service in compose["services"].values() if "image" in service]
    assert [image for image in images if not re.search(r":\d[\w.]*$", image)] == []


def test_server_and_admin_tools_have_the_same_version(compose: dict[str, Any]) -> None:
    tags = {name: service["image"].split(":")[1] for name, service in compose["services"].items() if "image" in service}
    assert tags["temporal-schema"] == tags["temporal"] == tags["temporal-namespace"]


def test_ports_are_open_to_this_machine_only(compose: dict[str, Any]) -> None:
    ports = [port for service in compose["services"].values() for port in service.get("ports", [])]
    assert sorted(ports) == ["127.0.0.1:7233:7233", "127.0.0.1:8233:8080"]


def test_secrets_come_from_the_environment(compose: dict[str, Any]) -> None:
    secret = re.compile(r"PASSWORD|PWD|API_KEY|SECRET|TOKEN")
    values = [
        value
        for service in compose["services"].values()
        for name, value in service.get("environment", {}).items()
        if secret.search(name)
    ]
    assert len(values) >= 3
    assert [value for value in values if not re.fullmatch(r"\$\{[A-Z_]+(:\?[\w ]+|:-)\}", value)] == []


def test_nothing_starts_before_what_it_needs_is_ready(compose: dict[str, Any]) -> None:
    services = compose["services"]
    for service in services.values():
        for name, needed in service.get("depends_on", {}).items():
            waits_for_health = needed["condition"] == "service_healthy"
            assert ("healthcheck" in services[name]) == waits_for_health
            assert waits_for_health or needed["condition"] == "service_completed_successfully"


def test_what_keeps_running_is_started_again(compose: dict[str, Any]) -> None:
    services = compose["services"]
    once = {
        name
        for service in services.values()
        for name, needed in service.get("depends_on", {}).items()
        if needed["condition"] == "service_completed_successfully"
    }
    assert {name for name, service in services.items() if service.get("restart") != "unless-stopped"} == once


def test_the_worker_finds_the_server_and_its_namespace(compose: dict[str, Any]) -> None:
    worker = compose["services"]["worker"]["environment"]
    namespace = compose["services"]["temporal-namespace"]["environment"]
    assert worker["TEMPORAL_ADDRESS"] == namespace["TEMPORAL_ADDRESS"] == "temporal:7233"
    assert worker["TEMPORAL_NAMESPACE"] == namespace["TEMPORAL_NAMESPACE"]


def test_the_worker_hosts_a_project_that_is_in_its_image(compose: dict[str, Any]) -> None:
    command = compose["services"]["worker"]["command"]
    assert 'ENTRYPOINT ["python", "worker.py"]' in _dockerfile()
    with worker.main.make_context("worker.py", list(command)) as context:
        (project,) = context.params["folders"]
    assert "COPY examples /projects" in _dockerfile()
    assert (ROOT / "examples" / project.relative_to("/projects") / "agent.yaml").is_file()


def test_the_image_holds_all_that_the_wheel_holds() -> None:
    pyproject = tomllib.loads((ROOT / "pyproject.toml").read_text())
    included = pyproject["tool"]["hatch"]["build"]["targets"]["wheel"]["only-include"]
    ignore = (ROOT / ".dockerignore").read_text().splitlines()
    for name in included:
        assert re.search(rf"^COPY {re.escape(name)} ", _dockerfile(), re.MULTILINE)
        assert f"!{name}" in ignore


def test_the_image_is_built_with_the_uv_of_the_makefile() -> None:
    (version,) = re.findall(r"^UV_VERSION := (\S+)$", (ROOT / "Makefile").read_text(), re.MULTILINE)
    assert f"uv=={version} " in _dockerfile()


def test_the_image_does_not_run_as_root() -> None:
    assert re.search(r"^USER agentvisor$", _dockerfile(), re.MULTILINE)


def _dockerfile() -> str:
    return (ROOT / "Dockerfile").read_text()
