"""A local model as a server in this process."""

from __future__ import annotations

import asyncio
import logging
import socket
import threading
from collections.abc import Coroutine, Sequence
from concurrent.futures import Future
from types import TracebackType
from typing import Any, Literal, Self, TypeVar

import uvicorn

from agentvisor.local_gemini.app import Model, build_app
from agentvisor.local_gemini.log import RequestLog, SeenRequest
from agentvisor.local_gemini.reply import ConnectionCutError
from agentvisor.local_gemini.script import Conversation, Said, Script

Value = TypeVar("Value")


class LocalGemini:
    """Serves a script on the loopback address, in a thread of its own, from `with` until its end.

    All methods may be called from any thread. Port 0 takes a free one.
    """

    def __init__(self, script: Script | None = None, *, port: int = 0, log_size: int = 2000) -> None:
        self._model = Model((script or Script()).conversations, RequestLog(log_size))
        self._port = port
        self._loop: asyncio.AbstractEventLoop | None = None
        self._server: uvicorn.Server | None = None
        self._thread: threading.Thread | None = None

    # ---- life ------------------------------------------------------------------------------------------------------

    def __enter__(self) -> Self:
        """Listen; the server answers when this returns. Raises OSError where the port is taken."""
        listener = socket.create_server(("127.0.0.1", self._port))
        self._port = listener.getsockname()[1]
        started = threading.Event()
        self._thread = threading.Thread(
            target=lambda: asyncio.run(self._serve(listener, started)), name="local-gemini", daemon=True
        )
        self._thread.start()
        started.wait()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, problem: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Stop, as `stop` does."""
        self.stop()

    def stop(self) -> None:
        """Stop at once. Replies that wait end as a server error, those that have begun as a broken connection."""
        if self._server and self._thread and self._thread.is_alive():
            self._in_loop(self._model.drop_replies()).result()
            self._server.should_exit = True
            self._thread.join()

    async def _serve(self, listener: socket.socket, started: threading.Event) -> None:
        self._loop = asyncio.get_running_loop()
        config = uvicorn.Config(
            build_app(self._model),
            access_log=False,
            lifespan="off",
            log_config=None,
            timeout_graceful_shutdown=1,
            ws="none",
        )
        self._server = uvicorn.Server(config)
        logging.getLogger("uvicorn.error").addFilter(_is_news)
        started.set()
        await self._server.serve([listener])

    # ---- use -------------------------------------------------------------------------------------------------------

    @property
    def url(self) -> str:
        """Base URL for clients."""
        return f"http://127.0.0.1:{self._port}"

    def env(self) -> dict[str, str]:
        """The environment in which google-genai and ADK talk to this server."""
        return {"GOOGLE_GEMINI_BASE_URL": self.url, "GOOGLE_API_KEY": "local", "GOOGLE_GENAI_USE_ENTERPRISE": "false"}

    def script(
        self,
        turns: Sequence[Said | Sequence[Said]],
        *,
        user: str = "",
        at: Literal["last", "first", "any"] = "last",
        system: str | None = None,
        name: str = "",
        repeat: bool = False,
    ) -> None:
        """Add a conversation after those already there; fields as in a script file.

        A sequence within `turns` holds alternatives.
        """
        raw = {"turns": turns, "user": user, "at": at, "system": system, "name": name, "repeat": repeat}
        self._model.conversations += (Conversation.model_validate(raw),)

    def requests(self, since: int = 0) -> list[SeenRequest]:
        """The requests seen after number `since`, in order of arrival."""
        return self._model.log.since(since)

    def release(self, name: str) -> None:
        """Let go what is held under this name, now and later."""
        self._in_loop(self._model.gates.release(name)).result()

    def close_gate(self, name: str) -> None:
        """Hold again what comes under this name."""
        self._in_loop(self._model.gates.close(name)).result()

    async def held(self, name: str, *, count: int = 1, timeout: float = 20.0) -> None:
        """Wait until exactly so many replies are held under this name. Raises TimeoutError."""
        waiting = self._in_loop(self._model.gates.until_held(name, count))
        await asyncio.wait_for(asyncio.wrap_future(waiting), timeout)

    def _in_loop(self, work: Coroutine[Any, Any, Value]) -> Future[Value]:
        assert self._loop, "the server runs inside `with` only"
        return asyncio.run_coroutine_threadsafe(work, self._loop)


def _is_news(record: logging.LogRecord) -> bool:
    """A connection that was cut because the script says so is not worth an error with a traceback."""
    return not (record.exc_info and isinstance(record.exc_info[1], ConnectionCutError))
