"""`turn log`: prints the events of one task or of all, with the output of agents between them."""

from __future__ import annotations

import json
from argparse import Namespace
from typing import Any

from . import parser
from .parser import connect
from .parser import show as out


def log_args(p: Any) -> None:
    p.add_argument("what", nargs="?", metavar="KEY", help="a task (default: all tasks)")
    p.add_argument("-f", "--follow", action="store_true", help="keep printing new events")
    p.add_argument("--actor", metavar="WHO")
    p.add_argument("--action", metavar="VERB")
    p.add_argument("--limit", type=parser.positive, default=500, metavar="N")
    p.add_argument("--after", type=parser.positive, metavar="SEQ")


def log(a: Namespace) -> int:
    from .. import display

    with connect(a) as desk:
        cursor = desk.desk_cursor() if a.follow else None
        events = desk.history(a.what, limit=a.limit, after=a.after, actor=a.actor, action=a.action, project=a.project)
        with_output = a.what is not None and not (a.actor or a.action or a.after)
        output = desk.output(a.what, limit=a.limit) if with_output else []
        if not a.follow:
            return out(a, events, lambda: display.history(events, output))
        lines = [json.dumps(e) for e in events] if a.json else display.history(events, output) if events else []
        print(*lines, sep="\n", end="\n" if lines else "", flush=True)
        key, last = desk.show(a.what)["key"] if a.what else None, output[-1]["id"] if output else 0
        for new in desk.follow(a.what, cursor, last) if with_output else desk.watch(cursor):
            if "action" not in new:
                print(json.dumps(new) if a.json else "\n".join(display.output([new])), flush=True)
            elif key in (None, new["task"]) and a.actor in (None, new["actor"]) and a.action in (None, new["action"]):
                print(json.dumps(new) if a.json else "\n".join(display.events([new])), flush=True)
    return 0
