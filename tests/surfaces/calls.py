"""How each surface passes the values of argument_values.py, and which ones it leaves out, with the reason.

A surface is a function: the scene, the verb and its arguments in, "" or the code of the error out. An argument that a surface
has and that is not in its LACKS is said; where it does not arrive, the test of that surface fails.
"""

from __future__ import annotations

import json
import os
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

from tests import forked_commands
from tests.fixtures.server import Site
from tests.surfaces.argument_values import ACTION, CODER, TASK, Scene
from yourturn.api.handlers import VERB_ROUTES
from yourturn.cli.command_table import COMMANDS
from yourturn.client import Client
from yourturn.client.remote import RemoteClient
from yourturn.core.actions import VERBS
from yourturn.core.errors import YourturnError
from yourturn.core.rules import ADMIN_VERBS
from yourturn.mcp.session import LocalSession
from yourturn.mcp.tool_schemas import TOOLS
from yourturn.mcp.tools import CallId, Tools
from yourturn.server import auth
from yourturn.web.page_version import mark
from yourturn.web.task_actions import ACTIONS

Args = dict[str, Any]
Say = Callable[[Site, Path, Scene, str, Args], str]

# --- Python, here and over a server -------------------------------------------------------------------------------------

#: Methods whose first argument is the claim; those whose first is a question.
_HOLDER = ("heartbeat", "release", "park", "complete", "fail", "decompose")
_QUESTION = ("answer", "approve", "reject", "withdraw", "use", "assign")


def _client(client: Client, s: Scene, verb: str, args: Args) -> None:
    if verb == "create":
        client.create(**args)
    elif verb == "update":
        client.update(s.key, **args.pop("fields"), **args)
    elif verb in ("dep_add", "dep_remove"):
        (client.depend if verb == "dep_add" else client.undepend)(s.key, *args["needs"])
    elif verb == "step":
        client.record({"task": s.key, "token": args.pop("claim")}, **args)
    elif verb in _HOLDER:
        getattr(client, verb)(s.key, proof=args.pop("claim"), **args)
    elif verb in _QUESTION:
        getattr(client, verb)(s.question or s.key, **args)
    elif verb in ADMIN_VERBS:
        _office(client, verb, args)
    else:
        getattr(client, verb)(s.key, **args)


def _office(client: Client, verb: str, args: Args) -> None:
    if verb == "project_create":
        client.create_project(args["project"], args["name"])
    elif verb == "project_set":
        client.set(**args)
    elif verb.startswith("user"):
        (client.set_user if verb == "user_set" else client.remove_user)(args.pop("user"), **args)
    else:
        (client.create_token if verb == "token_create" else client.revoke_token)(**args)


def python(site: Site, folder: Path, s: Scene, verb: str, args: Args) -> str:
    try:
        _client(site.desk, s, verb, args)
    except YourturnError as error:
        return error.code
    return ""


def remote(site: Site, folder: Path, s: Scene, verb: str, args: Args) -> str:
    client = RemoteClient(site.url, site.token("admin"))
    try:
        _client(client, s, verb, args)
    except YourturnError as error:
        return error.code
    finally:
        client.close()
    return ""


# --- HTTP -----------------------------------------------------------------------------------------------------------------


def http(site: Site, folder: Path, s: Scene, verb: str, args: Args) -> str:
    if verb == "create":
        reply = site.post("/api/tasks", args)
    elif verb == "update":
        reply = site.post(f"/api/tasks/{s.key}/update", {**args.pop("fields"), **args})
    else:
        reply = site.post(f"/api/tasks/{s.question if verb in _QUESTION and s.question else s.key}/{verb}", args)
    return "" if reply.status < 300 else reply.code


def jobs(site: Site, folder: Path, s: Scene, verb: str, args: Args) -> str:
    if verb == "ask":
        kind, blocking = args.pop("kind", "input"), args.pop("blocking", True)
        sort = {"input": "blocking", "recovery": "error_recovery", "permission": "approval"}[kind] if blocking else "non_blocking"
        body = {"type": sort, "responseType": args.pop("response_type", "text"), "question": args.pop("text")}
        if "timeout" in args:
            body["timeoutMinutes"] = {"2h": 120}[args.pop("timeout")]
        if "default" in args:
            body["defaultResponse"] = {"value": args.pop("default")}
        reply = site.post(f"/api/jobs/{s.key}/questions", body | args)
    else:
        said = {name: args.pop(name) for name in ("value", "text") if name in args}
        if "verdict" in args:
            said["value"] = args.pop("verdict") == "approved"
        reply = site.post(f"/api/questions/{s.question}/answer", {"response": said, **args})
    return "" if reply.status < 300 else reply.code


