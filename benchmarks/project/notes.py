"""What the agent tells whoever measures it: a file per order in the folder BENCH_NOTES, datagrams to BENCH_PORT."""

from __future__ import annotations

import os
import re
import socket
import time
from pathlib import Path

_conversation = re.compile(r"\((\w{8})\)$")
_mouth = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)


def say_answered(text: str) -> None:
    """Tell that a text was answered; it ends with the last characters of its conversation's id, in brackets."""
    if (port := os.environ.get("BENCH_PORT")) and (found := _conversation.search(text)):
        _mouth.sendto(found[1].encode(), ("127.0.0.1", int(port)))


def write(order: str, what: str) -> None:
    """Note that something begins now in this process: seconds since 1970, process id."""
    at = time.time()
    if folder := os.environ.get("BENCH_NOTES"):
        with (Path(folder) / f"{order}.{what}").open("a") as file:
            file.write(f"{at!r} {os.getpid()}\n")
