"""What is printed: plain text into files and pipes, tables and colours on a terminal, JSON for scripts.

Text of models, tools and other people is shown with its control characters spelt out: it can neither move the cursor
nor pass for something else.
"""

from __future__ import annotations

import json
import sys
import unicodedata
from collections.abc import Iterable, Sequence
from typing import Any, Literal, NoReturn, TextIO, cast

from rich.cells import cell_len
from rich.console import Console
from rich.table import Table
from rich.text import Text

Tone = Literal["", "bold", "dim", "green", "yellow", "red", "cyan"]

_UNBOUNDED = 10_000
_GAP = 2
_SPELT_OUT = frozenset({"Cc", "Cf", "Co", "Cs", "Zl", "Zp"})
_JOINERS = "\u200c\u200d"
"""Emoji and several scripts need them, and they move nothing."""


class _Console(Console):
    def on_broken_pipe(self) -> NoReturn:
        raise  # noqa: PLE0704 - rich calls this while it handles the BrokenPipeError


class Terminal:
    """Standard output for results, standard error for status and problems."""

    def __init__(self, *, as_json: bool) -> None:
        self.as_json = as_json
        self._out = _console(sys.stdout)
        self._err = _console(sys.stderr)

    @property
    def is_live(self) -> bool:
        """Somebody watches: status may come and go."""
        return self._err.is_terminal and not self.as_json

    @property
    def status_console(self) -> Console:
        return self._err

    @property
    def spinner(self) -> str:
        return "dots" if self._err.encoding.startswith("utf") else "line"

    def json(self, value: Any) -> None:
        """One JSON value on one line, in ASCII."""
        print(json.dumps(value), flush=True)  # noqa: T201 - this is the terminal

    def say(self, text: str = "", tone: Tone = "", *, indent: int = 0) -> None:
        """Text of ours or of others; each line indented."""
        for line in visible(text).split("\n"):
            self._out.print(Text(" " * indent + line, style=tone), soft_wrap=True)

    def fields(self, pairs: Iterable[tuple[str, str]], *, indent: int = 0) -> None:
        """Names and values in two columns."""
        shown = [(name, value) for name, value in pairs if value]
        width = max((len(name) for name, _ in shown), default=0)
        for name, value in shown:
            first, *more = visible(value).split("\n")
            line = Text(" " * indent)
            line.append(f"{visible(name):<{width}}  ", style="dim").append(first)
            self._out.print(line, soft_wrap=True)
            for rest in more:
                self._out.print(Text(" " * (indent + width + 2) + rest), soft_wrap=True)

    def table(self, columns: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
        """Rows under a header; one under the other where the terminal is too narrow for them."""
        shown = [[one_line(cell) for cell in row] for row in rows]
        widths = [max(map(cell_len, cells)) for cells in zip(columns, *shown, strict=True)]
        if sum(widths) + _GAP * len(widths) > self._out.width:
            self._records(columns, shown)
            return
        table = Table(box=None, pad_edge=False, header_style="bold", padding=(0, _GAP, 0, 0))
        for column in columns:
            table.add_column(column, no_wrap=True)
        for row in shown:
            table.add_row(*map(Text, row))
        with self._out.capture() as captured:
            self._out.print(table)
        for line in captured.get().splitlines():
            self._out.file.write(f"{line.rstrip()}\n")

    def _records(self, columns: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
        for number, row in enumerate(rows):
            if number:
                self.say()
            self.fields((column.lower(), cell) for column, cell in zip(columns, row, strict=True))

    def problem(self, text: str, kind: str = "") -> None:
        """Something that went wrong, on standard error."""
        line = Text("Error", style="bold red")
        line.append(f" ({visible(kind)})" if kind else "", style="red").append(f": {visible(text)}", style="default")
        self._err.print(line, soft_wrap=True)

    def note(self, text: str) -> None:
        """Something worth knowing beside the result, on standard error."""
        self._err.print(Text(visible(text), style="dim"), soft_wrap=True)


def visible(text: str) -> str:
    """The text with control and formatting characters spelt out, newlines and tabs apart."""
    return "".join(letter if letter in "\n\t" or _is_shown(letter) else _spelt(letter) for letter in text)


def one_line(text: str) -> str:
    """Like `visible`, newlines and tabs spelt out too."""
    return "".join(letter if _is_shown(letter) else _spelt(letter) for letter in text)


def compact(value: Any) -> str:
    """A JSON value for people: short text as it is, the rest as JSON."""
    return json.dumps(value, ensure_ascii=False)


def shortened(text: str, length: int) -> str:
    return text if len(text) <= length else text[: length - 3] + "..."


def _is_shown(letter: str) -> bool:
    return letter in _JOINERS or unicodedata.category(letter) not in _SPELT_OUT


def _spelt(letter: str) -> str:
    return (
        letter.encode("unicode_escape").decode() if letter < "\ud800" or letter > "\udfff" else f"\\u{ord(letter):04x}"
    )


def _console(stream: TextIO) -> Console:
    width = None if stream.isatty() else _UNBOUNDED
    return _Console(file=cast("Any", stream), width=width, highlight=False, markup=False, emoji=False)
