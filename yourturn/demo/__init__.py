"""`turn demo`: an agent asks, you answer, the agent goes on.

At a terminal it opens the inbox, with a lively project and agents at work (`inbox.py`). Where nobody looks, in CI, with
`--text`, or without a web server installed, it tells the story in the terminal and ends by itself (`story.py`).
"""

from __future__ import annotations

import argparse
import os
import signal
import sys
from collections.abc import Sequence
from importlib.util import find_spec

from .terminal import Stage

SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="turn demo", description="An agent asks, you answer, the agent goes on.")
    parser.add_argument("--text", action="store_true", help="tell it in this terminal, without a browser")
    parser.add_argument("--web", action="store_true", help="open the inbox, whoever looks")
    parser.add_argument("--pace", type=float, default=0.7, metavar="SECONDS", help="length of a step (default 0.7)")
    parser.add_argument("--agent", action="store_true", help=argparse.SUPPRESS)
    args = parser.parse_args(argv)
    stage = Stage(min(max(0.0, args.pace), 60.0))
    before = {number: signal.signal(number, _stop) for number in SIGNALS if signal.getsignal(number) is not signal.SIG_IGN}
    try:
        return _play(stage, args)
    except KeyboardInterrupt:
        if not args.agent:
            stage.say("\nStopped. Nothing is left behind.")
        return 130
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _play(stage: Stage, args: argparse.Namespace) -> int:
    if args.agent:
        from .story import agent

        return agent(stage)
    if args.web or (not args.text and _watched()):
        from .inbox import show

        return show(stage)
    from .story import story

    return story(stage)


def _watched() -> bool:
    """Is somebody there, and a web server to show them something?"""
    there = sys.stdin.isatty() and sys.stdout.isatty() and not os.environ.get("CI")
    return there and all(find_spec(name) for name in ("fastapi", "uvicorn", "jinja2"))


def _stop(*_: object) -> None:
    """Once: whoever is impatient waits until everything is put away."""
    for number in SIGNALS:
        signal.signal(number, signal.SIG_IGN)
    raise KeyboardInterrupt
