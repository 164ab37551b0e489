"""Command lines that are refused, and what --help says."""

from __future__ import annotations

from collections.abc import Iterator

import click
import pytest
from click.testing import CliRunner

from agentvisor.cli import agentvisor, run
from client.commands.exits import MEANINGS, Exit
from client.commands.names import value_instead_of

_NOWHERE = ("--address", "127.0.0.1:1")


@pytest.mark.parametrize(
    "words",
    [
        ("threads", "run", "t1"),
        ("threads", "run", "t1", "hi", "--content", "{}"),
        ("threads", "run", "a/b", "hi"),
        ("threads", "run", "t1", "hi", "--timeout", "-1"),
        ("threads", "run", "t1", "hi", "--state", "[]"),
        ("threads", "new", "agent", "--get"),
        ("threads", "new", "agent", "--id", "../x"),
        ("threads", "new", "agent", "--state", "{'a': 1}"),
        ("threads", "new", "agent", "--options", '{"approval_ttl": -1}'),
        ("threads", "close"),
        ("threads", "list", "--status", "odd"),
        ("threads", "list", "--limit", "0"),
        ("threads", "list", "--config-file", "/nowhere"),
        ("approvals", "approve", "t1"),
        ("approvals", "approve", "t1/ap-1-1/x"),
        ("approvals", "approve", "t1", "ap-1-1", "x"),
        ("approvals", "edit", "t1/ap-1-1", "--args", "NaN"),
        ("approvals", "edit", "t1/ap-1-1", "--set", "amount"),
        ("answer", "done", "t1/uo-1-1", "not json"),
        ("answer", "input", "t1"),
        ("nothing",),
        ("threads", "nothing"),
    ],
)
def test_wrong_usage_is_refused_before_anything_is_connected(
    words: tuple[str, ...], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TEMPORAL_ADDRESS", "127.0.0.1:1")
    assert run(words) == Exit.USAGE
    assert "Error" in capsys.readouterr().err


@pytest.mark.parametrize("flags", [(), ("--json",)])
def test_a_server_that_is_not_there_is_said_with_the_way_out(
    flags: tuple[str, ...], capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["threads", "list", *_NOWHERE, *flags]) == Exit.UNAVAILABLE
    printed = capsys.readouterr()
    assert "no Temporal server at 127.0.0.1:1" in (printed.out if flags else printed.err)


def test_an_unknown_profile_is_wrong_usage(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["threads", "list", "--profile", "nowhere-to-be-found"]) == Exit.USAGE
    assert "nowhere-to-be-found" in capsys.readouterr().err


def _commands(group: click.Group = agentvisor, *path: str) -> Iterator[tuple[tuple[str, ...], click.Command]]:
    for name, command in group.commands.items():
        if isinstance(command, click.Group):
            yield from _commands(command, *path, name)
        else:
            yield (*path, name), command


@pytest.mark.parametrize("path", [" ".join(path) for path, _ in _commands()])
def test_help_tells_options_connection_and_exit_codes(path: str) -> None:
    shown = CliRunner().invoke(agentvisor, [*path.split(), "--help"]).output
    assert all(f"  {int(code)} " in shown and meaning in shown for code, meaning in MEANINGS.items())
    assert "--json" in shown
    assert shown.index("--json") < shown.index("Connection") < shown.index("--tls-ca-path") < shown.index("Exit codes")


@pytest.mark.parametrize(
    ("before", "text", "meant"),
    [
        ("149.00", "100.00", "100.00"),
        ("yes", "true", "true"),
        ("a", '"b c"', "b c"),
        (5, "7", 7),
        (5, "seven", "seven"),
        (None, '{"a": [1]}', {"a": [1]}),
        (None, "NaN", "NaN"),
        (True, "false", False),
    ],
)
def test_a_set_value_stays_text_where_it_was_text(before: object, text: str, meant: object) -> None:
    assert value_instead_of(before, text) == meant
