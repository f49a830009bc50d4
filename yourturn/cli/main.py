"""From a command line to an exit code.

`turn` is called by agents and hooks all day, so it starts fast: one table of commands, one parser for the command that is
meant, and imports only of what it needs. Errors are one object on stderr with --json, plain lines otherwise; never a
traceback.
"""

from __future__ import annotations

import os
import sys
from typing import Any, NoReturn

from ..core.errors import Invalid, StoreTrouble, Usage, YourturnError
from .command_table import COMMANDS, GROUPS, Command


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
    except OSError as error:  # what was said was done; only the report is lost
        print(f"Error: The output could not be written\nReason: {error.strerror}", file=sys.stderr or None)
        code = 1
    except KeyboardInterrupt:
        code = 130
    if sys.stderr is not None:
        sys.stderr.flush()
    os._exit(code)  # nothing is left to do: connections are closed, output is flushed


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
        report(Invalid("That is not valid UTF-8", hint="Send it as UTF-8 text."), as_json)
        return Invalid.exit_code
    except OSError:
        raise
    except Exception as bug:
        if os.environ.get("YOURTURN_DEBUG"):
            raise
        what = f"{type(bug).__name__}: {bug}".splitlines()[0]
        hint = "YOURTURN_DEBUG=1 shows where; turn doctor --strict shows whether the database is damaged."
        report(YourturnError("This is a bug in turn", reason=what, hint=hint), as_json)
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
    from .parser import parser_for, split

    before, words = split(argv)
    if not words:
        return _overview(before)
    name, rest = words[0], words[1:]
    if name == "__complete":
        from .completion import suggest

        print("\n".join(suggest(rest)))
        return 0
    if name in ("ticket", "task") and rest:
        more, rest = split(rest)
        before += more
        if not rest:
            raise Usage("turn ticket: which command?", hint="See all with: turn help")
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
    return _run(command, name, before + rest, parser_for)


def _run(command: Command, name: str, argv: list[str], parser_for: Any = None) -> int:
    from importlib import import_module

    if parser_for is None:
        from .parser import parser_for
    module = import_module(command.home)
    parser = parser_for(name, command, getattr(module, f"{command.function}_args", None))
    args = parser.read(argv)
    try:
        code: int = getattr(module, command.function)(args) or 0
    except StoreTrouble as error:
        from .parser import but_done

        but_done(args, error)
        raise
    return code


def _overview(before: list[str]) -> int:
    """`turn` alone: whose turn is it?"""
    return _run(COMMANDS["overview"], "overview", before)


def _did_you_mean(word: str) -> str:
    from difflib import get_close_matches

    close = get_close_matches(word, [name for name in COMMANDS if name != "overview"], 3)
    return f"Did you mean: {', '.join(close)}?" if close else "See all with: turn help"


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
    lines += ["", "turn COMMAND --help shows examples. turn alone shows whose turn it is."]
    return "\n".join(lines)


if __name__ == "__main__":
    run()
