"""One task, or one question, and what hangs on it: all of it, what is open, or what a move has just made."""

from __future__ import annotations

import json
from collections.abc import Iterable
from functools import lru_cache
from typing import Any, NamedTuple

from ..core.errors import NotFound
from ..core.model import Note, Program, Question, Ref, Step, Task
from .backend import Queries
from .event_log import FollowUp, Left, follow_ups
from .sql_loader import QUESTION, STEP

_TASK = len(Task._fields)


class Details(NamedTuple):
    """What hangs on a task."""

    questions: list[Question]
    notes: list[Note]
    needs: list[Ref]
    parent: str | None
    steps: list[Step]
    children: list[str]  #: keys; a child is also a need


class RunJournal(NamedTuple):
    """What a script needs to go on."""

    key: str
    questions: list[Question]
    steps: list[Step]
    program: Program | None


class TaskReader:
    """Reads single tasks and questions. `left`: the task as the move that is being made leaves it, which is not read again."""

    def __init__(self, queries: Queries, left: Left | None = None) -> None:
        self.queries = queries
        self.left = left

    def task(self, number: int) -> Task:
        if self.left is not None and self.left.alone and self.left.task.id == number:
            return self.left.task
        rows = self.queries.named("task", id=number)
        if not rows:
            raise NotFound(f"There is no task number {number}")
        return Task._make(rows[0][:_TASK])

    def question(self, number: int) -> tuple[Question, str]:
        """A question, and its task's key."""
        if self.left is not None:
            for q in self.left.questions:
                if q.id == number:
                    return q, self.left.task.key
        found = self.queries.named("question_and_key", id=number)
        if not found:
            raise NotFound(f"There is no question Q{number}", hint="See what is open with: turn inbox")
        *row, key = found[0]
        return Question._make(row), key

    def details(self, tasks: list[Task], whole: bool = True) -> dict[int, Details]:
        """What hangs on many tasks, asked for in one go. Not `whole`: only open questions and steps, and no notes."""
        if not tasks:
            return {}
        found = {task.id: Details([], [], [], None, [], []) for task in tasks}
        ids, runs = listed(found), listed(task.id for task in tasks if task.workflow)
        rows = self._hanging(
            questions=ids if whole else "", open_questions="" if whole else ids, notes=ids if whole else "", needs=ids,
            steps=runs if whole else "", open_steps="" if whole else runs, parents=_parents(tasks),
        )  # fmt: skip
        for row in rows.get("questions", rows.get("open_questions", ())):
            question = Question._make(row)
            found[question.task_id].questions.append(question)
        for task, *note in rows.get("notes", ()):
            found[task].notes.append(Note._make(note))
        for task, child, *ref in rows.get("needs", ()):
            found[task].needs.append(Ref._make(ref))
            if child:
                found[task].children.append(ref[1])
        for row in rows.get("steps", rows.get("open_steps", ())):
            found[row[0]].steps.append(Step._make(row))
        keys = dict(rows.get("parents", ()))
        return {task.id: found[task.id]._replace(parent=keys.get(task.parent_id)) for task in tasks} if keys else found

    def reply(self, number: int, question: int | None, at: int) -> tuple[Task, Details]:
        """A task after a move: with its open questions, the question that the move was about, and what the move made.

        That is in memory, and costs the same however long the task's history is. A move that is said again with the same
        idempotency key was made before, `at` that moment, and what it made is looked up.
        """
        task, left = self.task(number), self.left
        if left is not None:
            made = Details(left.questions, left.notes, [], None, left.steps, [])
        else:
            made = self._made(task, question, at)
        if left is not None and left.alone:
            return task, made
        rows = self._hanging(needs=str(task.id), parents=_parents([task]))
        needs = [Ref._make(ref) for _, _, *ref in rows["needs"]]
        children = [ref.key for ref, row in zip(needs, rows["needs"], strict=True) if row[1]]
        return task, made._replace(needs=needs, children=children, parent=dict(rows.get("parents", ())).get(task.parent_id))

    def _made(self, task: Task, question: int | None, at: int) -> Details:
        questions = self.queries.named("pending_or_changed", id=task.id, question=question or 0, at=at)
        notes = self.queries.named("notes_written", task=task.id, at=at)
        steps = self.queries.named("steps_written", task=task.id, journal=task.journal, at=at) if task.workflow else ()
        return Details([*map(Question._make, questions)], [*map(Note._make, notes)], [], None, [*map(Step._make, steps)], [])

    def follow_ups(self, number: int, at: int) -> tuple[FollowUp, ...]:
        """The other tasks that moved in the commit of a move; looked up where the move is only said again."""
        if self.left is not None:
            return self.left.follow_ups
        told = [(key, json.loads(data)) for key, data in self.queries.named("followed", task=number, at=at)]
        return follow_ups((key, d["from"], d["to"], [f"Q{q['id']}" for q in d.get("opened", ())]) for key, d in told)

    def _hanging(self, **about: str) -> dict[str, Any]:
        """Rows by what they are, each for a list of ids; what is asked for no task is left out."""
        texts = _texts(self.queries.store.words["these"], self.queries.store.words["bytewise"])
        asked = {name: (texts[name], {"ids": ids}) for name, ids in about.items() if ids}
        return dict(zip(asked, self.queries.run.many(*asked.values()), strict=True))

    def steps(self, task: int, journal: int) -> list[Step]:
        return [Step._make(row) for row in self.queries.named("steps", task=task, journal=journal)]

    def journal(self, task: int) -> RunJournal:
        """All questions and steps of a run and its source, asked for in one go."""
        names = ("run_questions", "run_steps", "run_source")
        asked = [(self.queries.store.query[name], {"task": task}) for name in names]
        questions, steps, [[key, *source]] = self.queries.run.many(*asked)
        program = None if source[0] is None else Program._make(source)
        return RunJournal(key, [*map(Question._make, questions)], [*map(Step._make, steps)], program)

    def program(self, task: int) -> Program | None:
        """The source that a run was last gone on with."""
        rows = self.queries.named("program", task=task)
        return Program._make(rows[0]) if rows else None


@lru_cache
def _texts(these: str, bytewise: str) -> dict[str, str]:
    """How to ask for what hangs on tasks."""
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
    """For {these}: a list of ids as one text, so that the statement is the same for any number of them."""
    return ",".join(str(int(i)) for i in ids)
