"""Administration: `turn init`, `project`, `user`, `token`, `reconcile`, `doctor`, `audit`, `demo`, `completion`, `help`."""

from __future__ import annotations

import os
import sys
from argparse import Namespace
from typing import Any

from ..core.errors import Invalid, NotFound, Usage
from ..core.permissions import SCOPES
from ..core.rules import ROLES
from .parser import connect, keyed
from .parser import show as out

#: The default address of `turn serve`.
DEFAULT_URL = "http://127.0.0.1:8321"


def help__args(p: Any) -> None:
    pass


def help_(a: Namespace) -> int:
    from .main import help_text

    print(help_text())
    return 0


def init_args(p: Any) -> None:
    p.add_argument("--key", metavar="PROJ", help="the project's key (default: from the folder's name)")
    p.add_argument("--name", metavar="TEXT", help="the project's name")
    p.add_argument("--upgrade", action="store_true", help="migrate a database of an older version")


def init(a: Namespace) -> int:
    from ..config import init

    desk, about = init(a.db, a.key or a.project, a.name, os.environ, a.upgrade)
    desk.close()
    word = "Created a desk" if about["created"] else "There is already a desk"
    return out(a, about, [f"{word} at {about['db']}, project {about['project']}.", 'Next: turn create "What is to be done"'])


def project_args(p: Any) -> None:
    p.add_argument("what", nargs="?", choices=("list", "create", "show", "set"), default="list", metavar="list|create|show|set")
    p.add_argument("words", nargs="*", metavar="…", help="create KEY; show [KEY]; set [KEY] SETTING VALUE")
    p.add_argument("--name", metavar="TEXT", help="for create")
    p.add_argument("--workspace", action="store_true", help="change the setting for all projects")
    keyed(p)


def project(a: Namespace) -> int:
    from ..core.settings import SETTINGS, row
    from ..display.terminal import columns, one_line

    with connect(a) as desk:
        if a.what == "create":
            if len(a.words) != 1:
                raise Usage("turn project create: exactly one key is expected", hint="turn project create WEB")
            created = desk.create_project(a.words[0], a.name, once=a.idempotency_key)
            return out(a, created, [f"Created project {created['key']}.", f'Next: turn create "…" --project {created["key"]}'])
        if a.what == "set":
            key = a.words[0].upper() if len(a.words) == 3 else None if a.workspace else desk.project
            if len(a.words) not in (2, 3):
                raise Usage("turn project set: a setting and a value are expected", hint="Settings: " + ", ".join(SETTINGS))
            desk.set(a.words[-2], a.words[-1], key, key=a.idempotency_key)
            changed = next((p for p in desk.projects() if key in (None, p["key"])), None)
            return out(a, changed, [f"Set {a.words[-2]} of {key or 'all projects'} to {a.words[-1]}."])
        projects = desk.projects()
        if a.what == "show":
            wanted = (a.words[0] if a.words else desk.project).upper()
            shown = next((p for p in projects if p["key"] == wanted), None)
            if shown is None:
                raise NotFound(f"There is no project {wanted}", hint="List them with: turn project list")
            head = f"{shown['key']}  {one_line(shown['name'])}, {shown['open_tasks']} open"
            settings = shown["settings"].items()
            rows = [[f"  {name}", _value(value), about.about] for name, value in settings if (about := row(name))]
            return out(a, shown, lambda: [head, *columns(rows)])
    return out(a, projects, lambda: columns([[p["key"], one_line(p["name"]), f"{p['open_tasks']} open"] for p in projects]))


def _value(value: Any) -> str:
    from ..display.terminal import length

    if isinstance(value, bool):
        return "yes" if value else "no"
    return length(value) if isinstance(value, float) else str(value)


def user_args(p: Any) -> None:
    words = ("list", "add", "set", "remove", "password", "link", "sessions", "logout")
    p.add_argument("what", nargs="?", choices=words, default="list", metavar="|".join(words))
    p.add_argument("name", nargs="?", metavar="NAME", help="a person's name; for logout, the number of a session")
    p.add_argument(
        "--role",
        default="member",
        choices=tuple(r for r in ROLES if r not in ("system", "agent")),
        metavar="ROLE",
        help="viewer, member, approver or admin",
    )
    p.add_argument("--public-url", metavar="URL", default="", help=f"for link: the address of the server ({DEFAULT_URL})")
    keyed(p)


