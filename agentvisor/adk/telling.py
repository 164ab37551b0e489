"""Telling the host of events as they are stored, in an order from which another attempt can go on."""

from __future__ import annotations

from collections.abc import Callable

from google.adk.events import Event

from agentvisor.adk.events import asks_for_credential, confirmed_calls


class Telling:
    """What is told is progress, and two kinds of events are none yet.

    An *error event*: ADK stores it and then raises. As progress it would pass for the answer, so it is told when its
    branch goes on, or when the leg ends well. A *request for confirmation* that comes before the placeholder of its
    call: without that response ADK can never take the answer, so a crash between the two must repeat both.
    """

    def __init__(self, tell: Callable[[Event], None]) -> None:
        self._tell = tell
        self._errors: list[Event] = []
        self._waiting: list[Event] = []
        self._missing: set[str] = set()
        self._responses: set[str] = set()
        self.count = 0
        self.in_order = True
        """The host knows the events in the order in which they are stored here."""
        self.credential_asked = False

    @property
    def errors(self) -> list[Event]:
        """Error events after which their branch said nothing more."""
        return [event for event in self._errors if event.error_code]

    def stored(self, event: Event) -> None:
        """An event was appended to the session."""
        if self.credential_asked or asks_for_credential(event):
            self.credential_asked = True  # what follows belongs to a turn that must not be told
            self.in_order = False
        elif event.error_code or self._only_ends_what_failed(event):
            self._errors.append(event)
        else:
            self._release(event)
            self._in_pairs(event)

    def end_well(self) -> None:
        """Tell all that waits."""
        for event in [*self._waiting, *self._errors]:
            self._tell_now(event)
        self._waiting, self._errors = [], []

    def _only_ends_what_failed(self, event: Event) -> bool:
        """ADK notes the end of an agent also where its model failed. As progress it would say that the run is over."""
        says_nothing = event.content is None and event.output is None
        return says_nothing and any(_is_within(error.branch, event.branch) for error in self._errors)

    def _release(self, event: Event) -> None:
        """The branch of an error went on: the error is history."""
        followed = [error for error in self._errors if _is_within(error.branch, event.branch)]
        self._errors = [error for error in self._errors if error not in followed]
        self._waiting += followed
        self._flush()

    def _in_pairs(self, event: Event) -> None:
        answered = {response.id or "" for response in event.get_function_responses()}
        self._responses |= answered
        self._missing |= set(confirmed_calls(event)) - self._responses
        self._missing -= answered
        self._waiting.append(event)
        self._flush()

    def _flush(self) -> None:
        if not self._missing:
            for event in self._waiting:
                self._tell_now(event)
            self._waiting = []

    def _tell_now(self, event: Event) -> None:
        self.in_order = self.in_order and not self._errors
        self.count += 1
        self._tell(event)


def _is_within(branch: str | None, other: str | None) -> bool:
    """`branch` is `other` or lies below it."""
    return not other or branch == other or (branch or "").startswith(f"{other}.")
