"""Shell completion: prints the shells' scripts and answers their calls of `turn __complete …` from the command table."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path

from ..core.errors import Usage, YourturnError
from ..core.rules import KINDS, ROLES, STATE_WORDS
from .command_table import COMMANDS
from .parser import parser_for

_SCRIPTS = {
    "bash": """_turn() {
    local IFS=$'\\n'
    COMPREPLY=($(turn __complete "${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null))
}
complete -o default -F _turn turn""",
    "zsh": """#compdef turn
_turn() {
    local -a candidates
    candidates=("${(@f)$(turn __complete "${(@)words[2,CURRENT]}" 2>/dev/null)}")
    compadd -a candidates
}
compdef _turn turn""",
    "fish": """complete -c turn -f -a '(turn __complete (commandline -opc)[2..-1] (commandline -ct) 2>/dev/null)'""",
}


def script(shell: str) -> str:
    if shell not in _SCRIPTS:
        raise Usage(f"There is no completion for {shell!a}", hint="Choose one of: bash, zsh, fish.")
    return _SCRIPTS[shell]


def suggest(words: list[str]) -> list[str]:
    """Candidates for the last word."""
    words = words or [""]
    *before, last = words
    while before and before[0] in ("ticket", "task"):
        before = before[1:]
    if not before:
        names = [name for name in COMMANDS if name != "overview"]
        return [name for name in [*names, "ticket"] if name.startswith(last)]
    command = COMMANDS.get(before[0])
    if command is None:
        return []
    module = import_module(command.home)
    parser = parser_for(before[0], command, getattr(module, f"{command.function}_args", None))
    candidates: list[str] = []
    previous = before[-1]
    for action in parser._actions:
        if previous in action.option_strings and action.nargs != 0:
            return [str(choice) for choice in action.choices or _VALUES.get(previous, ()) if str(choice).startswith(last)]
        candidates += action.option_strings
        if not action.option_strings and action.choices:
            candidates += [str(choice) for choice in action.choices]
    if not last.startswith("-"):
        files = any(action.metavar == "FILE" for action in parser._actions if not action.option_strings)
        candidates = [word for word in candidates if not word.startswith("-")] + (_files(last) if files else _keys(last))
    return sorted({word for word in candidates if word.startswith(last)})


_VALUES = {"--awaiting": tuple(KINDS), "--state": tuple(STATE_WORDS), "--role": tuple(ROLES), "--kind": tuple(KINDS)}


def _files(last: str) -> list[str]:
    folder, _, name = last.rpartition("/")
    try:
        paths = [path for path in Path(folder or ("/" if last.startswith("/") else ".")).iterdir() if path.name.startswith(name)]
    except OSError:
        return []
    lead = last[: len(last) - len(name)]
    shown = [path for path in paths if name.startswith(".") or not path.name.startswith(".")]
    return [f"{lead}{path.name}{'/' * path.is_dir()}" for path in shown[:200]]


def _keys(last: str) -> list[str]:
    """Keys of open tasks and questions; empty without a desk."""
    try:
        from ..config import connect

        with connect() as desk:
            names = [task["key"] for task in desk.list(state="open", limit=200)]
            return names + [q["id"] for q in desk.inbox(limit=200)]
    except YourturnError:
        return []
