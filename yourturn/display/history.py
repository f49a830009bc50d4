"""The history of a task: its events, and the output of its sessions."""

from __future__ import annotations

from typing import Any

from .questions import result
from .runs import step_events
from .terminal import clock, columns, cut, one_line, safe


def output(rows: list[dict[str, Any]]) -> list[str]:
    """A session's output. Lines other than its own text begin with their kind in brackets."""
    lines = []
    for row in rows:
        text = safe(row["text"]).rstrip().splitlines() or [""]
        kind = "" if row["sort"] == "said" else f"[{safe(row['sort'])}] "
        lines += [f"{clock(row['at'])}  │ {kind}{part}" for part in text]
    return lines


def history(log: list[dict[str, Any]], output_rows: list[dict[str, Any]]) -> list[str]:
    """Events and output, ordered by time."""
    if not output_rows:
        return events(log)
    blocks = [(e["at"], 0, e["seq"], [line]) for e, line in zip(log, events(log) if log else [], strict=True)]
    blocks += [(row["at"], 1, row["id"], output([row])) for row in output_rows]
    return [line for *_, lines in sorted(blocks, key=lambda block: block[:3]) for line in lines]


def events(log: list[dict[str, Any]]) -> list[str]:
    """Events as a table."""
    rows = []
    for e in log:
        data = e["data"]
        move = f"{data['from'] or 'new'} → {data['to']}" if data.get("from") != data.get("to") and "to" in data else ""
        parts = [one_line(q["text"]) for q in data.get("opened", ()) if q.get("text")]
        parts += [
            result({"status": q["status"], "response": q.get("response"), "responded_by": q.get("responded_by", "")})
            for q in data.get("closed", ())
            if q["status"] != "pending"
        ]
        parts += [one_line(note["text"]) for note in data.get("notes", ())]
        changed = data.get("set") or {}
        words = [one_line(word) for word in (changed.get("summary"), changed.get("reason"), data.get("reason")) if word]
        for word in dict.fromkeys(words):
            if not any(word in other for other in parts):
                parts.append(word)
        if "steps" in data or e["action"] == "rewind" or "program" in data:
            parts += step_events(e)
        text = cut(" · ".join(parts), 100)
        rows.append([str(e["seq"]), clock(e["at"]), safe(e["actor"]), e["action"], e["task"] or "", move, text])
    return columns(rows, last=6) if rows else ["Nothing has happened yet."]
