"""One reply on its way: it waits, streams and fails as its turn says."""

from __future__ import annotations

import asyncio
import json
from typing import Protocol

from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from agentvisor.local_gemini import wire
from agentvisor.local_gemini.gates import Gates
from agentvisor.local_gemini.history import JsonObject
from agentvisor.local_gemini.script import Fault, Turn


class ConnectionCutError(ConnectionError):
    """The connection dies here: by the script, or because the server stops. Uvicorn closes it."""


class Ended(Protocol):
    """Told how a reply ended."""

    def __call__(self, *, ended: str, status: int | None = None) -> None:
        """`ended` and `status` as in SeenRequest."""


class ScriptedReply(Response):
    """Sends `body`, whole or as a stream, after what its turn waits for; or the fault instead."""

    def __init__(
        self,
        turn: Turn,
        *,
        body: JsonObject,
        fault: Fault | None,
        streamed: bool,
        gates: Gates,
        running: set[asyncio.Task[None]],
        ended: Ended,
    ) -> None:
        super().__init__()
        self._turn = turn
        self._whole = body
        self._fault = fault
        self._streamed = streamed
        self._gates = gates
        self._running = running
        self._ended = ended

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:  # noqa: ARG002 - ASGI's signature
        """Send it, unless the client hangs up first or the server stops."""
        sending = asyncio.ensure_future(self._send(send))
        leaving = asyncio.ensure_future(_hung_up(receive))
        self._running.add(sending)
        try:
            await asyncio.wait({sending, leaving}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            self._running.discard(sending)
            leaving.cancel()
            gone = not sending.done()
            sending.cancel()
        if gone:
            self._ended(ended="gone")
        elif sending.cancelled():
            raise ConnectionCutError
        else:
            sending.result()

    async def _send(self, send: Send) -> None:
        await asyncio.sleep(self._turn.delay)
        if self._turn.hold and not (self._streamed and self._turn.hold_after):
            await self._gates.pass_through(self._turn.hold)
        if self._fault:
            self._ended(status=self._fault.code or 200, ended="fault")
            await self._send_fault(send, self._fault)
        else:
            await self._send_reply(send, cut=None)
            self._ended(status=200, ended="answered")

    async def _send_fault(self, send: Send, fault: Fault) -> None:
        if fault.cut is not None:
            await self._send_reply(send, cut=fault.cut)
        elif fault.body is not None:
            kind = "text/event-stream" if self._streamed else "application/json"
            await _send_whole(send, fault.body.encode(), {"content-type": kind})
        else:
            headers = {"content-type": "application/json"}
            if fault.retry_after is not None:
                headers["retry-after"] = f"{fault.retry_after:g}"
            await _send_whole(send, _encoded(wire.fault_error(fault)), headers, code=fault.code or 500)

    async def _send_reply(self, send: Send, *, cut: int | None) -> None:
        if self._streamed:
            await self._send_frames(send, cut)
            return
        encoded, headers = _encoded(self._whole), {"content-type": "application/json"}
        if cut is None:
            await _send_whole(send, encoded, headers)
            return
        await _send_start(send, {**headers, "content-length": str(len(encoded))})
        await _send_some(send, encoded[: len(encoded) // 2])
        raise ConnectionCutError

    async def _send_frames(self, send: Send, cut: int | None) -> None:
        await _send_start(send, {"content-type": "text/event-stream"})
        for number, frame in enumerate(wire.frames(self._whole, chunks=self._turn.chunks)):
            if number == cut:
                break
            await self._between_frames(number)
            await _send_some(send, b"data: " + _encoded(frame) + b"\r\n\r\n")
        if cut is not None:
            raise ConnectionCutError
        await _send_some(send, b"", last=True)

    async def _between_frames(self, number: int) -> None:
        if number and number == self._turn.hold_after and self._turn.hold:
            await self._gates.pass_through(self._turn.hold)
        if number:
            await asyncio.sleep(self._turn.chunk_delay)


async def _hung_up(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass


async def _send_whole(send: Send, body: bytes, headers: dict[str, str], *, code: int = 200) -> None:
    await _send_start(send, {**headers, "content-length": str(len(body))}, code=code)
    await _send_some(send, body, last=True)


async def _send_start(send: Send, headers: dict[str, str], *, code: int = 200) -> None:
    pairs = [(name.encode("latin-1"), value.encode("latin-1")) for name, value in headers.items()]
    await send({"type": "http.response.start", "status": code, "headers": pairs})


async def _send_some(send: Send, body: bytes, *, last: bool = False) -> None:
    await send({"type": "http.response.body", "body": body, "more_body": not last})


def _encoded(value: JsonObject) -> bytes:
    return json.dumps(value, ensure_ascii=False).encode()
