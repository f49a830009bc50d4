"""Every change that the desk can make: how to prepare it, and how to make it.

`bring` sets the scene on a bench and returns facts, plain values; `act` makes the move from the facts alone, so that another
process can make it. `what` is the change by which failpoints know it: the system's own moves happen inside others'.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

from tests.core.states import SCRIPT, Bench, said
from yourturn.client import Client
from yourturn.core.actions import VERBS
from yourturn.core.model import READY, Who
from yourturn.core.rules import ASKABLE, TRANSITIONS

Facts = dict[str, Any]
_fresh = itertools.count(1)


class Operation(NamedTuple):
    verb: str  #: what it proves: a verb, or a change that is none
    bring: Callable[[Bench], Facts]
    act: Callable[[Client, Facts, str | None], Any]
    who: str = "human:ana"
    what: str = ""
    keyed: bool = False  #: takes an idempotency key
    minutes: int = 0  #: how much later the move is made

    @property
    def change(self) -> str:
        return self.what or self.verb


AGENT = "agent:coder"
BEADS = str(Path(__file__).parent / "issues.jsonl")
OPERATIONS: list[Operation] = []


def _add(verb: str, bring: Any, act: Any, who: str = "human:ana", **more: Any) -> None:
    OPERATIONS.append(Operation(verb, bring, act, who, **more))


def _reconcile(c: Client, f: Facts, k: str | None) -> Any:
    return c.reconcile()


def _task(state: str, **fields: Any) -> Callable[[Bench], Facts]:
    def bring(b: Bench) -> Facts:
        key = b.into(state, **fields)
        return {"task": key, "claim": b.claims.get(key)}

    return bring


def _waiting(state: str, **fields: Any) -> Callable[[Bench], Facts]:
    def bring(b: Bench) -> Facts:
        key, question = b.waiting(state, **fields)
        return {"task": key, "question": question}

    return bring


def _aside(b: Bench) -> Facts:
    key, question = b.asked_aside("ready")
    return {"task": key, "question": question}


def _given(b: Bench) -> Facts:
    facts = _waiting("ready", kind="permission", action={"tool": "Bash"})(b)
    b.desk.approve(facts["question"])
    return facts


def _family(b: Bench) -> Facts:
    return {"task": b.ready(type="epic"), "needs": b.ready()}


def _two(b: Bench) -> Facts:
    return {"task": b.ready(), "needs": b.ready()}


def _tied(b: Bench) -> Facts:
    facts = _two(b)
    b.desk.depend(facts["task"], facts["needs"])
    return facts


def _disappointed(b: Bench) -> Facts:
    """A task that asks a person because what it waits for failed."""
    facts = _tied(b)
    b.desk.fail(facts["needs"], "the API is gone")
    return {**facts, "question": b.desk.show(facts["task"])["questions"][-1]["id"]}


def _accepted_by_silence(b: Bench) -> Facts:
    b.desk.set("review", "2h")
    key = b.review()
    b.desk.set("review", "ask")
    return {"task": key}


def _only_child(b: Bench) -> Facts:
    epic = b.ready(type="epic")
    return {"task": b.ready(parent=epic), "epic": epic}


def _running(b: Bench) -> Facts:
    key = b.running(said("1"), said("2", "running"))
    return {"task": key, "claim": b.claims[key]}


def _asking(b: Bench) -> Facts:
    """A run whose second call asks a person."""
    facts = _running(b)
    more = {"claim": facts["claim"], "step": "2", "steps": [said("2", "waiting")]}
    return {**facts, "question": b.agent.flag(facts["task"], "Which?", kind="input", **more)["questions"][0]["id"]}


def _failed_run(b: Bench) -> Facts:
    facts = _running(b)
    b.agent.fail(facts["claim"], journal=0)
    return facts


def _word(b: Bench) -> Facts:
    return {"word": f"x{next(_fresh)}"}


#: What is stored of a password: here it need not prove one.
PROOF = "scrypt$14$8$5$c2FsdA==$a2V5"


def _known(b: Bench) -> Facts:
    facts = _user(b)
    b.desk.do("password_set", user=facts["word"], secret=PROOF)
    return facts


def _log_in(c: Client, f: Facts, k: str | None) -> Any:
    return c._enter("login", Who(f"human:{f['word']}", "member"), "", None, user=f["word"], proof=PROOF)["id"]


def _inside(b: Bench) -> Facts:
    return {"session": _log_in(b.desk, _known(b), None)}


def _invited(b: Bench) -> Facts:
    return {"link": b.desk.create_link(_user(b)["word"])["link"]}


def _project(b: Bench) -> Facts:
    return {"word": b.desk.create_project(f"X{next(_fresh)}")["key"]}


def _user(b: Bench) -> Facts:
    return {"word": b.desk.set_user(f"u{next(_fresh)}")["name"]}


def _token(b: Bench) -> Facts:
    return {"word": b.desk.create_token(f"t{next(_fresh)}")["name"]}


def _held(f: Facts) -> dict[str, Any]:
    return {"claim": f["claim"], "step": "2", "steps": [said("2", "waiting")], "hold": True}


# --- tasks
_add("create", lambda b: {}, lambda c, f, k: c.create("new", labels=["x"], key=k), keyed=True)
_add("create", _family, lambda c, f, k: c.create("child", parent=f["task"], depends_on=[f["needs"]], key=k), keyed=True)
_add("vet", _task("created"), lambda c, f, k: c.vet(f["task"]))
_add("note", _task("ready"), lambda c, f, k: c.note(f["task"], "By the way", key=k), AGENT, keyed=True)
_add("update", _task("ready"), lambda c, f, k: c.update(f["task"], title="Another", priority=0, key=k), keyed=True)
_add("dep_add", lambda b: {"task": b.blocked(), "needs": b.ready()}, lambda c, f, k: c.depend(f["task"], f["needs"]))
_add("dep_remove", _tied, lambda c, f, k: c.undepend(f["task"], f["needs"]))
_add("defer", _task("ready"), lambda c, f, k: c.defer(f["task"], "2d"))
_add("wake", _task("deferred"), lambda c, f, k: c.wake(f["task"]))
_add("cancel", _task("working"), lambda c, f, k: c.cancel(f["task"], "not needed"))
_add("close", _task("ready"), lambda c, f, k: c.close(f["task"]))
_add("reopen", _task("done"), lambda c, f, k: c.reopen(f["task"]))
_add("import", _project, lambda c, f, k: c.import_(BEADS, from_="beads", project=f["word"]))
# --- claims
_add("claim", _task("ready"), lambda c, f, k: c.claim(f["task"], "w9", key=k), AGENT, keyed=True)
_add("claim_next", _task("ready", priority=0), lambda c, f, k: c.claim_next("w9"), AGENT)
_add("heartbeat", _task("working"), lambda c, f, k: c.heartbeat(f["claim"]), AGENT, minutes=1)
_add("release", _task("working"), lambda c, f, k: c.release(f["claim"]), AGENT)
_add("release", _task("working", max_retries=1), lambda c, f, k: c.release(f["claim"]), AGENT)
_add("park", _task("working"), lambda c, f, k: c.park(f["claim"]), AGENT)
_add("complete", _task("working"), lambda c, f, k: c.complete(f["claim"], "done it", key=k), AGENT, keyed=True)
_add("complete", _running, lambda c, f, k: c.complete(f["claim"], key=k, journal=0, steps=_DONE), AGENT, keyed=True)
_add("decompose", _task("working"), lambda c, f, k: c.decompose(f["claim"], ["a", "b", "c"]), AGENT)
_add("fail", _task("working"), lambda c, f, k: c.fail(f["claim"], "broken"), AGENT)
_add("stop", _task("ready"), lambda c, f, k: c.stop(f["task"]))
# --- runs
_DONE = [said("2"), said("3")]
_add("step", _running, lambda c, f, k: c.record(f["claim"], _DONE, program={"file": SCRIPT, "body": "go on()"}), AGENT)
_add("park", _running, lambda c, f, k: c.park(f["claim"], "2d", steps=_DONE), AGENT)
_add("fail", _running, lambda c, f, k: c.fail(f["claim"], "broken", steps=_DONE, journal=0), AGENT)
_add("flag", _running, lambda c, f, k: c.flag(f["task"], "Which?", key=k, **_held(f)), AGENT, keyed=True)
_add("answer", _asking, lambda c, f, k: c.answer(f["question"], "so", signal={"status": "COMPLETE"}, key=k), keyed=True)
_add("rewind", _running, lambda c, f, k: c.rewind(f["task"], 2, spare=True, claim=f["claim"]), AGENT)
_add("rewind", _asking, lambda c, f, k: c.rewind(f["task"], 2))
_add("rewind", _failed_run, lambda c, f, k: c.rewind(f["task"], 1, spare=True))
# --- questions
_add("ask", _task("working"), lambda c, f, k: c.ask(f["task"], "Which?", claim=f["claim"], key=k), AGENT, keyed=True)
_add("ask", _task("ready"), lambda c, f, k: c.ask(f["task"], "Which?", blocking=False, default="a", key=k), AGENT, keyed=True)
_add("flag", _task("ready"), lambda c, f, k: c.flag(f["task"], "Stuck here", key=k), AGENT, keyed=True)
_add("answer", _waiting("working"), lambda c, f, k: c.answer(f["question"], "so", key=k), keyed=True)
_add("answer", _aside, lambda c, f, k: c.answer(f["question"], "so", key=k), keyed=True)
_add("approve", _waiting("ready", kind="approval"), lambda c, f, k: c.approve(f["question"], key=k), keyed=True)
_add("approve", _task("review"), lambda c, f, k: c.approve(f["task"], key=k), keyed=True)
_add("reject", _task("review"), lambda c, f, k: c.reject(f["task"], "not like that", key=k), keyed=True)
_add("answer", _disappointed, lambda c, f, k: c.answer(f["question"], "retry", key=k), keyed=True)
_add("answer", _disappointed, lambda c, f, k: c.answer(f["question"], "without", key=k), keyed=True)
_add("reject", _waiting("ready"), lambda c, f, k: c.reject(f["question"], "not like that", key=k), keyed=True)
_add("withdraw", _waiting("ready"), lambda c, f, k: c.withdraw(f["question"]))
_add("hand_back", _waiting("ready"), lambda c, f, k: c.hand_back(f["task"], key=k), keyed=True)
_add("assign", _waiting("ready"), lambda c, f, k: c.assign(f["question"], "bob"))
_add("use", _given, lambda c, f, k: c.use(f["question"], "session/call", {"tool": "Bash"}), AGENT)
_add("resolve", _waiting("ready"), lambda c, f, k: c.resolve(f["task"]))
_add("accept", _task("review"), lambda c, f, k: c.accept(f["task"]))
# --- the system's own
_add("block", _two, lambda c, f, k: c.depend(f["task"], f["needs"]), what="dep_add")
_add("unvet", _task("ready"), lambda c, f, k: c.update(f["task"], complexity="xlarge"), what="update")
_add("withdraw", _disappointed, lambda c, f, k: c.close(f["needs"]), what="close")
_add("unblock", _tied, lambda c, f, k: c.close(f["needs"]), what="close")
_add("parent", _only_child, lambda c, f, k: c.close(f["task"]), what="close")
_add("expire", _task("working"), _reconcile, what="reconcile", minutes=120)
_add("expire", _task("working", max_retries=1), _reconcile, what="reconcile", minutes=120)
_add("timeout", _waiting("ready", timeout="10m", on_timeout="fail"), _reconcile, what="reconcile", minutes=11)
_add("timeout", _accepted_by_silence, _reconcile, what="reconcile", minutes=121)
_add("reconcile", _waiting("working", timeout="10m", default="so"), _reconcile, minutes=11)
# --- the office
_add("project_create", _word, lambda c, f, k: c.create_project(f["word"].upper()))
_add("project_set", _word, lambda c, f, k: c.set("lease", f"{int(f['word'][1:]) + 10}m"))
_add("user_set", _word, lambda c, f, k: c.set_user(f["word"], "approver"))
_add("user_remove", _user, lambda c, f, k: c.remove_user(f["word"]))
_add("token_create", _word, lambda c, f, k: c.create_token(f["word"])["name"])
_add("password_set", _user, lambda c, f, k: c.do("password_set", key=k, user=f["word"], secret=PROOF), keyed=True)
_add("login", _known, _log_in)
_add("logout", _inside, lambda c, f, k: c.end_session(f["session"]))
_add("link_create", _user, lambda c, f, k: c.create_link(f["word"])["actor"])
_add("link_use", _invited, lambda c, f, k: c.use_link(f["link"])["id"])
_add("prefs_set", _word, lambda c, f, k: c.set_preferences(theme=f["word"]))
_add("token_revoke", _token, lambda c, f, k: c.revoke_token(f["word"]))

# --- moves of ready tasks with no row above: their arguments are texts
_SHOWN = {operation.verb for operation in OPERATIONS}
for _verb, _row in VERBS.items():
    if _row.call.startswith("task") and (READY, _verb) in TRANSITIONS and _verb not in _SHOWN:
        _words = ["something"] * (len(_row.call.split(", ")) - 1)
        _add(_verb, _task("ready"), lambda c, f, k, v=_verb, w=_words: getattr(c, v)(f["task"], *w, key=k), keyed=True)  # type: ignore[misc]

#: Made before there is a desk to set a scene on (config/init_desk.py): `turn init` is three changes.
FOUNDING = ("migrate", "init", "project_create")
#: A whole desk in the place of another (data/restore.py), where the system fences whatever was handed out before.
RESTORING = ("restore", "fence")


def company(b: Bench, facts: Facts) -> None:
    """The same scene with neighbours: another task waits for this one, and a non-blocking question is open."""
    key = facts.get("task")
    if key is None:
        return
    b.desk.create("waits", depends_on=[key])
    if b.desk.show(key)["state"] in ASKABLE:
        b.agent.ask(key, "By the way?", blocking=False, default="so")
