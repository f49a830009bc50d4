"""Answers to several questions at once: a preview of what each approval does, and sending them one by one."""

from __future__ import annotations

from typing import Any, NamedTuple

from ..core.errors import AlreadyClosed, IllegalMove, Invalid, YourturnError
from ..core.model import PENDING
from . import evidence, labels, view_models
from .answer_form import late_sentence, send_answer
from .question_view import find_question
from .request import Page, PageRequest, PageResult, idempotency_key

#: Answers at once, at most.
MAX_BATCH = 50


class Planned(NamedTuple):
    """One answer of the preview."""

    id: str
    task: str
    text: str
    kind: view_models.KindView
    verb: str
    effect: str
    action: evidence.ActionView | None
    key: str


def preview(request: PageRequest) -> PageResult:
    planned, excluded = _plan(request, list(dict.fromkeys(number[:60] for number in request.fields("pick"))))
    context = {"here": "inbox", "plan": planned, "excluded": excluded, "done": None, "total": _total(planned)}
    return Page("batch.html", context)


def _plan(request: PageRequest, numbers: list[str]) -> tuple[list[Planned], list[tuple[str, str, str]]]:
    """The answers that can be sent together, and the questions that cannot (id, text, reason)."""
    if len(numbers) > MAX_BATCH:
        raise Invalid(f"At most {MAX_BATCH} answers at once", reason=f"{len(numbers)} were selected")
    planned: list[Planned] = []
    excluded: list[tuple[str, str, str]] = []
    effects = request.client.effects(*numbers)
    for q in request.client.inbox(only=numbers):
        button = labels.batch_button(q, effects.get(q["id"], ()), labels.script_name(q))
        if q["status"] != PENDING:
            excluded.append((q["id"], q["text"], labels.result_text(q, request.client.who.name)))
        elif button is None:
            excluded.append((q["id"], q["text"], "It needs words or a choice."))
        else:
            action = evidence.action(q["action"], q["digest"]) if q["action"] is not None else None
            kind = view_models.kind(q)
            planned.append(Planned(q["id"], q["task"], q["text"], kind, button.verb, button.effect, action, idempotency_key()))
    return planned, excluded


def _total(planned: list[Planned]) -> str:
    """'2 tasks are done, 1 goes on'"""
    done = sum(answer.effect.endswith(" is done") for answer in planned)
    continued = len(planned) - done
    parts = [
        f"{labels.plural(done, 'task')} {'is' if done == 1 else 'are'} done" if done else "",
        f"{continued} go{'es' * (continued == 1)} on" if continued else "",
    ]
    return ", ".join(filter(None, parts))


def send(request: PageRequest) -> PageResult:
    """Sends each answer on its own: one that comes too late is reported and does not affect the others."""
    done: list[tuple[str, str, str, bool]] = []
    for pair in request.fields("send")[:MAX_BATCH]:
        number, _, key = pair.partition(" ")
        q: dict[str, Any] | None = None
        try:
            q = find_question(request.client, number[:60])
            effects = request.client.effects(q["id"]).get(q["id"], ())
            button = labels.batch_button(q, effects, labels.script_name(q))
            if button is None and q["status"] == PENDING:
                raise Invalid("It needs words or a choice")
            send_answer(request.client, q, {"verdict": "approved"}, key[:200] or None)
            # No button: the same answer was sent before.
            text = f"{button.verb}: {button.effect}." if button else labels.result_text(q, request.client.who.name)
            done.append((number, q["text"], text, True))
        except (AlreadyClosed, IllegalMove):
            done.append((number, q["text"] if q else "", late_sentence(request, number), False))
        except YourturnError as error:
            done.append((number, "", f"{error}.", False))
    return Page("batch.html", {"here": "inbox", "plan": [], "excluded": [], "done": done, "total": ""})
