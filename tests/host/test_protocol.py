"""What a guest says is taken only in a form that a thread can keep."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import ValidationError

from agentvisor.protocol import EventNote, Spent


@pytest.mark.parametrize("event", [{}, {"id": ""}, {"id": None}, {"id": 5}, {"id": ["e1"]}])
def test_an_event_without_an_id_is_none(event: dict[str, Any]) -> None:
    with pytest.raises(ValidationError, match="an event has an id"):
        EventNote(event=event)


@pytest.mark.parametrize("cost", [float("inf"), float("nan"), -1.0, 1e308])
def test_what_was_used_is_a_number_that_can_be_added(cost: float) -> None:
    spent = Spent(cost=cost, tokens=-5, model_calls=10**400)
    assert 0 <= spent.cost <= 10**15
    assert (spent.tokens, spent.model_calls) == (0, 10**15)
