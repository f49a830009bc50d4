"""Every route: which operation of the table of access it is, who handles it, and how it is documented."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from ..core import permissions
from ..core.actions import VERBS
from ..core.rules import OFFICE

#: Bytes of a request that is read in no time.
SMALL = 20_000
#: Other words for a verb in a path.
ALIASES = {"reclaim": "release"}
_MOVES = VERBS.keys() - OFFICE.keys() - {"claim"}


class Row(NamedTuple):
    method: str
    path: str
    operation: str  #: of core/permissions.py; {action} and {method} stand for what the path names
    handler: Callable[[Any], Any]
    about: str
    body: str = ""  #: a schema of document.py
    gives: str = ""
    query: tuple[str, ...] = ()
    status: int = 200
    stream: Callable[..., Any] | None = None
    large: Mapping[str, int] = {}  #: methods that may be sent more than others
    short: bool = False  #: one look at one thing

    def operation_for(self, path: dict[str, str]) -> str:
        """What is not there needs no more than a look: who may not look is told nothing."""
        if self.operation == "{action}":
            name = ALIASES.get(path["action"], path["action"]).replace("-", "_")
        elif self.operation == "{method}":
            name = permissions.operation(path["method"])
        else:
            return self.operation
        return name if name in permissions.NEEDS else "tasks"

    def lasts(self, path: dict[str, str], size: int) -> bool:
        """May it take longer than one look or one move? Who takes the next task may have to pay everybody's debts before."""
        return size > SMALL or not (self.short or self.operation_for(path) in _MOVES)


def rows() -> list[Row]:
    from . import events, handlers, jobs, metrics, openapi, rpc

    task_query = (*handlers.TASK_FILTERS, "cursor", "limit")
    question_query = ("status", "kind", "project", "reviewer", "urgency", "task", "mine", "cursor", "limit")
    return [
        Row("GET", "/api/tasks", "tasks", handlers.list_tasks, "Tasks, filtered.", gives="Tasks", query=task_query),
        Row("POST", "/api/tasks", "create", handlers.create_task, "Write a task down.", "NewTask", "Task", status=201),
        Row("GET", "/api/tasks/{key}", "tasks", handlers.show_task, "A task with everything that hangs on it.", gives="Task", short=True),
        Row("GET", "/api/tasks/{key}/questions", "questions", handlers.task_questions, "The questions of a task.", gives="Questions"),
        Row("POST", "/api/tasks/{key}/questions", "ask", handlers.ask_about, "Ask a person.", "NewQuestion", "Question", status=201),
        Row("GET", "/api/tasks/{key}/events", "events", handlers.task_events, "What happened to a task.", gives="Events", query=("cursor", "limit")),
        Row("GET", "/api/tasks/{key}/output", "output", handlers.task_output, "What its sessions said.", gives="Lines", query=("cursor", "limit")),
        Row("POST", "/api/tasks/{key}/{action}", "{action}", handlers.act, "Say a verb.", "Deed", "Moved"),
        Row("POST", "/api/claims", "claim", handlers.claim_next, "Take the next task; null if there is none.", "NextClaim", "Claimed"),
        Row("GET", "/api/questions", "questions", handlers.list_questions, "Questions, filtered; those that wait, unless a status is named.", gives="Questions", query=question_query),
        Row("GET", "/api/questions/pending", "questions", jobs.pending, "What waits for a person, as questions of jobs.", gives="JobQuestions", query=("workspaceId", "type", "projectId", "cursor", "limit")),
        Row("GET", "/api/questions/{id}", "questions", handlers.show_question, "A question.", gives="Question", short=True),
        Row("GET", "/api/questions/{id}/answers", "questions", handlers.question_answers, "The ways to answer an open question, and where each leads.", gives="Answers", short=True),
        Row("POST", "/api/questions/{id}/answer", "answer", handlers.answer_question, "Answer a question. The first answer wins.", "NewAnswer", "Answered"),
        Row("POST", "/api/questions/{id}/cancel", "withdraw", handlers.cancel_question, "Take a question off the desk.", "Cancel", "Question"),
        Row("POST", "/api/questions/{id}/assign", "assign", handlers.assign_question, "Send a question to a person or a role.", "Assign", "Question"),
        Row("GET", "/api/jobs/{id}", "tasks", jobs.job, "A job's status.", gives="Job"),
        Row("GET", "/api/jobs/{id}/questions", "questions", jobs.of_job, "All questions of a job.", gives="JobQuestions"),
        Row("POST", "/api/jobs/{id}/questions", "ask", jobs.asked, "Ask a question of a job.", "NewJobQuestion", "JobAsked", status=201),
        Row("GET", "/api/events", "events", handlers.me, "Events as they happen, as server-sent events.", query=("project", "task", "only", "format", "after"), stream=events.stream),
        Row("GET", "/api/changes", "events", handlers.me, "Waits until something happens.", gives="Cursor", query=("after", "seconds"), stream=events.changes),
        Row("GET", "/api/projects", "projects", handlers.projects, "Projects and their settings.", gives="Projects"),
        Row("GET", "/api/workers", "tasks", handlers.workers, "Workers, the last one seen first; and a ready task that none of them takes.", gives="Workers", query=("project",)),
        Row("GET", "/api/me", "events", handlers.me, "Who you are here.", gives="Me"),
        Row("GET", "/api/stats", "stats", handlers.stats, "Numbers: how many, how fast, how often nobody answered.", gives="Stats", query=("project", "days")),
        Row("POST", "/api/desk/{method}", "{method}", rpc.speak, "A method of the client, by its name.", "Method", "Result", large=rpc.LARGE),
        Row("GET", "/metrics", "metrics", metrics.show, "Numbers for Prometheus.", gives="text"),
        Row("GET", "/openapi.json", "document", openapi.show, "This document.", gives="Document"),
    ]  # fmt: skip
