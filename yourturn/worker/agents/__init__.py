"""Configured agents: claude, codex, any command, a Python function, a script.

`agent_for(name, config)` checks `[agents.NAME]`, `make(agent)` returns its adapter, `process.perform` runs a turn.
"""

from __future__ import annotations

import os
import re
import shlex
import shutil
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from ...core.errors import Invalid, NotFound, Usage
from ...core.fields import NAME, duration
from ..claude.patterns import readable
from .base import Adapter, Agent
from .claude import Claude
from .codex import Codex
from .command import CommandAgent
from .scripted import Scripted

ADAPTERS = ("claude", "codex", "command", "python", "scripted")
#: The default program of an adapter, and the command that installs it.
PROGRAMS = {
    "claude": ("claude", "npm install -g @anthropic-ai/claude-code"),
    "codex": ("codex", "npm install -g @openai/codex"),
}
TEXTS = ("model", "permission_mode")
LISTS = ("argv", "allowed_tools", "gate")
TIMES = ("timeout", "silence")
BLOCK = """Run any command with: turn work --exec './agent.sh', or put this into .yourturn/config.toml:
[agents.{name}]
adapter = "claude"    # or codex, command, python, scripted"""
#: A relative path at the start of a command.
_NEAR = re.compile(r"\.\.?/[\w@%+=:,./-]+(?=[\s;&|<>]|$)")

__all__ = ["ADAPTERS", "Adapter", "Agent", "agent_for", "exec_agent", "make"]


def exec_agent(command: str, name: str = "exec", root: Path | None = None) -> Agent:
    """The agent of `turn work --exec 'CMD'`. A relative path of a program is resolved from `root`, like one in `argv`."""
    if not command.strip() or "\0" in command:
        raise Usage("--exec needs a command", hint="Like: turn work --exec './agent.sh'")
    _check_name(name)
    first = _NEAR.match(command)
    if root is not None and first and (root / first[0]).is_file():
        command = shlex.quote(str(root.resolve() / first[0])) + command[first.end() :]
    return Agent(name, "command", ("/bin/sh", "-c", command))


def make(agent: Agent) -> Adapter:
    match agent.adapter:
        case "claude":
            return Claude(agent)
        case "codex":
            return Codex(agent)
        case "python":
            # late: `python -m …function_agent` warns if its package has imported the module before
            from .function_agent import FunctionAgent

            return FunctionAgent(agent)
        case "scripted":
            return Scripted(agent)
    return CommandAgent(agent)


def agent_for(name: str, config: Mapping[str, Any], root: Path | None = None, path: str | None = None) -> Agent:
    """The agent of `[agents.NAME]`, checked. Raises an error if its settings are invalid or its program is missing.

    `root`: where relative paths start; `path`: another PATH than this process's.
    """
    agents = config.get("agents", {})
    if not isinstance(agents, Mapping):
        raise Invalid("'agents' in .yourturn/config.toml is not a table", hint=BLOCK.format(name="coder"))
    if name not in agents:
        others = ", ".join(sorted(agents))
        shown = name if NAME.fullmatch(name) else "coder"
        raise NotFound(
            f"There is no agent {name[:80]!a}",
            reason=f"the config names {others}" if others else "the config names no agents yet",
            hint=BLOCK.format(name=shown),
        )
    return _with_program(_checked(name, agents[name]), (root or Path.cwd()).resolve(), path)


def _check_name(name: str) -> None:
    if not NAME.fullmatch(name) or ":" in name:
        raise Invalid(f"{name[:80]!a} is not a name for an agent", hint="Letters, digits and . _ - are fine.")