def _password(name: str) -> str:
    """Prompts twice without echo; without a terminal, reads one line of standard input."""
    if sys.stdin is None:
        raise Invalid("Standard input is closed")
    if not sys.stdin.isatty():
        return sys.stdin.readline(2000).rstrip("\r\n")
    from getpass import getpass

    password = getpass(f"New password of {name}: ")
    if getpass("Repeat it: ") != password:
        raise Invalid("The two passwords differ", hint="Nothing was changed. Try again.")
    return password


def user(a: Namespace) -> int:
    from ..display.terminal import columns, one_line

    with connect(a) as desk:
        if a.what == "list":
            users = desk.users()
            none = ["No users yet: everyone who can open this database is an admin."]
            return out(a, users, lambda: columns([[u["name"], u["role"]] for u in users]) or none)
        if a.what == "sessions":
            sessions = [s for s in desk.sessions() if a.name in (None, s["actor"].partition(":")[2])]
            rows = [[str(s["id"]), s["actor"], one_line(s["about"]), f"until {s['expires_at'][:10]}"] for s in sessions]
            return out(a, sessions, lambda: columns(rows) or ["No sessions."])
        if a.name is None:
            raise Usage(f"turn user {a.what}: no name given", hint=f"turn user {a.what} ana")
        if a.what == "link":
            return _link(a, desk)
        if a.what == "password":
            desk.set_password(a.name, _password(a.name), key=a.idempotency_key)
            return out(a, {"user": a.name}, [f"Changed the password of {a.name} and ended their sessions."])
        if a.what == "logout":
            if not a.name.isdigit():
                raise Usage("turn user logout: no session number given", hint="List them with: turn user sessions")
            desk.end_session(int(a.name[:18]), key=a.idempotency_key)
            return out(a, {"ended": int(a.name[:18])}, [f"Ended session {a.name}."])
        if a.what == "remove":
            desk.remove_user(a.name, key=a.idempotency_key)
            return out(a, {"removed": a.name}, [f"Removed {a.name} and their tokens."])
        row = desk.set_user(a.name, a.role, key=a.idempotency_key)
    return out(a, row, [f"{row['name']} has the role {row['role']} now."])


def _link(a: Namespace, desk: Any) -> int:
    from ..server.address import server_address

    server = getattr(desk, "url", "")
    url = server_address(public_url=a.public_url).public_url if a.public_url else server or DEFAULT_URL
    link = desk.create_link(a.name, key=a.idempotency_key)
    link["url"] = f"{url}/enter/{link['link']}"
    assumed = not a.public_url and not server
    lines = [
        link["url"],
        f"Signs {link['actor'].partition(':')[2]} in, once, within 15 minutes{', while turn serve runs there' * assumed}.",
    ]
    if assumed:
        lines.append(f"Another address? turn user link {a.name} --public-url https://turn.example.org")
    return out(a, link, lines)


def token_args(p: Any) -> None:
    p.add_argument("what", nargs="?", choices=("list", "create", "revoke"), default="list", metavar="list|create|revoke")
    p.add_argument("name", nargs="?", metavar="NAME")
    p.add_argument(
        "--role",
        default="agent",
        choices=tuple(r for r in ROLES if r != "system"),
        metavar="ROLE",
        help="agent, viewer, member, approver or admin",
    )
    p.add_argument("--actor", metavar="WHO", help="the actor of its requests (agent:NAME or human:NAME)")
    p.add_argument("--scope", metavar="SCOPES", help=f"what it allows: {', '.join(SCOPES)} (agents usually need work)")
    p.add_argument("--expires", metavar="TIME", help="how long it is valid: 30d")
    keyed(p)


def token(a: Namespace) -> int:
    from ..display.terminal import columns

    with connect(a) as desk:
        if a.what == "list":
            tokens = desk.tokens()
            rows = [[t["name"], t["actor"], t["role"], ", ".join(t["scopes"]), _validity(t)] for t in tokens]
            return out(a, tokens, lambda: columns(rows) or ["No tokens."])
        if a.name is None:
            raise Usage(f"turn token {a.what}: no name given", hint=f"turn token {a.what} coder")
        if a.what == "revoke":
            desk.revoke_token(a.name, key=a.idempotency_key)
            return out(a, {"revoked": a.name}, [f"Revoked {a.name}."])
        scopes = a.scope.replace(" ", ",").split(",") if a.scope else None
        row = desk.create_token(a.name, a.role, actor=a.actor, scopes=scopes, expires=a.expires, key=a.idempotency_key)
    allows = f", for {', '.join(row['scopes'])}" if row["scopes"] else ""
    return out(a, row, [row["token"], f"For {row['actor']}, role {row['role']}{allows}. It is shown only once."])