# --- the command ------------------------------------------------------------------------------------------------------------

_FLAGS = {"worker": "--worker-id", "labels": "--label", "options": "--option", "children": "--child", "issues": "--issue", "scopes": "--scope", "project": "-p"}


def _flags(args: Args) -> list[str]:
    found: list[str] = []
    for name, value in args.items():
        flag = _FLAGS.get(name, f"--{name.replace('_', '-')}")
        if name == "blocking":
            found += ["--non-blocking"] if value is False else []
        elif value is True:
            found.append(flag)
        elif name == "options":
            found += [word for option in value for word in (flag, f"{option['value']}={option['description']}")]
        elif isinstance(value, list):
            found += [word for one in value for word in (flag, one["title"] if isinstance(one, dict) else str(one))]
        else:
            found += [flag, json.dumps(value) if isinstance(value, dict) else str(value)]
    return found


def _words(s: Scene, verb: str, args: Args) -> list[str]:
    """The line, without `turn`."""
    about = s.question or s.key
    if verb == "create":
        return ["create", args.pop("title"), *_flags(args)]
    if verb == "update":
        return ["update", s.key, *_flags({**args.pop("fields"), **args})]
    if verb == "hand_back":
        return ["update", s.key, "--awaiting=null", *_flags(args["fields"])]
    if verb == "flag" and "fields" in args:  # changed together: the command for fields
        said = {"awaiting": args.pop("kind"), "question": args.pop("text"), **args.pop("fields"), **args}
        return ["update", s.key, *_flags(said)]
    if verb in ("dep_add", "dep_remove"):
        return ["dep", verb[4:], s.key, *args["needs"]]
    if verb in ("ask", "flag", "note"):
        return [verb, s.key, args.pop("text"), *_flags(args)]
    if verb in ("answer", "assign"):
        return [verb, about, *([args.pop(n) for n in ("value", "reviewer") if n in args]), *_flags(args)]
    if verb in ("approve", "reject"):
        return [verb, about, *([args.pop("text")] if "text" in args else []), *_flags(args)]
    if verb == "use":
        right = args.pop("digest") == s.digest
        return ["use", about, "--action", json.dumps(ACTION if right else {"tool": "rm"}), *_flags(args)]
    if verb == "project_create":
        return ["project", "create", args["project"], "--name", args["name"]]
    if verb == "project_set":
        return ["project", "set", args["project"], args["setting"], args["value"]]
    if verb in ADMIN_VERBS:
        what, _, word = verb.partition("_")
        word = {"set": "add"}.get(word, word) if what == "user" else word
        return [what, word, args.pop("user", None) or args.pop("name"), *_flags(args)]
    return [verb.replace("_", "-"), s.question if verb == "withdraw" else s.key, *_flags(args)]


def command(site: Site, folder: Path, s: Scene, verb: str, args: Args) -> str:
    env = {name: value for name, value in os.environ.items() if not name.startswith("YOURTURN_")}
    env |= {"YOURTURN_DB": site.address, "USER": "ana", "HOME": str(folder)}
    if "step" in args:  # the agent of a step has it in its environment
        env |= {"YOURTURN_STEP": args.pop("step"), "YOURTURN_CLAIM": args["claim"], "YOURTURN_AGENT": "coder"}
    done = forked_commands.turn([*_words(s, verb, args), "--json"], folder, env)
    if done.returncode == 0:
        return ""
    assert "Traceback" not in done.stderr, done.stderr
    return str(json.loads(done.stderr)["error"]["code"]) + (f": {done.stderr}" if done.returncode == 2 else "")


# --- the protocol of agents ---------------------------------------------------------------------------------------------------

_TOOLS = {"complete": "complete_task", "flag": "flag_task", "decompose": "decompose_task", "release": "release_task", "note": "add_note"}


def mcp(site: Site, folder: Path, s: Scene, verb: str, args: Args) -> str:
    env = {"YOURTURN_TASK": s.key, "YOURTURN_CLAIM": s.claim, "YOURTURN_ASK_WAIT": "0"}
    step = args.pop("step", None)
    tools = Tools(LocalSession(lambda _: site.desk.as_(CODER), env | ({"YOURTURN_STEP": step} if step else {})))
    args.pop("claim", None)  # the session's
    if verb == "ask":
        kind, blocking = args.pop("kind", "input"), args.pop("blocking", True)
        tool = "ask_question"
        if "timeout" in args:
            args["timeoutMinutes"] = {"2h": 120}[args.pop("timeout")]
        if "action" in args:
            tool, action = "request_permission", args.pop("action")
            args |= {"reason": args.pop("text"), **action}
        else:
            sort = {"input": "blocking", "recovery": "error_recovery"}[kind] if blocking else "non_blocking"
            args |= {"question": args.pop("text"), "type": sort, "responseType": args.pop("response_type", "text")}
        if "default" in args:
            args["defaultResponse"] = {"value": args.pop("default")}
    else:
        tool = _TOOLS[verb]
    try:
        tools.perform(tool, args, CallId("s", uuid.uuid4().hex))
    except YourturnError as error:
        return f"{error.code}: {error}"
    return ""


