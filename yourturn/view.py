"""Words for people: how tasks and questions are written on a terminal.

Takes the plain values of wire.py, returns lines. Everything that somebody wrote goes through `safe` or `one_line` first:
no text can move the cursor, change colours or hide behind invisible signs.
"""

from __future__ import annotations

import time
from collections.abc import Iterable
from typing import Any

from .core.prose import told
from .core.words import iso
from .screen import NARROW, ago, bold, cells, clock, columns, cut, dim, left, one_line, pad, safe, width
from .screen import quoted as behind_bar

ICONS = {
    "created": "·", "ready": "○", "blocked": "◌", "working": "●", "human": "❓", "review": "◎", "done": "✓",
    "failed": "✗", "cancelled": "–", "deferred": "☾",
}  # fmt: skip
WORDS = {
    "created": "not vetted yet", "ready": "ready", "blocked": "blocked", "working": "working", "human": "needs human",
    "review": "to be accepted", "done": "done", "failed": "failed", "cancelled": "cancelled", "deferred": "deferred",
}  # fmt: skip


# --- questions ------------------------------------------------------------------------------------------------------


def person(actor: str) -> str:
    """human:ana is ana; agent:coder is coder."""
    return safe(actor.partition(":")[2] or actor)


def quoted(value: Any) -> str:
    if isinstance(value, bool):
        return "“yes”" if value else "“no”"
    if isinstance(value, list):
        return ", ".join(quoted(item) for item in value)
    return f"“{cut(one_line(str(value)), 80)}”"


def silence(q: dict[str, Any]) -> str:
    """What happens if nobody answers."""
    if q["timeout_at"] is None:
        return ""
    default = q["default"]
    words = {
        "default": f"then {quoted(default)}" if default is not None else "then the task fails",
        "fail": "then the task fails", "stuck": "then the task ends as stuck", "defer": "then it is put aside",
        "remind": "then its time runs again", "escalate": "then somebody else is asked", "keep": "then it stays open",
        "accept": "then it is accepted",
    }  # fmt: skip
    return words[q["on_timeout"]]


def context_lines(context: Any) -> list[str]:
    """An agent's context, as text: the context itself first, then what else was said, behind plain labels."""
    return safe("\n".join(told(context))).splitlines() if context else []


def result(q: dict[str, Any]) -> str:
    """How a closed question ended, in a few words."""
    response = q["response"] or {}
    if q["status"] == "timeout":
        if response.get("value") is not None:
            return f"no answer, went on with {quoted(response['value'])}"
        return "no answer in time"
    if q["status"] == "cancelled":
        return f"cancelled by {person(q['responded_by'])}" + (f" ({one_line(why)})" if (why := q.get("close_reason")) else "")
    words = f": {quoted(response['text'])}" if response.get("text") else ""
    if response.get("verdict") == "rejected":
        return f"{person(q['responded_by'])} said no{words}"
    value = response.get("value")
    if "digest" in response:
        return f"{person(q['responded_by'])} said yes, with changes{words}"
    if value is None and response.get("type") == "text" and not words:
        return f"{person(q['responded_by'])} said yes without words"
    if value is None or value is True:
        return f"{person(q['responded_by'])} said yes{words}"
    return f"{person(q['responded_by'])}: {quoted(value)}" + (words if response.get("text") not in ("", value) else "")


def question(q: dict[str, Any], indent: str = "  ") -> list[str]:
    """A question in full, as the person sees it."""
    time_left = f", {left(q['timeout_at'])}" + (f", {silence(q)}" if q["timeout_at"] else "")
    to = f", for {safe(q['reviewer'])}" if q["reviewer"] else ""
    head = f"{q['id']}  {q['kind']} question, asked by {person(q['asked_by'])} {ago(q['asked_at'])}{to}"
    if q["status"] != "pending":
        lines = [head + f"; {result(q)}"]
    else:
        lines = [head + (time_left if q["blocking"] else f", went on with {quoted(q['default'])}")]
    lines += [bold(line) for line in safe(q["text"]).splitlines()]
    if q["action"] is not None:
        lines += [f"This exact action, once{' ' * 4}{q['digest'][:12]}" if q["digest"] else "About this action"]
        lines += _as_json(q["action"])
        said = q["response"] or {}
        if "digest" in said:
            lines += [f"Changed by {person(q['responded_by'])} to{' ' * 4}{said['digest'][:12]}", *_as_json(said["value"])]
        if q["used_by"]:
            lines += [f"Used by {one_line(q['used_by'])}"]
    lines += option_lines(q)
    about = context_lines(q["context"])
    if about:
        lines += behind_bar(about, "")
        lines += [dim(f"  {person(q['asked_by'])}'s own words, not checked")]
    return [indent + line for line in lines]


