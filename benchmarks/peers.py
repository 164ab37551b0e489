"""The peers: how a conversation with each is started, what makes up its turns, and how it is closed."""

from __future__ import annotations

import uuid
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from temporalio.client import Client

from benchmarks.stage import BARE_QUEUE, LEAST_QUEUE, PLUGIN_QUEUE, Stage
from benchmarks.talk import Talk

_PRODUCT_STEPS = frozenset({"run_agent", "run_tool"})
_PLUGIN_STEPS = frozenset({"invoke_model", "find_order", "add_note", "send_invoice"})
_BARE_STEPS = frozenset({"nothing"})
_LEAST_STEPS = frozenset({"say", "note", "tell"})


@dataclass(frozen=True)
class Peer:
    """Somebody who hosts conversations. `steps`: activities of a turn; `word`: the tool of it."""

    name: str
    steps: int
    word: str
    say: Callable[[str], Any]
    """The argument of the signal `run` for a text."""

    async def begin(self, stage: Stage) -> Talk:
        """A new conversation."""
        client = stage.client
        if self.name.startswith("product"):
            thread = await stage.threads.create("bench", principal="ana")
            return Talk(client, f"thread-{thread.id}", steps=_PRODUCT_STEPS)
        name = f"{self.name}-{uuid.uuid4()}"
        if self.name == "plugin":
            await client.start_workflow("PluginThread", id=name, task_queue=PLUGIN_QUEUE)
            return Talk(client, name, steps=_PLUGIN_STEPS)
        if self.name == "least":
            await client.start_workflow("LeastThread", id=name, task_queue=LEAST_QUEUE)
            return Talk(client, name, steps=_LEAST_STEPS)
        await client.start_workflow("BareThread", self.steps, id=name, task_queue=BARE_QUEUE)
        return Talk(client, name, steps=_BARE_STEPS)

    async def turn(self, talk: Talk, number: int) -> float:
        """The seconds of one turn; its text is the only one of its kind in the conversation."""
        return await talk.turn(self.say(self.text(number, talk.id)), steps=self.steps)

    async def turn_among_many(self, stage: Stage, talk: Talk, number: int) -> None:
        """One turn of one conversation of many."""
        await talk.turn_among_many(self.say(self.text(number, talk.id)), ear=stage.ear, times=self.answers)

    @property
    def answers(self) -> int:
        """How often somebody says that a turn is answered."""
        return self.steps if self.name.startswith("bare") else 1

    def text(self, number: int, conversation: str) -> str:
        """What the user says in a turn."""
        return f"{self.word} my order A-{number} please, and tell me all about it ({conversation[-8:]})"

    async def close(self, client: Client, talk: Talk) -> None:
        """End the conversation, and wait for it."""
        handle = client.get_workflow_handle(talk.id)
        if self.name.startswith("product"):
            await handle.execute_update("close", {"by": "bench"})
        else:
            await handle.signal("close")
        await handle.result()


def _run(text: str) -> dict[str, str]:
    return {"message": text}


PRODUCT_READ = Peer("product-read", 1, "find", _run)
PRODUCT_WRITE = Peer("product-write", 3, "note", _run)
PLUGIN = Peer("plugin", 3, "find", str)
BARE_READ = Peer("bare-1", 1, "find", str)
BARE_WRITE = Peer("bare-3", 3, "find", str)
LEAST_WRITE = Peer("least", 3, "note", str)