def _validity(token: dict[str, Any]) -> str:
    if token["revoked_at"]:
        return "revoked"
    return f"until {token['expires_at'][:10]}" if token["expires_at"] else ""


def reconcile_args(p: Any) -> None:
    p.add_argument("--watch", action="store_true", help="keep running")
    p.add_argument("--every", default="60s", metavar="TIME", help="with --watch: the longest pause (60s)")


def reconcile(a: Namespace) -> int:
    from ..core.fields import span

    with connect(a) as desk:
        if not a.watch:
            counts = desk.reconcile()
            return out(a, counts, [_reconciled(counts)])
        import json

        pause = span("--every", a.every) / 1_000_000
        try:
            while True:
                counts = desk.reconcile()
                if counts["moved"] or counts["failed"]:
                    print(json.dumps(counts) if a.json else _reconciled(counts), flush=True)
                desk.sleep_until_due(pause)
        except KeyboardInterrupt:
            return 0


def _reconciled(counts: dict[str, int]) -> str:
    moved, failed = counts["moved"], counts["failed"]
    line = f"Moved {moved} {'task' if moved == 1 else 'tasks'}." if moved else "Nothing was due."
    return line + (f" {failed} failed: see turn doctor." if failed else "")


def doctor_args(p: Any) -> None:
    p.add_argument("--strict", action="store_true", help="also check every event against the rules; warnings count as failures")


def doctor(a: Namespace) -> int:
    from ..display.terminal import columns, safe
    from ..health.doctor import examine

    with connect(a) as desk:
        checks = examine(desk, a.strict)
    failed = [c for c in checks if c["status"] == "bad" or (a.strict and c["status"] == "warn")]
    marks = {"ok": "✓", "warn": "!", "bad": "✗"}
    hints = [f"  {safe(c['check'])}: {safe(c['hint'])}" for c in checks if c["status"] != "ok" and c["hint"]]
    out(a, checks, lambda: [*columns([[marks[c["status"]], c["check"], safe(c["words"])] for c in checks]), *hints])
    return 1 if failed else 0


def audit_args(p: Any) -> None:
    p.add_argument("what", nargs="?", choices=("verify", "anchor"), default="verify", metavar="verify|anchor")
    p.add_argument("--anchor", metavar="FILE", help="compare with an anchor from an earlier turn audit anchor")


def audit(a: Namespace) -> int:
    import json

    from ..health.audit import anchor, verify

    with connect(a) as desk:
        if a.what == "anchor":
            print(json.dumps(anchor(desk)))
            return 0
        result = verify(desk, _read_anchor(a.anchor) if a.anchor else None)
    problems = result["problems"]
    if result["ok"]:
        lines = [f"✓ {result['events']} events in {result['chains']} chains: nothing was changed."]
    else:
        lines = [f"✗ {len(problems)} {'problem' if len(problems) == 1 else 'problems'}"]
        lines += [f"  {p['chain']} #{p['n']}: {p['what']}" for p in problems[:50]]
    out(a, result, lines)
    return 0 if result["ok"] else 1


def _read_anchor(path: str) -> Any:
    from ..core.canonical_json import loads

    try:
        with open(path, encoding="utf-8") as file:  # noqa: PTH123
            anchor = loads(file.read(), path)
    except (OSError, UnicodeDecodeError) as error:
        raise Invalid(f"Cannot read {path}", reason=str(error)) from None
    if not isinstance(anchor, dict) or not isinstance(anchor.get("heads"), dict):
        raise Invalid(f"{path} is not an anchor", hint="Write one with: turn audit anchor > anchor.json")
    return anchor


def demo_args(p: Any) -> None:
    p.add_argument("--text", action="store_true", help="run it in this terminal, without a browser")


def demo(a: Namespace) -> int:
    from ..demo import main

    return main(["--text"] if a.text else [])


def completion_args(p: Any) -> None:
    p.add_argument("shell", nargs="?", choices=("bash", "zsh", "fish"), metavar="bash|zsh|fish")


def completion(a: Namespace) -> int:
    from .completion import script

    text = script(a.shell or os.path.basename(os.environ.get("SHELL", "bash")))  # noqa: PTH119
    return out(a, text, [text])