def _checked(name: str, table: Any) -> Agent:
    where = f"[agents.{name}]"
    _check_name(name)
    if not isinstance(table, Mapping):
        raise Invalid(f"{where} is not a table", hint=BLOCK.format(name=name))
    allowed = ("adapter", "env", *TEXTS, *LISTS, *TIMES)
    for field in table:
        if field not in allowed:
            raise Invalid(f"{where} has an unknown setting {str(field)[:80]!a}", hint=f"Known are: {', '.join(allowed)}.")
    adapter = table.get("adapter")
    if adapter not in ADAPTERS:
        problem = f"adapter {str(adapter)[:80]!a} is unknown" if adapter else "it has no adapter"
        raise Invalid(f"{where} cannot be used", reason=problem, hint=f"Set adapter to one of: {', '.join(ADAPTERS)}.")
    fields: dict[str, Any] = {"name": name, "adapter": adapter}
    for field in TEXTS:
        fields[field] = _is(table.get(field, ""), str, f"{where} {field}", "a text")
    for field in LISTS:
        what = f"{where} {field}"
        value = _is(table.get(field, []), list, what, "a list of texts")
        fields[field] = tuple(_is(item, str, what, "a list of texts") for item in value)
    _check_gate(where, adapter, fields["gate"])
    for field in TIMES:
        fields[field] = _seconds(table.get(field), f"{where} {field}")
    env = _is(table.get("env", {}), Mapping, f"{where} env", "a table of texts")
    for key, value in env.items():
        _is(value, str, f"{where} env.{key}", "a text")
        if str(key).startswith("YOURTURN_"):
            raise Invalid(f"{where} env sets {key}", reason="the worker tells the agent who it is")
    return Agent(**fields, env=dict(env))


def _check_gate(where: str, adapter: str, patterns: tuple[str, ...]) -> None:
    """Refuse a gate that would have no effect."""
    if patterns and adapter == "codex":
        raise Invalid(f"{where} gate cannot be kept", reason="Codex asks nobody before a tool runs", hint="Use its sandbox.")
    for pattern in patterns:
        if not readable(pattern):
            raise Invalid(
                f"{where} gate has {pattern[:80]!a}",
                reason="it is not a pattern",
                hint='Patterns are like "Bash(git push*)" or "Write".',
            )


def _is(value: Any, type_: Any, what: str, words: str) -> Any:
    if not isinstance(value, type_):
        raise Invalid(f"{what} is not {words}")
    return value


def _seconds(value: Any, what: str) -> float | None:
    if value is None:
        return None
    if isinstance(value, str):
        value = duration(value, what) / 1_000_000
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value < 10**9:
        raise Invalid(f"{what} is not a time", hint="Seconds, or like '30m'.")
    return float(value)


def _with_program(agent: Agent, root: Path, path: str | None) -> Agent:
    """The agent with the resolved path of its program."""
    where = f"[agents.{agent.name}]"
    if agent.adapter in PROGRAMS:
        program, install = PROGRAMS[agent.adapter]
        argv = agent.argv or (program,)
        hint = f'Install it ({install}), or say where it is: argv = ["/path/to/{program}"].'
    elif not agent.argv:
        example = {"python": '["package.module:function"]', "scripted": '["script.json"]'}.get(agent.adapter, '["./agent.sh"]')
        raise Invalid(f"{where} has no argv", hint=f"Add: argv = {example}")
    elif agent.adapter == "python":
        module, _, function = agent.argv[0].partition(":")
        if not all(part.isidentifier() for part in (*module.split("."), *function.split("."))):
            raise Invalid(f"{where} argv is not a function", hint='Say it like: argv = ["package.module:function"]')
        return agent
    else:
        argv, hint = agent.argv, 'Say where it is: argv = ["/path/to/program"].'
    first = os.path.expanduser(argv[0])  # noqa: PTH111
    if agent.adapter == "scripted":
        script = root / first
        if not script.is_file():
            raise NotFound(f"There is no script {script}", reason=f"{where} names it")
        return replace(agent, argv=(str(script), *argv[1:]))
    program = str(root / first) if os.sep in first else first
    if shutil.which(program, path=agent.env.get("PATH", path)) is None:
        raise NotFound(f"There is no program {argv[0][:200]!a}", reason=f"{where} wants to start it", hint=hint)
    return replace(agent, argv=(program, *argv[1:]))
