"""The effect counter that other tests stand on."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

import pytest

from tests.fixtures.effects import Effects, EffectsServer
from tests.fixtures.effects_client import areport, report


async def test_effects_are_counted_by_name(effects: Effects) -> None:
    assert await asyncio.to_thread(report, "send", {"n": 1}, url=effects.url) == 1
    assert await areport("send", {"n": 2}, url=effects.url) == 2
    await areport("read", url=effects.url)
    assert await effects.count("send") == 2
    assert await effects.all("send") == [{"n": 1}, {"n": 2}]
    assert await effects.all() == [("send", {"n": 1}), ("send", {"n": 2}), ("read", None)]


async def test_each_space_counts_for_itself(effects_server: EffectsServer) -> None:
    first, second = effects_server.space(), effects_server.space("shared")
    await areport("send", url=first.url)
    assert await second.count("send") == 0
    assert effects_server.space("shared").url == second.url


async def test_a_held_report_counts_and_returns_after_its_release(effects: Effects) -> None:
    await effects.hold("send")
    reporting = asyncio.ensure_future(areport("send", url=effects.url))
    await effects.wait("send")
    assert not reporting.done()
    await effects.release("send")
    assert await reporting == 1


async def test_an_effect_outlives_its_killed_process(effects: Effects, tmp_path: Path) -> None:
    effects.install(tmp_path)
    await effects.hold("send")
    code = "from effects_client import report; report('send', 5)"
    process = await asyncio.create_subprocess_exec(sys.executable, "-c", code, cwd=tmp_path, env=effects.env())
    await effects.wait("send")
    process.kill()
    await process.wait()
    assert await effects.all("send") == [5]


async def test_waiting_for_what_does_not_happen_ends(effects: Effects) -> None:
    with pytest.raises(TimeoutError):
        await effects.wait("never", timeout=0.05)
