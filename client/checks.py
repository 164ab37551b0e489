"""What is refused before anything is sent."""

from __future__ import annotations

import re
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from typing import Any, TypeVar

from pydantic import ValidationError

from client.errors import InvalidThreadId, InvalidValue, Refused, TooLarge
from workflows import door
from workflows.approvals import Refused as RuleBroken
from workflows.messages import THREAD_ID, Json, JsonObject, Message, RunRequest, StartThread

M = TypeVar("M", bound=Message)

_THREAD_ID = re.compile(THREAD_ID)


def checked_thread_id(thread_id: str) -> str:
    """The id; InvalidThreadId unless it is one."""
    if not _THREAD_ID.fullmatch(thread_id):
        raise InvalidThreadId(thread_id)
    return thread_id


def checked_run(message: Json, *, run_id: str, state_delta: Mapping[str, Any]) -> RunRequest:
    """The run to queue; TooLarge, InvalidValue or Refused for what no run could take."""
    request = built(RunRequest, run_id=run_id, message=message, state_delta=dict(state_delta))
    payload(request)
    with _rules():
        door.user_message(message)
        door.check_state(state_delta, what="state_delta")
    return request


def checked_state(values: Mapping[str, Any]) -> None:
    """TooLarge, InvalidValue or Refused (state-refused) for values no state could hold."""
    _sized(dict(values))
    with _rules():
        door.check_state(values)


def checked_start(**fields: Any) -> StartThread:
    """The input of a new thread."""
    start = built(StartThread, **fields)
    payload(start)
    with _rules():
        door.check_state(start.state)
        door.check_json(start.metadata, what="metadata", kind="metadata-refused")
    return start


def built(message_type: type[M], /, **fields: Any) -> M:
    """The message; InvalidValue says which field is wrong."""
    try:
        return message_type(**fields)
    except ValidationError as problem:
        first = problem.errors(include_url=False, include_input=False, include_context=False)[0]
        where = ".".join(map(str, first["loc"]))
        raise InvalidValue(f"{where or message_type.__name__}: {first['msg']}. Mend that and send it again.") from None


def payload(message: Message | JsonObject) -> JsonObject:
    """The message as the JSON that is sent. TooLarge above 1 MiB: a bigger update would jam the thread."""
    try:
        fields = message.model_dump(mode="json") if isinstance(message, Message) else message
    except ValueError as problem:  # pydantic's own: bytes that are no text, cycles, foreign types
        raise InvalidValue(f"It cannot be sent as JSON: {str(problem)[:200]}. Use JSON values only.") from None
    _sized(fields)
    return fields


def _sized(value: Any) -> None:
    try:
        size = door.json_bytes(value)
    except (TypeError, ValueError, RecursionError) as problem:
        raise InvalidValue(f"It cannot be sent as JSON: {str(problem)[:200]}. Use JSON values only.") from None
    if size > door.MAX_BYTES:
        raise TooLarge(
            f"It has {size} bytes as JSON; {door.MAX_BYTES} are allowed. Store it elsewhere and send a link."
        )


@contextmanager
def _rules() -> Generator[None]:
    try:
        yield
    except RuleBroken as broken:
        raise Refused(broken.kind, str(broken)) from None
