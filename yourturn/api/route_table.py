"""Table of the routes of the API: operation for the permission check, handler, and documentation."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from ..core import permissions

#: Other names of a verb in a path.
ALIASES = {"reclaim": "release"}


class Row(NamedTuple):
    method: str
    path: str
    operation: str  #: of core/permissions.py; {action} and {method} stand for that part of the path
    handler: Callable[[Any], Any]
    about: str
    body: str = ""  #: name of a schema of openapi.py
    response_schema: str = ""  #: name of the schema of the response
    query: tuple[str, ...] = ()
    status: int = 200
    stream: Callable[..., Any] | None = None  #: async (state, request) -> response, instead of the handler
    large: Mapping[str, int] = {}  #: size limits of methods whose requests may be larger

    def operation_for(self, path: dict[str, str]) -> str:
        """An unknown action or method needs the permission to read: without it, the response must not tell what exists."""
        if self.operation == "{action}":
            name = ALIASES.get(path["action"], path["action"]).replace("-", "_")
        elif self.operation == "{method}":
            name = permissions.operation(path["method"])
        else:
            return self.operation
        return name if name in permissions.NEEDS else "tasks"


def rows() -> list[Row]:
    from . import events, handlers, jobs, metrics, openapi, rpc

    task_query = (*handlers.TASK_FILTERS, "cursor", "limit")
    question_query = ("status", "kind", "project", "reviewer", "urgency", "task", "mine", "cursor", "limit")
    return [
        Row("GET", "/api/tasks", "tasks", handlers.list_tasks, "Tasks, filtered.", response_schema="Tasks", query=task_query),
        Row("POST", "/api/tasks", "create", handlers.create_task, "Create a task.", "NewTask", "Task", status=201),
        Row("GET", "/api/tasks/{key}", "tasks", handlers.show_task, "A task with its questions, notes and dependencies.", response_schema="Task"),
        Row("GET", "/api/tasks/{key}/questions", "questions", handlers.task_questions, "The questions of a task.", response_schema="Questions"),
        Row("POST", "/api/tasks/{key}/questions", "ask", handlers.ask_about, "Ask a person.", "NewQuestion", "Question", status=201),
        Row("GET", "/api/tasks/{key}/events", "events", handlers.task_events, "Events of a task.", response_schema="Events", query=("cursor", "limit")),
        Row("GET", "/api/tasks/{key}/output", "output", handlers.task_output, "Output of the sessions of a task.", response_schema="Lines", query=("cursor", "limit")),
        Row("POST", "/api/tasks/{key}/{action}", "{action}", handlers.act, "Make a move.", "Deed", "Moved"),
        Row("POST", "/api/claims", "claim", handlers.claim_next, "Take the next task; null if there is none.", "NextClaim", "Claimed"),
        Row("GET", "/api/questions", "questions", handlers.list_questions, "Questions, filtered; the pending ones unless `status` is given.", response_schema="Questions", query=question_query),
        Row("GET", "/api/questions/pending", "questions", jobs.pending, "Pending questions, as questions of jobs.", response_schema="JobQuestions", query=("workspaceId", "type", "projectId", "cursor", "limit")),
        Row("GET", "/api/questions/{id}", "questions", handlers.show_question, "A question.", response_schema="Question"),
        Row("GET", "/api/questions/{id}/answers", "questions", handlers.question_answers, "The ways to answer an open question, and where each leads.", response_schema="Answers"),
        Row("POST", "/api/questions/{id}/answer", "answer", handlers.answer_question, "Answer a question. The first answer wins.", "NewAnswer", "Answered"),
        Row("POST", "/api/questions/{id}/cancel", "withdraw", handlers.cancel_question, "Cancel a question without an answer.", "Cancel", "Question"),
        Row("POST", "/api/questions/{id}/assign", "assign", handlers.assign_question, "Send a question to a person or a role.", "Assign", "Question"),
        Row("GET", "/api/jobs/{id}", "tasks", jobs.job, "A job's status.", response_schema="Job"),
        Row("GET", "/api/jobs/{id}/questions", "questions", jobs.job_questions, "All questions of a job.", response_schema="JobQuestions"),
        Row("POST", "/api/jobs/{id}/questions", "ask", jobs.ask, "Ask a question of a job.", "NewJobQuestion", "JobAsked", status=201),
        Row("GET", "/api/events", "events", handlers.me, "Events as they happen, as server-sent events.", query=("project", "task", "only", "format", "after"), stream=events.stream),
        Row("GET", "/api/changes", "events", handlers.me, "Wait for the next event.", response_schema="Cursor", query=("after", "seconds"), stream=events.changes),
        Row("GET", "/api/projects", "projects", handlers.projects, "Projects and their settings.", response_schema="Projects"),
        Row("GET", "/api/workers", "tasks", handlers.workers, "Workers, the last active one first; and a ready task that none of them takes.", response_schema="Workers", query=("project",)),
        Row("GET", "/api/me", "events", handlers.me, "Your actor, role and permissions.", response_schema="Me"),
        Row("GET", "/api/stats", "stats", handlers.stats, "Statistics: tasks, questions, answer times and timeouts.", response_schema="Stats", query=("project", "days")),
        Row("POST", "/api/desk/{method}", "{method}", rpc.call_method, "Call a method of the client by its name.", "Method", "Result", large=rpc.LARGE),
        Row("GET", "/metrics", "metrics", metrics.show, "Metrics for Prometheus.", response_schema="text"),
        Row("GET", "/openapi.json", "document", openapi.show, "This document.", response_schema="Document"),
    ]  # fmt: skip
