"""A process that has imported ADK and forks guests: fresh ones, without the seconds that the import takes.

`python -P zygote.py FD`: for each message on that socket, a JSON list of arguments with a file descriptor beside it, it
forks `agentvisor.adk.runner` and answers with its pid.
"""

from __future__ import annotations

import importlib
import json
import os
import signal
import socket
import sys
from typing import Any

from agentvisor.adk import runner


def main() -> None:
    control = socket.socket(fileno=int(sys.argv[1]))
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    runner.prepare_adk()
    for module in ("google.genai.types", "google.adk.models.google_llm", "google.adk.workflow", "agentvisor.adk.guest"):
        importlib.import_module(module)
    while True:
        message, fds, _, _ = socket.recv_fds(control, 65536, 1)
        if not message:
            return
        pid = os.fork()
        if pid == 0:
            control.close()
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            serve(json.loads(message), fds[0])
        os.close(fds[0])
        control.sendall(f"{pid}\n".encode())


def serve(asked: dict[str, Any], fd: int) -> None:
    os.environ.update(asked["environment"])
    sys.argv = ["runner", "--fd", str(fd), "--project", asked["project"]]
    try:
        runner.main()
    finally:
        os._exit(1)


if __name__ == "__main__":
    main()
