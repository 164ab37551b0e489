"""A model that answers at once, in the process that asks it: what is measured is the host, not a model's HTTP.

What it says follows from the conversation alone. The latest text of the user chooses the tool by its first word, and
`slow` in it holds the answer back; the same text always gets the same answer, of about 600 characters.
"""

from __future__ import annotations

import asyncio
import random
import re
from collections.abc import AsyncGenerator, Sequence
from typing import Any

import notes
from google.adk.models import BaseLlm, LLMRegistry
from google.adk.models.llm_request import LlmRequest
from google.adk.models.llm_response import LlmResponse
from google.genai import types

MODEL = "scripted-1"
SLOW_SECONDS = 2.0
ANSWER_CHARACTERS = 600
_TOOLS = {"find": "find_order", "note": "add_note", "invoice": "send_invoice"}
_WORDS = """
    the order was packed on Tuesday and left our warehouse by van next morning it is due at your door this Friday an
    invoice lists two items one keyboard with German layout a cable of three metres total comes to euro including tax
    customer asked whether refund window still open we checked yes for another twelve days so there no need hurry if
    parcel does not arrive please tell us number printed label then carrier can trace where stopped which depot holds
    someone signed neighbour took replacement ships same day without charge under terms sale your account shows also
    earlier orders each paid delivered rating five stars thank you patience
""".split()  # noqa: SIM905 - prose


class Scripted(BaseLlm):
    """Registered under its own names, so that an agent gets it by a string, as it gets Gemini."""

    @classmethod
    def supported_models(cls) -> list[str]:
        """A pattern of names."""
        return [r"scripted-\d+"]

    async def generate_content_async(
        self,
        llm_request: LlmRequest,
        stream: bool = False,  # noqa: ARG002 - the base class names it
    ) -> AsyncGenerator[LlmResponse, None]:
        """The call of a tool to a text, an answer to its result."""
        contents = llm_request.contents
        text = _latest_text(contents)
        if not any(part.function_response for part in contents[-1].parts or []):
            tool, order = _TOOLS[text.split()[0]], _order(text)
            yield _says(types.Part(function_call=types.FunctionCall(name=tool, args=_arguments(tool, order))))
            return
        if "slow" in text:
            notes.write(_order(text), "model")
            await asyncio.sleep(SLOW_SECONDS)
        yield _says(types.Part(text=prose(text)))
        notes.say_answered(text)


def prose(seed: str) -> str:
    """About 600 characters that compress as a letter does: random words, always the same ones for the same seed."""
    chosen = random.Random(seed)  # noqa: S311 - no secret
    text = ""
    while len(text) < ANSWER_CHARACTERS:
        text += chosen.choice(_WORDS) + " "
    return text[:ANSWER_CHARACTERS]


def _latest_text(contents: Sequence[types.Content]) -> str:
    parts = [part for content in contents if content.role == "user" for part in content.parts or []]
    return [part.text for part in parts if part.text][-1]


def _order(text: str) -> str:
    found = re.search(r"A-\w+", text)
    return found[0] if found else "A-0"


def _arguments(tool: str, order: str) -> dict[str, Any]:
    more = {"add_note": {"text": "please ring twice"}, "send_invoice": {"amount": "149.90"}}
    return {"order_id": order, **more.get(tool, {})}


def _says(part: types.Part) -> LlmResponse:
    usage = types.GenerateContentResponseUsageMetadata(
        prompt_token_count=400, candidates_token_count=150, total_token_count=550
    )
    return LlmResponse(content=types.Content(role="model", parts=[part]), usage_metadata=usage)


LLMRegistry.register(Scripted)
