"""What the Web UI shows of a thread: details in Markdown, summaries, values of search attributes. Pure.

Arguments of a call that waits are shown on purpose: a person decides about exactly these. Nothing else of the
conversation, and no token, stands here.
"""

from __future__ import annotations

import json
from collections.abc import Sequence

from workflows.messages import Interrupt, JsonObject

MAX_TOOLS = 10
MAX_NAME = 64
_MAX_ARGUMENTS = 2000

_ANSWERS: dict[str, tuple[str, JsonObject]] = {
    "input": ("answer", {"kind": "input", "value": "…"}),
    "long_running": ("answer", {"kind": "long_running", "result": {}, "final": True}),
    "unknown_outcome": ("answer", {"kind": "done", "result": {}}),
}


def details(waiting: Sequence[Interrupt]) -> str:
    """Markdown: what waits, since when, until when, and the exact JSON to send."""
    return "\n\n".join(_one(interrupt) for interrupt in waiting)


def pending_tools(waiting: Sequence[Interrupt]) -> list[str]:
    """Value of the search attribute PendingTools: names of the tools, each once, cut to what the server takes."""
    names = list(dict.fromkeys(interrupt.tool[:MAX_NAME] for interrupt in waiting))
    return names[:MAX_TOOLS]


def approval_summary(tool: str, approval_id: str) -> str:
    """Label of the timer that bounds an approval."""
    return f"approval of {tool[:MAX_NAME]} ({approval_id})"


def call_summary(tool: str, summary: str | None) -> str:
    """Label of the activity that makes a call."""
    return f"{tool[:MAX_NAME]}: {summary}"[:200] if summary else tool[:MAX_NAME]


def _one(interrupt: Interrupt) -> str:
    lines = [f"### {_title(interrupt)}", f"since {interrupt.since}, {_until(interrupt)}"]
    if interrupt.summary:
        lines.append(interrupt.summary)
    lines += [_fenced(interrupt.arguments), _how(interrupt)]
    return "\n\n".join(lines)


def _title(interrupt: Interrupt) -> str:
    words = {
        "approval": "Waits for a decision",
        "input": "Waits for input",
        "long_running": "Waits for a long-running tool",
        "unknown_outcome": "Nobody knows whether this call took effect",
    }
    return f"{words[interrupt.kind]}: {interrupt.tool[:MAX_NAME]} ({interrupt.id})"


def _until(interrupt: Interrupt) -> str:
    return f"until {interrupt.deadline}" if interrupt.deadline else "without a deadline"


def _how(interrupt: Interrupt) -> str:
    if interrupt.kind == "approval":
        yes = {"approval_id": interrupt.id, "approved": True}
        no = {"approval_id": interrupt.id, "approved": False, "reason": "…"}
        text = f"Send the update `decide` with one of\n\n{_fenced(yes)}\n\n{_fenced(no)}"
        return text + (
            "\n\n`edited_args` beside `approved: true` replaces the arguments." if interrupt.editable else ""
        )
    name, example = _ANSWERS[interrupt.kind]
    text = f"Send the update `{name}` with\n\n{_fenced({'interrupt_id': interrupt.id, **example})}"
    if interrupt.kind == "unknown_outcome":
        text += "\n\nKinds: `done` with the result, `not_done`, `run_again`."
    return text


def _fenced(value: object) -> str:
    text = json.dumps(value, ensure_ascii=False, indent=2, default=str)
    cut = text if len(text) <= _MAX_ARGUMENTS else text[:_MAX_ARGUMENTS] + "\n… (cut; the query `interrupts` has all)"
    return f"```json\n{cut.replace('```', '` ` `')}\n```"
