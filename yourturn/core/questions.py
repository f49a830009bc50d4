"""Builds questions and validates answers."""

from __future__ import annotations

import json
import math
import re
from types import SimpleNamespace
from typing import Any

from .answers import ANSWERS, FORMS, VERDICT_FORMS, verdict_of, way
from .answers import allowed as allowed_words
from .canonical_json import digest
from .decision_builder import Draft
from .errors import Invalid
from .fields import duration
from .model import ANSWERED, APPROVED, FINISHED, MINUTE, PENDING, REJECTED, SYSTEM, WITHDRAWN, Question
from .rules import KINDS
from .settings import of_kind
from .step_paths import place


def make(d: Draft, args: dict[str, Any], by: str, tool: bool) -> Question:
    """A question from the arguments and the defaults of its kind. `tool`: asked by tool or API, so its timeout is limited."""
    kind = args.get("kind") or "input"
    row = KINDS[kind]
    text = args.get("text") or row.prompt.format(title=d.get("title"))
    blocking = args.get("blocking", True)
    options = args.get("options") or []
    response_type = args.get("response_type") or ("choice" if options else row.response_type)
    if (kind, response_type) not in ANSWERS:
        raise Invalid(
            f"A question of kind {kind} is answered with yes or no",
            hint="Leave options and response type out, or ask an input.",
        )
    timeout = args.get("timeout")
    if timeout is None and tool and row.timeout:
        timeout = min(max(duration(row.timeout), d.settings["min_timeout"]), d.settings["max_timeout"])
    elif timeout is not None and not ("steps" in args and d.script) and args.get("reason") != FINISHED:
        _within_limits(d, timeout)  # scripts and the setting `review` are configured by people
    on_timeout = args.get("on_timeout")
    if timeout is None and not tool and by.startswith("agent:") and not d.get("workflow"):
        timeout, on_timeout = _signal_timeout(d, kind, args)
    action = args.get("action")
    q = Question(
        id=0, task_id=d.id, kind=kind, blocking=int(blocking), text=text,
        context=_json(args.get("context")), reason=args.get("reason"),
        urgency=args.get("urgency") or (row.urgency if blocking else "low"),
        response_type=response_type, options=json.dumps(options),
        multi=int(args.get("multi", False)), allow_other=int(args.get("allow_other", False)), grp=args.get("group"),
        default_value=None, timeout_at=d.now + timeout if timeout and blocking else None,
        timeout=timeout if blocking else None, on_timeout=on_timeout or row.on_timeout,
        reviewer=args.get("reviewer"), confidence=args.get("confidence"), action=_json(action),
        digest=digest(action if action is not None else text) if kind == "permission" else None,
        metadata=_json(args.get("metadata")), status=PENDING, response=None, close_reason=None,
        asked_by=by, asked_at=d.now, responded_by=None, responded_at=None, step=_step(d, args.get("step")),
    )  # fmt: skip
    return _with_default(_checked(q, options), args, row.default)


def _signal_timeout(d: Draft, kind: str, args: dict[str, Any]) -> tuple[int | None, str | None]:
    """The project's settings for questions at the end of an agent's turn. In a run the script decides."""
    policy, timeout = args.get("on_timeout"), of_kind(d.settings, "signal_timeout", kind)
    if not timeout or policy == "keep":
        return None, policy
    return timeout, policy or ("default" if args.get("default") is not None else of_kind(d.settings, "signal_on_timeout", kind))


def _step(d: Draft, path: str | None) -> str | None:
    """The step that asks, if the actor holds the run."""
    if path is None or not d.holds_claim or not d.get("workflow"):
        return None
    return f"{d.get('journal')}/{place(path)}"


def trial(args: dict[str, Any], settings: dict[str, Any]) -> None:
    """Validate the arguments of a question without a task. Raises Invalid."""
    make(SimpleNamespace(id=0, now=0, settings=settings, get=str), args, "", True)  # type: ignore[arg-type]


