"""Entry point of `turn`: finds the command, runs it, prints errors, returns the exit code.

Agents and hooks call `turn` all day, so start-up time matters (see "a cold command" in docs/benchmarks.md). Each command is a row
of the command table; only the module of the called command is imported, and inside it display, worker and JSON are imported where
they are used. Errors go to stderr: one JSON object with --json, plain lines otherwise, never a traceback.
"""

from __future__ import annotations

import os
import sys
from importlib import import_module
from typing import NoReturn

from ..core.errors import Invalid, StoreTrouble, Usage, YourturnError
from .command_table import COMMANDS, GROUPS, Command
from .parser import but_done, parser_for, split


def run() -> NoReturn:
    """The console script."""
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")
    try:
        code = main(sys.argv[1:])
        if sys.stdout is not None:
            sys.stdout.flush()
        if "YOURTURN_FAULT" in os.environ:
            _replied()
    except BrokenPipeError:
        code = 0
    except OSError as error:  # the command has finished; only its output is lost
        print(f"Error: Cannot write the output\nReason: {error.strerror}", file=sys.stderr or None)
        code = 1
    except KeyboardInterrupt:
        code = 130
    if sys.stderr is not None:
        sys.stderr.flush()
    os._exit(code)  # skip the interpreter's shutdown: connections are closed and the output is flushed


def _replied() -> None:
    from ..config import replied

    replied()


def main(argv: list[str]) -> int:
    as_json = "--json" in argv
    try:
        return _dispatch(argv)
    except YourturnError as error:
        report(error, as_json)
        return error.exit_code
    except UnicodeEncodeError:
        report(Invalid("The input is not valid UTF-8"), as_json)
        return Invalid.exit_code
    except OSError:
        raise
    except Exception as bug:
        if os.environ.get("YOURTURN_DEBUG"):
            raise
        reason = f"{type(bug).__name__}: {bug}".splitlines()[0]
        hint = "YOURTURN_DEBUG=1 shows where; turn doctor --strict shows whether the database is damaged."
        report(YourturnError("This is a bug in turn", reason=reason, hint=hint), as_json)
        return YourturnError.exit_code


def report(error: YourturnError, as_json: bool) -> None:
    if as_json and sys.stderr is not None:
        import json

        print(json.dumps(error.as_json()), file=sys.stderr)
        return
    from ..display.terminal import safe

    for line in error.lines() if sys.stderr is not None else ():
        print(safe(line), file=sys.stderr)


def _dispatch(argv: list[str]) -> int:
    before, words = split(argv)
    if not words:
        return _run(COMMANDS["overview"], "overview", before)
    name, rest = words[0], words[1:]
    if name == "__complete":
        from .completion import suggest

        print("\n".join(suggest(rest)))
        return 0
    if name in ("ticket", "task") and rest:
        more, rest = split(rest)
        before += more
        if not rest:
            raise Usage("turn ticket: no command given", hint="List all with: turn help")
        name, rest = rest[0], rest[1:]
        if name == "next":
            rest = [*rest, "--claim"]
    if name in ("help", "--help", "-h"):
        if rest and rest[0] in COMMANDS:
            return _run(COMMANDS[rest[0]], rest[0], ["--help"])
        print(help_text())
        return 0
    if name in ("--version", "version", "-V"):
        from ..version import __version__

        print(f'{{"version": "{__version__}"}}' if "--json" in argv else f"turn {__version__}")
        return 0
    command = COMMANDS.get(name)
    if command is None:
        raise Usage(f"There is no command {name!a}", hint=_did_you_mean(name))
    return _run(command, name, before + rest)


def _run(command: Command, name: str, argv: list[str]) -> int:
    module = import_module(command.home)
    parser = parser_for(name, command, getattr(module, f"{command.function}_args", None))
    args = parser.read(argv)
    try:
        code: int = getattr(module, command.function)(args) or 0
    except StoreTrouble as error:
        but_done(args, error)
        raise
    return code


def _did_you_mean(word: str) -> str:
    from difflib import get_close_matches

    close = get_close_matches(word, [name for name in COMMANDS if name != "overview"], 3)
    return f"Did you mean: {', '.join(close)}?" if close else "List all with: turn help"


def help_text() -> str:
    lines = [
        "turn: the desk between coding agents and people",
        "",
        "Usage: turn COMMAND … [--json] [--db DB] [--project KEY] [--as WHO]",
    ]
    for group in GROUPS:
        lines += ["", f"{group}:"]
        members = {name: c for name, c in COMMANDS.items() if c.group == group}
        wide = max(map(len, members))
        lines += [f"  {name.ljust(wide)}  {command.about}" for name, command in members.items()]
    lines += ["", "turn COMMAND --help shows options and examples. turn without a command shows whose turn it is."]
    return "\n".join(lines)


if __name__ == "__main__":
    run()
