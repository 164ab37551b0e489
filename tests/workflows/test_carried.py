from __future__ import annotations

import random
from typing import Any

import pytest

from tests.workflows.adk_events import event, text
from tests.workflows.threads import carried, send, thread
from workflows.approvals import Refused
from workflows.messages import StartThread
from workflows.thread_state import ThreadState


@pytest.mark.parametrize("value", ["garbage", "", 5, {}, [], "VPa!scgqMAc}Z"])
def test_what_no_thread_carried_is_refused(value: Any) -> None:
    with pytest.raises(Refused) as refused:
        ThreadState.begin(StartThread(agent="helper", carried=value))
    assert refused.value.kind == "malformed"


def test_a_thread_that_cannot_be_carried_is_full_until_it_is_cleared() -> None:
    state = thread()
    noise = random.Random(1).randbytes(2_000_000).hex()
    state.append([event("e1", text(noise))])
    assert state.carried() is None
    send(state, "r1")
    assert [record.error and record.error.code for record in state.records] == ["thread-full"]
    state.clear()
    send(state, "r2")
    assert [queued.run_id for queued in carried(state).queue] == ["r2"]
