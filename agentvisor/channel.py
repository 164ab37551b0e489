"""Requests, answers and notes between two processes over one stream socket.

Both sides ask; many requests are in flight at once. A frame is a 4-byte big-endian length and a JSON array:

    ["ask", id, op, body, parent]   parent: the id of the request this one is made on behalf of, or null
    ["ok", id, body]                the answer
    ["err", id, kind, text]         the refusal
    ["note", id, body]              progress of request `id`, from the side that serves it; id 0: of the sender itself
    ["stop", id]                    the asker no longer wants the answer

What a nested request may do is decided by its parent on the serving side, never by its body. A peer that breaks the
protocol or floods the channel is cut off: the channel closes, its requests fail, nothing else does.
"""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import TypeVar, cast

import structlog
from pydantic import BaseModel, ValidationError

from agentvisor.frames import HEADER, Bounds, JsonObject, Refused, body_of, decode, encode

OnNote = Callable[[JsonObject], None]
Serve = Mapping[str, Callable[[JsonObject], Awaitable[BaseModel]]]
Answer = TypeVar("Answer", bound=BaseModel)

__all__ = ["Bounds", "Channel", "Gone", "Handler", "JsonObject", "OnNote", "Refused", "Request", "Serve"]

_TEXT = 4000
_NESTED = 16

log: structlog.stdlib.BoundLogger = structlog.get_logger(__name__)


class Gone(ConnectionError):
    """The other side has ended. `sent` is false only where not a byte of the request left this process."""

    def __init__(self, text: str, *, sent: bool) -> None:
        super().__init__(text)
        self.sent = sent


class Request:
    """A request being served: tell its asker about it, and ask back on its behalf."""

    __slots__ = ("_channel", "_spent", "id")

    def __init__(self, channel: Channel, id: int) -> None:  # noqa: A002 - the word of the frame
        self._channel, self.id, self._spent = channel, id, 0

    def note(self, model: BaseModel) -> None:
        """Send one note. Raises Refused: not JSON, or more than a request may send. Silent once the channel closed."""
        frame = encode(["note", self.id, body_of(model)], self._channel.bounds)
        self._spend(len(frame))
        self._channel.send(frame)

    async def ask(self, op: str, model: BaseModel, result: type[Answer]) -> Answer:
        """Ask the asker, who decides what this request may want."""
        return await self._channel.ask(op, model, result, parent=self)

    def _spend(self, size: int) -> None:
        limit = self._channel.bounds.per_request
        if self._spent + size > limit:
            raise Refused(
                "too-much", f"A request may send {limit} bytes of notes and no more. Send fewer or smaller ones."
            )
        self._spent += size


Handler = Callable[[str, JsonObject, Request], Awaitable[BaseModel]]


@dataclass
class _Asked:
    """A request of ours that waits for its answer."""

    answer: asyncio.Future[JsonObject]
    on_note: OnNote | None
    serve: Serve
    received: int = 0
    nested: set[asyncio.Task[BaseModel]] = field(default_factory=set[asyncio.Task[BaseModel]])


