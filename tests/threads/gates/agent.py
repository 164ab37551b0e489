"""Tools whose approval port no thread asks, tools that cost, and code that fails with a secret text."""

from __future__ import annotations

import os
import signal
from typing import Any

from effects_client import areport, report
from google.adk.agents import LlmAgent
from google.adk.tools import FunctionTool, LongRunningFunctionTool
from google.adk.workflow import START, RetryConfig, Workflow

from agent_adapter import (
    Allow,
    ApprovalDecision,
    ApprovalRequest,
    CallableGuard,
    CallbackApproval,
    DeferredApproval,
    Executor,
    MemoryApprovalStore,
    ToolContext,
    ToolError,
    ToolRegistry,
)
from agent_adapter.guards import OutputGuard
from agent_adapter.integrations.adk import adk_tools
from agentvisor.adk import register_agent

MODEL = "gemini-2.5-flash"
SECRET = "what-only-the-log-may-hold"
Arguments = dict[str, Any]


def fail(mark: str, where: str) -> None:
    """Report that this place was reached, and raise."""
    report(f"{mark}.{where}")
    raise RuntimeError(SECRET, where)


# ---- ports of their own
deferred, asking = ToolRegistry(), ToolRegistry()


@deferred.tool(confirm=True)
async def pay(mark: str, amount: int) -> dict[str, Any]:
    """Pay; in plain ADK its decision is in a store."""
    return {"count": await areport(f"{mark}.pay", {"amount": amount})}


@asking.tool(confirm=True)
async def ship(mark: str) -> dict[str, Any]:
    """Ship; in plain ADK a function is asked."""
    return {"count": await areport(f"{mark}.ship")}


async def say_yes(request: ApprovalRequest) -> ApprovalDecision:
    """Approve whatever comes."""
    await areport(f"{request.arguments['mark']}.port")
    return ApprovalDecision(approved=True)


def refund(mark: str, amount: int) -> dict[str, Any]:
    """Refund; a plain function behind ADK's own confirmation."""
    return {"count": report(f"{mark}.refund", {"amount": amount})}


# ---- tools that cost
costly = ToolRegistry()


@costly.tool(effect="read", cost=1.0)
async def look(mark: str) -> dict[str, Any]:
    """Look."""
    return {"count": await areport(f"{mark}.look")}


@costly.tool(confirm=True, cost=1.0)
async def buy(mark: str) -> dict[str, Any]:
    """Buy; a person approves it."""
    return {"count": await areport(f"{mark}.buy")}


@costly.tool(cost=1.0)
async def crash(mark: str) -> dict[str, Any]:
    """Take effect, then end the process."""
    await areport(f"{mark}.crash")
    os.kill(os.getpid(), signal.SIGKILL)
    return {}


def ask_supplier(mark: str) -> None:
    """Start a question whose answer comes later."""
    report(f"{mark}.ask_supplier")


# ---- tools that fail
failing = ToolRegistry()


@failing.tool(effect="read")
async def reads(mark: str) -> None:
    """Fail in the turn."""
    fail(mark, "reads")


@failing.tool(effect="read")
def reads_in_thread(mark: str) -> None:
    """Fail in a thread of the turn."""
    fail(mark, "reads_in_thread")


@failing.tool
async def writes(mark: str) -> None:
    """Fail outside the turn."""
    fail(mark, "writes")


@failing.tool
def says_why(mark: str) -> None:
    """Fail with a text for the model, because of something else."""
    try:
        fail(mark, "says_why")
    except RuntimeError as problem:
        raise ToolError("The printer is out of paper.") from problem


@failing.tool
def exits(mark: str) -> None:
    """End more than itself."""
    report(f"{mark}.exits")
    raise SystemExit(SECRET)


class Unreadable:
    """A result whose author's code fails when it is written as JSON."""

    def __init__(self, mark: str) -> None:
        self.mark = mark

    def model_dump(self, **_: Any) -> None:
        fail(self.mark, "unreadable")

    def __repr__(self) -> str:
        return SECRET


@failing.tool(effect="read")
def unreadable(mark: str) -> Any:
    """Return what cannot be shown."""
    report(f"{mark}.unreadable")
    return Unreadable(mark)


