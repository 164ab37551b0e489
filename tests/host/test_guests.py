"""Guest processes that die, hang, flood and shout: what runs in them fails, nothing else does."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

import pytest
from structlog.testing import capture_logs

from agentvisor.channel import Gone
from agentvisor.host.guest import GuestStart, NoGuestError
from agentvisor.host.guests import GuestProcesses
from agentvisor.project import Project
from tests.host.hostile_guest import Value
from tests.host.processes import exists, until

HOSTILE = (sys.executable, "-P", str(Path(__file__).with_name("hostile_guest.py")))


@asynccontextmanager
async def guests(
    folder: Path, *, legs: int = 1, tools: int = 1, silence: float = 30.0, environment: dict[str, str] | None = None
) -> AsyncGenerator[GuestProcesses]:
    start = GuestStart(
        Project(folder, "hostile"), environment or dict(os.environ), silence=silence, start_timeout=60, command=HOSTILE
    )
    async with GuestProcesses(start, legs=legs, tools=tools) as processes:
        await until(lambda: len(processes.pids()) == legs + tools + 1)
        yield processes


async def pid_of(processes: GuestProcesses, thread_id: str = "t", pool: Any = "legs") -> int:
    return (await ask(processes, "pid", thread_id=thread_id, pool=pool)).value


async def ask(processes: GuestProcesses, op: str, value: Any = None, thread_id: str = "t", pool: Any = "legs") -> Value:
    return await asyncio.wait_for(processes.ask(pool, op, Value(value=value), Value, thread_id=thread_id), 60)


async def test_a_thread_always_meets_the_same_guest(tmp_path: Path) -> None:
    async with guests(tmp_path, legs=2) as processes:
        first = {thread: await pid_of(processes, thread) for thread in "abcdefgh"}
        assert len(set(first.values())) == 2
        assert {thread: await pid_of(processes, thread) for thread in "hgfedcba"} == first
        assert await pid_of(processes, "a", "tools") not in first.values()


async def test_leaving_ends_every_process_and_what_it_started(tmp_path: Path) -> None:
    async with guests(tmp_path, legs=2) as processes:
        grandchild = (await ask(processes, "fork")).value
        pids = [*processes.pids(), grandchild]
        assert len(pids) == 5
        assert all(exists(pid) for pid in pids)
    await until(lambda: not any(exists(pid) for pid in pids))


async def test_a_dead_guest_fails_its_request_and_the_spare_takes_over(tmp_path: Path) -> None:
    async with guests(tmp_path) as processes:
        before = set(processes.pids())
        with pytest.raises(Gone) as gone:
            await ask(processes, "die")
        assert gone.value.sent
        assert await pid_of(processes) in before
        await until(lambda: len(processes.pids()) == 3)


async def test_a_dead_guest_hurts_no_request_of_another(tmp_path: Path) -> None:
    async with guests(tmp_path) as processes:
        slow = asyncio.create_task(ask(processes, "sleep", 2, pool="tools"))
        with pytest.raises(Gone):
            await ask(processes, "die")
        assert (await slow).value == await pid_of(processes, pool="tools")


async def test_guests_that_die_again_and_again_are_replaced_when_they_are_needed(tmp_path: Path) -> None:
    async with guests(tmp_path) as processes:
        for _ in range(5):
            with pytest.raises(Gone):
                await ask(processes, "die")
        assert exists(await pid_of(processes))


async def test_a_guest_whose_loop_hangs_is_killed_and_its_request_fails(tmp_path: Path) -> None:
    async with guests(tmp_path, silence=2.0) as processes:
        pid = await pid_of(processes)
        with pytest.raises(Gone):
            await ask(processes, "block", 100)
        await until(lambda: not exists(pid))
        assert await pid_of(processes) != pid


async def test_a_guest_that_floods_the_channel_is_cut_off(tmp_path: Path) -> None:
    async with guests(tmp_path) as processes:
        pid = await pid_of(processes)
        with pytest.raises(Gone):
            await ask(processes, "flood")
        await until(lambda: not exists(pid))
        assert await pid_of(processes) != pid


async def test_what_guests_print_goes_to_the_log_cut_to_a_bearable_amount(tmp_path: Path) -> None:
    with capture_logs() as logs:
        async with guests(tmp_path) as processes:
            await ask(processes, "shout", 50)
            pid = await pid_of(processes)
            said = [entry for entry in logs if entry["event"] == "guest.said"]
            assert {entry["guest"] for entry in said} == {pid}
            assert 0 < len(said) < 2_000
            assert max(len(entry["line"]) for entry in said) < 5_000


async def test_guests_get_no_settings_of_the_host_and_no_access_to_temporal(tmp_path: Path) -> None:
    environment = {
        **os.environ,
        "TEMPORAL_API_KEY": "secret",
        "TEMPORAL_ADDRESS": "x",
        "AGENTVISOR_TASK_QUEUE": "q",
        "GOOGLE_API_KEY": "key",
    }
    async with guests(tmp_path, environment=environment) as processes:
        seen = (await ask(processes, "environment")).value
        assert not [name for name in seen if name.startswith(("TEMPORAL_", "AGENTVISOR_"))]
        assert seen["GOOGLE_API_KEY"] == "key"


async def test_guests_have_no_input_and_a_session_of_their_own(tmp_path: Path) -> None:
    async with guests(tmp_path) as processes:
        assert (await ask(processes, "stdin")).value == ""
        assert os.getsid(await pid_of(processes)) != os.getsid(0)


async def test_a_project_that_does_not_load_says_why_at_the_start(tmp_path: Path) -> None:
    (tmp_path / "broken").write_text("agent.py, line 3: no module named 'pandas'. Install it.")
    with pytest.raises(NoGuestError) as refused:
        async with guests(tmp_path):
            pass
    assert refused.value.kind == "project-not-loaded"
    assert str(refused.value) == "agent.py, line 3: no module named 'pandas'. Install it."


async def test_a_guest_that_ends_while_loading_shows_its_last_words(tmp_path: Path) -> None:
    (tmp_path / "dies").touch()
    with pytest.raises(NoGuestError) as refused:
        async with guests(tmp_path):
            pass
    assert refused.value.kind == "guest-not-started"
    assert "no such module: pandas" in str(refused.value)


async def test_what_a_project_says_while_it_does_not_load_holds_no_secret(tmp_path: Path) -> None:
    (tmp_path / "broken").write_text("KeyError: 'planted-secret' at postgres://ana:hidden@db/shop. Mend it.")
    with pytest.raises(NoGuestError) as refused:
        async with guests(tmp_path, environment={**os.environ, "SHOP_API_KEY": "planted-secret"}):
            pass
    assert str(refused.value) == "KeyError: '***' at postgres://***@db/shop. Mend it."


async def test_a_project_that_broke_meanwhile_refuses_requests_until_it_is_mended(tmp_path: Path) -> None:
    async with guests(tmp_path) as processes:
        (tmp_path / "broken").write_text("It broke.")
        for _ in range(2):  # the guest and the spare
            with pytest.raises(Gone):
                await ask(processes, "die")
        with pytest.raises(NoGuestError, match=r"It broke\."):
            await ask(processes, "pid")
        (tmp_path / "broken").unlink()
        async with asyncio.timeout(60):
            while True:
                with suppress(NoGuestError):  # a start that began before it was mended
                    assert exists(await pid_of(processes))
                    break


async def test_guests_die_with_their_host(tmp_path: Path) -> None:
    program = f"""
import asyncio, os, sys
from pathlib import Path
from tests.host.test_guests import ask, guests, pid_of
async def main():
    async with guests(Path({str(tmp_path)!r})) as processes:
        child = (await ask(processes, "fork")).value
        asyncio.ensure_future(ask(processes, "block", 1000))
        await asyncio.sleep(0.5)
        print(*processes.pids(), flush=True)
        await asyncio.sleep(1000)
asyncio.run(main())
"""
    host = subprocess.Popen(  # noqa: ASYNC220
        [sys.executable, "-c", program], stdout=subprocess.PIPE, text=True, cwd=Path(__file__).parents[2]
    )
    with host:
        assert host.stdout
        line = await asyncio.to_thread(host.stdout.readline)
        while line and not line.split()[0].isdigit():
            line = await asyncio.to_thread(host.stdout.readline)
        pids = [int(word) for word in line.split()]
        assert len(pids) == 3
        host.kill()
        await until(lambda: not any(exists(pid) for pid in pids), 10)
