"""Temporal's ADK plugin, 0.0.1. `make bench` alone installs it: no type checker sees it, and none has to."""

from __future__ import annotations

import importlib
from typing import Any

from agentvisor.adk.runner import mend_repeated_import

mend_repeated_import()  # for the plugin, too: before ADK is imported

google_adk: Any = importlib.import_module("temporalio.google_adk")
activity_as_tool: Any = importlib.import_module("temporalio.google_adk.workflow").activity_as_tool