def option_lines(q: dict[str, Any]) -> list[str]:
    """What can be chosen: the id, which answers, and what it stands for."""
    rows = []
    for o in q["options"]:
        label = o["label"] if o["label"] != o["id"] else ""
        words = ": ".join(one_line(str(word)) for word in (label, o["description"]) if word)
        rows.append(["  " + safe(str(o["id"])), words, "(default)" if o["value"] == q["default"] else ""])
    return columns(rows)


def _as_json(value: Any) -> list[str]:
    import json

    return ["  " + line for line in safe(json.dumps(value, indent=2, ensure_ascii=False)).splitlines()]


def inbox_rows(items: list[dict[str, Any]]) -> list[list[str]]:
    return [
        [
            "  " + q["id"], q["kind"], _left_cell(q), q["task"], person(q["asked_by"]), one_line(q["text"]), _waits(q),
        ]
        for q in items
    ]  # fmt: skip


def _left_cell(q: dict[str, Any]) -> str:
    return left(q["timeout_at"]) if q["on_timeout"] != "keep" or q["timeout_at"] else "no limit"


def _waits(q: dict[str, Any]) -> str:
    if not q["blocking"]:
        return f"went on with {quoted(q['default'])}"
    return f"holds up {q['holds_up']}" if q.get("holds_up") else ""


#: The inbox's groups and their order; what is left of a question's time when it runs out: less than most are given at first.
GROUPS = ("Running out", "Work is waiting", "No hurry")
SOON = 10 * 60_000_000


