"""Which calls the threads of this worker have scheduled, and under which token: what needs no question then.

A call goes mostly to the worker whose thread has just scheduled it. What that worker saw is as good as what the thread
would answer to the query `grant`, and spares the round trip between a decision and its effect.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from typing import Any, cast

from temporalio import workflow
from temporalio.worker import (
    Interceptor,
    StartActivityInput,
    WorkflowInboundInterceptor,
    WorkflowInterceptorClassInput,
    WorkflowOutboundInterceptor,
)

with workflow.unsafe.imports_passed_through():
    from workflows.messages import Grant, RunTool

_MOST = 10_000
_NOTE = "agentvisor_note_scheduled_call"

Note = Callable[[str, str, Grant], None]


class ScheduledCalls(Interceptor):
    """Give it to the worker as an interceptor. The last 10,000 calls with a token are remembered, once each."""

    def __init__(self) -> None:
        self._grants: OrderedDict[tuple[str, str], Grant] = OrderedDict()

    def workflow_interceptor_class(self, input: WorkflowInterceptorClassInput) -> type[WorkflowInboundInterceptor]:  # noqa: A002 - the SDK's name
        cast("dict[str, Any]", input.unsafe_extern_functions)[_NOTE] = self.note
        return _Inbound

    def note(self, run_id: str, activity_id: str, grant: Grant) -> None:
        """An execution has scheduled a call."""
        self._grants[run_id, activity_id] = grant
        if len(self._grants) > _MOST:
            self._grants.popitem(last=False)

    def take(self, run_id: str, activity_id: str) -> Grant | None:
        """The token of the call that this execution scheduled under this activity id, for whoever asks first."""
        return self._grants.pop((run_id, activity_id), None)


class _Inbound(WorkflowInboundInterceptor):
    def init(self, outbound: WorkflowOutboundInterceptor) -> None:
        super().init(_Outbound(outbound))


class _Outbound(WorkflowOutboundInterceptor):
    def start_activity(self, input: StartActivityInput) -> workflow.ActivityHandle[Any]:  # noqa: A002 - the SDK's name
        call = input.args[0] if input.args else None
        if isinstance(call, RunTool) and call.grant and input.activity_id and not workflow.unsafe.is_replaying():
            note = cast("Note", workflow.extern_functions()[_NOTE])
            note(workflow.info().run_id, input.activity_id, call.grant)
        return super().start_activity(input)
