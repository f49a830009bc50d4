"""`turn mcp`: serve the desk to one agent on standard input and output, or show how to connect it."""

from __future__ import annotations

import json
import os
import sys
from argparse import Namespace
from typing import Any

from ..core.errors import NotAllowed, YourturnError


def serve_args(p: Any) -> None:
    p.add_argument("--print-config", action="store_true", help="show what to paste into Claude Code and Codex")


def serve(a: Namespace) -> int:
    if a.as_ is not None:
        raise NotAllowed(
            f"turn mcp cannot act as {a.as_[:80]}",
            reason="it is always an agent",
            hint="Set YOURTURN_AGENT or YOURTURN_TOKEN to select it.",
        )
    if a.print_config:
        return _print_config(a)
    if sys.stdin is None or sys.stdout is None:
        raise YourturnError("turn mcp needs standard input and output")
    if sys.stdin.isatty():
        print("turn mcp is for programs: it serves the Model Context Protocol on standard input and output.", file=sys.stderr)
        print("Next: turn mcp --print-config", file=sys.stderr)
    try:
        from . import server
    except ModuleNotFoundError as missing:
        if (missing.name or "").partition(".")[0] not in ("mcp", "mcp_types", "anyio"):
            raise
        raise YourturnError(
            "turn mcp needs the SDK of the Model Context Protocol", hint="Install it with: pip install 'yourturn[mcp]'"
        ) from None
    from ..client import Client
    from ..config import connect
    from .session import LocalSession
    from .tools import Tools

    def connect_as(agent: str) -> Client:
        return connect(a.db, project=a.project, env={**os.environ, "YOURTURN_AGENT": agent})

    return server.serve(Tools(LocalSession(connect_as, dict(os.environ))))


# --- how to connect -------------------------------------------------------------------------------------------------


def config(program: str, words: list[str]) -> dict[str, Any]:
    """The configuration of Claude Code and of Codex."""
    import shlex

    toml = [
        "[mcp_servers.yourturn]",
        f"command = {json.dumps(program)}",
        f"args = {json.dumps(words)}",
        'default_tools_approval_mode = "approve"',
        "tool_timeout_sec = 300",
    ]
    return {
        "claude": {
            "command": shlex.join(["claude", "mcp", "add", "yourturn", "--", program, *words]),
            ".mcp.json": {"mcpServers": {"yourturn": {"command": program, "args": words}}},
        },
        "codex": {"config.toml": "\n".join(toml)},
    }


def _print_config(a: Namespace) -> int:
    words = ["mcp"]
    for flag, value in (("--db", a.db), ("--project", a.project)):
        words += [flag, value] if value else []
    configs = config(_program(), words)
    if a.json:
        print(json.dumps(configs))
        return 0
    print(
        "# Claude Code: run this in your project\n"
        f"{configs['claude']['command']}\n\n"
        "# or put this into its .mcp.json\n"
        f"{json.dumps(configs['claude']['.mcp.json'], indent=2)}\n\n"
        "# Codex: put this into ~/.codex/config.toml\n"
        f"{configs['codex']['config.toml']}"
    )
    return 0


def _program() -> str:
    """`turn`, if the PATH finds this program, else its path."""
    import shutil
    from pathlib import Path

    here = Path(sys.argv[0])
    on_path = shutil.which("turn")
    if on_path is not None and (here.name != "turn" or not here.exists() or Path(on_path).resolve() == here.resolve()):
        return "turn"
    return str(here.resolve()) if here.name == "turn" and here.exists() else "turn"
