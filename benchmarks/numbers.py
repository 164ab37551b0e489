"""The numbers that count: what each must be, and which part measures it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

Part = Literal["throughput", "adk-alone", "history", "decision", "cold", "recovery", "memory"]


@dataclass(frozen=True)
class Number:
    """A key of latest.json. Without a limit it only stands beside one that has one."""

    part: Part
    meaning: str
    at_least: float | None = None
    at_most: float | None = None

    @property
    def limit(self) -> str | None:
        """The limit in words."""
        if self.at_least is not None:
            return f">= {self.at_least:g}"
        return f"<= {self.at_most:g}" if self.at_most is not None else None

    def is_met_by(self, value: float | None) -> bool | None:
        """None where there is no limit. A number that was not measured meets none."""
        if self.limit is None:
            return None
        if value is None:
            return False
        return value >= self.at_least if self.at_least is not None else value <= (self.at_most or 0.0)


NUMBERS: Mapping[str, Number] = {
    "runs_per_s_read_vs_plugin": Number("throughput", "a read turn: runs/s against the plugin's", at_least=2.2),
    "runs_per_s_write_vs_plugin": Number("throughput", "a write turn: runs/s against the plugin's", at_least=1.4),
    "runs_per_s_read_vs_bare": Number("throughput", "a read turn: against one bare activity", at_least=0.65),
    "runs_per_s_write_vs_bare": Number("throughput", "a write turn: against three bare activities", at_least=0.65),
    "runs_per_s_product_read": Number("throughput", "runs/s of read turns"),
    "runs_per_s_product_write": Number("throughput", "runs/s of write turns"),
    "runs_per_s_plugin": Number("throughput", "runs/s of the plugin"),
    "runs_per_s_bare_1": Number("throughput", "runs/s of the bare workflow, one activity"),
    "runs_per_s_bare_3": Number("throughput", "runs/s of the bare workflow, three activities"),
    "runs_per_s_least": Number("throughput", "runs/s of write turns, where a host does the least it has to"),
    "runs_per_s_least_vs_plugin": Number("throughput", "the same against the plugin's"),
    "adk_alone_ms_one_run": Number("adk-alone", "CPU ms of a turn in ADK alone"),
    "adk_alone_ms_two_runs": Number("adk-alone", "the same, left for the call and come back to"),
    "history_bytes_per_turn_read_200": Number("history", "bytes kept per read turn, after 200", at_most=3800),
    "history_bytes_per_turn_read_100": Number("history", "the same after 100"),
    "history_events_per_turn_read": Number("history", "events per read turn, after 200", at_most=10.5),
    "history_bytes_per_turn_write_200": Number("history", "bytes kept per write turn, after 200", at_most=7000),
    "history_bytes_per_turn_write_100": Number("history", "the same after 100"),
    "history_events_per_turn_write": Number("history", "events per write turn, after 200", at_most=22.5),
    "plugin_history_bytes_per_turn_200": Number("history", "the plugin's bytes per turn, after 200"),
    "plugin_history_bytes_per_turn_100": Number("history", "the same after 100"),
    "plugin_history_events_per_turn": Number("history", "the plugin's events per turn"),
    "replay_cpu_s_largest_history": Number("history", "CPU seconds to replay the largest execution", at_most=0.7),
    "replay_cpu_s_largest_history_sandboxed": Number("history", "the same in the sandbox, as tests do"),
    "plugin_replay_cpu_s_200_turns": Number("history", "CPU seconds to replay the plugin's 200 turns"),
    "decision_to_tool_vs_plugin": Number("decision", "decision to tool: ms against the plugin's", at_most=0.85),
    "decision_to_tool_ms": Number("decision", "milliseconds from a decision to its tool"),
    "plugin_decision_to_tool_ms": Number("decision", "the plugin's milliseconds"),
    "cold_vs_warm_turn": Number("cold", "extra seconds of turn 210 on a fresh worker", at_most=0.5),
    "cold_turn_s": Number("cold", "seconds of that turn"),
    "warm_turn_s": Number("cold", "seconds of a turn before it"),
    "worker_kill_recovery_s": Number("recovery", "seconds from kill -9 of the worker to the answer", at_most=5),
    "guest_kill_recovery_s": Number("recovery", "seconds from kill -9 of the guest to the answer", at_most=2),
    "idle_guest_pss_mb": Number("memory", "MiB of the heaviest idle guest", at_most=100),
    "idle_processes_pss_mb": Number("memory", "MiB of worker and all its processes, idle"),
    "worker_mb_per_1000_idle_threads": Number("memory", "MiB that 1,000 idle threads add to the worker", at_most=20),
    "guests_mb_per_1000_idle_threads": Number("memory", "MiB they add to the guests"),
}
