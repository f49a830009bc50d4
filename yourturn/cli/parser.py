"""Reading command lines: one parser for the one command that is meant, and what all commands share."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable
from typing import Any, NoReturn

from ..core.errors import Invalid, MaybeDone, StoreTrouble, Usage, YourturnError
from .command_table import Command

#: Options that may stand before the command, and whether a word follows them.
_SHARED = {"--db": True, "--project": True, "-p": True, "--as": True, "--json": False}


class Plain(str):
    """A word behind `--`: never an option, however it begins."""


class Parser(argparse.ArgumentParser):
    def read(self, words: list[str]) -> argparse.Namespace:
        """Options and other words in any order."""
        if "--" in words:
            at = words.index("--")
            words = [*words[:at], *map(Plain, words[at + 1 :])]
        return self.parse_intermixed_args(words)

    def _parse_optional(self, arg_string: str) -> Any:
        return None if isinstance(arg_string, Plain) else super()._parse_optional(arg_string)

    def error(self, message: str) -> NoReturn:
        raise Usage(f"{self.prog}: {message}", hint=f"See: {self.prog} --help")


class Formatter(argparse.RawDescriptionHelpFormatter):
    def __init__(self, prog: str) -> None:
        columns = os.environ.get("COLUMNS", "")
        super().__init__(prog, max_help_position=34, width=int(columns) - 2 if columns.isdigit() else 110)


def split(argv: list[str]) -> tuple[list[str], list[str]]:
    """Shared options that stand before the command, and the rest."""
    before: list[str] = []
    i = 0
    while i < len(argv):
        name, equals, _ = argv[i].partition("=")
        if name not in _SHARED:
            break
        take = 2 if _SHARED[name] and not equals else 1
        before += argv[i : i + take]
        i += take
    return before, argv[i:]


def parser_for(name: str, command: Command, add: Callable[[Any], None] | None) -> Parser:
    shown = "" if name == "overview" else f" {name}"
    about = command.about[:1].upper() + command.about[1:] + "."
    examples = "examples:\n" + "\n".join(f"  {line}" for line in command.examples) if command.examples else None
    parser = Parser(f"turn{shown}", description=about, epilog=examples, formatter_class=Formatter, allow_abbrev=False)
    if command.verb:
        parser.set_defaults(verb=command.verb, done=command.done)
    if add is not None:
        add(parser)
    shared = parser.add_argument_group("everywhere")
    shared.add_argument("--json", action="store_true", help="one JSON value on stdout, errors on stderr")
    shared.add_argument("--db", metavar="DB", help="a path, sqlite:///… or postgresql://…")
    shared.add_argument("-p", "--project", metavar="KEY", help="the default project")
    shared.add_argument(
        "--as", dest="as_", metavar="WHO", help="human:ana or agent:coder (where the database is opened directly)"
    )
    return parser


def positive(text: str) -> int:
    """For --limit."""
    if not text.isascii() or not text.isdigit() or not 0 < int(text[:9]) <= 100_000 or len(text) > 9:
        raise argparse.ArgumentTypeError("a whole number from 1 to 100000 is wanted")
    return int(text)


def seconds(text: str) -> float:
    """For --wait: 60, 90s, 5m."""
    from ..core.fields import duration

    return duration(text, "--wait") / 1_000_000


def paging(p: Any) -> None:
    p.add_argument("--limit", type=positive, default=500, metavar="N", help="at most so many (500)")
    p.add_argument("--after", "--cursor", metavar="KEY", help="go on after this one")


def proof(p: Any) -> None:
    p.add_argument("--claim", metavar="TOKEN", help="the claim's token (or YOURTURN_CLAIM)")
    p.add_argument("--worker-id", metavar="W", help="the worker that holds the claim")


def keyed(p: Any) -> None:
    p.add_argument("--idempotency-key", metavar="KEY", help="a repetition with the same key does nothing")


def task_and_reason(p: Any) -> None:
    p.add_argument("task", metavar="KEY")
    p.add_argument("why", nargs="?", metavar="REASON", help="why")
    p.add_argument("--reason", metavar="TEXT", help="the same")
    keyed(p)


def reason(a: argparse.Namespace) -> str:
    return read_text(a.reason) or read_text(a.why) or ""


def read_text(text: str | None) -> str | None:
    """A text from the command line; `-` is standard input."""
    if text != "-":
        return text
    from ..core.fields import TEXT_LIMIT

    if sys.stdin is None:
        raise Invalid("Standard input is closed")
    raw = sys.stdin.buffer.read(4 * TEXT_LIMIT + 1)
    if len(raw) > 4 * TEXT_LIMIT:
        while sys.stdin.buffer.read(1_000_000):  # let the writer finish
            pass
        raise Invalid("Standard input is too long", reason=f"at most {TEXT_LIMIT:,} characters are taken")
    try:
        return raw.decode()
    except UnicodeDecodeError as error:
        raise Invalid("Standard input is not valid UTF-8", reason=f"byte {error.start}") from None


def connect(args: argparse.Namespace) -> Any:
    from ..config import connect

    args.desk = connect(args.db, as_=args.as_, project=args.project)
    return args.desk


def but_done(args: argparse.Namespace, error: StoreTrouble) -> None:
    """Add to an error after a change that the change itself was made."""
    key = getattr(getattr(args, "desk", None), "done", "")
    if key and not isinstance(error, MaybeDone) and hasattr(args, "idempotency_key"):
        error.hint = f"It was done, only its result cannot be shown. Repeated with --idempotency-key {key}, it is done once."


def held(desk: Any, task: str, args: argparse.Namespace) -> dict[str, Any]:
    """The proof of a claim: the flag, or the environment's if it is about this task."""
    token = args.claim
    if token is None:
        token = os.environ.get("YOURTURN_CLAIM") or None
        if token is not None and not desk.claim_is_for(token, task):
            token = None
    return {"proof": token, "worker": args.worker_id}


