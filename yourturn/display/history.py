"""What happened: the history, and what sessions said."""

from __future__ import annotations

from typing import Any

from .questions import result
from .terminal import clock, columns, cut, one_line, safe


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
        for word in dict.fromkeys(words):
            if not any(word in other for other in said):
                said.append(word)
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
