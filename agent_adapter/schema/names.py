"""Names of tools that come from elsewhere, as model APIs take them."""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from collections.abc import Iterable

LONGEST = 64
LEGAL = re.compile(rf"[A-Za-z_][A-Za-z0-9_.-]{{0,{LONGEST - 1}}}")
RESERVED_NAMES = frozenset(
    {
        "code_execution",
        "enterprise_web_search",
        "exit_loop",
        "finish_task",
        "google_maps",
        "google_search",
        "google_search_agent",
        "load_artifacts",
        "load_memory",
        "preload_memory",
        "request_confirmation",
        "request_input",
        "set_model_response",
        "transfer_to_agent",
        "url_context",
    }
)
"""Names that agent frameworks give a meaning of their own."""
RESERVED_PREFIXES = ("adk_", "aa_")


def is_reserved(name: str) -> bool:
    """Whether agent frameworks keep this name for themselves."""
    return name in RESERVED_NAMES or name.startswith(RESERVED_PREFIXES)


def legal_names(names: Iterable[str]) -> dict[str, str]:
    """A legal name for each of these, no two alike. Legal ones stay; what becomes of another does not hang on order."""
    originals = list(dict.fromkeys(names))
    bases = {name: _base(name) for name in originals}
    times = Counter(bases.values())
    return {
        name: base if len(base) <= LONGEST and (base == name or times[base] == 1) else _marked(base, name)
        for name, base in bases.items()
    }


def _base(name: str) -> str:
    base = re.sub(r"[^A-Za-z0-9_.-]", "_", name)
    if not re.match(r"[A-Za-z_]", base):
        base = f"_{base}"
    return f"_{base}" if is_reserved(base) else base


def _marked(base: str, name: str) -> str:
    mark = hashlib.sha256(name.encode("utf-8", "surrogatepass")).hexdigest()[:8]
    return f"{base[: LONGEST - 9]}_{mark}"