def unattended(args: argparse.Namespace, desk: Any, task: dict[str, Any] | None = None) -> list[str]:
    """A line for people about ready work that no worker takes, and how to start a worker here; otherwise none."""
    if args.json or not desk.who.is_person:
        return []
    row = desk.unattended(args.project) if task is None else desk.unattended(task=task["key"])
    if row is None:
        return []
    from ..display import unattended

    if not _agents() and not desk.show(row["task"])["workflow"]:  # a bare `turn work` would have no agent for it
        row["start"] = row["start"].replace("turn work", "turn work --exec './agent.sh'", 1)
    return [unattended(row)]


def open_children(desk: Any, task: dict[str, Any]) -> list[dict[str, Any]]:
    """The open children of a task that was cancelled: they are left as they are."""
    children: list[dict[str, Any]] = desk.list(parent=task["key"], state="open", limit=8) if task["state"] == "cancelled" else []
    return children


def left_open(children: list[dict[str, Any]]) -> list[str]:
    from ..display import WORDS

    keys = ", ".join(f"{child['key']} ({WORDS[child['state']]})" for child in children)
    return [f"Its children stay as they are: {keys}."] if keys else []


def _agents() -> bool:
    """True if agents are configured here. Errors of the file are left to the commands that need it."""
    from ..config import file

    try:
        return bool(file().get("agents"))
    except YourturnError:
        return True


def step(mine: dict[str, Any]) -> str | None:
    """The step of the run in which the agent calls this command."""
    if "YOURTURN_STEP" not in os.environ:
        return None
    from ..worker.claude.hook_question import step_of

    return step_of(os.environ, mine["proof"])


def show(args: argparse.Namespace, value: Any, lines: Callable[[], list[str]] | list[str]) -> int:
    """One JSON value, or lines for a person."""
    if args.json:
        import json

        print(json.dumps(value))
        return 0
    from ..display import terminal

    terminal.COLOUR = sys.stdout.isatty() and "NO_COLOR" not in os.environ and os.environ.get("TERM") != "dumb"
    print("\n".join(lines() if callable(lines) else lines))
    return 0


def branch(task: dict[str, Any]) -> str | None:
    """A task's branch, in a repository. Elsewhere its name stands for nothing."""
    here = os.getcwd()  # noqa: PTH109
    while not os.path.exists(os.path.join(here, ".git")):  # noqa: PTH110, PTH118
        if here == (here := os.path.dirname(here)):  # noqa: PTH120
            return None
    name: str | None = task["branch"]
    return name