# --- forms --------------------------------------------------------------------------------------------------------------------


def web(site: Site, folder: Path, s: Scene, verb: str, args: Args) -> str:
    session = site.desk.use_link(site.desk.create_link("ana")["link"])["session"]
    where = f"/tasks/{s.key}/{verb}"
    if verb == "create":
        where = "/tasks/new"
        args = {name: " ".join(value) if isinstance(value, list) else value for name, value in args.items()}
    elif verb == "answer":
        where, verdict = f"/questions/{s.question}/answer", args.pop("verdict", "approved")
        args["say"] = verdict
        if args.pop("restart", None):
            where, args = f"/questions/{s.question}/late", {"do": "restart", "note": args["value"]}
    elif verb == "reject":
        args = {"reason": args["text"]}
    elif verb in ADMIN_VERBS:
        path = {"project_create": "newproject", "project_set": "project", "user_set": "member", "user_remove": "remove",
                "token_create": "token", "token_revoke": "revoke"}[verb]  # fmt: skip
        where = f"/settings/{path}"
        if "user" in args:
            args["name"] = args.pop("user")
        if "scopes" in args:
            args["scope"] = args.pop("scopes")[0]
        if verb == "project_set":
            args = {"project": args["project"], args["setting"]: args["value"]}
    if verb in ACTIONS:
        args["as_of"] = mark(site.desk.show(s.key))
    form = urlencode({"csrf": auth.csrf_token(session), **{n: "1" if v is True else v for n, v in args.items()}})
    headers = {"Content-Type": "application/x-www-form-urlencoded", "Cookie": f"yourturn={session}", "Origin": site.url}
    reply = site.call("POST", where, raw=form.encode(), role=None, headers=headers)
    return "" if reply.status < 400 else f"{reply.status}: {reply.raw.decode()[:2000]}"


# --- which verbs, and what is left out --------------------------------------------------------------------------------------------

#: Verbs that no surface says with arguments of its own, and why.
NOWHERE = {
    **dict.fromkeys(("block", "unblock", "parent", "expire", "timeout", "fence"), "the system's own: decide() makes their arguments"),
    "import": "said by data/task_import.py from another tracker's files, field by field: tests/data/test_trackers.py",
    **dict.fromkeys(("password_set", "login", "logout", "link_create", "link_use"), "secrets of the door: tests/server/test_security.py"),
    "prefs_set": "one mapping, under the speaker's own name: tests/web/test_settings.py",
    "restore": "said by a restore of a file: tests/data/test_restore.py",
}
SAID = frozenset(VERBS) - NOWHERE.keys()

SURFACES: dict[str, tuple[Say, frozenset[str]]] = {
    "python": (python, SAID),
    "remote": (remote, SAID),
    "http": (http, frozenset({"create", *VERB_ROUTES})),
    "jobs": (jobs, frozenset({"ask", "answer"})),
    "command": (command, frozenset(v for v in SAID if v.replace("_", "-") in COMMANDS or v.partition("_")[0] in ("dep", "project", "user", "token"))),
    "mcp": (mcp, frozenset({"ask", *_TOOLS})),
    "web": (web, (frozenset(ACTIONS) | {"create", "answer", "note"} | {v for v in SAID if v in ADMIN_VERBS}) - {"approve"}),
}  # fmt: skip
#: Tools that say no verb of their own: they look, or take what has no arguments here.
LOOKING = {"get_answer", "get_task", "next_task", "report_progress", "approve", "ask_question", "request_permission"}
assert set(TOOLS) == LOOKING | set(_TOOLS.values())

_OWN = "what the word itself says"
_SCRIPT = "only the script of a run says it, through the Python client or HTTP"
_SOURCE = "the source of a run is written down by `record`"
_SECRET = "made by the desk"
_CLAIMLESS = "people say it, and hold no claim"
_SEAT = "the seat shows its own claim"
_FIXED = "the schema of the tool is settled; flag_task and the desk's own API say more"
_JOBS = "the schema of the job API is settled; the desk's own API says more"
_ASK_INSTEAD = "an agent that wants an answer of a certain form asks with ask_question"
_LIMITS = "gates and limits of a part are people's to set"
_MACHINE = "a worker notes where its session lives; it does so through the Python client"
_QUICK = "a form for a quick task; the command and the API say more"
_STEPLESS = "said by who answers for a step, with turn signal or turn continue"

