"""Numbers for Prometheus.

Counters come from the questions themselves, so that every process of every server tells the same. What could not be asked
leaves no row: each process counts its own, under a label of its own.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import Any

from ..http.refusals import REFUSED
from .request import Answer, Call


def show(call: Call) -> Answer:
    found = call.client.stats(days=1)
    closed, kinds, answered = call.client.totals(), found["kinds"], found["answer_seconds"]
    asked = {kind: row["pending"] for kind, row in kinds.items()}
    for row in closed:
        asked[row["kind"]] = asked.get(row["kind"], 0) + row["count"]
    waits = [row for row in closed if row["status"] == "answered"]
    lines = [
        *_family("tasks", "gauge", "Tasks by state.", ((_labels(state=s), n) for s, n in sorted(found["tasks"].items()))),
        *_family(
            "questions_pending", "gauge", "Open questions by kind, and whether they hold their task up.",
            ((_labels(kind=kind, blocking=held), row["blocking"] if held == "true" else row["pending"] - row["blocking"])
             for kind, row in sorted(kinds.items()) for held in ("true", "false")),
        ),
        *_family(
            "oldest_question_seconds", "gauge", "How long the oldest open question that holds a task up has been waiting.",
            [(_labels(blocking="true"), found["oldest_blocking"] or 0)],
        ),
        *_family(
            "questions_day", "gauge", "Questions that were closed in the last day, by kind and what became of them.",
            ((_labels(kind=kind, status=status), row[status])
             for kind, row in sorted(kinds.items()) for status in ("answered", "timeout", "cancelled")),
        ),
        *_family(
            "questions_asked_total", "counter", "Questions that were asked.",
            ((_labels(kind=kind), count) for kind, count in sorted(asked.items())),
        ),
        *_family(
            "questions_closed_total", "counter", "Questions that were closed, by kind and what became of them.",
            ((_labels(kind=row["kind"], status=row["status"]), row["count"]) for row in closed),
        ),
        *_family(
            "question_errors_total", "counter", "Questions that could not be asked through this process, by the error's code.",
            ((_labels(code=code, process=str(os.getpid())), n) for code, n in sorted(REFUSED.items())),
        ),
        *_family(
            "answer_seconds", "summary", "How long people took to answer: quantiles of the last day, sum and count of all.",
            ((_labels(quantile=at), answered[name])
             for at, name in (("0.5", "median"), ("0.9", "p90")) if answered[name] is not None),
        ),
        f"yourturn_answer_seconds_sum {sum(row['seconds'] for row in waits)}",
        f"yourturn_answer_seconds_count {sum(row['count'] for row in waits)}",
    ]  # fmt: skip
    return Answer(text="\n".join(lines) + "\n", media="text/plain; version=0.0.4; charset=utf-8")


def _family(name: str, sort: str, about: str, samples: Iterable[tuple[str, Any]]) -> list[str]:
    head = [f"# HELP yourturn_{name} {about}", f"# TYPE yourturn_{name} {sort}"]
    return head + [f"yourturn_{name}{labels} {value}" for labels, value in samples]


def _labels(**labels: str) -> str:
    return "{" + ",".join(f'{name}="{value}"' for name, value in labels.items()) + "}"
