"""Console blocks of the documents: every `$ command` runs and must print what stands below it.

Its exit code is 0, or the one that a comment at its end tells the reader: `# exit code 3`.
"""

from __future__ import annotations

import difflib
import os
import re
import signal
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from sybil import Example

if TYPE_CHECKING:
    from tests.docs.stage import Stage

DEADLINE_SECONDS = 90.0
_CONTROL = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")


@dataclass(frozen=True)
class Command:
    """One `$ ` line with its backslash continuations, and the output that must follow it."""

    line: str
    expected: str

    @property
    def status(self) -> int:
        told = re.search(r"# exit code (\d+)$", self.line)
        return int(told[1]) if told else 0


def commands(block: str) -> list[Command]:
    """The commands of a console block, in order."""
    found: list[tuple[list[str], list[str]]] = []
    for line in block.splitlines():
        if line.startswith("$ "):
            found.append(([line[2:]], []))
        elif not found:
            msg = f"A console block begins with '$ ', not with {line!r}."
            raise ValueError(msg)
        elif found[-1][0][-1].endswith("\\") and not found[-1][1]:
            found[-1][0].append(line)
        else:
            found[-1][1].append(line)
    return [Command("\n".join(lines), "\n".join(output).rstrip()) for lines, output in found]


def matches(expected: str, printed: str) -> bool:
    """Whether `printed` is what the document says: `...` stands for text in a line; alone, for any number of lines."""
    pattern = "".join(
        r"(?:.*\n)*?" if line.strip() == "..." else re.escape(line).replace(re.escape("..."), ".*?") + r"[ \t]*\n"
        for line in expected.splitlines()
    )
    return re.fullmatch(pattern, _text(printed)) is not None


def _text(printed: str) -> str:
    plain = _CONTROL.sub("", printed).replace("\r", "")
    lines = [line.rstrip() for line in plain.splitlines()]
    while lines and not lines[-1]:
        lines.pop()
    return "".join(f"{line}\n" for line in lines)


class ConsoleEvaluator:
    """Runs the commands of a block in one shell after another that share folder and variables."""

    def __call__(self, example: Example) -> str | None:
        stage: Stage = example.namespace["stage"]
        for command in commands(example.parsed):
            status, printed = _run(command.line, stage, Path(example.path))
            if status != command.status:
                return f"$ {command.line}\nended with status {status}:\n{printed}"
            if not matches(command.expected, printed):
                return f"$ {command.line}\n{_difference(command.expected, printed)}"
        return None


def _run(line: str, stage: Stage, document: Path) -> tuple[int, str]:
    place = stage.place(document)
    script = (
        f"set -a; [ -f {place.variables} ] && . {place.variables}; cd {place.folder}\n"
        f"{line}\n"
        f"status=$?; export -p >{place.variables}; exit $status"
    )
    # The output goes to a file: a process left in the background must not hold a pipe, and so the test, open.
    with place.output.open("w+b") as output:
        shell = subprocess.Popen(
            ["bash", "-c", script],
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            env=place.environment,
            start_new_session=True,
        )
        try:
            shell.wait(DEADLINE_SECONDS)
        except subprocess.TimeoutExpired:
            os.killpg(shell.pid, signal.SIGKILL)
            shell.wait()
        output.seek(0)
        return shell.returncode, output.read().decode(errors="replace")


def _difference(expected: str, printed: str) -> str:
    return "\n".join(
        difflib.unified_diff(expected.splitlines(), _text(printed).splitlines(), "document", "printed", lineterm="")
    )
