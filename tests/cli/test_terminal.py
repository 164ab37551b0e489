"""What reaches the terminal: text of models and other people cannot do anything there."""

from __future__ import annotations

import json
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from client.commands.terminal import Terminal, one_line, shortened, visible


@given(st.text())
def test_no_control_or_formatting_character_is_printed(text: str) -> None:
    for shown, allowed in ((visible(text), "\n\t\u200c\u200d"), (one_line(text), "\u200c\u200d")):
        assert all(
            letter in allowed or unicodedata.category(letter) not in {"Cc", "Cf", "Cs", "Co", "Zl", "Zp"}
            for letter in shown
        )
        shown.encode()


@given(st.text(alphabet=st.characters(categories=["L", "N", "P", "S", "Zs"])))
def test_letters_signs_and_emoji_are_shown_as_they_are(text: str) -> None:
    assert visible(text) == one_line(text) == text


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("\x1b[2J\x1b]0;owned\x07", r"\x1b[2J\x1b]0;owned\x07"),
        ("safe\rEVIL", r"safe\rEVIL"),
        ("\u202egnp.exe", r"\u202egnp.exe"),
        ("\x9b31m", r"\x9b31m"),
        ("\ud800", r"\ud800"),
        ("two\nlines", "two\nlines"),
        ("[red]markup[/red] :smile:", "[red]markup[/red] :smile:"),
    ],
)
def test_what_would_move_the_cursor_is_spelt_out(text: str, shown: str) -> None:
    assert visible(text) == shown


@given(st.text(), st.integers(min_value=3, max_value=50))
def test_shortened_text_is_never_longer(text: str, length: int) -> None:
    assert len(shortened(text, length)) <= max(length, 3)


def test_a_table_in_a_pipe_is_plain_aligned_and_never_wrapped(capsys: pytest.CaptureFixture[str]) -> None:
    Terminal(as_json=False).table(("A", "B"), [("x" * 300, "[b]1\n2[/b]"), ("y", "3")])
    assert capsys.readouterr().out == f"A{' ' * 301}B\n{'x' * 300}  [b]1\\n2[/b]\ny{' ' * 301}3\n"


def test_json_is_ascii(capsys: pytest.CaptureFixture[str]) -> None:
    Terminal(as_json=True).json({"text": "é\x1b\u202e\U0001f600"})
    printed = capsys.readouterr().out
    assert printed.isascii()
    assert json.loads(printed) == {"text": "é\x1b\u202e\U0001f600"}