def as_closed(q: Question, past: dict[str, Any], at: int) -> Question:
    """A question that was closed in another tracker: with a person's verdict, or without any."""
    by, verdict = past["by"], past.get("verdict")
    if verdict is None:
        why = past.get("why") or "closed without an answer"
        return q._replace(status=WITHDRAWN, close_reason=why, responded_by=by, responded_at=at)
    _, response = fit(q, {"verdict": verdict, "text": past.get("response")})
    return q._replace(status=ANSWERED, response=json.dumps(response), responded_by=by, responded_at=at)


def allows(q: Question, fenced_at: int | None) -> bool:
    """True if this approval is still valid. A restore voids it: its action may have been done already."""
    if q.kind != "permission" or q.status != ANSWERED or q.responded_at is None:
        return False
    said_yes = json.loads(q.response or "{}").get("verdict") == APPROVED
    return said_yes and (fenced_at is None or q.responded_at >= fenced_at)


def allowed(q: Question) -> str | None:
    """The digest of the action that an approval allows: as shown, or as edited by the person."""
    approved: str | None = json.loads(q.response or "{}").get("digest", q.digest)
    return approved


def _checked(q: Question, options: list[dict[str, Any]]) -> Question:
    if q.response_type == "choice" and not options and not q.allow_other:
        raise Invalid("A choice needs options", hint="Give at least two options, or allow another answer.")
    if options and q.response_type != "choice":
        raise Invalid(f"Options do not go with a {q.response_type} answer", hint="Leave the response type out, or say choice.")
    if q.multi and q.response_type != "choice":
        raise Invalid("Several answers at once need a choice")
    return q


def _with_default(q: Question, args: dict[str, Any], allowed: bool) -> Question:
    default = args.get("default")
    if default is None:
        if not q.blocking and not allowed:
            raise Invalid(f"A question of kind {q.kind} cannot be non-blocking", reason="it takes no default to go on with")
        if not q.blocking:
            raise Invalid("A non-blocking question needs a default", hint="Give a default: the agent goes on with it.")
        return q
    if not allowed or q.response_type == "approval":
        what = f"of kind {q.kind}" if not allowed else "that asks for an approval"
        raise Invalid(f"A question {what} takes no default", reason="silence never approves anything")
    value = default["value"] if isinstance(default, dict) and "value" in default else default
    try:
        _, response = fit(q, {"value": value})
    except Invalid as error:
        raise Invalid("The default does not fit the question", reason=error.message.replace(q.name, "it")) from None
    return q._replace(default_value=json.dumps({**response, "verdict": None}))


def _within_limits(d: Draft, timeout: int) -> None:
    low, high = d.settings["min_timeout"], d.settings["max_timeout"]
    if not low <= timeout <= high:
        raise Invalid(
            f"The timeout must be between {_minutes(low)} and {_minutes(high)}",
            reason=f"got {_minutes(timeout)}",
            hint=f"An admin can change the limits: turn project set {'min' if timeout < low else 'max'}_timeout …",
        )


def _minutes(micros: int) -> str:
    if micros < MINUTE:
        return f"{micros / 1_000_000:g} s"
    return f"{micros / MINUTE:g} min" if micros < 120 * MINUTE else f"{micros / MINUTE / 60:g} h"


def _json(value: Any) -> str | None:
    return None if value is None else json.dumps(value)


