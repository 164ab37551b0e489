"""The HTTP side: Gemini's routes, and those for tests."""

from __future__ import annotations

import asyncio
import hashlib
import json
import re
from collections import Counter
from dataclasses import dataclass, field
from functools import partial

from pydantic import TypeAdapter, ValidationError
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from agentvisor.local_gemini import wire
from agentvisor.local_gemini.choice import Choice, NoAnswerError, choose
from agentvisor.local_gemini.gates import Gates
from agentvisor.local_gemini.history import JsonObject, contents_of, problems_of
from agentvisor.local_gemini.log import RequestLog
from agentvisor.local_gemini.reply import ScriptedReply
from agentvisor.local_gemini.script import Conversation, Fault
from agentvisor.local_gemini.templates import QuoteMissingError

_MODEL_PATH = re.compile(r"/models/(?P<model>[^/:]+):(?P<verb>generateContent|streamGenerateContent|countTokens)$")
_OBJECT: TypeAdapter[JsonObject] = TypeAdapter(JsonObject)


class RefusedError(ValueError):
    """A request that gets an error body."""

    def __init__(self, message: str, *, code: int = 400) -> None:
        super().__init__(message)
        self.code = code


@dataclass
class Model:
    """What the routes share. `conversations` may be replaced while the server runs."""

    conversations: tuple[Conversation, ...]
    log: RequestLog
    gates: Gates = field(default_factory=Gates)
    replies: set[asyncio.Task[None]] = field(default_factory=set[asyncio.Task[None]])
    """What is being sent."""
    failed: Counter[tuple[str, int]] = field(default_factory=Counter[tuple[str, int]])
    """How often each fault struck, by request digest and position among the turn's faults."""

    def next_fault(self, choice: Choice, body: JsonObject) -> Fault | None:
        """The fault that is due for this request, if one is."""
        asked = json.dumps([choice.conversation, choice.turn, contents_of(body)], sort_keys=True)
        digest = hashlib.sha256(asked.encode()).hexdigest()
        for position, fault in enumerate(choice.said.faults):
            key = (digest, position)
            if fault.times is None or self.failed[key] < fault.times:
                self.failed[key] += 1
                return fault
        return None

    async def drop_replies(self) -> None:
        """Cut the connections of all replies that are not finished."""
        for sending in self.replies:
            sending.cancel()


@dataclass(frozen=True)
class _Asked:
    """A request for one of Gemini's methods."""

    number: int
    model: str
    verb: str
    streams: bool
    body: JsonObject


def build_app(model: Model) -> Starlette:
    """The ASGI application of one local model."""
    return Starlette(
        routes=[
            Route("/_log", partial(_log, model), methods=["GET"]),
            Route("/_held", partial(_held, model), methods=["GET"]),
            Route("/_release/{name}", partial(_release, model), methods=["POST"]),
            Route("/_close/{name}", partial(_close, model), methods=["POST"]),
            Route("/{path:path}", partial(_gemini, model), methods=["GET", "POST"]),
        ]
    )


async def _log(model: Model, request: Request) -> Response:
    since = request.query_params.get("since", "0")
    if not since.isdigit():
        return _refusal(RefusedError(f"since={since!r} is no number. Give the number of the last request you know."))
    return JSONResponse(model.log.dump(int(since)))


async def _held(model: Model, _request: Request) -> Response:
    return JSONResponse(model.gates.held())


async def _release(model: Model, request: Request) -> Response:
    await model.gates.release(request.path_params["name"])
    return JSONResponse({})


async def _close(model: Model, request: Request) -> Response:
    await model.gates.close(request.path_params["name"])
    return JSONResponse({})


async def _gemini(model: Model, request: Request) -> Response:
    raw = await request.body()
    number = model.log.add(
        path=request.url.path,
        api_key=request.headers.get("x-goog-api-key") or request.query_params.get("key"),
        headers=dict(request.headers),
    )
    try:
        return _answer(model, _asked(model, request, raw, number))
    except RefusedError as refused:
        model.log.note(number, status=refused.code, ended="refused")
        return _refusal(refused)


def _refusal(refused: RefusedError) -> Response:
    return JSONResponse(wire.error(refused.code, str(refused)), status_code=refused.code)


def _asked(model: Model, request: Request, raw: bytes, number: int) -> _Asked:
    found = _MODEL_PATH.search(request.url.path)
    if request.method != "POST" or not found:
        raise RefusedError(f"{request.method} {request.url.path} is not served here.", code=404)
    try:
        body = _OBJECT.validate_json(raw)
    except ValidationError as problem:
        raise RefusedError("The body is no JSON object.") from problem
    asked = _Asked(number, found["model"], found["verb"], request.query_params.get("alt") == "sse", body)
    model.log.note(number, model=asked.model, verb=asked.verb, body=body)
    return asked


def _answer(model: Model, asked: _Asked) -> Response:
    contents = contents_of(asked.body)
    if asked.verb == "countTokens":
        model.log.note(asked.number, status=200, ended="answered")
        return JSONResponse({"totalTokens": wire.tokens_in(contents)})
    if problems := problems_of(contents):
        raise RefusedError(f"Gemini refuses such contents: {'; '.join(problems)}.")
    if asked.verb == "streamGenerateContent" and not asked.streams:
        raise RefusedError("Streams are served as server-sent events only. Add ?alt=sse.")
    return _scripted(model, asked)


def _scripted(model: Model, asked: _Asked) -> Response:
    try:
        choice = choose(model.conversations, asked.body)
        body = wire.reply(choice.said, choice.quotes, model=asked.model, contents=contents_of(asked.body))
    except NoAnswerError as problem:
        raise RefusedError(str(problem)) from problem
    except QuoteMissingError as problem:
        raise RefusedError(f"A template cannot be filled: {problem.args[0]}. Mend the script.") from problem
    model.log.note(asked.number, conversation=choice.conversation, turn=choice.turn)
    return ScriptedReply(
        choice.said,
        body=body,
        fault=model.next_fault(choice, asked.body),
        streamed=asked.verb == "streamGenerateContent",
        gates=model.gates,
        running=model.replies,
        ended=partial(model.log.note, asked.number),
    )
