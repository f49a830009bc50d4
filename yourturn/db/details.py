"""Reads one task or question with its details: all of them, the open ones, or those that a move has just made."""

from __future__ import annotations

import json
from collections.abc import Iterable
from functools import lru_cache
from typing import Any, NamedTuple

from ..core.errors import NotFound
from ..core.model import Note, Program, Question, Ref, Step, Task
from .backend import Queries
from .event_log import FollowUp, MovedTask, follow_ups
from .sql_loader import QUESTION, STEP

_TASK = len(Task._fields)


class Details(NamedTuple):
    """The rows that belong to a task."""

    questions: list[Question]
    notes: list[Note]
    needs: list[Ref]
    parent: str | None
    steps: list[Step]
    children: list[str]  #: keys; a child is also a need


class RunJournal(NamedTuple):
    """The input of a replay."""

    key: str
    questions: list[Question]
    steps: list[Step]
    program: Program | None


class TaskReader:
    """Reads single tasks and questions. `moved`: the task after the move of this transaction, which is not read again."""

    def __init__(self, queries: Queries, moved: MovedTask | None = None) -> None:
        self.queries = queries
        self.moved = moved

    def task(self, number: int) -> Task:
        if self.moved is not None and self.moved.alone and self.moved.task.id == number:
            return self.moved.task
        rows = self.queries.named("task", id=number)
        if not rows:
            raise NotFound(f"There is no task number {number}")
        return Task._make(rows[0][:_TASK])

    def question(self, number: int) -> tuple[Question, str]:
        """A question, and the key of its task."""
        if self.moved is not None:
            for q in self.moved.questions:
                if q.id == number:
                    return q, self.moved.task.key
        rows = self.queries.named("question_and_key", id=number)
        if not rows:
            raise NotFound(f"There is no question Q{number}", hint="See what is open with: turn inbox")
        *row, key = rows[0]
        return Question._make(row), key

    def details(self, tasks: list[Task], whole: bool = True) -> dict[int, Details]:
        """The details of many tasks, in one round trip. Not `whole`: only open questions and steps, and no notes."""
        if not tasks:
            return {}
        details = {task.id: Details([], [], [], None, [], []) for task in tasks}
        ids, runs = listed(details), listed(task.id for task in tasks if task.workflow)
        rows = self._related(
            questions=ids if whole else "", open_questions="" if whole else ids, notes=ids if whole else "", needs=ids,
            steps=runs if whole else "", open_steps="" if whole else runs, parents=_parents(tasks),
        )  # fmt: skip
        for row in rows.get("questions", rows.get("open_questions", ())):
            question = Question._make(row)
            details[question.task_id].questions.append(question)
        for task, *note in rows.get("notes", ()):
            details[task].notes.append(Note._make(note))
        for task, child, *ref in rows.get("needs", ()):
            details[task].needs.append(Ref._make(ref))
            if child:
                details[task].children.append(ref[1])
        for row in rows.get("steps", rows.get("open_steps", ())):
            details[row[0]].steps.append(Step._make(row))
        keys = dict(rows.get("parents", ()))
        return {task.id: details[task.id]._replace(parent=keys.get(task.parent_id)) for task in tasks} if keys else details

    def reply(self, number: int, question: int | None, at: int) -> tuple[Task, Details]:
        """A task after a move, with its open questions, the question that the move was about, and what the move made.

        That is in memory, so the cost does not depend on the task's history. For a request that is repeated with the same
        idempotency key it is read: the move was made before, at the time `at`.
        """
        task, moved = self.task(number), self.moved
        if moved is not None:
            details = Details(moved.questions, moved.notes, [], None, moved.steps, [])
        else:
            details = self._made_at(task, question, at)
        if moved is not None and moved.alone:
            return task, details
        rows = self._related(needs=str(task.id), parents=_parents([task]))
        needs = [Ref._make(ref) for _, _, *ref in rows["needs"]]
        children = [ref.key for ref, row in zip(needs, rows["needs"], strict=True) if row[1]]
        return task, details._replace(needs=needs, children=children, parent=dict(rows.get("parents", ())).get(task.parent_id))

    def _made_at(self, task: Task, question: int | None, at: int) -> Details:
        questions = self.queries.named("pending_or_changed", id=task.id, question=question or 0, at=at)
        notes = self.queries.named("notes_written", task=task.id, at=at)
        steps = self.queries.named("steps_written", task=task.id, journal=task.journal, at=at) if task.workflow else ()
        return Details([*map(Question._make, questions)], [*map(Note._make, notes)], [], None, [*map(Step._make, steps)], [])

    def follow_ups(self, number: int, at: int) -> tuple[FollowUp, ...]:
        """The moves of other tasks in the commit of a move; read for a repeated request."""
        if self.moved is not None:
            return self.moved.follow_ups
        moves = [(key, json.loads(data)) for key, data in self.queries.named("followed", task=number, at=at)]
        return follow_ups((key, d["from"], d["to"], [f"Q{q['id']}" for q in d.get("opened", ())]) for key, d in moves)

    def _related(self, **ids_by_query: str) -> dict[str, Any]:
        """The rows of several queries of `_texts`, each for a list of ids; those without ids are left out."""
        texts = _texts(self.queries.store.words["these"], self.queries.store.words["bytewise"])
        queries = {name: (texts[name], {"ids": ids}) for name, ids in ids_by_query.items() if ids}
        return dict(zip(queries, self.queries.run.many(*queries.values()), strict=True))

    def steps(self, task: int, journal: int) -> list[Step]:
        return [Step._make(row) for row in self.queries.named("steps", task=task, journal=journal)]

    def journal(self, task: int) -> RunJournal:
        """All questions and steps of a run and its source, in one round trip."""
        names = ("run_questions", "run_steps", "run_source")
        queries = [(self.queries.store.query[name], {"task": task}) for name in names]
        questions, steps, [[key, *source]] = self.queries.run.many(*queries)
        program = None if source[0] is None else Program._make(source)
        return RunJournal(key, [*map(Question._make, questions)], [*map(Step._make, steps)], program)

    def program(self, task: int) -> Program | None:
        """The source of a run at its last continuation."""
        rows = self.queries.named("program", task=task)
        return Program._make(rows[0]) if rows else None


