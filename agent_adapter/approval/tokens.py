"""Secret one-use tokens: a decision that travels through a framework counts only with its token.

They live in the process that minted them.
"""

from __future__ import annotations

import hashlib
import secrets
import threading
from collections import OrderedDict

from agent_adapter.approval.decision import ApprovalDecision
from agent_adapter.approval.digest import digest
from agent_adapter.values import JsonObject


class TokenBook:
    """Tokens that were minted and not used yet; beyond `capacity` the oldest are void. Thread-safe.

    A token is bound to the run (in ADK: the invocation id), the call id, the tool and the validated arguments.
    """

    def __init__(self, *, capacity: int = 10_000) -> None:
        self._tokens: OrderedDict[str, tuple[str, ApprovalDecision]] = OrderedDict()
        self._capacity = capacity
        self._lock = threading.Lock()

    def mint(
        self, decision: ApprovalDecision, *, run: str, call: str, tool: str, fingerprint: str, arguments: JsonObject
    ) -> str:
        """A new token for an approved call: 256 random bits, URL-safe. Raises ValueError for a refusal."""
        if not decision.approved:
            msg = "only an approval has a token"
            raise ValueError(msg)
        token = secrets.token_urlsafe(32)
        with self._lock:
            self._tokens[_hidden(token)] = (digest([run, call, tool, fingerprint, arguments]), decision)
            while len(self._tokens) > self._capacity:
                self._tokens.popitem(last=False)
        return token

    def spend(
        self, token: object, *, run: str, call: str, tool: str, fingerprint: str, arguments: JsonObject
    ) -> ApprovalDecision | None:
        """The decision behind a token, once. None for a forged or spent one, and for another call's, which stays."""
        if not isinstance(token, str):
            return None
        bound_to = digest([run, call, tool, fingerprint, arguments])
        key = _hidden(token)
        with self._lock:
            bound, decision = self._tokens.get(key, (None, None))
            if bound != bound_to:
                return None
            del self._tokens[key]
        return decision


def _hidden(token: str) -> str:
    return hashlib.sha256(token.encode("utf-8", "surrogatepass")).hexdigest()


TOKENS = TokenBook()
"""The book of this process: who resolves a confirmation and the tool that runs after it need not know each other."""
