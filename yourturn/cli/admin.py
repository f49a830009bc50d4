"""The desk itself on the command line: making one, projects, people, tokens, and whether all is well."""

from __future__ import annotations

import os
from argparse import Namespace
from typing import Any

from ..core.errors import Invalid, Usage
from ..core.permissions import SCOPES
from ..core.rules import ROLES
from .parser import connect, keyed
from .parser import show as out

#: Where `turn serve` is, if nothing else was said.
HERE = "http://127.0.0.1:8321"


def help__args(p: Any) -> None:
    pass


def help_(a: Namespace) -> int:
    from .main import help_text

    print(help_text())
    return 0


def init_args(p: Any) -> None:
    p.add_argument("--key", metavar="PROJ", help="the project's key (the folder's name)")
    p.add_argument("--name", metavar="TEXT", help="the project's name")
    p.add_argument("--upgrade", action="store_true", help="bring an older database up to date")


def init(a: Namespace) -> int:
    from ..config import init

    desk, about = init(a.db, a.key or a.project, a.name, os.environ, a.upgrade)
    desk.close()
    word = "Made a desk" if about["created"] else "There is a desk"
    return out(a, about, [f"{word} at {about['db']}, project {about['project']}.", 'Next: turn create "What is to be done"'])


def project_args(p: Any) -> None:
    p.add_argument("what", nargs="?", choices=("list", "create", "show", "set"), default="list", metavar="list|create|show|set")
    p.add_argument("words", nargs="*", metavar="…", help="create KEY; show [KEY]; set [KEY] SETTING VALUE")
    p.add_argument("--name", metavar="TEXT", help="for create")
    p.add_argument("--workspace", action="store_true", help="set it for all projects")
    keyed(p)


def project(a: Namespace) -> int:
    from ..core.settings import SETTINGS, row
    from ..display.terminal import columns, one_line

    with connect(a) as desk:
        if a.what == "create":
            if len(a.words) != 1:
                raise Usage("turn project create: one key is wanted", hint="turn project create WEB")
            made = desk.create_project(a.words[0], a.name, once=a.idempotency_key)
            return out(a, made, [f"Created project {made['key']}.", f'Next: turn create "…" --project {made["key"]}'])
        if a.what == "set":
            key = a.words[0].upper() if len(a.words) == 3 else None if a.workspace else desk.project
            if len(a.words) not in (2, 3):
                raise Usage("turn project set: a setting and a value are wanted", hint="Settings: " + ", ".join(SETTINGS))
            desk.set(a.words[-2], a.words[-1], key, key=a.idempotency_key)
            found = next((p for p in desk.projects() if key in (None, p["key"])), None)
            return out(a, found, [f"{key or 'The workspace'}: {a.words[-2]} is {a.words[-1]} now."])
        found = desk.projects()
        if a.what == "show":
            wanted = (a.words[0] if a.words else desk.project).upper()
            one = next((p for p in found if p["key"] == wanted), None)
            if one is None:
                from ..core.errors import NotFound

                raise NotFound(f"There is no project {wanted}", hint="See them with: turn project list")
            rows = [[f"  {name}", _value(value), about.about] for name, value in one["settings"].items() if (about := row(name))]
            return out(a, one, lambda: [f"{one['key']}  {one_line(one['name'])}, {one['open_tasks']} open", *columns(rows)])
    return out(a, found, lambda: columns([[p["key"], one_line(p["name"]), f"{p['open_tasks']} open"] for p in found]))


def _value(value: Any) -> str:
    from ..display.terminal import length

    if isinstance(value, bool):
        return "yes" if value else "no"
    return length(value) if isinstance(value, float) else str(value)


def user_args(p: Any) -> None:
    words = ("list", "add", "set", "remove", "password", "link", "sessions", "logout")
    p.add_argument("what", nargs="?", choices=words, default="list", metavar="|".join(words))
    p.add_argument("name", nargs="?", metavar="NAME", help="who; for logout, the number of a session")
    p.add_argument(
        "--role",
        default="member",
        choices=tuple(r for r in ROLES if r not in ("system", "agent")),
        metavar="ROLE",
        help="viewer, member, approver or admin",
    )
    p.add_argument("--public-url", metavar="URL", default="", help=f"for link: the address of the server ({HERE})")
    keyed(p)


