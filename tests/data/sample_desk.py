"""A desk with data of every kind, for tests of export, import and restore."""

from __future__ import annotations

from yourturn.client import Client
from yourturn.core.model import Who
from yourturn.testing import FakeClock


def fill(desk: Client, clock: FakeClock, held: bool = False) -> dict[str, str]:
    """Every state, every kind of question, notes, needs, people, settings. `held`: also claims and a permission that stand.

    Returns the tokens of the claims that are live.
    """
    coder = desk.as_(Who("agent:coder", "agent", direct=True))
    bob = desk.as_(Who("human:bob", "approver", direct=True))
    desk.create_project("WEB", "Seiten & Ümläute “so”")
    desk.set("review", "ask", "WEB")
    desk.set("max_timeout", "10d")
    desk.set_user("bob", "approver")
    desk.set_user("eve")
    desk.remove_user("eve")
    desk.create_token("ci", "agent")
    for kind in ("work", "approval", "input", "review", "content", "escalation", "checkpoint", "permission", "recovery"):
        clock.advance(minutes=1)
        key = desk.create(f"Waits: {kind}", labels=["waiting", kind], description="Zeile 1\nZeile 2\t“ü”\u2028 \U0001f600")["key"]
        more = {"options": ["jwt", "sessions"], "default": "jwt", "confidence": 0.1} if kind == "input" else {}
        coder.ask(key, f"A {kind}?", kind=kind, timeout="9d", metadata={"n": 1, "deep": [{}]}, **more)
    epic = desk.create("A container", type="epic", external_id="old-1")["key"]
    first = desk.create("Child 1", parent=epic, acceptance="It works", priority=0)["key"]
    desk.create("Child 2", parent=epic, depends_on=[first])
    desk.create("Draft", draft=True, complexity="xlarge")
    desk.defer(desk.create("Asleep")["key"], until=clock() + 400 * 86_400_000_000, reason="later")
    failed = desk.create("Failed")["key"]
    desk.create("Hurt", depends_on=[failed])
    desk.fail(failed, "no luck")
    desk.cancel(desk.create("Cancelled")["key"], "not needed")
    web = desk.create("To accept", project="WEB", key="once")["key"]
    coder.complete(coder.claim(web, "w1")["claim"], "see the PR")
    again = desk.create("Rejected once", requires="review")["key"]
    held_once = coder.claim(again, "w2")["claim"]
    coder.update(again, claim=held_once, session_id="s1", host="laptop", seat={"agent": "coder", "folder": "/somewhere"})
    coder.write_output(held_once, [("said", "Zeile “ü”\n\twith a tab"), ("tool", "Bash")])
    coder.keep_patch(held_once, "0" * 40, "diff --git a/x b/x\n+new\n")
    coder.complete(held_once, "first try")
    bob.reject(again, "softer, please")
    tired = desk.create("Tried too often", max_retries=1)["key"]
    coder.release(coder.claim(tired, "w3")["claim"], "gave up")
    desk.note(again, "Remember the tests.")
    aside = desk.create("Asked aside")["key"]
    coder.ask(aside, "Verbose?", blocking=False, default="no", response_type="boolean")
    _runs(desk, coder)
    claims = {}
    if held:
        claims = {key: coder.claim(key, "w4", lease="20h")["claim"]["token"] for key in (first, again)}
        asked = coder.ask(first, "May I?", kind="permission", action={"tool": "Bash"}, claim=claims[first])
        bob.approve(asked["id"])
        coder.ask(again, "Which?", claim=claims[again], timeout="9d")
    return claims


def _runs(desk: Client, coder: Client) -> None:
    """A run that waits at its second call, and one that went back and laid aside what it had done."""
    program = {"file": "feature.py", "body": 'run("architect")\npause("Zeile “ü”\u2028")\n'}
    for title in ("Waits in its script", "Went back"):
        key = desk.create(title, workflow="feature.py", program=program)["key"]
        claim = coder.claim(key, "w5")["claim"]
        first = {"path": "1", "name": "run", "agent": "architect", "call": {"prompt": "“ü”"}, "session_id": "s2"}
        done = {**first, "seat": {"n": 1}, "status": "completed", "result": {"status": "COMPLETE", "text": "Zeile 1\nZeile 2"}}
        asks = {"path": "2", "name": "pause", "call": None, "status": "waiting"}
        coder.record(claim, [done])
        coder.flag(key, "Go on?", kind="checkpoint", claim=claim, steps=[asks], step="2", timeout="9d")
    desk.rewind(key, 1, spare=True)
    again = coder.claim(key, "w5")["claim"]
    coder.park(again, steps=[{**done, "result": {"status": "REJECTED"}}])
