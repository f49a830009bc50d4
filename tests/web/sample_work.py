"""Sample data for the pages of tasks and statistics: a week of questions and answers, and a task full of harmful texts."""

from __future__ import annotations

from typing import Any

from yourturn.client import Client
from yourturn.config import connect
from yourturn.core.model import Who
from yourturn.demo import sample
from yourturn.testing import FakeClock, Stage, done, needs_human

#: Harmful texts: markup, template syntax, control characters.
NASTY = (
    "<script>alert(1)</script>",
    '"><img src=x onerror=alert(1)>',
    "' onmouseover='alert(1)",
    "</textarea><svg onload=alert(1)>",
    "</title><script>alert(1)</script>",
    "{{ 7 * 7 }}{% raw %}",
    "javascript:alert(1)",
    "a\u202egnp.exe\u200b",
    "&lt;b&gt; &amp; &#x3c;",
)


def week(desk: Client, clock: FakeClock) -> None:
    """`desk` belongs to an admin. The clock starts a week ago and ends at the present."""
    ben = desk.as_(Who("human:ben", "approver"))
    coder = desk.as_(Who("agent:coder", "agent"))
    asked = 0
    for day in range(6):
        for hour in range(8):
            for n in range(1 + (hour in (2, 3, 4)) + (day == 2)):
                asked += 1
                key = desk.create(f"Routine work {asked}", project=("API", "WEB", "DOC", "OPS")[asked % 4])["key"]
                got = coder.claim(key, "coder")
                kind = ("input", "permission", "recovery", "checkpoint")[asked % 4]
                more: dict[str, Any] = {"action": {"tool": "Bash", "input": {"command": "make"}}} if kind == "permission" else {}
                q = coder.ask(key, "Which way?", kind, claim=got["claim"], timeout="30m", **more)
                if kind == "recovery" and n == 0:
                    clock.advance(minutes=31)
                    desk.reconcile()
                else:
                    clock.advance(minutes=2 + asked * 7 % 23)
                    ben.answer(q["id"], "left" if q["response_type"] in ("text", "choice") else True)
                if desk.show(key)["state"] == "working":
                    coder.complete(got["claim"], "Done.")
                elif desk.show(key)["state"] not in ("done", "failed"):
                    desk.close(key, "not needed")
            clock.advance(minutes=20)
        clock.advance(hours=12)


def nasty(desk: Client) -> dict[str, str]:
    """A task whose texts are all harmful."""
    agent = desk.as_(Who("agent:evil", "agent"))
    worst = " ".join(NASTY[:7])
    key = desk.create(worst[:290], description="\n".join(NASTY), acceptance=NASTY[0], labels=["a"])["key"]
    below = desk.create(NASTY[1], depends_on=[key])["key"]
    held = agent.claim(key, "evil")["claim"]
    agent.write_output(held, [(sort, text) for sort in ("said", "error") for text in NASTY])
    for text in NASTY:
        agent.note(key, text)
    q = agent.ask(
        key, "\n".join(NASTY), options=[NASTY[0], NASTY[1]], claim=held, context={"text": "\n".join(NASTY), NASTY[0]: NASTY[1]}
    )
    desk.answer(q["id"], NASTY[0], "\n".join(NASTY))
    agent.ask(key, NASTY[1], claim=held)
    done = desk.create(NASTY[3])["key"]
    held = agent.claim(done, "evil")["claim"]
    agent.complete(held, "\n".join(NASTY))
    return {"task": key, "below": below, "done": done}


RELEASE = """
def workflow(prompt):
    run("architect", prompt)
    run("coder", "Build it")
    log("Both are through")
    if not pause("Publish 2.4 to everybody?", timeout="20h"):
        return stuck("not yet")
    return run("keeper")
"""
AGENTS = {
    "architect": [done("Three parts: fares, refunds, seats")],
    "coder": [needs_human("Keep the old tickets valid?"), done("Built, 312 tests pass")],
}


def lively(address: str, clock: FakeClock) -> dict[str, str]:
    """The demo's data, a waiting run, and an empty project."""
    ids = sample.fill(address, "ana", clock.micros)
    with connect(address, as_="human:ana", project="BOOK", env={}, clock=clock) as desk:
        desk.create_project("EMPTY", "Nothing yet")
        stage = Stage(RELEASE, AGENTS, desk=desk, clock=clock, file="release.py")
        stage.run("Release 2.4: fares, refunds and the seat map")
        stage.answer("For a year")
        ids["run"] = stage.key
    return ids
