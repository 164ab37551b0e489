"""A shop's helper: it reads orders by itself and sends an invoice only after a person has approved it."""

import os
from decimal import Decimal
from typing import Annotated, Any

from google.adk.agents import LlmAgent
from pydantic import BaseModel, Field

from agent_adapter import Allow, Block, CallableGuard, ToolContext, ToolError, ToolRegistry
from agent_adapter.integrations.adk import adk_tools
from agentvisor.adk import register_agent


class Order(BaseModel):
    """One order of the shop."""

    id: str
    customer: str
    email: str
    items: str
    total: str
    invoice: str | None = None


ORDERS = {
    order.id: order
    for order in (
        Order(id="A-1001", customer="Ana Moreno", email="ana@example.com", items="2 teapots", total="149.00"),
        Order(id="A-1002", customer="Ben Okafor", email="ben@example.com", items="1 kettle", total="89.50"),
        Order(
            id="A-1003",
            customer="Ana Moreno",
            email="ana@example.com",
            items="6 cups",
            total="54.00",
            invoice="INV-A-1003",
        ),
    )
}

OrderId = Annotated[str, Field(pattern=r"^[A-Z]-\d+$", description="Number of the order, like A-1001")]
Euros = Annotated[str, Field(pattern=r"^\d{1,6}\.\d\d$", description="Amount in euros as text, like 149.00")]

registry = ToolRegistry()


@registry.tool(effect="read")
def list_orders() -> dict[str, Any]:
    """List the orders that have no invoice yet."""
    return {"orders": [order.id for order in ORDERS.values() if order.invoice is None]}


@registry.tool(effect="read")
def find_order(order_id: OrderId) -> dict[str, Any]:
    """Look up one order: its customer, items, total in euros, and invoice if it has one."""
    return _order(order_id).model_dump()


def at_most_the_total(arguments: dict[str, Any], _context: ToolContext) -> Allow | Block:
    """Nobody is asked to approve an invoice that is higher than its order."""
    order = ORDERS.get(arguments["order_id"])
    if order and Decimal(arguments["amount"]) > Decimal(order.total):
        return Block(f"Order {order.id} comes to EUR {order.total}; an invoice may be lower, not higher.")
    return Allow()


def invoice_line(arguments: dict[str, Any]) -> str:
    """What the person who approves reads first."""
    return f"Invoice for order {arguments['order_id']} over EUR {arguments['amount']}"


@registry.tool(
    confirm=True,
    guards=[CallableGuard(at_most_the_total)],
    summary=invoice_line,
)
def send_invoice(order_id: OrderId, amount: Euros, context: ToolContext) -> dict[str, Any]:
    """Send the customer the invoice for an order. A person approves it first."""
    order = _order(order_id)
    number = f"INV-{order.id}"
    context.state["invoices"] = [*context.state.get("invoices", []), number]
    return {"number": number, "amount": amount, "sent_to": order.email}


def _order(order_id: str) -> Order:
    if order_id not in ORDERS:
        msg = f"There is no order {order_id}. list_orders names those without an invoice."
        raise ToolError(msg)
    return ORDERS[order_id]


root_agent = LlmAgent(
    name="shop_helper",
    model=os.environ.get("SHOP_HELPER_MODEL", "gemini-2.5-flash"),
    description="Looks up orders and sends invoices.",
    instruction=(
        "You help the people who run a small shop. Look orders up with your tools; never guess. To send an invoice, "
        "look the order up first and then call send_invoice with its total. Do not ask whether to send it: a person "
        "sees and approves every call of send_invoice. Say in one sentence what was done; if it was refused, why."
    ),
    tools=list(adk_tools(registry)),
)

register_agent(root_agent)
