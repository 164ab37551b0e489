"""One project with an agent for every shape that a thread may host."""

# pyright: reportDeprecated=false, reportMissingImports=false, reportUnknownVariableType=false
# pyright: reportUnknownLambdaType=false
from __future__ import annotations

import asyncio
import time
from typing import Any

from effects_client import areport, report
from google.adk.agents import LlmAgent, LoopAgent, ParallelAgent, SequentialAgent
from google.adk.auth import AuthConfig
from google.adk.auth.auth_credential import AuthCredential, AuthCredentialTypes, OAuth2Auth
from google.adk.auth.auth_schemes import CustomAuthScheme
from google.adk.tools import FunctionTool, LongRunningFunctionTool
from google.adk.tools import ToolContext as AdkToolContext
from google.adk.workflow import START, Workflow

from agent_adapter import ToolContext, ToolError, ToolRegistry
from agent_adapter.integrations.adk import adk_tools, is_waiting
from agentvisor.adk import current, register_agent

registry = ToolRegistry()


@registry.tool(effect="read")
async def lookup(order: str) -> dict[str, Any]:
    """Look up an order."""
    await areport("lookup", order)
    return {"order": order, "total": 149}


@registry.tool(confirm=True, summary=lambda arguments: f"pay {arguments['order']}")
async def pay(order: str, amount: int, context: ToolContext) -> dict[str, Any]:
    """Pay an order."""
    context.state["paid"] = [*context.state.get("paid", []), order]
    await areport("pay", [order, amount])
    return {"paid": order, "amount": amount, "key": context.idempotency_key, "by": current().principal}


@registry.tool
def note(order: str) -> dict[str, Any]:
    """Write a note: a write that needs no approval."""
    report("note", order)
    return {"noted": order}


@registry.tool(idempotent=True)
async def book(order: str, context: ToolContext) -> str:
    """Book an order under the key of the call."""
    await areport("book", {"order": order, "key": context.idempotency_key})
    return "booked"


@registry.tool(confirm=True)
async def slow_write(order: str) -> str:
    """Take an order slowly."""
    await areport("slow_write", order)
    return order


@registry.tool(confirm=True)
def slow_sync_write(order: str) -> str:
    """Take an order slowly, in a thread."""
    report("slow_sync_write", order)
    return order


@registry.tool(confirm=True, probe=lambda context: {"outcome": "done", "result": {"found": context.idempotency_key}})
def probed(order: str) -> str:
    """A write whose outcome can be looked up."""
    raise ToolError(f"no such order: {order}")


def refund(order: str, amount: int, tool_context: AdkToolContext) -> dict[str, Any]:
    """Refund: a plain ADK tool that is gated."""
    tool_context.state["refunded"] = order
    report("refund", [order, amount])
    return {"refunded": order, "amount": amount}


def over_ten(order: str, amount: int) -> bool:
    """A plain confirmation rule; a negative amount breaks it."""
    if amount < 0:
        raise RuntimeError("secret in an exception")
    return amount > 10


def credit(order: str, amount: int) -> dict[str, Any]:
    """Credit: gated by a rule."""
    report("credit", [order, amount])
    return {"credited": order}


def ask_warehouse(order: str) -> None:
    """Ask the warehouse; the answer comes later."""
    report("ask_warehouse", order)


def remember(order: str, tool_context: AdkToolContext) -> str:
    """Keep something for this run only, and something for ever."""
    tool_context.state["temp:order"] = order
    tool_context.state["kept"] = order
    return "remembered"


def fragile(order: str) -> str:
    """Always raises."""
    raise OSError(f"secret-{order}")


async def cancels_itself(order: str) -> str:
    """Raises CancelledError though nobody cancelled it."""
    raise asyncio.CancelledError


def exits(order: str) -> str:
    """Tries to end the process."""
    raise SystemExit(3)


def odd_state(order: str, tool_context: AdkToolContext) -> str:
    """Writes state that cannot be stored, and some that can."""
    tool_context.state["odd"] = object()
    tool_context.state["good"] = order
    return "wrote"


def sleeps(order: str) -> str:
    """Blocks its thread for two seconds."""
    report("sleeps", order)
    time.sleep(2)
    return "slept"


async def waits(order: str) -> str:
    """Waits as long as the test wants."""
    try:
        await areport(f"{order}.waits")
    except asyncio.CancelledError:
        report(f"{order}.waits_cancelled")
        raise
    return "waited"


def asks_credential(order: str, tool_context: AdkToolContext) -> dict[str, Any]:
    """Asks the user for a credential."""
    scheme = CustomAuthScheme(type="custom")
    credential = AuthCredential(
        auth_type=AuthCredentialTypes.OAUTH2, oauth2=OAuth2Auth(client_id="id", client_secret="very-secret")
    )
    tool_context.request_credential(AuthConfig(auth_scheme=scheme, raw_auth_credential=credential))
    return {"status": "needs a credential"}


seen: list[Any] = []


def after_tool(tool: Any, args: Any, tool_context: AdkToolContext, tool_response: Any) -> None:
    """Tells the effect counter which responses callbacks see, waiting ones apart."""
    del args
    if tool.name in {"pay", "refund"}:
        report(f"after_{tool.name}", ["waiting" if is_waiting(tool_context) else "done", tool_response])


def tools() -> list[Any]:
    return [
        *adk_tools(registry),
        FunctionTool(refund, require_confirmation=True),
        FunctionTool(credit, require_confirmation=over_ten),
        LongRunningFunctionTool(ask_warehouse),
        remember,
        fragile,
        cancels_itself,
        exits,
        odd_state,
        sleeps,
        waits,
        asks_credential,
    ]


MODEL = "gemini-2.5-flash"


def agent(name: str, **more: Any) -> LlmAgent:
    return LlmAgent(
        name=name, model=MODEL, description=f"{name} helps.", instruction=f'Be "{name}".', tools=tools(), **more
    )


register_agent(agent("single", after_tool_callback=after_tool))
register_agent(LlmAgent(name="chief", model=MODEL, sub_agents=[agent("worker")]))
register_agent(LlmAgent(name="task_chief", model=MODEL, sub_agents=[agent("task_worker", mode="task")]))
register_agent(LlmAgent(name="turn_chief", model=MODEL, sub_agents=[agent("turn_worker", mode="single_turn")]))
register_agent(
    SequentialAgent(
        name="chain",
        sub_agents=[
            agent("first", output_key="temp:first_said"),
            LlmAgent(name="second", model=MODEL, instruction="The first one said <{temp:first_said?}>.", tools=tools()),
        ],
    )
)
register_agent(LoopAgent(name="circle", sub_agents=[agent("round")], max_iterations=2))
register_agent(
    Workflow(
        name="flowing",
        edges=[
            (START, source := agent("source")),
            (source, LlmAgent(name="sink", model=MODEL, instruction='Be "sink".')),
        ],
    )
)
register_agent(ParallelAgent(name="pair", sub_agents=[agent("left"), agent("right")]))
