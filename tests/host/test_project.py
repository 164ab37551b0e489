from __future__ import annotations

from pathlib import Path

import pytest

from agentvisor.project import PlainTool, Project, ProjectError, read_project


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "agent.yaml").write_text("name: my-agent\ndescription: It helps.\n")
    (tmp_path / "agent.py").write_text("raise SystemExit('no code of a project runs here')\n")
    return tmp_path


def refusal(folder: Path) -> ProjectError:
    with pytest.raises(ProjectError) as refused:
        read_project(folder)
    return refused.value


def test_a_project_is_its_name_and_description(folder: Path) -> None:
    project = read_project(folder)
    assert project == Project(folder.resolve(), "my-agent", "It helps.", project.config)


def test_the_description_may_be_left_out(folder: Path) -> None:
    (folder / "agent.yaml").write_text("name: é\ndescription:\n", "utf-8-sig")
    assert read_project(folder) == Project(folder.resolve(), "é")


def test_a_folder_without_agent_yaml_is_refused(tmp_path: Path) -> None:
    assert refusal(tmp_path).kind == "agent-yaml-missing"
    assert "Create it" in str(refusal(tmp_path))


def test_agent_yml_is_told_its_right_name(tmp_path: Path) -> None:
    (tmp_path / "agent.yml").write_text("name: x")
    assert "Rename agent.yml to agent.yaml" in str(refusal(tmp_path))


def test_a_folder_that_is_not_there_is_refused(tmp_path: Path) -> None:
    assert refusal(tmp_path / "nowhere").kind == "project-not-found"


def test_a_project_without_agent_py_is_refused(folder: Path) -> None:
    (folder / "agent.py").unlink()
    assert refusal(folder).kind == "agent-py-missing"


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "is empty"),
        ("# only a comment", "is empty"),
        ("[]", "not a map"),
        ("my-agent", "not a map"),
        ("a: [", "line 1"),
        ("\tname: x", "line 1"),
        ("name: a\nname: b", "'name' stands twice"),
        ("name: a\n---\nname: b", "line 2"),
        ("description: x", "'name' is missing"),
        ("name:", "'name' is missing"),
        ("name: 1", "put it in quotes"),
        ("name: no", "put it in quotes"),
        ("name: ''", "'name'"),
        ("name: ' x'", "without blanks"),
        ('name: "a\\nb"', "one line"),
        ("name: x\nmodel: y", "'model' is unknown"),
        ("name: 2024-99-99", "month"),
        ("name: !!timestamp x", "not valid YAML"),
        ("name: !!python/object:os.system x", "line 1"),
        ("name: x\n? [a]\n: 1", "line 2"),
        ("name: &a [*a]", "put it in quotes"),
        ("name: " + "x" * 200, "128"),
    ],
)
def test_an_agent_yaml_that_cannot_be_used_is_refused_by_name(folder: Path, text: str, says: str) -> None:
    (folder / "agent.yaml").write_text(text)
    problem = refusal(folder)
    assert problem.kind == "agent-yaml-invalid"
    assert str(folder.resolve() / "agent.yaml") in str(problem)
    assert says in str(problem)


def test_a_file_that_is_no_text_is_refused(folder: Path) -> None:
    (folder / "agent.yaml").write_bytes(b"name: \xff\xfe")
    assert "UTF-8" in str(refusal(folder))


def test_agentvisor_yaml_tells_tools_limits_and_approvals(folder: Path) -> None:
    (folder / "agentvisor.yaml").write_text(
        """
        tools:
          send: {effect: write, confirm: true, timeout: 20, expires: never}
          look: {effect: read}
        limits: {model_calls: 5, cost: 0.5}
        approvals: {expires: 3600}
        """
    )
    config = read_project(folder).config
    assert config.tools["send"] == PlainTool(effect="write", confirm=True, timeout=20.0, expires="never")
    assert config.tools["look"].confirm is None
    assert (config.limits.model_calls, config.limits.cost) == (5, 0.5)
    assert config.approvals.expires == 3600


def test_sections_of_other_features_are_kept(folder: Path) -> None:
    (folder / "agentvisor.yaml").write_text("proxy: {credentials: [{name: x}]}\nlimits:\n")
    assert read_project(folder).config.model_extra == {"proxy": {"credentials": [{"name": "x"}]}}


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("tools: [a]", "'tools'"),
        ("tools: {f: {effect: reed}}", "'tools.f.effect'"),
        ("tools: {f: {idempotent: true}}", "'tools.f.idempotent' is unknown"),
        ("tools: {f: {confirm: 'yes'}}", "'tools.f.confirm'"),
        ("tools: {f: {timeout: true}}", "'tools.f.timeout': must be a number of seconds above 0"),
        ("tools: {f: {expires: soon}}", 'or "never"'),
        ("limits: {model_cals: 1}", "'limits.model_cals' is unknown"),
        ("limits: {seconds: 60}", "'limits.seconds' is unknown"),
        ("approvals: {expires: .inf}", "above 0"),
        ("limits: {tokens: -1}", "'limits.tokens'"),
        ("approvals: {expires: 0}", "above 0"),
        ("- proxy", "not a map"),
    ],
)
def test_an_agentvisor_yaml_that_cannot_be_used_is_refused_by_name(folder: Path, text: str, says: str) -> None:
    (folder / "agentvisor.yaml").write_text(text)
    problem = refusal(folder)
    assert problem.kind == "agentvisor-yaml-invalid"
    assert says in str(problem)
