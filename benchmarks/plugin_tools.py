"""The agent's tools as activities, which is how the plugin keeps what tools do out of the workflow."""

from __future__ import annotations

import tools
from temporalio import activity

find_order = activity.defn(tools.find_order)
add_note = activity.defn(tools.add_note)
send_invoice = activity.defn(tools.send_invoice)