def fit(q: Question, args: dict[str, Any]) -> tuple[str, dict[str, Any]]:
    """The verdict and response of an answer; raises Invalid with the allowed words, and the question stays open.

    Without a verdict the value decides, and without a value the text does; text alone is never a yes.
    """
    asked, value, text = args.get("verdict"), args.get("value"), args.get("text") or ""
    own: dict[str, str] = {}
    if args.get("signal") is not None and value is None and q.response_type in ("choice", "boolean", "number"):
        verdict = asked or APPROVED  # the signal carries the result
    elif asked != REJECTED and q.kind == "permission" and isinstance(value, dict):
        verdict = APPROVED
        value, own = _edited(q, value)
    elif q.response_type in VERDICT_FORMS:
        verdict, value, text = _verdict(q, asked, value, text)
    elif asked == REJECTED:
        verdict = asked
        if isinstance(value, str) and not text:
            value, text = None, value
    else:
        verdict = APPROVED
        if value is None and q.response_type in ("choice", "number"):
            value, text = text or None, ""
        value, text = _FIT[q.response_type](q, value, text)
    return verdict, {"type": q.response_type, "value": value, "text": text, "verdict": verdict, **own}


def _verdict(q: Question, verdict: str | None, value: Any, text: str) -> tuple[str, Any, str]:
    """The yes or no: from the verb, the value, or a single word of text."""
    if value is None and verdict is None and text:
        value, text = text, ""
    yes = verdict != REJECTED if value is None else verdict_of(value)
    if yes is None:
        no = way(q.kind, q.response_type, False) is not None
        verbs = ("approve", "reject") if no else ("approve",)
        words = " or: ".join(f'turn {verb} {q.name} "…"' for verb in verbs)
        raise Invalid(
            f"{q.name} takes a yes{' or a no' * no}, not {_quote(value)}",
            reason=f"allowed: {allowed_words(no)}",
            hint=f"The question is still open. Words go beside it: {words}",
        )
    answer = way(q.kind, q.response_type, yes)
    if answer is None:
        return REJECTED, None, text
    agrees = verdict in (None, answer.verdict) or (verdict == REJECTED and not yes)
    if value is not None and not agrees:
        raise _contradiction(q, verdict, "value", value)
    if verdict_of(text) is (not yes):
        raise _contradiction(q, answer.verdict, "words", text)
    return answer.verdict, answer.value, text


def _contradiction(q: Question, verdict: str | None, what: str, value: Any) -> Invalid:
    return Invalid(
        f"{q.name} was {verdict} with the {what} {_quote(value)}",
        reason="one says yes and the other no",
        hint="The question is still open.",
    )


def _quote(value: Any) -> str:
    shown = str(value)
    return f"“{shown if len(shown) <= 40 else shown[:39] + '…'}”"


#: Parts of an action that a person may edit before allowing it. Tool and folder stay as shown.
EDITABLE = ("input", "arguments")


def _edited(q: Question, value: dict[str, Any]) -> tuple[Any, dict[str, str]]:
    """The action as edited by the person, with its own digest."""
    shown = json.loads(q.action or "null")
    if not isinstance(shown, dict) or not shown.keys() & set(EDITABLE):
        raise Invalid(f"{q.name} has no input that could be edited", hint="The question is still open.")
    if digest(value) == q.digest:  # 1 == True in Python, but their digests differ
        return True, {}
    if value.keys() != shown.keys() or any(value[name] != shown[name] for name in shown if name not in EDITABLE):
        raise Invalid(
            f"Only the input of {q.name} can be edited",
            reason=f"these stay as they are: {', '.join(name for name in shown if name not in EDITABLE) or 'its fields'}",
            hint="The question is still open.",
        )
    return value, {"digest": digest(value)}


def _text(q: Question, value: Any, text: str) -> tuple[Any, str]:
    if value is None and not text:
        return None, ""
    if value is None:
        value = text
    elif not isinstance(value, str):
        value = json.dumps(value)
    if not value.strip():
        raise Invalid(f"The answer to {q.name} must not be empty", hint="The question is still open.")
    return value, text or value


def _choice(q: Question, value: Any, text: str) -> tuple[Any, str]:
    options = json.loads(q.options)
    if value is None or value == "" or value == []:
        raise _not_one_of(q, options)
    if not q.multi:
        return _pick(q, options, value), text
    items = value if isinstance(value, list) else _several(q, options, str(value))
    chosen = list(dict.fromkeys(_pick(q, options, item) for item in items if item != ""))
    if not chosen:
        raise _not_one_of(q, options)
    return chosen, text


