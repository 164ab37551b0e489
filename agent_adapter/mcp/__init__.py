"""MCP servers as a source of tools. Needs the extra `mcp`."""

from agent_adapter.mcp.source import McpTools, add_mcp

__all__ = ["McpTools", "add_mcp"]
