from __future__ import annotations

import pytest

from tests.docs.console import Command, commands, matches


def test_a_block_is_commands_with_the_output_that_follows_each() -> None:
    block = "$ echo one \\\n    two\none two\n$ true\n$ printf 'a\\n\\nb'\na\n\nb\n"
    assert commands(block) == [
        Command("echo one \\\n    two", "one two"),
        Command("true", ""),
        Command("printf 'a\\n\\nb'", "a\n\nb"),
    ]


def test_a_comment_tells_an_exit_code_that_is_not_0() -> None:
    assert [command.status for command in commands("$ true\n$ agentvisor threads show x  # exit code 4\n")] == [0, 4]


def test_output_without_a_command_is_refused() -> None:
    with pytest.raises(ValueError, match="begins with"):
        commands("one two\n")


@pytest.mark.parametrize(
    ("expected", "printed"),
    [
        ("", ""),
        ("a", "a\n"),
        ("run r-... done", "run r-17 done\n"),
        ("a\n...\nz", "a\nz\n"),
        ("a\n...\nz", "a\nb\nc\nz\n"),
        ("a", "\x1b[1ma\x1b[0m   \n\n"),
    ],
)
def test_dots_stand_for_what_differs_between_two_times(expected: str, printed: str) -> None:
    assert matches(expected, printed)


@pytest.mark.parametrize(
    ("expected", "printed"),
    [("", "a\n"), ("a", ""), ("a", "a\nb\n"), ("a.c", "abc\n"), ("a...z", "a\nz\n"), ("a\n...\nz", "a\nz\nb\n")],
)
def test_other_output_is_a_difference(expected: str, printed: str) -> None:
    assert not matches(expected, printed)
