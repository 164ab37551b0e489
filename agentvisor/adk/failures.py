"""Why a leg cannot go on: stable codes, and texts for people that hold no secret and no text of unknown exceptions."""

from __future__ import annotations

import os

from google.genai.errors import APIError

from agentvisor.protocol import LegFailed
from agentvisor.redaction import without_secrets

_BUGS = (ValueError, TypeError, LookupError, AttributeError, NotImplementedError, AssertionError, ImportError)
_TEXT = 600


def model_failure(error: BaseException) -> LegFailed:
    """What became of a model call that raised. Retryable: overload, server faults, the network."""
    status = _status(error)
    if isinstance(error, APIError):
        said = f"{error.code} {error.status or ''}".strip()
        text = f"The model answered {said}: {_told(error.message or 'no reason given')}"
    else:
        text = f"The model call failed with {type(error).__name__}. The guest's log holds the cause."
    transient = _is_transient(error) or (status is None and not isinstance(error, _BUGS))
    way_out = "Another attempt may succeed." if transient else "Check the agent's model name, request and credentials."
    return LegFailed(code="model-error", message=f"{text.rstrip('.')}. {way_out}", retryable=transient)


def stopped_model(code: str, message: str | None, author: str) -> LegFailed:
    """A model turn that ended without an answer: blocked, cut, or empty."""
    reason = f"{code}: {_told(message)}" if message else code
    empty = code in {"MODEL_RETURNED_NO_CONTENT", "MALFORMED_FUNCTION_CALL"}
    way_out = "Another attempt may succeed." if empty else "Change the request or the agent's safety settings."
    text = f"The model of {author!r} stopped without an answer ({reason.rstrip('.')}). {way_out}"
    return LegFailed(code="model-stopped", message=text, retryable=empty)


def agent_failure(error: BaseException) -> LegFailed:
    """An exception out of the agent's own code or out of ADK."""
    cause = root_cause(error)
    text = f"The agent's code failed with {type(cause).__name__}. The guest's log holds the cause."
    return LegFailed(code="agent-error", message=text, retryable=_is_transient(cause))


def error_text(code: str, text: str) -> str:
    """What an error event may say. ADK gives those of exceptions the name of the class as code, and all of the text."""
    is_of_an_exception = code.isidentifier() and code != code.upper()
    return f"It failed with {code}. The guest's log holds the cause." if is_of_an_exception else _told(text)


def root_cause(error: BaseException) -> BaseException:
    """ADK wraps what a plugin raises."""
    causes = [error]
    while (cause := causes[-1].__cause__) is not None and cause not in causes:
        causes.append(cause)
    return causes[-1]


def chain(error: BaseException) -> list[BaseException]:
    """An exception and what it was raised from or in, each once: ADK's chains have rings."""
    found: list[BaseException] = []
    following: BaseException | None = error
    while following is not None and following not in found:
        found.append(following)
        following = following.__cause__ or following.__context__
    return found


def _told(text: str) -> str:
    return without_secrets(text, os.environ)[:_TEXT]


def _status(error: BaseException) -> int | None:
    for name in ("code", "status_code", "status"):
        value = getattr(error, name, None)
        if isinstance(value, int) and not isinstance(value, bool):
            return value
    return None


def _is_transient(error: BaseException) -> bool:
    status = _status(error)
    if status is not None:
        return status in {408, 425, 429} or status >= 500
    network = type(error).__module__.partition(".")[0] in {"httpx", "httpcore", "aiohttp"}
    return network or isinstance(error, OSError | TimeoutError)
