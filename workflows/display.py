"""What the Web UI shows of a thread: details in Markdown, summaries, values of search attributes. Pure.

Arguments of a call that waits are shown on purpose: a person decides about exactly these. Nothing else of the
conversation, and no token, stands here.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from string import punctuation

from workflows.messages import Interrupt

MAX_TOOLS = 10
MAX_NAME = 64
_MAX_NAME_JSON = 180
"""Bytes of one name in PendingTools: the server terminates a workflow that sets a value of more than 2,048."""
_MAX_JSON = 2000
_WORDS = {
    "approval": "Waits for a decision",
    "input": "Waits for input",
    "long_running": "Waits for a long-running tool",
    "unknown_outcome": "Nobody knows whether this call took effect",
}
_FENCE = "```"
_WHERE = "(*More Actions*, *Send an Update*)"


def details(waiting: Sequence[Interrupt]) -> str:
    """Markdown: what waits, since when, until when, and the exact JSON to send."""
    return "\n\n".join(_one(interrupt) for interrupt in waiting)


def pending_tools(waiting: Sequence[Interrupt]) -> list[str]:
    """Value of the search attribute PendingTools: names of the tools, each once, cut to what the server takes."""
    names = list(dict.fromkeys(_short(_name(interrupt.tool)) for interrupt in waiting))
    return names[:MAX_TOOLS]


def approval_summary(tool: str, approval_id: str) -> str:
    """Label of the timer that bounds an approval."""
    return f"approval of {tool[:MAX_NAME]} ({approval_id})"


def call_summary(tool: str, summary: str | None) -> str:
    """Label of the activity that makes a call."""
    return f"{tool[:MAX_NAME]}: {summary}"[:200] if summary else tool[:MAX_NAME]


def _one(interrupt: Interrupt) -> str:
    paragraphs = [
        f"### {_WORDS[interrupt.kind]}: `{_name(interrupt.tool)}` ({interrupt.id})",
        *(_plain(text) for text in (interrupt.summary, interrupt.detail) if text),
        f"Since {_time(interrupt.since)}, {_until(interrupt)}. Arguments:",
        _fenced(interrupt.arguments),
        *(_decide(interrupt) if interrupt.kind == "approval" else _answer(interrupt)),
    ]
    return "\n\n".join(paragraphs)


def _decide(interrupt: Interrupt) -> Iterator[str]:
    yield f"Send the update `decide` {_WHERE}. To approve:"
    yield _sent(approval_id=interrupt.id, approved=True)
    yield "To deny:"
    yield _sent(approval_id=interrupt.id, approved=False, reason="…")
    if interrupt.editable:
        args = interrupt.arguments if len(_json(interrupt.arguments)) <= _MAX_JSON else {"…": "…"}
        yield "To approve other arguments in place of these:"
        yield _block(_json({"approval_id": interrupt.id, "approved": True, "edited_args": args}))


def _answer(interrupt: Interrupt) -> Iterator[str]:
    yield f"Send the update `answer` {_WHERE}."
    if interrupt.kind == "input":
        yield _sent(interrupt_id=interrupt.id, kind="input", value="…")
    elif interrupt.kind == "long_running":
        yield _sent(interrupt_id=interrupt.id, kind="long_running", result={}, final=True)
    else:
        yield "It took effect, with this result:"
        yield _sent(interrupt_id=interrupt.id, kind="done", result={})
        yield "It did not take effect:"
        yield _sent(interrupt_id=interrupt.id, kind="not_done", reason="…")
        yield "It did not, and shall be made again:"
        yield _sent(interrupt_id=interrupt.id, kind="run_again")


def _name(tool: str) -> str:
    return "".join(letter if letter.isprintable() and letter != "`" else "?" for letter in tool[:MAX_NAME])


def _short(name: str) -> str:
    while len(json.dumps(name)) > _MAX_NAME_JSON:
        name = name[:-1]
    return name


def _until(interrupt: Interrupt) -> str:
    return f"until {_time(interrupt.deadline)}" if interrupt.deadline else "without a deadline"


def _time(iso: str) -> str:
    return f"{iso[:10]} {iso[11:19]} UTC"


def _plain(text: str) -> str:
    """Text that may hold the model's words: no Markdown of its own, so that it cannot pass for ours."""
    line = " ".join(text[:_MAX_JSON].split())
    return "".join("\\" + letter if letter in punctuation else _visible(letter) for letter in line)


def _sent(**fields: object) -> str:
    """JSON to send, on one line: a triple click selects it."""
    return _block(json.dumps(fields, ensure_ascii=False, default=str))


def _fenced(value: object) -> str:
    text = _json(value)
    return _block(text if len(text) <= _MAX_JSON else text[:_MAX_JSON] + "\n… (cut; the query `interrupts` has all)")


def _json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, indent=2, default=str)


def _block(text: str) -> str:
    shown = "".join(letter if letter == "\n" else _visible(letter) for letter in text)
    harmless = shown.replace(_FENCE, r"\u0060" * 3)
    return f"{_FENCE}json\n{harmless}\n{_FENCE}"


def _visible(letter: str) -> str:
    """Letters that cannot be seen, or turn the direction of others, as escapes: the same value in JSON."""
    return letter if letter.isprintable() else json.dumps(letter)[1:-1]
