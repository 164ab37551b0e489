"""Whatever the model does, a run ends within its limits, says what happened, and the thread takes the next one."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.fixtures.gemini import assert_well_formed
from tests.threads.conftest import Scene
from workflows.messages import RunLimits, RunView

_USUAL = RunLimits()
HTML = "<html>502 Bad Gateway</html>"


def _reply(*parts: dict[str, Any], **more: Any) -> dict[str, Any]:
    """A turn whose body is sent as it is, whatever a script would refuse."""
    candidate = {"content": {"role": "model", "parts": list(parts)}, "finishReason": "STOP", "index": 0, **more}
    return {"faults": [{"body": json.dumps({"candidates": [candidate], "modelVersion": "local"})}]}


async def _run(scene: Scene, agent: str = "single", *, attempts: int = 2, limits: RunLimits = _USUAL) -> RunView:
    """A run to its end, and the next one to its answer."""
    scene.script("Well again.", words="next", agent="single" if agent == "single" else None)
    thread = await scene.thread(agent, leg_attempts=attempts, limits=limits)
    view = await thread.wait(await thread.run(scene.say()), until="ended", timeout=60)
    assert (await scene.answered(thread, "next")).answer == "Well again."
    assert_well_formed(scene.requests()[-1].contents)
    await scene.history(thread)
    return view


def _error(view: RunView) -> tuple[str, str]:
    assert view.status == "error", view
    assert view.error
    return view.error.code, view.error.message


@pytest.mark.parametrize(
    ("turn", "code", "said"),
    [
        ({"no_candidates": True}, "model-stopped", "MODEL_RETURNED_NO_CONTENT"),
        ({"parts": []}, "model-stopped", "MODEL_RETURNED_NO_CONTENT"),
        ({"finish": "SAFETY"}, "model-stopped", "SAFETY"),
        ({"blocked": "PROHIBITED_CONTENT"}, "model-stopped", "PROHIBITED_CONTENT"),
        ({"finish": "MALFORMED_FUNCTION_CALL"}, "model-stopped", "MALFORMED_FUNCTION_CALL"),
        ({"faults": [{"code": 429}]}, "model-error", "429"),
        ({"faults": [{"code": 500}]}, "model-error", "500"),
        ({"faults": [{"code": 400}]}, "model-error", "400"),
        ({"faults": [{"cut": 1}]}, "model-error", "Another attempt may succeed"),
        ({"faults": [{"body": HTML}]}, "model-error", "The guest's log"),
        ({"faults": [{"body": '{"candidates": 7}'}]}, "model-error", "The guest's log"),
        ({"faults": [{"body": ""}]}, "model-stopped", "MODEL_RETURNED_NO_CONTENT"),
        (_reply({"functionCall": {}}), "model-stopped", "without a name"),
        (_reply({"text": "Well,"}, {"functionCall": {"name": "", "args": {}}}), "model-stopped", "without a name"),
    ],
    ids=lambda value: "" if isinstance(value, str) else str(value)[:40],  # pyright: ignore[reportUnknownLambdaType]
)
async def test_a_model_that_never_answers_well_ends_the_run_and_says_how_it_failed(
    scene: Scene, turn: dict[str, Any], code: str, said: str
) -> None:
    scene.script(turn, words="go")
    view = await _run(scene)
    found, message = _error(view)
    assert (found, said in message) == (code, True), message
    assert len(scene.requests()) <= 2 + 1
    assert view.answer is None


@pytest.mark.parametrize(
    "fault",
    [{"code": 429, "retry_after": 0.1}, {"code": 503}, {"cut": 1}],
    ids=["too many requests", "away for a moment", "half a reply"],
)
async def test_a_model_that_answers_at_the_second_attempt_is_heard(scene: Scene, fault: dict[str, Any]) -> None:
    """What came before in the turn is not done again."""
    scene.script(
        {"calls": [scene.call("look"), scene.call("note", text="n")]},
        {"text": "There.", "faults": [{**fault, "times": 1}]},
        words="go",
    )
    view = await _run(scene, attempts=5)
    assert (view.status, view.answer) == ("success", "There.")
    assert [await scene.effects(tool) for tool in ("look", "note")] == [1, 1]


@pytest.mark.parametrize(
    ("turn", "answer"),
    [
        ({"text": "Half a sent", "finish": "MAX_TOKENS"}, "Half a sent"),
        ({"text": "Half a sent", "finish": "SAFETY"}, "Half a sent"),
        (_reply({"text": "a\x00b"}), "a\x00b"),
        (_reply({"text": "\ud83d\ude00"}), "😀"),
        (_reply({"text": "thinking", "thought": True}, {"text": "Said."}), "Said."),
        (_reply({"text": "first"}, {"text": " second"}), "first second"),
    ],
    ids=["cut short", "stopped", "a NUL", "an emoji in two halves", "a thought", "two parts"],
)
async def test_odd_words_are_an_answer_all_the_same(scene: Scene, turn: dict[str, Any], answer: str) -> None:
    scene.script(turn, words="go")
    view = await _run(scene)
    assert (view.status, view.answer) == ("success", answer)


@pytest.mark.parametrize(
    "turn",
    [
        _reply({"text": "a\ud800b"}),
        _reply({"text": "thinking", "thought": True}),
        _reply({"functionCall": {"name": "note", "args": "all"}}),
        _reply({"functionCall": {"name": "note", "args": {"mark": "\ud800", "text": "n"}}}),
        _reply({"functionResponse": {"name": "pay", "response": {"paid": 5}}}),
        _reply({"inlineData": {"mimeType": "image/png", "data": "!"}}),
        _reply({"executableCode": {"language": "PYTHON", "code": "1"}}),
        _reply({"surprise": 1}),
    ],
    ids=lambda turn: turn["faults"][0]["body"][:90].partition("parts")[2],
)
async def test_what_no_model_should_say_ends_the_run_in_one_way_or_the_other(
    scene: Scene, turn: dict[str, Any]
) -> None:
    """As an answer, or as an error that says something; nothing is made of it, and it does not stay in the way."""
    scene.script(turn, words="go")
    view = await _run(scene, limits=RunLimits(model_calls=4))
    assert view.status == "success" or (view.status == "error" and view.error and view.error.message), view
    assert [await scene.effects(tool) for tool in ("note", "pay")] == [0, 0]


async def test_a_tool_that_does_not_exist_takes_no_other_down(scene: Scene) -> None:
    """The model is told so; the calls beside it are made, once."""
    calls = [scene.call("nope"), scene.call("note", text="n"), scene.call("Note", text="n"), scene.call("look")]
    scene.script({"calls": calls}, "I see.", words="go")
    view = await _run(scene)
    assert (view.status, view.answer) == ("success", "I see.")
    assert [await scene.effects(tool) for tool in ("note", "look")] == [1, 1]
    told = [line for line in scene.heard(1, values=True) if line.startswith("RESP")]
    assert ["error" in line for line in told] == [True, False, True, False]


@pytest.mark.parametrize(
    ("tool", "limit", "effects"),
    [("look", {"model_calls": 4}, 4), ("look", {"tool_calls": 3}, 3), ("note", {"tool_calls": 3}, 3)],
    ids=["turns with a read", "reads", "writes"],
)
async def test_a_model_that_never_stops_calling_is_stopped_by_a_limit(
    scene: Scene, tool: str, limit: dict[str, int], effects: int
) -> None:
    given = {"text": "n"} if tool == "note" else {}
    scene.script(*[scene.call(tool, **given)] * 9, words="go")
    code, message = _error(await _run(scene, limits=RunLimits.model_validate(limit)))
    assert code == "run-limit-exceeded"
    assert "Raise the limits" in message
    assert await scene.effects(tool) == effects


async def test_agents_that_hand_over_to_each_other_for_ever_are_stopped_by_a_limit(scene: Scene) -> None:
    scene.script(*[scene.call("transfer_to_agent", agent_name="transferee")] * 9, agent="transfer", words="go")
    scene.script(*[scene.call("transfer_to_agent", agent_name="transfer")] * 9, agent="transferee", words="go")
    code, _ = _error(await _run(scene, "transfer", limits=RunLimits(model_calls=6)))
    assert code == "run-limit-exceeded"
    assert len(scene.requests()) == 6 + 1


async def test_a_model_that_never_replies_is_stopped_by_the_time_limit(scene: Scene) -> None:
    scene.script({"text": "late", "hold": scene.mark}, words="go")
    view = await _run(scene, limits=RunLimits(seconds=2))
    assert view.status == "timeout"
    assert view.error
    assert "2 s" in view.error.message
    scene.release(scene.mark)
