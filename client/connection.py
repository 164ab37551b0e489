"""How to reach the Temporal server: profiles, environment and options, as every Temporal tool reads them."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from datetime import timedelta
from pathlib import Path

from temporalio.client import Client
from temporalio.envconfig import ClientConfigProfile, ClientConfigTLS
from temporalio.runtime import Runtime
from temporalio.service import RPCError

from client.data_converter import DATA_CONVERTER
from client.errors import InvalidValue, TemporalUnavailable

DEFAULT_ADDRESS = "localhost:7233"
_REASON = re.compile(r'(?:message|error): "([^"]+)"')
_CONNECT_WITHIN = timedelta(seconds=4)


@dataclass(frozen=True, kw_only=True)
class Connection:
    """What was said explicitly; the rest comes from TEMPORAL_* variables and the profile in Temporal's config file."""

    address: str | None = None
    namespace: str | None = None
    profile: str | None = None
    config_file: Path | None = None
    api_key: str | None = None
    tls: bool | None = None
    tls_server_name: str | None = None
    tls_ca_path: Path | None = None
    tls_cert_path: Path | None = None
    tls_key_path: Path | None = None

    def resolved(self) -> ClientConfigProfile:
        """Options before environment before profile. InvalidValue for a profile or file that cannot be read."""
        try:
            loaded = ClientConfigProfile.load(self.profile, config_source=self.config_file)
        except (RuntimeError, OSError, ValueError) as problem:
            msg = f"The Temporal profile cannot be loaded: {problem}. Check --profile and --config-file."
            raise InvalidValue(msg) from None
        return replace(
            loaded,
            address=self.address or loaded.address or DEFAULT_ADDRESS,
            namespace=self.namespace or loaded.namespace or "default",
            api_key=self.api_key or loaded.api_key,
            tls=self._tls(loaded.tls),
        )

    def _tls(self, loaded: ClientConfigTLS | None) -> ClientConfigTLS | None:
        said = {
            "server_name": self.tls_server_name,
            "server_root_ca_cert": self.tls_ca_path,
            "client_cert": self.tls_cert_path,
            "client_private_key": self.tls_key_path,
        }
        given = {name: value for name, value in said.items() if value is not None}
        if self.tls is False:
            return ClientConfigTLS(disabled=True)
        if not given and not self.tls:
            return loaded
        return replace(loaded or ClientConfigTLS(), disabled=False, **given)


async def connect(connection: Connection, *, runtime: Runtime | None = None) -> Client:
    """A connected client, speaking pydantic's JSON. TemporalUnavailable within 5 s where there is no server."""
    profile = connection.resolved()
    try:
        config = profile.to_client_connect_config()
        return await Client.connect(
            **config,
            data_converter=DATA_CONVERTER,
            connect_timeout=_CONNECT_WITHIN,
            runtime=runtime,
        )
    except OSError as problem:
        msg = f"A TLS file cannot be read: {problem}. Check the options that name it."
        raise InvalidValue(msg) from None
    except (RuntimeError, ValueError, RPCError) as problem:
        msg = (
            f"There is no Temporal server at {profile.address}: {_reason(problem)}. "
            "Start one, or set TEMPORAL_ADDRESS to where it is."
        )
        raise TemporalUnavailable(msg) from problem


def _reason(problem: Exception) -> str:
    """The innermost reason in the native part's text."""
    found = _REASON.findall(str(problem))
    return found[-1] if found else str(problem).partition("\n")[0][:300]
