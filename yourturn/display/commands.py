"""Suggested commands and the effect of each. The core decides which verbs and answers are possible."""

from __future__ import annotations

from typing import Any

from ..core.answers import ANSWERS
from ..core.hints import next_verb, only_asks
from ..core.rules import outcome
from .labels import WORDS, person
from .run_facts import about_run, again, agent_of, asking, step_name
from .terminal import columns, one_line, safe


def hint(*commands: str) -> str:
    """The next commands, on one line."""
    return f"Next: {' | '.join(commands)}"


def hints(rows: list[tuple[str, str]]) -> list[str]:
    """The next commands, one per line with its effect."""
    return ["Next:", *columns([[line, effect] for line, effect in rows], indent="  ")]


def next_steps(t: dict[str, Any], effects: dict[str, list[dict[str, Any]]] | None = None) -> list[str]:
    """The next commands for a task. `effects`: where each answer to its open questions leads."""
    key = t["key"]
    open_ones = [q for q in t["questions"] if q["status"] == "pending"]
    rows: list[tuple[str, str]] = []
    for q in open_ones:
        name = key if len(open_ones) == 1 else q["id"]
        known = (effects or {}).get(q["id"])
        rows += answers(q, name, known, t) if known is not None else [(line, "") for line in answer_commands(q, name)]
        if t["workflow"]:
            session = agent_of(asking(t, q))
            rows.append((f"turn continue {name}", "in the agent's own session, or here" if session else "here"))
    if rows:
        return hints(rows) if effects is not None else [hint(*(line for line, _ in rows))]
    asks = only_asks(t["created_by"], ((q["kind"], q["asked_by"]) for q in t["questions"]))
    facts = {"type": t["type"], "complexity": t["complexity"], "has_children": bool(t["children"]), "run": bool(t["workflow"])}
    verb = next_verb(t["state"], asks=asks, **facts)
    if not t["workflow"]:
        return [hint((_COMMANDS.get(verb) or _WITHOUT_VERB[t["state"]]).format(key=key))]
    resume = "turn work (goes on then) | turn resume {key} (goes on at once)" if t["wake_at"] else again(t)
    templates = {**_COMMANDS, "claim": "turn resume {key}", "resolve": "turn continue {key}", "rewind": resume}
    return [hint((templates.get(verb) or {**_WITHOUT_VERB, "working": "turn watch {key}"}[t["state"]]).format(key=key))]


#: The command of each verb; and the command to suggest where no verb is possible, by state.
_COMMANDS = {
    "vet": "turn vet {key}", "claim": "turn claim {key}", "resolve": "turn resolve {key}",
    "reopen": "turn reopen {key}", "wake": "turn wake {key}", "close": "turn close {key} (it existed only for the question)",
    "create": 'turn create "…" --parent {key}', "decompose": 'turn decompose {key} --child "…" --child "…"',
}  # fmt: skip
_WITHOUT_VERB = {"blocked": "turn tree {key}", "working": "turn log {key}", "review": "turn show {key}", "done": "turn log {key}"}


def unattended(missing: dict[str, Any]) -> str:
    """The message that no worker takes a ready task, and how to start one."""
    why = f"No running worker takes {missing['task']}" if missing["workers"] else "No worker runs"
    return f"{why}. Start one with: {missing['start']}"


def answer_commands(q: dict[str, Any], name: str) -> list[str]:
    """The commands that answer a question."""
    ways = ANSWERS[q["kind"], q["response_type"]]
    if q["asked_by"] == "system" and q["options"]:  # one of its options says no
        ways = tuple(w for w in ways if w.name != "no")
    return [_command(q, w.command, name) for w in ways]


def _command(q: dict[str, Any], command: str, name: str, option: Any = None) -> str:
    if '"…"' in command and q["response_type"] == "choice":
        first = q["options"][0]["id"] if q["options"] else "…"
        value = str(first if option is None else next((o["id"] for o in q["options"] if o["value"] == option), option))
        command = command.replace('"…"', value if value.isidentifier() else f'"{one_line(value)}"')
    return command.format(q=name)


def answers(
    q: dict[str, Any], name: str, effects: list[dict[str, Any]], task: dict[str, Any] | None = None
) -> list[tuple[str, str]]:
    """The commands that answer a question, each with its effect. Options with the same effect share a row."""
    script = str((task or {}).get("workflow") or "").rpartition("/")[2]
    script_words = ("", "")
    if task and script and q["blocking"]:
        script_words = script_effects(task, q)
    rows: list[tuple[str, str]] = []
    for e in effects:
        words = (script_words[0] if e["verdict"] == "approved" else script_words[1]) or answer_effect(q, e, script)
        if all(words != known for line, known in rows if line.startswith("turn respond")) or e["answer"] != "answer":
            rows.append((_command(q, e["command"], name, e["option"]), words))
    if effects and all(e["answer"] == "yes" for e in effects):
        rows.append((f"turn hand-back {q['task']}", "returns it to agents"))
    return rows


def continuing_actor(q: dict[str, Any], e: dict[str, Any] | None = None) -> str:
    """The agent that continues after an answer: the one that asked, else the holder of the task, else any."""
    from ..core.references import TRACKERS

    role, _, name = q["asked_by"].partition(":")
    if role == "agent" and name not in TRACKERS:
        return person(q["asked_by"])
    return safe(str(e["worker"])) if e is not None and e["worker"] else "an agent"


def answer_effect(q: dict[str, Any], e: dict[str, Any], script: str = "") -> str:
    """The effect of an answer, in a few words."""
    key, who, no = q["task"], continuing_actor(q, e), e["answer"] == "no"
    others = ", ".join(e["waits_for"])
    if not q["blocking"]:
        return f"{person(q['asked_by'])} is notified"
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
        return f"{who} gets the no" if no else f"{who} runs exactly this"
    if script:
        return f"{script} gets the no and decides" if no else f"{script} goes on"
    leads = {"blocked": f"{key} waits for {others}", **{state: f"{key} is {WORDS[state]}" for state in ("review", "created")}}
    if e["state"] in leads:
        return leads[e["state"]]
    if no and e["verdict"] == "approved":
        return f"{who} gets the no"
    return f"{who} receives your text" if no else f"{who} goes on" + " with it" * (q["kind"] != "checkpoint")


def script_effects(run: dict[str, Any], q: dict[str, Any]) -> tuple[str, str]:
    """The effects of a yes and a no on the script; empty if the asker just receives the answer."""
    if about_run(q):
        return "", f"{run['key']} ends as {'failed' if q['reason'] == 'run_failed' else 'stuck'}"
    step = asking(run, q)
    if step is None or step["name"] != "run":
        return "", ""
    name, by_signal = step_name(step), (step["seat"] or {}).get("by_signal")
    yes, no = (outcome(q["kind"], verdict) if by_signal else "back" for verdict in ("approved", "rejected"))
    return (
        f"{name}'s step is DONE" if yes == "done" else f"{name} goes on with it",
        f"{name}'s step is REJECTED, and the script goes on" if no == "cancelled" else f"{name} receives your text",
    )