def _several(q: Question, options: list[dict[str, Any]], text: str) -> list[Any]:
    """Several options in one line: 'A, B' (an option may contain a comma), or a JSON list."""
    try:
        items = json.loads(text) if text.lstrip().startswith("[") else None
    except ValueError:
        items = None
    if isinstance(items, list):
        return items
    named = {_spaced(str(o[field])): o["value"] for field in ("value", "label", "id") for o in options}
    parts, items = text.split(","), list[Any]()
    while parts:
        fits = [end for end in range(len(parts), 0, -1) if _spaced(",".join(parts[:end])) in named]
        if len(fits) > 1:
            raise Invalid(
                f"{_quote(text)} fits the options of {q.name} in several ways",
                hint=f"The question is still open. Say a list: '{json.dumps([named[_spaced(','.join(parts[: fits[0]]))]])}'",
            )
        end = fits[0] if fits else 1
        items.append(named[_spaced(",".join(parts[:end]))] if fits else parts[0].strip())
        parts = parts[end:]
    return items


def _spaced(name: str) -> str:
    """The normalized name of an option."""
    return ", ".join(part.strip() for part in name.split(",")).casefold()


def _pick(q: Question, options: list[dict[str, Any]], value: Any) -> Any:
    word = str(value).strip().casefold()
    fits = [o for o in options if any(o[field] == value for field in ("id", "value", "label"))]
    fits = fits or [o for o in options if word in (str(o[field]).strip().casefold() for field in ("id", "value", "label"))]
    if len({str(o["value"]) for o in fits}) > 1:
        names = ", ".join(str(o["id"]) for o in fits)
        raise Invalid(f"“{word[:40]}” fits several options of {q.name}", reason=names, hint="Name one by its id.")
    if fits:
        return fits[0]["value"]
    if q.asked_by == SYSTEM.name and len(str(value).split()) < 2:
        raise _not_one_of(q, options)  # a sentence is advice for the next try; a single word like no or stop is not
    if q.allow_other and isinstance(value, str) and value.strip():
        return value
    raise _not_one_of(q, options)


def _not_one_of(q: Question, options: list[dict[str, Any]]) -> Invalid:
    ids = [str(o["id"]) for o in options]
    names = ", ".join(f"“{name}”" if any("," in id for id in ids) else name for name in ids)
    which = "one or more of" if q.multi else "one of"
    words = "advice of more than a word" if q.asked_by == SYSTEM.name else "something else"
    other = f" (or {words})" if q.allow_other else ""
    return Invalid(f"{q.name} takes {which}: {names}{other}", hint="The question is still open.")


#: A decimal comma. Three digits after it could also mean thousands: refused instead of guessed.
_COMMA = re.compile(r"[+-]?\d+,\d+\Z", re.ASCII)
_THOUSANDS = re.compile(r"[+-]?[1-9]\d{0,2},\d{3}\Z", re.ASCII)


def _number(q: Question, value: Any, text: str) -> tuple[Any, str]:
    if isinstance(value, str) and _COMMA.match(value := value.strip()):
        whole, _, rest = value.partition(",")
        if _THOUSANDS.match(value):
            raise Invalid(
                f"{q.name} takes a number: {value!a} may be {whole}{rest} or {whole}.{rest}",
                hint=f"The question is still open. Say {whole}{rest} or {whole}.{rest}.",
            )
        value = f"{whole}.{rest}"
    try:
        number = float(value) if not isinstance(value, (bool, dict, list)) else math.nan
    except (TypeError, ValueError, OverflowError):
        number = math.nan
    if not math.isfinite(number):
        raise Invalid(f"{q.name} takes a number", hint="The question is still open.")
    return int(number) if number.is_integer() and abs(number) < 2**53 else number, text


_FIT = {"text": _text, "choice": _choice, "number": _number}
RESPONSE_TYPES = FORMS
