"""A process that opens a Store and spends calls when it is told to: `python -m tests.store.spender OWNER CALLS`."""

from __future__ import annotations

import asyncio
import json
import os
import sys

from pydantic import SecretStr

from agentvisor.host.store import Store


async def main() -> None:
    owner, calls = sys.argv[1], int(sys.argv[2])
    print("here", flush=True)  # noqa: T201
    sys.stdin.readline()
    async with Store.open(SecretStr(os.environ["AGENTVISOR_STORE"]), patience=60) as store:
        spent = await asyncio.gather(*(store.spent_calls.spend("t", str(n), owner=owner) for n in range(calls)))
    print(json.dumps([[call.mine, call.owner] for call in spent]))  # noqa: T201


if __name__ == "__main__":
    asyncio.run(main())
