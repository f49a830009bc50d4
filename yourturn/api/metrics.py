"""Metrics for Prometheus.

Counters are computed from the questions in the database, so that every process of every server reports the same. A question that
was refused has no row there: each process counts its own, with its process id as a label.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import Any

from ..server.refusals import REFUSED
from .request import ApiRequest, ApiResponse


def show(request: ApiRequest) -> ApiResponse:
    stats = request.client.stats(days=1)
    closed, kinds, answered = request.client.totals(), stats["kinds"], stats["answer_seconds"]
    counts = {kind: row["pending"] for kind, row in kinds.items()}
    for row in closed:
        counts[row["kind"]] = counts.get(row["kind"], 0) + row["count"]
    answered_rows = [row for row in closed if row["status"] == "answered"]
    lines = [
        *_family("tasks", "gauge", "Tasks by state.", ((_labels(state=s), n) for s, n in sorted(stats["tasks"].items()))),
        *_family(
            "questions_pending", "gauge", "Open questions by kind, and whether they hold their task up.",
            ((_labels(kind=kind, blocking=blocking), row["blocking"] if blocking == "true" else row["pending"] - row["blocking"])
             for kind, row in sorted(kinds.items()) for blocking in ("true", "false")),
        ),
        *_family(
            "oldest_question_seconds", "gauge", "How long the oldest open question that holds a task up has been waiting.",
            [(_labels(blocking="true"), stats["oldest_blocking"] or 0)],
        ),
        *_family(
            "questions_day", "gauge", "Questions that were closed in the last day, by kind and what became of them.",
            ((_labels(kind=kind, status=status), row[status])
             for kind, row in sorted(kinds.items()) for status in ("answered", "timeout", "cancelled")),
        ),
        *_family(
            "questions_asked_total", "counter", "Questions that were asked.",
            ((_labels(kind=kind), count) for kind, count in sorted(counts.items())),
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
        f"yourturn_answer_seconds_sum {sum(row['seconds'] for row in answered_rows)}",
        f"yourturn_answer_seconds_count {sum(row['count'] for row in answered_rows)}",
    ]  # fmt: skip
    return ApiResponse(text="\n".join(lines) + "\n", media="text/plain; version=0.0.4; charset=utf-8")


def _family(name: str, kind: str, about: str, samples: Iterable[tuple[str, Any]]) -> list[str]:
    head = [f"# HELP yourturn_{name} {about}", f"# TYPE yourturn_{name} {kind}"]
    return head + [f"yourturn_{name}{labels} {value}" for labels, value in samples]


def _labels(**labels: str) -> str:
    return "{" + ",".join(f'{name}="{value}"' for name, value in labels.items()) + "}"