def _address(given: str) -> str:
    from ..http.auth import place

    return place(public_url=given).public_url


def _password(name: str) -> str:
    """Typed twice without being seen; or one line of standard input."""
    import sys

    if sys.stdin is None:
        raise Invalid("Standard input is closed")
    if not sys.stdin.isatty():
        return sys.stdin.readline(2000).rstrip("\r\n")
    from getpass import getpass

    found = getpass(f"New password of {name}: ")
    if getpass("Again: ") != found:
        raise Invalid("The two are not the same", hint="Nothing was changed. Try again.")
    return found


def user(a: Namespace) -> int:
    from ..display.terminal import columns, one_line

    with connect(a) as desk:
        if a.what == "list":
            found = desk.users()
            return out(
                a,
                found,
                lambda: (
                    columns([[u["name"], u["role"]] for u in found])
                    or ["Nobody is named yet: whoever opens this database is its admin."]
                ),
            )
        if a.what == "sessions":
            there = [s for s in desk.sessions() if a.name in (None, s["actor"].partition(":")[2])]
            rows = [[str(s["id"]), s["actor"], one_line(s["about"]), f"until {s['expires_at'][:10]}"] for s in there]
            return out(a, there, lambda: columns(rows) or ["Nobody is logged in."])
        if a.name is None:
            raise Usage(f"turn user {a.what}: who?", hint=f"turn user {a.what} ana")
        if a.what == "password":
            desk.set_password(a.name, _password(a.name), key=a.idempotency_key)
            return out(a, {"user": a.name}, [f"{a.name} has a new password. Whoever was logged in as them is out."])
        if a.what == "link":
            given, server = a.public_url, getattr(desk, "url", "")
            where = _address(given) if given else server or HERE
            made = desk.create_link(a.name, key=a.idempotency_key)
            made["url"] = f"{where}/enter/{made['link']}"
            here = "" if given or server else ", while turn serve runs there"
            lines = [made["url"], f"Lets {made['actor'].partition(':')[2]} in, once, within 15 minutes{here}."]
            if here:
                lines.append(f"Is it elsewhere? turn user link {a.name} --public-url https://turn.example.org")
            return out(a, made, lines)
        if a.what == "logout":
            if not a.name.isdigit():
                raise Usage("turn user logout: which session?", hint="See them with: turn user sessions")
            desk.end_session(int(a.name[:18]), key=a.idempotency_key)
            return out(a, {"ended": int(a.name[:18])}, [f"Session {a.name} is over."])
        if a.what == "remove":
            desk.remove_user(a.name, key=a.idempotency_key)
            return out(a, {"removed": a.name}, [f"Removed {a.name} and their tokens."])
        made = desk.set_user(a.name, a.role, key=a.idempotency_key)
    return out(a, made, [f"{made['name']} has the role {made['role']} now."])


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
    p.add_argument("--actor", metavar="WHO", help="whom it speaks for (agent:NAME or human:NAME)")
    p.add_argument("--scope", metavar="SCOPES", help=f"good for these only: {', '.join(SCOPES)} (an agent's usual one is work)")
    p.add_argument("--expires", metavar="TIME", help="worthless after so long: 30d")
    keyed(p)


def token(a: Namespace) -> int:
    from ..display.terminal import columns

    with connect(a) as desk:
        if a.what == "list":
            found = desk.tokens()
            state = [
                ("revoked" if t["revoked_at"] else f"until {t['expires_at'][:10]}" if t["expires_at"] else "") for t in found
            ]
            rows = [[t["name"], t["actor"], t["role"], ", ".join(t["scopes"]), s] for t, s in zip(found, state, strict=True)]
            return out(a, found, lambda: columns(rows) or ["There are no tokens."])
        if a.name is None:
            raise Usage(f"turn token {a.what}: which name?", hint=f"turn token {a.what} coder")
        if a.what == "revoke":
            desk.revoke_token(a.name, key=a.idempotency_key)
            return out(a, {"revoked": a.name}, [f"{a.name} is worthless now."])
        scopes = a.scope.replace(" ", ",").split(",") if a.scope else None
        made = desk.create_token(a.name, a.role, actor=a.actor, scopes=scopes, expires=a.expires, key=a.idempotency_key)
    good = f", for {', '.join(made['scopes'])}" if made["scopes"] else ""
    return out(a, made, [made["token"], f"For {made['actor']}, role {made['role']}{good}. It is shown this once."])