def inbox_groups(items: Iterable[dict[str, Any]]) -> dict[str, list[dict[str, Any]]]:
    """By what is urgent: see GROUPS."""
    return grouped(items, iso(time.time_ns() // 1000 + SOON))


def grouped(items: Iterable[dict[str, Any]], soon: str) -> dict[str, list[dict[str, Any]]]:
    """`soon`: what ends before is running out. Times are texts of one form, so they compare as they are."""
    groups: dict[str, list[dict[str, Any]]] = {name: [] for name in GROUPS}
    for q in items:
        if q["timeout_at"] is not None and q["on_timeout"] != "keep" and q["timeout_at"] < soon:
            groups["Running out"].append(q)
        else:
            groups["Work is waiting" if q["blocking"] and q["on_timeout"] != "accept" else "No hurry"].append(q)
    groups["Running out"].sort(key=lambda q: q["timeout_at"])
    groups["Work is waiting"].sort(key=lambda q: -(q.get("holds_up") or 0))
    return groups


def more(shown: int, total: int | None, line: str) -> str:
    """That a list goes on, and where: `total` is None where it is not known."""
    return f"{shown:,} of {total:,} shown; more: {line}" if total else f"The first {shown:,} are shown; more: {line}"


def inbox(items: list[dict[str, Any]]) -> list[str]:
    if not items:
        return ["It's not your turn. Nothing waits for you.", "Next: turn list"]
    lines: list[str] = []
    groups = {name: group for name, group in inbox_groups(items).items() if group}
    rows = {name: inbox_rows(group) for name, group in groups.items()}
    narrow = width() < NARROW
    table = iter(columns([row[:4] if narrow else row for group in rows.values() for row in group], last=None if narrow else 5))
    for name, group in rows.items():
        lines.append(bold(name))
        for row in group:
            lines.append(next(table))
            if narrow:
                lines.append(cut(f"      {row[5]}", width()))
    first = next(q for group in groups.values() for q in group)
    name = str(first["id"])
    return [*lines, hint(f"turn show {name}", *ways(first, name))]


# --- tasks ----------------------------------------------------------------------------------------------------------


def task_rows(tasks: list[dict[str, Any]]) -> list[list[str]]:
    """The old ids of imported tasks have a column where there are any."""
    old = any(t["external_id"] for t in tasks)
    return [
        [
            f"{pad(ICONS[t['state']], 2)} {t['key']}", f"P{t['priority']}", _state(t), *([cut(old_id(t), 24)] if old else []),
            one_line(t["title"]), _tail(t),
        ]
        for t in tasks
    ]  # fmt: skip


def old_id(t: dict[str, Any]) -> str:
    """The id of an imported task in the tracker that it came from, as it can be named here: ticks:201."""
    tracker = (t["extra"] or {}).get("source")
    return one_line(f"{tracker}:{t['external_id']}" if tracker else t["external_id"]) if t["external_id"] else ""


def _state(t: dict[str, Any]) -> str:
    return f"{WORDS[t['state']]} ({t['awaiting']})" if t["awaiting"] else WORDS[t["state"]]


def _tail(t: dict[str, Any]) -> str:
    if t["claim"]:
        return f"{safe(t['claim']['worker'])}, {left(t['claim']['expires_at'])}"
    if t["blocked_by"]:
        shown = ", ".join(t["blocked_by"][:4])
        return f"waits for {shown}" + ("" if len(t["blocked_by"]) <= 4 else " …")
    if t["wake_at"]:
        return f"until {clock(t['wake_at'])}"
    return one_line(t["reason"]) if t["reason"] else ""


def tasks(found: list[dict[str, Any]], empty: str = "No tasks.", next: str = 'turn create "What is to be done"') -> list[str]:
    if not found:
        return [empty, f"Next: {next}"]
    rows = task_rows(found)
    return columns(rows, last=len(rows[0]) - 2)


def awaiting(found: list[dict[str, Any]]) -> list[str]:
    """Tasks that wait for a person, with what is asked and since when."""
    if not found:
        return ["Nothing awaits a person."]
    lines = ["Awaiting human input:", ""]
    room = max(cells(t["key"]) for t in found) + 3
    for t in found:
        lines.append(f"{pad(t['key'], room)}P{t['priority']}  {pad(t['complexity'], 6)}  {bold(one_line(t['title']))}")
        for q in t["questions"]:
            if q["status"] == "pending" and q["blocking"]:
                more = f" (until {clock(q['timeout_at'])}, {silence(q)})" if q["timeout_at"] else ""
                lines.append(" " * room + f"❓ {one_line(q['text'])}")
                lines += [" " * room + line for line in option_lines(q)]
                about = one_line(" ".join(context_lines(q["context"])))
                if about:
                    lines.append(" " * room + f"Context: {cut(about, max(40, min(width(), 120) - room - 9))}")
                lines.append(" " * room + f"Asked: {ago(q['asked_at'])} by {person(q['asked_by'])}, {q['kind']}, {q['id']}{more}")
        lines.append("")
    key = found[0]["key"]
    first = next(q for q in found[0]["questions"] if q["status"] == "pending" and q["blocking"])
    return [*lines, hint(ways(first, key)[0], f"turn show {key}")]


def tree(nodes: list[dict[str, Any]]) -> list[str]:
    lines: list[str] = []

    def walk(node: dict[str, Any], lead: str, branch: str, below: str) -> None:
        title = cut(one_line(node["title"]), max(20, width() - len(lead + branch) - 30))
        script = f" ({safe(node['workflow'])})" if node["workflow"] else ""
        lines.append(f"{lead}{branch}{node['key']} [{node['state']}] {ICONS[node['state']]} {title}{script}")
        inner = lead + below
        asked = [q for q in node["questions"] if q["status"] == "pending"]
        kids = node["children"]
        for i, q in enumerate(asked):
            last = i == len(asked) - 1 and not kids
            lines.append(
                f"{inner}{'└── ' if last else '├── '}Question: {cut(one_line(q['text']), max(20, width() - len(inner) - 16))}"
            )
        for i, kid in enumerate(kids):
            last = i == len(kids) - 1
            walk(kid, inner, "└── " if last else "├── ", "    " if last else "│   ")

    for node in nodes:
        walk(node, "", "", "")
    return lines or ["No tasks."]


def task(
    t: dict[str, Any], holds_up: list[str] | None = None, effects: dict[str, list[dict[str, Any]]] | None = None,
    hint: Iterable[str] = (),
) -> list[str]:  # fmt: skip
    """One task in full. `effects`: where each answer to its open questions would lead. `hint`: what is to know before the end."""
    title, right = f"{bold(t['key'])}  {bold(one_line(t['title']))}", f"{_state(t)}, priority {t['priority']}"
    gap = max(3, min(width(), 90) - cells(t["key"]) - 2 - cells(one_line(t["title"])) - cells(right))
    lines = [f"{title}{' ' * gap}{right}"]
    facts = [
        t["type"] if t["type"] != "task" else "",
        t["complexity"] if t["complexity"] != "medium" else "",
        f"old id {old}" if (old := old_id(t)) else "",
        f"branch {safe(t['branch'])}" if t["branch"] else "",
        tries(t),
        f"part of {t['parent']}" if t["parent"] else "",
        f"waits for {', '.join(t['blocked_by'])}" if t["blocked_by"] else "",
        f"holds up {', '.join(holds_up)}" if holds_up and (not t["ended_at"] or t["failure"]) else "",
        f"requires {t['requires']}" if t["requires"] else "",
        f"role {t['role']}" if t["role"] else "",
        f"put aside until {clock(t['wake_at'])}" if t["wake_at"] else "",
        f"labels {', '.join(t['labels'])}" if t["labels"] else "",
    ]
    row = ""
    for fact in filter(None, facts):
        if row and cells(row) + cells(fact) + 3 > min(width(), 100):
            lines.append(row)
            row = ""
        row += f"   {fact}" if row else f"  {fact}"
    lines += [row] if row else []
    if t["claim"]:
        lines.append(
            f"  {safe(t['claim']['worker'])} {'holds' if t['awaiting'] else 'works on'} it, "
            f"{left(t['claim']['expires_at'])} on the lease (epoch {t['claim']['epoch']})"
        )
    for name in ("description", "acceptance", "summary"):
        if t[name].strip():
            lines += [
                "",
                *(["  " + name.capitalize()] if name != "description" else []),
                *("  " + line for line in safe(t[name]).splitlines()),
            ]
    if t["workflow"]:
        from . import runs

        lines += ["", f"  {safe(t['workflow'])}", *runs.steps(t, "  ")]
    if t["failure"] or t["reason"]:
        lines += ["", "  " + ": ".join(word for word in (t["failure"] or "", one_line(t["reason"])) if word)]
    for q in t["questions"]:
        if q["status"] == "pending":
            lines += ["", *question(q)]
    earlier = [["  " + q["id"], one_line(q["text"]), result(q)] for q in reversed(t["questions"]) if q["status"] != "pending"]
    if earlier:
        left_out = [f"  … {len(earlier) - 6} older: turn show {t['key']} --json"] if len(earlier) > 6 else []
        lines += ["", "  Earlier", *columns(earlier[:6], last=1), *left_out]
    if t["notes"]:
        lines += ["", "  Notes"]
        for note in t["notes"]:
            words = safe(note["text"]).splitlines() or [""]
            lines.append(f"  {safe(note['author'])}, {ago(note['at'])}")
            lines += behind_bar(words, "  ") if note["author"].startswith("agent:") else [f"    {line}" for line in words]
    return [*lines, "", *hint, *next_steps(t, effects)]


def followed(reply: dict[str, Any]) -> list[str]:
    """The other tasks that a move moved: 'PROJ-2 and PROJ-3 are ready now.', 'PROJ-5 waits for a person now: Q7.'"""
    groups: dict[str, list[dict[str, Any]]] = {}
    for one in reply.get("follow_ups", ()):
        groups.setdefault(one["to"], []).append(one)
    lines = []
    for state, found in groups.items():
        keys, many = [one["task"] for one in found], len(found) > 1
        some = f"{', '.join(keys[:-1])} and {keys[-1]}" if 1 < len(keys) < 9 else ", ".join(keys[:8]) + " and more" * (len(keys) > 8)
        asked = ", ".join(name for one in found[:8] for name in one["questions"])
        words = f"wait{'' if many else 's'} for a person" if asked else f"{'are' if many else 'is'} {WORDS[state]}"
        lines.append(f"{some} {words} now{': ' if asked else ''}{asked}.")
    return lines


def tries(t: dict[str, Any]) -> str:
    """'try 2 of 3'; '' at the first."""
    used, most = t["retry_count"], t["max_retries"]
    if used < most:
        return f"try {used + 1} of {most}" if used else ""
    return "its only try is used" if most == 1 else f"all {most} tries are used"


def hint(*commands: str) -> str:
    """What to type now, on one line."""
    return f"Next: {' | '.join(commands)}"


def hints(rows: list[tuple[str, str]]) -> list[str]:
    """What to type now, and what each line does."""
    return ["Next:", *columns([[line, effect] for line, effect in rows], indent="  ")]


def next_steps(t: dict[str, Any], effects: dict[str, list[dict[str, Any]]] | None = None) -> list[str]:
    """What to type now."""
    from .core.hints import next_verb, only_asks

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
    from .core.answers import ANSWERS

    found = ANSWERS[q["kind"], q["response_type"]]
    if q["asked_by"] == "system" and q["options"]:  # one of its options says no
        found = tuple(w for w in found if w.name != "no")
    return [_command(q, w.command, name) for w in found]


def _command(q: dict[str, Any], command: str, name: str, option: Any = None) -> str:
    if '"…"' in command and q["response_type"] == "choice":
        value = str(q["options"][0]["id"] if option is None else option) if q["options"] or option is not None else "…"
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


def output(found: list[dict[str, Any]]) -> list[str]:
    """What a session said: its words as they are, everything else with its sort before it."""
    lines = []
    for line in found:
        text = safe(line["text"]).rstrip().splitlines() or [""]
        sort = "" if line["sort"] == "said" else f"[{safe(line['sort'])}] "
        lines += [f"{clock(line['at'])}  │ {sort}{part}" for part in text]
    return lines


def history(found: list[dict[str, Any]], said: list[dict[str, Any]]) -> list[str]:
    """Events, with what was said between them."""
    if not said:
        return events(found)
    told = dict(zip([("event", e["seq"]) for e in found], events(found), strict=True)) if found else {}
    both = sorted([(e["at"], 0, ("event", e["seq"])) for e in found] + [(x["at"], 1, x["id"]) for x in said], key=str)
    lines = {x["id"]: output([x]) for x in said}
    return [line for _, sort, name in both for line in ([told[name]] if sort == 0 else lines[name])]


def events(found: list[dict[str, Any]]) -> list[str]:
    rows = []
    for e in found:
        data = e["data"]
        move = f"{data['from'] or 'new'} → {data['to']}" if data.get("from") != data.get("to") and "to" in data else ""
        said = [one_line(q["text"]) for q in data.get("opened", ()) if q.get("text")]
        said += [
            result({"status": q["status"], "response": q.get("response"), "responded_by": q.get("responded_by", "")})
            for q in data.get("closed", ())
            if q["status"] != "pending"
        ]
        said += [one_line(note["text"]) for note in data.get("notes", ())]
        changed = data.get("set") or {}
        words = [one_line(word) for word in (changed.get("summary"), changed.get("reason"), data.get("reason")) if word]
        said += [word for word in dict.fromkeys(words) if not any(word in other for other in said)]
        if "steps" in data or e["action"] == "rewind" or "program" in data:
            from .runs import told

            said += told(e)
        rows.append(
            [
                str(e["seq"]),
                clock(e["at"]),
                safe(e["actor"]),
                e["action"],
                e["task"] or "",
                move,
                cut(" · ".join(said), 100),
            ]
        )
    return columns(rows, last=6) if rows else ["Nothing has happened yet."]
