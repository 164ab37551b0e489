"""What a model is shown of its calls: each has one response, in the very next content, in the order of the calls."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from google.genai import types
from hypothesis import given
from hypothesis import strategies as st

from agentvisor.adk.call_order import in_call_order

Turn = tuple[Sequence[int], Sequence[int], bool]


@st.composite
def turns(draw: st.DrawFn) -> Turn:
    """How many calls a turn makes; which of them were answered, in what order; whether the user speaks next."""
    calls = range(draw(st.integers(0, 4)))
    answered = draw(st.permutations(calls).flatmap(lambda order: st.integers(0, len(order)).map(lambda n: order[:n])))
    return calls, answered, draw(st.booleans())


def contents(said: Sequence[Turn], *, with_ids: bool) -> list[types.Content]:
    made: list[types.Content] = [types.Content(role="user", parts=[types.Part(text="go")])]
    for number, (calls, answered, speaks) in enumerate(said):
        names = {n: (f"{number}-{n}" if with_ids else None, f"tool_{n}") for n in calls}
        asked = [types.Part(function_call=types.FunctionCall(id=i, name=name)) for i, name in names.values()]
        made.append(types.Content(role="model", parts=asked or [types.Part(text="well")]))
        answers = [types.FunctionResponse(id=names[n][0], name=names[n][1], response={"result": n}) for n in answered]
        if answers:
            made.append(types.Content(role="user", parts=[types.Part(function_response=one) for one in answers]))
        if speaks or not answers:
            made.append(types.Content(role="user", parts=[types.Part(text="and")]))
    return made


@given(said=st.lists(turns(), max_size=4), with_ids=st.booleans())
def test_every_call_has_one_response_in_its_place(said: list[Turn], with_ids: bool) -> None:
    before = contents(said, with_ids=with_ids)
    shown = in_call_order(before)
    for content, following in pairwise(shown):
        calls = [part.function_call for part in content.parts or () if part.function_call]
        found = [part.function_response for part in following.parts or () if part.function_response]
        assert [(one.name, one.id) for one in found] == [(call.name, call.id) for call in calls]
    texts = [[part.text for content in told for part in content.parts or () if part.text] for told in (before, shown)]
    assert texts[0] == texts[1]
    given_answers = sum(len(answered) for _, answered, _ in said)
    answers = [part.function_response for one in shown for part in one.parts or () if part.function_response]
    assert sum("result" in (answer.response or {}) for answer in answers) == given_answers
    assert in_call_order(shown) == shown


def test_what_is_as_it_must_be_stays_the_same_object() -> None:
    before = contents([(range(2), [0, 1], True)], with_ids=True)
    assert all(one is other for one, other in zip(before, in_call_order(before), strict=True))