def reconcile_args(p: Any) -> None:
    p.add_argument("--watch", action="store_true", help="go on, as things become due")
    p.add_argument("--every", default="60s", metavar="TIME", help="at most so long between two looks (60s)")


def reconcile(a: Namespace) -> int:
    from ..core.fields import span

    with connect(a) as desk:
        if not a.watch:
            found = desk.reconcile()
            return out(a, found, [_reconciled(found)])
        import json

        every = span("--every", a.every) / 1_000_000
        try:
            while True:
                found = desk.reconcile()
                if found["moved"] or found["failed"]:
                    print(json.dumps(found) if a.json else _reconciled(found), flush=True)
                desk.sleep_until_due(every)
        except KeyboardInterrupt:
            return 0


def _reconciled(found: dict[str, int]) -> str:
    words = f"{found['moved']} {'task' if found['moved'] == 1 else 'tasks'} moved." if found["moved"] else "Nothing was due."
    return words + (f" {found['failed']} could not: see turn doctor." if found["failed"] else "")


def doctor_args(p: Any) -> None:
    p.add_argument("--strict", action="store_true", help="judge every event too; warnings count as trouble")


def doctor(a: Namespace) -> int:
    from ..display.terminal import columns, safe
    from ..health.doctor import examine

    with connect(a) as desk:
        found = examine(desk, a.strict)
    bad = [c for c in found if c["status"] == "bad" or (a.strict and c["status"] == "warn")]
    marks = {"ok": "✓", "warn": "!", "bad": "✗"}
    hints = [f"  {safe(c['check'])}: {safe(c['hint'])}" for c in found if c["status"] != "ok" and c["hint"]]
    out(a, found, lambda: [*columns([[marks[c["status"]], c["check"], safe(c["words"])] for c in found]), *hints])
    return 1 if bad else 0


def audit_args(p: Any) -> None:
    p.add_argument("what", nargs="?", choices=("verify", "anchor"), default="verify", metavar="verify|anchor")
    p.add_argument("--anchor", metavar="FILE", help="compare with an anchor written before")


def audit(a: Namespace) -> int:
    import json

    from ..health.audit import anchor, verify

    with connect(a) as desk:
        if a.what == "anchor":
            print(json.dumps(anchor(desk)))
            return 0
        found = verify(desk, _read_anchor(a.anchor) if a.anchor else None)

    def lines() -> list[str]:
        if found["ok"]:
            return [f"✓ {found['events']} events in {found['chains']} chains: nothing was changed."]
        return [
            f"✗ {len(found['problems'])} problems",
            *(f"  {p['chain']} #{p['n']}: {p['what']}" for p in found["problems"][:50]),
        ]

    out(a, found, lines)
    return 0 if found["ok"] else 1


def _read_anchor(path: str) -> Any:
    from ..core.canonical_json import loads

    try:
        with open(path, encoding="utf-8") as file:  # noqa: PTH123
            found = loads(file.read(), path)
    except (OSError, UnicodeDecodeError) as error:
        raise Invalid(f"{path} cannot be read", reason=str(error)) from None
    if not isinstance(found, dict) or not isinstance(found.get("heads"), dict):
        raise Invalid(f"{path} is no anchor", hint="Write one with: turn audit anchor > anchor.json")
    return found


def demo_args(p: Any) -> None:
    p.add_argument("--text", action="store_true", help="tell it in this terminal, without a browser")


def demo(a: Namespace) -> int:
    from ..demo import main

    return main(["--text"] if a.text else [])


def completion_args(p: Any) -> None:
    p.add_argument("shell", nargs="?", choices=("bash", "zsh", "fish"), metavar="bash|zsh|fish")


def completion(a: Namespace) -> int:
    from .completion import script

    text = script(a.shell or os.path.basename(os.environ.get("SHELL", "bash")))  # noqa: PTH119
    return out(a, text, [text])
