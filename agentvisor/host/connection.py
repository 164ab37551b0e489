"""The connection to Temporal, configured as for every other Temporal tool."""

from __future__ import annotations

from temporalio.client import Client
from temporalio.contrib.pydantic import pydantic_data_converter
from temporalio.envconfig import ClientConfigProfile, ClientConnectConfig

DEFAULT_ADDRESS = "localhost:7233"


class ConnectionFailedError(Exception):
    """Temporal cannot be reached as configured; an operator must act. kind: `temporal-unreachable`."""

    kind = "temporal-unreachable"


def load_connection(profile: str | None = None) -> ClientConnectConfig:
    """How to reach Temporal: the TEMPORAL_* variables, over the profile in Temporal's configuration file."""
    try:
        return ClientConfigProfile.load(profile).to_client_connect_config()
    except (RuntimeError, ValueError, OSError) as problem:
        raise ConnectionFailedError(
            f"The Temporal configuration cannot be read: {problem}. Mend the TEMPORAL_* variables or the file."
        ) from problem


def addressed(config: ClientConnectConfig) -> ClientConnectConfig:
    """The same with Temporal's default address where it has none."""
    return {"target_host": DEFAULT_ADDRESS, **config}


async def connect(config: ClientConnectConfig) -> Client:
    """A client with the data converter every thread uses. Raises ConnectionFailedError with the way out."""
    try:
        return await Client.connect(data_converter=pydantic_data_converter, **addressed(config))
    except (RuntimeError, OSError, ValueError) as problem:
        address = config.get("target_host", DEFAULT_ADDRESS)
        raise ConnectionFailedError(
            f"No Temporal server answers at {address}: {_first_line(problem)}. "
            "Start one (`python worker.py --dev` brings its own) or set TEMPORAL_ADDRESS."
        ) from problem


def _first_line(problem: BaseException) -> str:
    return (str(problem).splitlines() or [type(problem).__name__])[0][:300]
