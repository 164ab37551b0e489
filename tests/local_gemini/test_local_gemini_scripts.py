"""Script files, and the server as a process of its own."""

from __future__ import annotations

import asyncio
import json
import signal
import subprocess
import sys
from pathlib import Path

import httpx
import pytest

from agentvisor.local_gemini import LocalGemini, Script, ScriptInvalidError, Turn, load_script

SCRIPT = """
conversations:
  - name: greeting
    user: hello
    turns:
      - Hi, {user}.
      - - {when: f.error, text: "no"}
        - {text: "yes", hold: gate}
"""


@pytest.fixture
def script(tmp_path: Path) -> Path:
    path = tmp_path / "script.yaml"
    path.write_text(SCRIPT)
    return path


def test_a_script_file_is_yaml_or_json(script: Path, tmp_path: Path) -> None:
    loaded = load_script(script)
    as_json = tmp_path / "script.json"
    as_json.write_text(loaded.model_dump_json())
    assert load_script(as_json) == loaded
    assert [len(position) for position in loaded.conversations[0].turns] == [1, 2]


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("conversations: [{turns: [{txet: hi}]}]", r"conversations\[0\]\.turns\[0\]\[0\]\.txet: unknown field"),
        ("conversations: [{turns: []}]", r"conversations\[0\]\.turns: "),
        ("conversations: [{user: '(', turns: [hi]}]", r"conversations\[0\]\.user: is no regular expression"),
        ("conversations: [{turns: [{}]}]", r"\[0\]\[0\]: says nothing"),
        ("conversations: [{turns: [{text: a, parts: []}]}]", "parts are the whole reply"),
        ("conversations: [{turns: [{text: a, blocked: SAFETY}]}]", "leave no room"),
        ("conversations: [{turns: [{faults: [{code: 500, cut: 1}]}]}]", "exactly one of code, cut and body"),
        ("conversations: [{turns: [{faults: [{cut: 1, message: m}]}]}]", "go with code only"),
        ("conversations: [{turns: 5}]", r"conversations\[0\]\.turns: "),
        ("- hello", "the file: "),
        ("a: [", "neither JSON nor YAML"),
    ],
)
def test_a_wrong_script_is_refused_by_place(tmp_path: Path, text: str, place: str) -> None:
    path = tmp_path / "wrong.yaml"
    path.write_text(text)
    with pytest.raises(ScriptInvalidError, match=place):
        load_script(path)


def test_a_missing_script_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ScriptInvalidError, match="cannot be read"):
        load_script(tmp_path / "none.yaml")


def test_the_server_runs_as_a_process_that_prints_its_address(script: Path) -> None:
    command = [sys.executable, "-m", "agentvisor.local_gemini", "--script", str(script), "--port", "0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout
        url = json.loads(process.stdout.readline())["url"]
        body = {"contents": [{"role": "user", "parts": [{"text": "hello"}]}]}
        reply = httpx.post(f"{url}/v1beta/models/m:generateContent", json=body).json()
        assert reply["candidates"][0]["content"]["parts"] == [{"text": "Hi, hello."}]
        held = httpx.get(f"{url}/_held").json()
        httpx.post(f"{url}/_release/gate").raise_for_status()
        process.send_signal(signal.SIGTERM)
        assert process.wait(10) == 0
    assert held == {}


def test_the_process_refuses_a_wrong_script_in_words(tmp_path: Path) -> None:
    path = tmp_path / "wrong.yaml"
    path.write_text("conversation: []")
    command = [sys.executable, "-m", "agentvisor.local_gemini", "--script", str(path)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode == 1
    assert "conversation: unknown field" in done.stderr
    assert "Traceback" not in done.stderr


def test_a_taken_port_is_an_os_error() -> None:
    with LocalGemini(Script()) as first, pytest.raises(OSError, match="in use"):
        LocalGemini(port=httpx.URL(first.url).port or 0).__enter__()


async def test_stopping_ends_what_is_held_as_a_server_error(gemini: LocalGemini) -> None:
    gemini.script([Turn(text="late", hold="gate")])
    body = {"contents": [{"role": "user", "parts": [{"text": "x"}]}]}
    async with httpx.AsyncClient(base_url=gemini.url) as http:
        asked = asyncio.ensure_future(http.post("/v1beta/models/m:generateContent", json=body))
        await gemini.held("gate")
        await asyncio.to_thread(gemini.stop)
        assert (await asked).status_code == 500


def test_a_command_has_the_server_for_as_long_as_it_runs(script: Path) -> None:
    program = (
        "import httpx, os, sys; sys.exit(httpx.get(os.environ['GOOGLE_GEMINI_BASE_URL'] + '/_log').status_code - 193)"
    )
    command = [sys.executable, "-m", "agentvisor.local_gemini", "--script", str(script)]
    ended = subprocess.run(
        [*command, "--", sys.executable, "-c", program], capture_output=True, timeout=60, check=False
    )
    assert (ended.returncode, ended.stdout, ended.stderr) == (7, b"", b"")


def test_whoever_ends_the_server_ends_the_command(script: Path) -> None:
    program = "import time; print('here', flush=True); time.sleep(100)"
    command = [sys.executable, "-m", "agentvisor.local_gemini", "--script", str(script)]
    with subprocess.Popen(
        [*command, "--", sys.executable, "-c", program], stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "here\n"
        process.send_signal(signal.SIGTERM)
        assert process.wait(30) == 128 + signal.SIGTERM
        assert process.stdout.read() == ""