def _guard(arguments: Arguments, _context: ToolContext) -> Allow:
    fail(arguments["mark"], "guarded")
    return Allow()


@failing.tool(guards=[CallableGuard(_guard)])
def guarded(mark: str) -> str:
    """Never run: its guard fails."""
    return f"{mark} {report(f'{mark}.never')}"


class FailingOutput(OutputGuard):
    """Fails on what it should look at."""

    async def check_output(self, spec: Any, result: Any, context: ToolContext) -> Allow:
        fail(str(result), "withheld")
        return Allow()


@failing.tool(effect="read", guards=[FailingOutput()])
def withheld(mark: str) -> str:
    """Run, and its result is withheld."""
    return mark


def _rule(arguments: Arguments, _context: ToolContext) -> bool:
    fail(arguments["mark"], "ruled")
    return True


@failing.tool(confirm=_rule)
def ruled(mark: str) -> str:
    """Never run: its rule fails."""
    return f"{mark} {report(f'{mark}.never')}"


def _summary(arguments: Arguments) -> str:
    fail(arguments["mark"], "summed_up")
    return ""


@failing.tool(confirm=True, summary=_summary)
def summed_up(mark: str) -> str:
    """Be approved without a summary."""
    return f"{mark} is fine"


def _probe(context: ToolContext) -> bool:
    fail(context.state["mark"], "probed")
    return False


@failing.tool(probe=_probe)
def probed(mark: str, context: ToolContext) -> None:
    """End the process; the probe fails, too."""
    os.kill(os.getpid(), signal.SIGKILL)


def plain_fails(mark: str) -> None:
    """Fail in the turn, as a plain function."""
    fail(mark, "plain_fails")


def plain_gated(mark: str) -> None:
    """Fail after a person approved it."""
    fail(mark, "plain_gated")


def plain_ruled(mark: str) -> str:
    """Never run: its rule fails."""
    return f"{mark} {report(f'{mark}.never')}"


def _plain_rule(mark: str) -> bool:
    fail(mark, "plain_ruled")
    return True


def agent(name: str, *tools: Any, **callbacks: Any) -> LlmAgent:
    """An agent that a script can speak for alone."""
    return register_agent(
        LlmAgent(name=name, model=MODEL, instruction=f"You are {name}.", tools=list(tools), **callbacks)
    )


def callback(name: str) -> Any:
    """A callback that fails when the user's words name it; its text would be the first thing a model reads."""

    def fails(*positional: Any, **named: Any) -> None:
        context = named.get("callback_context") or named.get("tool_context") or positional[0]
        mark, _, words = str(context.user_content.parts[0].text).partition(" ")
        if words == "go":
            fail(mark, name)

    return fails


def fails_once(callback_context: Any) -> None:
    """A callback that fails the first time; the workflow tries its agent again."""
    mark, _, words = str(callback_context.user_content.parts[0].text).partition(" ")
    if words == "go" and report(f"{mark}.fails_once") == 1:
        raise RuntimeError(SECRET)


CALLBACKS = (
    "before_agent_callback",
    "after_agent_callback",
    "before_model_callback",
    "after_model_callback",
    "before_tool_callback",
    "after_tool_callback",
)

root_agent = agent(
    "ports",
    *adk_tools(deferred, executor=Executor(deferred, approval=DeferredApproval(MemoryApprovalStore()))),
    *adk_tools(asking, executor=Executor(asking, approval=CallbackApproval(say_yes))),
    FunctionTool(refund, require_confirmation=True),
)
agent("spender", *adk_tools(costly), LongRunningFunctionTool(ask_supplier))
agent(
    "failing",
    *adk_tools(failing),
    plain_fails,
    FunctionTool(plain_gated, require_confirmation=True),
    FunctionTool(plain_ruled, require_confirmation=_plain_rule),
)
patient = LlmAgent(
    name="patient",
    model=MODEL,
    instruction="You are patient.",
    before_agent_callback=fails_once,
    retry_config=RetryConfig(max_attempts=2, initial_delay=0.01, jitter=0.0),
)
register_agent(Workflow(name="trying", edges=[(START, patient)]))
for kind in CALLBACKS:
    agent(kind, *adk_tools(costly), **{kind: callback(kind)})
