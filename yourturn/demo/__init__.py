"""`turn demo`: an agent asks, you answer, the agent continues.

At a terminal it opens the inbox of a sample project with agents at work (`inbox.py`). Without a terminal, in CI, with `--text` or
without the packages of the web server it runs a short story in the terminal and ends by itself (`story.py`).
"""

from __future__ import annotations

import argparse
import os
import signal
import sys
from collections.abc import Sequence
from importlib.util import find_spec

from .terminal import DemoTerminal

SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="turn demo", description="An agent asks, you answer, the agent continues.")
    parser.add_argument("--text", action="store_true", help="run in this terminal, without a browser")
    parser.add_argument("--web", action="store_true", help="open the inbox, also without a terminal")
    parser.add_argument("--pace", type=float, default=0.7, metavar="SECONDS", help="length of a step (default 0.7)")
    parser.add_argument("--agent", action="store_true", help=argparse.SUPPRESS)
    args = parser.parse_args(argv)
    terminal = DemoTerminal(min(max(0.0, args.pace), 60.0))
    before = {number: signal.signal(number, _stop) for number in SIGNALS if signal.getsignal(number) is not signal.SIG_IGN}
    try:
        return _play(terminal, args)
    except KeyboardInterrupt:
        if not args.agent:
            terminal.print("\nStopped. Nothing is left behind.")
        return 130
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _play(terminal: DemoTerminal, args: argparse.Namespace) -> int:
    if args.agent:
        from .story import agent

        return agent(terminal)
    if args.web or (not args.text and _at_terminal()):
        from .inbox import show

        return show(terminal)
    from .story import story

    return story(terminal)


def _at_terminal() -> bool:
    """Whether this is a terminal of a person, and the web server is installed."""
    interactive = sys.stdin.isatty() and sys.stdout.isatty() and not os.environ.get("CI")
    return interactive and all(find_spec(name) for name in ("starlette", "uvicorn", "jinja2"))


def _stop(*_: object) -> None:
    """Stop once; further signals are ignored until the demo has cleaned up."""
    for number in SIGNALS:
        signal.signal(number, signal.SIG_IGN)
    raise KeyboardInterrupt
