"""What to type now, and where it leads. The core says which verb moves a task on and what an answer does; here are the words."""

from __future__ import annotations

from typing import Any

from .labels import WORDS, person
from .terminal import columns, one_line, safe


def hint(*commands: str) -> str:
    """What to type now, on one line."""
    return f"Next: {' | '.join(commands)}"


def hints(rows: list[tuple[str, str]]) -> list[str]:
    """What to type now, and what each line does."""
    return ["Next:", *columns([[line, effect] for line, effect in rows], indent="  ")]


def next_steps(t: dict[str, Any], effects: dict[str, list[dict[str, Any]]] | None = None) -> list[str]:
    """What to type now."""
    from ..core.hints import next_verb, only_asks

    key = t["key"]
    open_ones = [q for q in t["questions"] if q["status"] == "pending"]
    rows: list[tuple[str, str]] = []
    for q in open_ones:
        name = key if len(open_ones) == 1 else q["id"]
        known = (effects or {}).get(q["id"])
        rows += answers(q, name, known, t) if known is not None else [(line, "") for line in ways(q, name)]
        if t["workflow"]:
            from .runs import agent_of, asking

            session = agent_of(asking(t, q))
            rows.append((f"turn continue {name}", "in the agent's own session, or here" if session else "here"))
    if rows:
        return hints(rows) if effects is not None else [hint(*(line for line, _ in rows))]
    asks = only_asks(t["created_by"], ((q["kind"], q["asked_by"]) for q in t["questions"]))
    facts = {"type": t["type"], "complexity": t["complexity"], "has_children": bool(t["children"]), "run": bool(t["workflow"])}
    verb = next_verb(t["state"], asks=asks, **facts)
    if not t["workflow"]:
        return [hint((_SAY.get(verb) or _LOOK[t["state"]]).format(key=key))]
    from .runs import again

    again_ = "turn work (goes on then) | turn resume {key} (goes on at once)" if t["wake_at"] else again(t)
    said = {**_SAY, "claim": "turn resume {key}", "resolve": "turn continue {key}", "rewind": again_}
    return [hint((said.get(verb) or {**_LOOK, "working": "turn watch {key}"}[t["state"]]).format(key=key))]


#: How a verb is said that moves a task on; and where one looks if there is none.
_SAY = {
    "vet": "turn vet {key}", "claim": "turn claim {key}", "resolve": "turn resolve {key}",
    "reopen": "turn reopen {key}", "wake": "turn wake {key}", "close": "turn close {key} (it only carried the question)",
    "create": 'turn create "…" --parent {key}', "decompose": 'turn decompose {key} --child "…" --child "…"',
}  # fmt: skip
_LOOK = {"blocked": "turn tree {key}", "working": "turn log {key}", "review": "turn show {key}", "done": "turn log {key}"}


def unattended(found: dict[str, Any]) -> str:
    """That no worker takes a ready task, and how to start one."""
    why = f"No worker that runs takes {found['task']}" if found["workers"] else "No worker runs"
    return f"{why}. Start one with: {found['start']}"


def ways(q: dict[str, Any], name: str) -> list[str]:
    """The lines that answer a question."""
    from ..core.answers import ANSWERS

    found = ANSWERS[q["kind"], q["response_type"]]
    if q["asked_by"] == "system" and q["options"]:  # one of its options says no
        found = tuple(w for w in found if w.name != "no")
    return [_command(q, w.command, name) for w in found]


def _command(q: dict[str, Any], command: str, name: str, option: Any = None) -> str:
    if '"…"' in command and q["response_type"] == "choice":
        first = q["options"][0]["id"] if q["options"] else "…"
        value = str(first if option is None else next((o["id"] for o in q["options"] if o["value"] == option), option))
        command = command.replace('"…"', value if value.isidentifier() else f'"{one_line(value)}"')
    return command.format(q=name)


def answers(
    q: dict[str, Any], name: str, effects: list[dict[str, Any]], task: dict[str, Any] | None = None
) -> list[tuple[str, str]]:
    """The lines that answer a question, and what each does. Options that lead to the same are one line."""
    script = str((task or {}).get("workflow") or "").rpartition("/")[2]
    told = ("", "")
    if task and script and q["blocking"]:
        from .runs import says_to

        told = says_to(task, q)
    rows: list[tuple[str, str]] = []
    for e in effects:
        words = (told[0] if e["verdict"] == "approved" else told[1]) or then(q, e, script)
        if all(words != known for line, known in rows if line.startswith("turn respond")) or e["answer"] != "answer":
            rows.append((_command(q, e["command"], name, e["option"]), words))
    if effects and all(e["answer"] == "yes" for e in effects):
        rows.append((f"turn hand-back {q['task']}", "returns it to agents"))
    return rows


def goes_on(q: dict[str, Any], e: dict[str, Any] | None = None) -> str:
    """Who goes on after an answer: the agent that asked, else the session that holds the task, else the next one."""
    if q["asked_by"].startswith("agent:"):
        return person(q["asked_by"])
    return safe(str(e["worker"])) if e is not None and e["worker"] else "an agent"


def then(q: dict[str, Any], e: dict[str, Any], script: str = "") -> str:
    """Where an answer leads, in a few words."""
    key, who, no = q["task"], goes_on(q, e), e["answer"] == "no"
    others = ", ".join(e["waits_for"])
    if not q["blocking"]:
        return f"{person(q['asked_by'])} hears of it"
    chosen = next((str(o["description"]) for o in q["options"] if o["value"] == e["option"]), "")
    if chosen and q["asked_by"] == "system":
        return chosen
    leads = {
        "done": f"{key} is done", "cancelled": f"cancels {key}", "failed": f"{key} fails",
        "human": f"{key} still waits for {others}" if others else "a person goes on with it",
    }  # fmt: skip
    if e["state"] in leads:
        return leads[e["state"]]
    if q["kind"] == "permission":
        return f"{who} is told no" if no else f"{who} runs exactly this"
    if script:
        return f"{script} is told no and decides" if no else f"{script} goes on"
    leads = {"blocked": f"{key} waits for {others}", **{state: f"{key} is {WORDS[state]}" for state in ("review", "created")}}
    if e["state"] in leads:
        return leads[e["state"]]
    if no and e["verdict"] == "approved":
        return f"{who} is told no"
    return f"{who} gets your words" if no else f"{who} goes on" + " with it" * (q["kind"] != "checkpoint")