@lru_cache
def _texts(these: str, bytewise: str) -> dict[str, str]:
    """The queries of `_related`."""
    questions = f"SELECT {QUESTION} FROM questions q WHERE q.task_id {these} {{}}ORDER BY q.id"
    steps = (
        f"SELECT {STEP} FROM steps s JOIN tasks t ON t.id = s.task_id AND t.journal = s.journal "
        f"WHERE s.task_id {these} {{}}ORDER BY s.task_id, s.place {bytewise}"
    )
    return {
        "questions": questions.format(""),
        "open_questions": questions.format("AND q.responded_at IS NULL "),
        "notes": f"SELECT task_id, author, text, at FROM notes WHERE task_id {these} ORDER BY id",
        "needs": (
            "SELECT d.task_id, CASE WHEN t.parent_id = d.task_id THEN 1 ELSE 0 END, t.id, t.key, t.state, t.reason "
            "FROM deps d JOIN tasks t ON t.id = d.needs_id "
            f"WHERE d.task_id {these} ORDER BY d.task_id, t.id"
        ),
        "steps": steps.format(""),
        "open_steps": steps.format("AND s.status <> 'completed' "),
        "parents": f"SELECT id, key FROM tasks WHERE id {these}",
    }


def _parents(tasks: Iterable[Task]) -> str:
    return listed({task.parent_id for task in tasks if task.parent_id})


def listed(ids: Iterable[Any]) -> str:
    """Ids as one text for {these}: the statement is the same for any number of them."""
    return ",".join(str(int(i)) for i in ids)