#: (surface, verb) -> argument -> why the surface leaves it out. "*" stands for every surface or every verb.
LACKS: dict[tuple[str, str], dict[str, str]] = {
    ("*", "claim"): {"secret": _SECRET},
    ("*", "token_create"): {"secret": _SECRET},
    ("*", "approve"): {"verdict": _OWN, "signal": _STEPLESS},
    ("*", "reject"): {
        "verdict": _OWN, "signal": _STEPLESS, "value": "a no has words, and no value",
        "reason": "said as text",
    },
    ("*", "park"): {"program": _SOURCE},
    ("*", "complete"): {"program": _SOURCE},
    ("*", "fail"): {"program": _SOURCE},
    ("http", "create"): {"program": "only an admin brings code, with the command or the Python client"},
    ("jobs", "ask"): {
        **dict.fromkeys(("claim", "worker", "step"), "a job's question drops the claim, if any"),
        **dict.fromkeys(("reason", "urgency", "multi", "allow_other", "group", "on_timeout", "reviewer"), _JOBS),
        **dict.fromkeys(("confidence", "action", "metadata"), _JOBS),
    },
    ("jobs", "answer"): {"signal": _STEPLESS},
    ("command", "create"): {"workflow": "runs are started with turn run", "program": "runs are started with turn run"},
    ("command", "update"): {"fields.host": _MACHINE, "fields.seat": _MACHINE},
    ("command", "flag"): {
        "steps": _SCRIPT, "program": _SCRIPT, "hold": "in a step it is held without being told",
        "once": "update --awaiting says it where no question is given",
        "also": "a handoff of several questions is a signal; a command asks one after the other",
    },
    ("command", "answer"): {"signal": _STEPLESS},
    **{("command", verb): {"steps": _SCRIPT, "journal": _SCRIPT} for verb in ("complete", "fail")},
    ("command", "park"): {"steps": _SCRIPT},
    ("command", "decompose"): dict.fromkeys(
        (f"children.{name}" for name in (*TASK, "depends_on") if name != "title"), "a title is enough; turn create --parent says more"
    ),
    ("mcp", "ask"): {
        **dict.fromkeys(("claim", "worker"), _SEAT),
        **dict.fromkeys(("reason", "urgency", "multi", "allow_other", "group", "on_timeout", "reviewer", "confidence"), _FIXED),
        "metadata": "the tool's own: which call asked",
    },
    ("mcp", "flag"): {
        **dict.fromkeys(("claim", "worker", "hold"), _SEAT), **dict.fromkeys(("steps", "program"), _SCRIPT),
        **dict.fromkeys(("urgency", "response_type", "options", "multi", "allow_other", "group", "default", "timeout"), _ASK_INSTEAD),
        **dict.fromkeys(("on_timeout", "reviewer", "confidence", "action", "metadata", "once", "replace", "fields"), _ASK_INSTEAD),
        "also": "an agent that has several questions asks each with ask_question",
    },
    ("mcp", "complete"): {**dict.fromkeys(("claim", "worker"), _SEAT), "steps": _SCRIPT, "journal": _SCRIPT},
    ("mcp", "release"): dict.fromkeys(("claim", "worker"), _SEAT),
    ("mcp", "decompose"): {
        **dict.fromkeys(("claim", "worker"), _SEAT),
        **{f"children.{name}": _LIMITS for name in ("type", "requires", "labels", "max_retries", "branch")},
    },
    ("web", "create"): {
        **dict.fromkeys(("role", "max_retries", "branch", "parent", "external_id", "awaiting", "question", "reviewer"), _QUICK),
        **dict.fromkeys(("workflow", "program"), "runs are started with turn run"),
    },
    ("web", "hand_back"): {"fields": "the page changes no fields of a task"},
    ("web", "release"): dict.fromkeys(("claim", "worker"), _CLAIMLESS),
    ("web", "rewind"): {
        **dict.fromkeys(("claim", "worker"), _CLAIMLESS), **dict.fromkeys(("to", "spare"), "the page goes on from where the run was")
    },
    ("web", "defer"): {"reason": "the form asks until when, and nothing else"},
    ("web", "answer"): {"signal": _STEPLESS},
}  # fmt: skip


def lacks(surface: str, verb: str) -> dict[str, str]:
    found: dict[str, str] = {}
    for where in ("*", surface):
        for what in ("*", verb):
            found |= LACKS.get((where, what), {})
    return found
