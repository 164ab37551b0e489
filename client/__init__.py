"""Talk to threads over a Temporal client."""

from client.listing import ListedThread as ListedThread
from client.listing import Waiting as Waiting
from client.thread import Thread as Thread
from client.thread_approvals import ThreadApprovals as ThreadApprovals
from client.threads import Threads as Threads

__all__ = ["ListedThread", "Thread", "ThreadApprovals", "Threads", "Waiting"]
