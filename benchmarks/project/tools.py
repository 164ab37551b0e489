"""The tools of the agent, as plain functions: here they are an adapter's tools, with the plugin its activities."""

from __future__ import annotations

import notes


async def find_order(order_id: str) -> dict[str, str]:
    """Look an order up."""
    return {"order_id": order_id, "status": "shipped", "total": "149.90"}


async def add_note(order_id: str, text: str) -> dict[str, str]:
    """Write a note on an order."""
    return {"order_id": order_id, "noted": text}


async def send_invoice(order_id: str, amount: str) -> dict[str, str]:
    """Send the invoice of an order."""
    notes.write(order_id, "invoice")
    return {"order_id": order_id, "sent": amount}
