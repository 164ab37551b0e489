"""A flow that asks a person a question: one answer counts, once in its run, whatever id the question has."""

from __future__ import annotations

import pytest

from client.errors import Refused
from tests.threads.conftest import Scene
from workflows.messages import InputAnswer


async def test_a_question_of_a_flow_is_answered_once_in_each_run(scene: Scene) -> None:
    """The flow's own id for it is the same in both runs; what came before it is not done again."""
    thread = await scene.thread("flow")
    for number, colour in enumerate(("red", "blue"), 1):
        run_id, (asked,) = await scene.paused(thread, colour)
        assert (asked.kind, asked.id) == ("input", f"in-{number}-1")
        scene.kill_guests()
        await thread.answer(InputAnswer(interrupt_id=asked.id, value=colour), by="ben")
        view = await scene.ended(thread, run_id)
        assert colour in (view.answer or "")
        with pytest.raises(Refused, match=r"already answered .* by 'ben'"):
            await thread.answer(InputAnswer(interrupt_id=asked.id, value="green"), by="cleo")
        assert [await scene.effects(name) for name in ("open_file", "ask_colour")] == [number, number]
    await scene.history(thread)
