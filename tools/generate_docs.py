"""Generates docs/rules.md, docs/commands.md, docs/mcp.md and two modules of the client from the tables of the code.

`python -m tools.generate_docs` writes them, `--check` compares them.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from tools import client_methods
from yourturn.core.actions import VERBS
from yourturn.core.answers import ANSWERS, NO, YES
from yourturn.core.errors import YourturnError, every_error
from yourturn.core.model import DAY, ENDED, HOUR, MINUTE, STATES
from yourturn.core.rules import (
    ADMIN_VERBS,
    ALIASES,
    CHOICES,
    KINDS,
    OPEN,
    OUTCOMES,
    REASONS,
    ROLES,
    SIGNALS,
    SYSTEM_REASONS,
    TIMEOUT_POLICIES,
    TRANSITIONS,
    matrix,
)
from yourturn.core.settings import SETTINGS
from yourturn.core.task_fields import UPDATES

if TYPE_CHECKING:
    from yourturn.cli.command_table import Command

ROOT = Path(__file__).parent.parent

_PEOPLE = ("own", "any", "holder", "human", "approver", "admin", "system")


def page() -> str:
    """The whole of docs/rules.md."""
    parts = [
        "# The rules",
        "Printed from `yourturn/core/rules.py` by `make docs`. Do not edit: change the table, and print it again.",
    ]
    questions = (_kinds, _answers, _choices, _silence, _signals)
    for section in (_verbs, _moves, _matrix, _diagram, *questions, _roles, _errors, _settings):
        parts += section()
    return "\n\n".join(parts) + "\n"


def _table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join("| " + " | ".join(cell.replace("|", "\\|") for cell in row) + " |" for row in lines)


def _code(words: Iterable[str], joint: str = " ") -> str:
    return joint.join(f"`{word}`" for word in words)


def _verbs() -> list[str]:
    """What can be said, and with which words."""
    system = {verb for verb in VERBS if verb not in ADMIN_VERBS and all(w == {"system"} for w in _who_says(verb))}
    rows = []
    for name, verb in VERBS.items():
        if name not in system:
            args = [f"**`{a}`**" if a in verb.required else f"`{a}`" for a in verb.args if a not in _INSIDE]
            rows.append((f"`{name}`", verb.about, " ".join(args)))
    return [
        "## Verbs",
        "What people and agents can say. Arguments in bold are needed.",
        _table(("verb", "means", "takes"), rows),
        "What only the system says, when time or a neighbour makes it true:",
        _table(("verb", "means"), [(f"`{name}`", verb.about) for name, verb in VERBS.items() if name in system]),
    ]


#: Arguments that the desk fills in by itself.
_INSIDE = frozenset({"circle", "secret"})


def _who_says(verb: str) -> list[frozenset[str]]:
    meant = {found for (word, _), found in ALIASES.items() if word == verb} or {verb}
    return [rule.who for (_, said), rule in TRANSITIONS.items() if said in meant]


def _people(who: Iterable[str]) -> str:
    return ", ".join(sorted(who, key=_PEOPLE.index))


def _moves() -> list[str]:
    """One row for all states from which a verb leads to the same places."""
    rows: dict[tuple[str, tuple[str, ...], str], list[str]] = {}
    for (state, verb), rule in TRANSITIONS.items():
        targets = tuple("(stays)" if target == state else target for target in rule.to)
        rows.setdefault((verb, targets, _people(rule.who)), []).append(state or "(nothing)")
    return [
        "## Moves",
        "A verb that has no row for a state is refused there; the error lists the verbs that have one. An "
        "actor that is not named under *who* is refused too. Where several targets are named, the task's questions, dependencies "
        "and settings decide among them.",
        _table(
            ("verb", "from", "to", "who"),
            [(f"`{verb}`", " ".join(sources), " ".join(to), who) for (verb, to, who), sources in rows.items()],
        ),
        "`approve` and `reject` answer the question that a task waits with; so does a person's `accept` of finished work.",
    ]


def _matrix() -> list[str]:
    cells = matrix()
    moving = {cell: [v for v in verbs if cell[0] != cell[1]] for cell, verbs in cells.items()}
    rows = [(f"**{a}**", *("·" if a == b else _code(moving[a, b]) or "–" for b in STATES)) for a in STATES]
    free = sum(1 for (a, b), verbs in moving.items() if a != b and verbs)
    refused = sum(1 for (a, b), verbs in moving.items() if a != b and not verbs)
    return [
        "## From state to state",
        f"Rows are where a task is, columns where it goes. {free} ways are open, {refused} are closed (–). "
        "Verbs that leave the state as it is are not shown.",
        _table(("from \\ to", *STATES), rows),
    ]


def as_mermaid() -> str:
    """The same as a diagram. What is possible from every open state would only be a tangle: it is said in words."""
    always = _always()
    lines = ["stateDiagram-v2"]
    birth = TRANSITIONS[None, "create"]
    lines += [f"    [*] --> {target}: create" for target in birth.to]
    for (a, b), verbs in matrix().items():
        shown = [verb for verb in verbs if verb not in always]
        if a != b and shown:
            lines.append(f"    {a} --> {b}: {', '.join(shown)}")
    lines += [f"    {state} --> [*]" for state in STATES if state in ENDED]
    return "\n".join(lines)


def _always() -> dict[str, str]:
    """verb -> the one state to which it leads from everywhere."""
    found = {}
    for verb in dict.fromkeys(verb for _, verb in TRANSITIONS):
        targets = {t for (s, v), rule in TRANSITIONS.items() if v == verb for t in rule.to if t != s}
        if len(targets) == 1 and all((state, verb) in TRANSITIONS for state in OPEN):
            found[verb] = targets.pop()
    return found


def _diagram() -> list[str]:
    words = " and ".join(f"`{verb}` to {target}" for verb, target in _always().items())
    return [
        "## As a diagram",
        f"```mermaid\n{as_mermaid()}\n```",
        f"Not drawn: {words}, which lead there from every open state.",
    ]


def _kinds() -> list[str]:
    head = ("kind", "the person is asked to", "approved", "rejected")
    verdicts = [(f"`{name}`", kind.asks, kind.approved, kind.rejected) for name, kind in KINDS.items()]
    filled = [
        (
            f"`{name}`",
            kind.response_type,
            kind.urgency,
            kind.timeout or "none",
            f"`{kind.on_timeout}`",
            "allowed" if kind.default else "never",
            "yes" if kind.gate else "no",
        )
        for name, kind in KINDS.items()
    ]
    return [
        "## Kinds of questions, and what a verdict does",
        "`done` and `cancelled` end the task, `back` returns it to the agent, `refused` is an error that changes "
        "nothing. In a task with a workflow every answer goes back.",
        _table(head, verdicts),
        "What a kind fills in when the asker leaves it out. The time is for questions that are asked; flags get none. "
        "A gate can be reserved for approvers (the setting `approvals`).",
        _table(("kind", "answer", "urgency", "time", "then", "default", "gate"), filled),
        "Reasons that a question can give: " + _code((r for r in REASONS if r not in SYSTEM_REASONS), ", ") + ". Only the system "
        "gives: " + _code(SYSTEM_REASONS, ", ") + ".",
    ]


def _answers() -> list[str]:
    rows = []
    for (kind, form), ways in ANSWERS.items():
        for way in ways:
            value = "the person's" if way.name == "answer" else "null" if way.value is None else str(way.value).lower()
            leads = OUTCOMES[kind, way.verdict]
            rows.append((f"`{kind}`", form, way.name, way.label, f"`{way.command.format(q='Q17')}`", way.verdict, value, leads))
    return [
        "## Answers",
        "One row for each way to answer each kind of question in each form; a combination that is missing cannot be asked. "
        "Pages, terminal, HTTP and these docs are drawn from this table. An answer that leads to `cancelled` is announced before "
        "it is given. Yes: " + _code(YES, ", ") + ". No: " + _code(NO, ", ") + ". Case and trailing punctuation do not matter; "
        "any other word is refused.",
        _table(("kind", "form", "answer", "button", "command", "verdict", "value", "leads to"), rows),
    ]


def _choices() -> list[str]:
    rows = [
        (f"`{reason}`", f"`{option}`", c.label, c.about.format(task="the task", failed="the dependency"))
        for (reason, option), c in CHOICES.items()
    ]
    return [
        "## Questions of the system",
        "What the system asks by itself is a choice that acts. Such a question closes itself when its cause is gone.",
        _table(("reason", "option", "button", "what happens"), rows),
    ]


def _silence() -> list[str]:
    return [
        "## Questions without an answer",
        "A question without an answer gets the status `timeout`, and no verdict. No value of `on_timeout` approves anything.",
        _table(("on_timeout", "what happens"), [(f"`{name}`", words) for name, words in TIMEOUT_POLICIES.items()]),
    ]


def _signals() -> list[str]:
    return [
        "## Signals",
        "What an agent can say at the end of its turn, and the kind of question that follows.",
        _table(("signal", "kind"), [(f"`{word}`", f"`{kind}`" if kind else "none") for word, kind in SIGNALS.items()]),
    ]


def _roles() -> list[str]:
    rows = [(f"`{role}`", _people(can) or "nobody") for role, can in ROLES.items()]
    fields: dict[str, list[str]] = {}
    for field, who in UPDATES.items():
        fields.setdefault(who, []).append(field)
    return [
        "## Roles",
        "Which of the words under *who* a role may be. The holder of a claim also has to prove it. A viewer only reads; `own` "
        "is a person in their own affairs, and an admin in anybody's.",
        _table(("role", "counts as"), rows),
        "Fields of `update`, and who may change them:",
        _table(("who", "fields"), [(who, _code(names)) for who, names in fields.items()]),
        "What concerns no task: " + ", ".join(f"`{verb}` ({who})" for verb, who in ADMIN_VERBS.items()) + ".",
    ]


def _errors() -> list[str]:
    ours = [error for error in every_error() if error.__module__ == YourturnError.__module__]
    rows = [
        (f"`{e.code}`", str(e.exit_code), str(e.http_status), f"`{e.__name__}`", (e.__doc__ or "").partition("\n")[0])
        for e in ours
    ]
    return [
        "## Errors",
        "One class serves every surface; `code` is for programs.",
        _table(("code", "exit code", "HTTP status", "class", "means"), rows),
    ]


def _settings() -> list[str]:
    rows = [(f"`{name}`", _shown(name, setting.default), setting.about) for name, setting in SETTINGS.items()]
    return [
        "## Settings",
        "A project's word goes over the workspace's, and that over these.",
        _table(("setting", "default", "means"), rows),
    ]


def _shown(name: str, value: object) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int) and value >= MINUTE:
        unit, letter = next((u, c) for u, c in ((DAY, "d"), (HOUR, "h"), (MINUTE, "m")) if value % u == 0)
        return f"{value // unit}{letter}"
    return {"review": "auto", "signal_timeout": "none"}.get(name, "0") if value == 0 else str(value)


def commands() -> str:
    """The whole of docs/commands.md."""
    from yourturn.cli.command_table import COMMANDS, GROUPS

    parts = [
        "# The commands",
        "Printed from the code by `make docs`. Each one can also be said as `turn ticket COMMAND`. Every command takes `--json`, "
        "`--db DB`, `--project KEY` and `--as WHO`.",
    ]
    for group in GROUPS:
        parts.append(f"## {group}")
        for name, command in COMMANDS.items():
            if command.group == group and command.examples:
                parts += _command(name, command)
    return "\n\n".join(parts) + "\n"


def _command(name: str, command: Command) -> list[str]:
    from importlib import import_module

    from yourturn.cli.parser import parser_for

    module = import_module(command.home)
    parser = parser_for(name, command, getattr(module, f"{command.function}_args", None))
    rows = []
    for action in parser._actions:
        if "-h" in action.option_strings or action.container.title == "everywhere":  # type: ignore[attr-defined]
            continue
        shown = action.metavar or ("" if action.nargs == 0 else "|".join(map(str, action.choices or ())) or action.dest)
        names = ", ".join(action.option_strings) or str(shown)
        value = f" {shown}" if action.option_strings and action.nargs != 0 else ""
        rows.append((f"`{names}{value}`", (action.help or "").replace("%%", "%")))
    examples = "```sh\n" + "\n".join(command.examples) + "\n```"
    about = command.about[:1].upper() + command.about[1:] + "."
    return [f"### turn {name}", about, examples, *([_table(("", ""), rows)] if rows else [])]


def main(argv: Sequence[str] | None = None) -> int:
    args = list(sys.argv[1:] if argv is None else argv)
    if args not in ([], ["--check"]):
        print("usage: python -m tools.generate_docs [--check]", file=sys.stderr)
        return 2
    if not (ROOT / "docs").is_dir():
        print(f"There is no folder {ROOT / 'docs'}: this works in a checkout of the source.", file=sys.stderr)
        return 1
    results = [_printed(path, make(), check=bool(args)) for path, make in GENERATED.items()]
    return int(not all(results))


def _printed(path: str, text: str, check: bool) -> bool:
    """Write one file, or compare it. False if it differs."""
    target = ROOT / path
    if not check:
        target.write_text(text, encoding="utf-8")
        print(f"{path} is written.")
        return True
    if not target.exists() or target.read_text(encoding="utf-8") != text:
        print(f"{path} differs from the code. Write it again with: make docs", file=sys.stderr)
        return False
    print(f"{path} is as the code says.")
    return True


def _tools_page() -> str:
    from tools.mcp_page import page

    return page()


#: In this order: the client imports its own generated modules.
GENERATED = {
    "yourturn/client/verbs.py": client_methods.verbs,
    "yourturn/client/remote_methods.py": client_methods.remote,
    "docs/rules.md": page,
    "docs/commands.md": commands,
    "docs/mcp.md": _tools_page,
}


if __name__ == "__main__":
    sys.exit(main())
