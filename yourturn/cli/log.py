"""`turn log`: what happened, to one task or to all."""

from __future__ import annotations

from argparse import Namespace
from typing import Any

from . import parser
from .parser import connect
from .parser import show as out


def log_args(p: Any) -> None:
    p.add_argument("what", nargs="?", metavar="KEY", help="a task; without it, everything")
    p.add_argument("-f", "--follow", action="store_true", help="go on as things happen")
    p.add_argument("--actor", metavar="WHO")
    p.add_argument("--action", metavar="VERB")
    p.add_argument("--limit", type=parser.positive, default=500, metavar="N")
    p.add_argument("--after", type=parser.positive, metavar="SEQ")


def log(a: Namespace) -> int:
    from .. import display

    with connect(a) as desk:
        cursor = desk.desk_cursor() if a.follow else None
        found = desk.history(a.what, limit=a.limit, after=a.after, actor=a.actor, action=a.action, project=a.project)
        plain = a.what is not None and not (a.actor or a.action or a.after)
        said = desk.output(a.what, limit=a.limit) if plain else []
        if not a.follow:
            return out(a, found, lambda: display.history(found, said))
        import json
        import sys

        lines = [json.dumps(e) for e in found] if a.json else display.history(found, said) if found else []
        print(*lines, sep="\n", end="\n" if lines else "", flush=True)
        key, last = desk.show(a.what)["key"] if a.what else None, said[-1]["id"] if said else 0
        for new in desk.follow(a.what, cursor, last) if plain else desk.watch(cursor):
            if "action" not in new:
                print("\n".join(display.output([new])) if not a.json else json.dumps(new))
            elif key in (None, new["task"]) and a.actor in (None, new["actor"]) and a.action in (None, new["action"]):
                print(json.dumps(new) if a.json else "\n".join(display.events([new])))
            sys.stdout.flush()
    return 0
