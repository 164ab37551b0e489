"""A leg is lost before its progress was known: its model turn is repeated, and its calls are the same to the world."""

from __future__ import annotations

from agentvisor.local_gemini import LocalGemini
from tests.adk.conftest import thread
from tests.adk.harness import Guests
from tests.fixtures.effects import Effects
from tests.fixtures.gemini import call


async def test_a_repeated_call_of_an_idempotent_tool_has_the_same_key(
    zoo: Guests, model: LocalGemini, effects: Effects, order: str
) -> None:
    model.script([{"calls": [call("book", order=order), call("book", order=order)]}, "Booked."], user=f"{order}!")
    for _ in range(2):
        async with zoo.fresh() as guest:
            assert (await thread("single", order).say(guest, f"{order}!")).outcome.kind == "answered"
    keys = [made["key"] for made in await effects.all("book") if made["order"] == order]
    assert len(keys) == 4
    assert sorted(keys[:2]) == sorted(keys[2:])
    assert len(set(keys)) == 2
