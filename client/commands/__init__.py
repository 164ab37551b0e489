"""The commands that talk to threads."""

from client.commands.answer import answer as answer
from client.commands.approvals import approvals as approvals
from client.commands.threads import threads as threads

__all__ = ["answer", "approvals", "threads"]