class Channel(asyncio.Protocol):
    """One end. `handler(op, body, request)` serves requests without a parent; `on_note` takes notes with id 0."""

    closed: asyncio.Future[None]
    """Done when the connection has ended, for whatever reason."""

    def __init__(self, handler: Handler | None, on_note: OnNote | None, bounds: Bounds) -> None:
        self.bounds = bounds
        self.on_note = on_note
        self.closed = asyncio.get_running_loop().create_future()
        self._handler = handler
        self._last_id = 0
        self._asked: dict[int, _Asked] = {}
        self._serving: dict[int, asyncio.Task[BaseModel]] = {}
        self._buffer = bytearray()
        self._writable = asyncio.Event()
        self._writable.set()
        self._stray, self._stray_since = 0, 0.0
        self._takers: dict[str, Callable[..., None]] = {
            "ask": self._wanted,
            "ok": self._settle,
            "err": self._refused,
            "note": self._noted,
            "stop": self._stop,
        }

    @classmethod
    async def over(
        cls,
        sock: socket.socket,
        handler: Handler | None = None,
        *,
        on_note: OnNote | None = None,
        bounds: Bounds | None = None,
    ) -> Channel:
        """The channel over one end of a socketpair, which it then owns."""
        sock.setblocking(False)
        loop = asyncio.get_running_loop()
        _, channel = await loop.create_unix_connection(lambda: cls(handler, on_note, bounds or Bounds()), sock=sock)
        return channel

    async def ask(
        self,
        op: str,
        model: BaseModel,
        result: type[Answer],
        *,
        on_note: OnNote | None = None,
        serve: Serve | None = None,
        parent: Request | None = None,
        patience: float = 0.0,
    ) -> Answer:
        """Ask and wait for the answer. `serve`: what the other side may ask back on behalf of this request.

        When cancelled, the other side is told to stop; an answer that still comes within `patience` seconds is
        returned, otherwise the cancellation goes on.
        Raises Refused (the other side's refusal, or `not-json`, `too-large`, `bad-answer`) and Gone.
        """
        self._last_id += 1
        id_ = self._last_id
        frame = encode(["ask", id_, op, body_of(model), parent.id if parent else None], self.bounds)
        if parent:
            parent._spend(len(frame))  # pyright: ignore[reportPrivateUsage]
        await self._until_writable(op)
        asked = _Asked(asyncio.get_running_loop().create_future(), on_note, serve or {})
        self._asked[id_] = asked
        try:
            self.send(frame)
            body = await self._answer(id_, asked, patience)
        finally:
            self._forget(id_)
        try:
            return result.model_validate(body)
        except ValidationError as problem:
            raise Refused(
                "bad-answer", f"The answer to {op!r} is no {result.__name__}: {problem.error_count()} errors."
            ) from problem

    def note(self, model: BaseModel) -> None:
        """A note about this process itself (id 0). Raises Refused where the message cannot be sent."""
        self.send(encode(["note", 0, body_of(model)], self.bounds))

    def send(self, frame: bytes) -> None:
        """Write an encoded frame; nothing happens once the channel closes."""
        if self._transport.is_closing():
            return
        self._transport.write(frame)
        if self._transport.get_write_buffer_size() > self.bounds.unread:
            self._cut_off("the other side does not read")

    def close(self) -> None:
        """End the connection after what was written."""
        self._transport.close()

    def abort(self) -> None:
        """End the connection at once."""
        self._transport.abort()

    # ---- asking ----------------------------------------------------------------------------------------------------

    async def _answer(self, id_: int, asked: _Asked, patience: float) -> JsonObject:
        try:
            await asyncio.wait([asked.answer])  # unlike `await`, leaves the future alone when it is cancelled
        except asyncio.CancelledError:
            self.send(encode(["stop", id_], self.bounds))
            if not patience:
                raise
            done, _ = await asyncio.wait([asked.answer], timeout=patience)
            if not done or _refused_as_cancelled(asked.answer):
                raise
        return asked.answer.result()

    async def _until_writable(self, op: str) -> None:
        while not self._writable.is_set() and not self.closed.done():
            waiting = asyncio.ensure_future(self._writable.wait())
            await asyncio.wait([waiting, self.closed], return_when=asyncio.FIRST_COMPLETED)
            waiting.cancel()
        if self.closed.done() or self._transport.is_closing():
            raise Gone(f"The other side had ended before {op!r} was sent.", sent=False)

    def _forget(self, id_: int) -> None:
        asked = self._asked.pop(id_)
        for task in asked.nested:
            task.cancel()
        if asked.answer.done():
            asked.answer.exception()  # it may come while its asker is being cancelled, and nobody looks

    # ---- asyncio.Protocol ------------------------------------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002 - the base class names it
        for asked in self._asked.values():
            if not asked.answer.done():
                asked.answer.set_exception(Gone("The other side ended before it answered.", sent=True))
        for task in self._serving.values():
            task.cancel()
        if not self.closed.done():
            self.closed.set_result(None)

    def pause_writing(self) -> None:
        self._writable.clear()

    def resume_writing(self) -> None:
        self._writable.set()

    def data_received(self, data: bytes) -> None:
        self._buffer += data
        at = 0
        while len(self._buffer) - at >= HEADER and not self._transport.is_closing():
            size = int.from_bytes(self._buffer[at : at + HEADER], "big")
            if size > self.bounds.frame:
                self._cut_off(f"a frame of {size} bytes")
            elif len(self._buffer) - at - HEADER < size:
                break
            else:
                self._received(self._buffer[at + HEADER : at + HEADER + size])
                at += HEADER + size
        del self._buffer[:at]

    def _cut_off(self, why: str) -> None:
        log.warning("channel.cut-off", why=why)
        self._transport.abort()

    # ---- receiving -------------------------------------------------------------------------------------------------

    def _received(self, data: bytearray) -> None:
        try:
            kind, *fields = decode(data)
        except ValueError as problem:
            self._cut_off(f"a malformed frame: {str(problem)[:100]}")
            return
        self._takers[kind](len(data) + HEADER, *fields)

    def _noted(self, size: int, id_: int, body: JsonObject) -> None:
        asked = self._asked.get(id_)
        if asked is None:
            self._count_stray(size)
            if id_ == 0:
                self._tell(self.on_note, body)
        elif self._count(asked, size) and not asked.answer.done() and not self._tell(asked.on_note, body):
            asked.answer.set_exception(Refused("bad-note", "A note of the other side has the wrong shape."))

    def _tell(self, on_note: OnNote | None, body: JsonObject) -> bool:
        try:
            if on_note:
                on_note(body)
        except Exception:
            log.exception("channel.bad-note")
            self._cut_off("a note of the wrong shape")
            return False
        return True

    def _settle(self, size: int, id_: int, value: JsonObject | Refused) -> None:
        asked = self._asked.get(id_)
        if asked is None or asked.answer.done():
            self._count_stray(size)
        elif isinstance(value, Refused):
            asked.answer.set_exception(value)
        else:
            asked.answer.set_result(value)

    def _refused(self, size: int, id_: int, kind: str, text: str) -> None:
        self._settle(size, id_, Refused(kind, text))

    def _count(self, asked: _Asked, size: int) -> bool:
        asked.received += size
        if asked.received > self.bounds.per_request:
            self._cut_off("more notes than a request may send")
            return False
        return True

    def _count_stray(self, size: int) -> None:
        now = asyncio.get_running_loop().time()
        if now - self._stray_since > self.bounds.stray_seconds:
            self._stray, self._stray_since = 0, now
        self._stray += size
        if self._stray > self.bounds.stray:
            self._cut_off("a flood of frames that belong to no request")

    # ---- serving ---------------------------------------------------------------------------------------------------

    def _wanted(self, size: int, id_: int, op: str, body: JsonObject, parent: int | None) -> None:
        if id_ in self._serving:
            self._cut_off("a second request with the id of an open one")
        elif parent is not None:
            self._wanted_for(size, id_, op, body, self._asked.get(parent))
        elif self._handler:
            self._start(id_, op, partial(self._handler, op, body, Request(self, id_)))
        else:
            self._refuse_stray(id_, op, size)

    def _wanted_for(self, size: int, id_: int, op: str, body: JsonObject, parent: _Asked | None) -> None:
        if parent is None or op not in parent.serve:
            self._refuse_stray(id_, op, size)
        elif len(parent.nested) >= _NESTED:
            self._cut_off("more nested requests at once than a request may have")
        elif self._count(parent, size):
            task = self._start(id_, op, partial(parent.serve[op], body))
            parent.nested.add(task)
            task.add_done_callback(parent.nested.discard)

    def _refuse_stray(self, id_: int, op: str, size: int) -> None:
        self._count_stray(size)
        self.send(encode(["err", id_, "not-allowed", f"Nobody serves {op[:100]!r} here."], self.bounds))

    def _start(self, id_: int, op: str, work: Callable[[], Awaitable[BaseModel]]) -> asyncio.Task[BaseModel]:
        task = asyncio.ensure_future(_awaited(work))
        self._serving[id_] = task
        task.add_done_callback(lambda task: self._served(id_, op, task))
        return task

    def _served(self, id_: int, op: str, task: asyncio.Task[BaseModel]) -> None:
        del self._serving[id_]
        try:
            frame = encode(["ok", id_, body_of(task.result())], self.bounds)
        except (asyncio.CancelledError, Exception) as problem:  # noqa: BLE001 - the asker must learn of every failure
            refused = _as_refusal(op, problem)
            frame = encode(
                ["err", id_, refused.kind, refused.text[:_TEXT].encode(errors="replace").decode()], self.bounds
            )
        self.send(frame)

    def _stop(self, size: int, id_: int) -> None:
        if task := self._serving.get(id_):
            task.cancel()
        else:
            self._count_stray(size)


async def _awaited(work: Callable[[], Awaitable[BaseModel]]) -> BaseModel:
    return await work()


def _as_refusal(op: str, problem: BaseException) -> Refused:
    if isinstance(problem, Refused):
        return problem
    if isinstance(problem, asyncio.CancelledError):
        return Refused("cancelled", f"{op!r} was stopped.")
    if isinstance(problem, ValidationError):
        return Refused(
            "bad-request", f"{op!r} was asked with a body of the wrong shape: {problem.error_count()} errors."
        )
    log.error("channel.serving-failed", op=op, exc_info=problem)
    return Refused(
        "internal-error",
        f"{op!r} failed with {type(problem).__name__}. The log of the process that served it says more.",
    )


def _refused_as_cancelled(answer: asyncio.Future[JsonObject]) -> bool:
    problem = answer.exception()
    return isinstance(problem, Refused) and problem.kind == "cancelled"
