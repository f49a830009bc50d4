"""Table of the tools: names, schemas and descriptions.

The descriptions are all that an agent reads before it decides whether to ask. They explain when to ask and when to assume, what a
good question looks like, and what follows: the turn ends, and the session is resumed with the answer.

No tool may answer a question, approve for a person, remove a gate or raise a limit: only people do these.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from ..core.rules import KINDS, REASONS, SYSTEM_REASONS
from ..core.task_fields import TASK_FIELDS


class Tool(NamedTuple):
    name: str
    title: str
    about: str  #: one line, for people
    description: str  #: for the agent
    schema: dict[str, Any]
    result: dict[str, Any] | None = None
    reads: bool = False  #: changes nothing


#: Kinds of questions that flag_task can ask; permissions and recoveries have tools of their own.
FLAG_KINDS = tuple(kind for kind, row in KINDS.items() if row.signals)
#: Reasons that only a worker uses.
_WORKER_REASONS = ("protocol_error", "code_changed", "run_failed")
#: Reasons that an agent can give in flag_task.
FLAG_REASONS = tuple(reason for reason in REASONS if reason not in (*SYSTEM_REASONS, *_WORKER_REASONS))

INSTRUCTIONS = """\
Yourturn is the desk between you and the people you work for. It keeps the tasks, and carries your questions to a person.

Ask (ask_question) when a wrong guess would be expensive or could not be undone, when only a person can know (intent, taste, \
credentials, money, law), or when the requirements contradict each other. Assume, and say so with add_note, when there is a \
convention in the code, an obvious default, or when it can be changed later. One good question is short, names the choices, \
says which one you would take and why, and can be answered without opening the code.

When a result says "pending": finish what you were saying and END YOUR TURN. Do not poll, do not guess, do not ask the same \
thing again. Your work stays as it is, and you are resumed with the answer, perhaps in a minute, perhaps tomorrow.
Silence is never a yes."""

_TASK = {"type": "string", "description": "The task's key, like PROJ-42. Left out: the task that you are working on."}


def _object(required: tuple[str, ...] = (), **properties: Any) -> dict[str, Any]:
    return {"type": "object", "properties": properties, "required": list(required), "additionalProperties": False}


def _text(description: str, **more: Any) -> dict[str, Any]:
    return {"type": "string", "description": description, **more}


_ASK = _object(
    ("question", "type", "responseType"),
    question=_text("The question to ask the user"),
    type=_text(
        "Type of question - blocking pauses execution, non_blocking continues with default",
        enum=["blocking", "non_blocking", "approval", "error_recovery"],
    ),
    responseType=_text("Expected response format", enum=["text", "choice", "boolean", "approval"]),
    options={
        "type": "array",
        "items": {
            "type": "object",
            "properties": {
                "label": {"type": "string"},
                "value": {"type": "string"},
                "description": {"type": "string"},
            },
        },
        "description": "Options for choice questions",
    },
    context={"type": "object", "description": "Additional context about the question"},
    timeoutMinutes={
        "type": "number",
        "description": "Timeout in minutes (default: 30 for blocking, 15 for approval, 10 for error)",
    },
    defaultResponse={
        "type": "object",
        "description": "Default response if timeout (for non-blocking or error recovery)",
    },
    task=_TASK,
)

#: Schema of the status of a question, the result of three tools.
QUESTION_STATUS: dict[str, Any] = {
    "type": "object",
    "properties": {
        "status": {"type": "string", "enum": ["pending", "answered", "timeout", "cancelled"]},
        "question_id": {"type": "string"},
        "task": {"type": "string"},
        "kind": {"type": "string"},
        "blocking": {"type": "boolean"},
        "value": {"description": "The answer; if `assumed` is true, the default to go on with."},
        "text": {"type": "string"},
        "verdict": {"type": ["string", "null"], "enum": ["approved", "rejected", None]},
        "assumed": {"type": "boolean", "description": "True if the value is the default, not the answer of a person."},
        "answered_by": {"type": ["string", "null"]},
        "answered_at": {"type": ["string", "null"]},
        "timeout_at": {"type": ["string", "null"]},
        "message": {"type": "string", "description": "The same as text, with what to do now."},
    },
    "required": ["status", "question_id", "task", "message"],
}

_CHILD = _object(
    ("title",),
    **{
        name: {**field.check.schema, "description": field.child}
        for name, field in TASK_FIELDS.items()
        if field.child and field.check is not None
    },
    depends_on={
        "type": "array",
        "items": {"type": "string"},
        "description": "Keys of tasks that must be finished first.",
    },
)

TOOLS: dict[str, Tool] = {
    tool.name: tool
    for tool in (
        Tool(
            "ask_question",
            "Ask a person",
            "Ask a person: for information, a decision, a way out of an error.",
            "Ask the user a question that may require clarification, approval, or input. Use this when you need information to "
            "proceed or want user preference.\n\n"
            "ASK when a wrong guess is expensive or cannot be undone, when only a person can know, or when requirements "
            "contradict each other. ASSUME instead, and write the assumption down with add_note, when the code base has a "
            "convention, when there is an obvious default, or when it can be changed later.\n\n"
            "A good question is short, offers options, says which one you would take and why, and puts what the person needs to "
            "know into `context`. Bad: 'How should I proceed?' Good: 'JWT or server sessions for the login? I would take JWT: "
            "the mobile app has no cookies.'\n\n"
            "type: `blocking` waits for the answer; `non_blocking` returns at once with your `defaultResponse`, and a later "
            "answer reaches you with another tool's result; `approval` asks for a yes before something happens; "
            "`error_recovery` asks which way out of an error to take. Only `blocking`, `non_blocking` and `error_recovery` take "
            "a default: silence never approves anything.\n\n"
            "AFTER: a quick person's answer comes back at once (status `answered`). Otherwise the status is `pending`: end your "
            "turn. You will be resumed with the answer. Do not poll and do not ask it again.",
            _ASK,
            QUESTION_STATUS,
        ),
        Tool(
            "get_answer",
            "Look at an answer",
            "See whether a question has been answered, and how.",
            "See how a question stands: answered, still pending, timed out or cancelled. Use it for a non-blocking question, or "
            "when you were resumed and want the exact answer. It is not for polling: if the question is pending and you cannot "
            "go on without it, end your turn and you will be resumed.",
            _object(
                ("question_id",),
                question_id=_text("The question's id, like Q7."),
                wait_seconds={
                    "type": "number",
                    "minimum": 0,
                    "maximum": 240,
                    "description": "How long to wait for the answer, if it is not there yet (0).",
                },
            ),
            QUESTION_STATUS,
            reads=True,
        ),
        Tool(
            "request_permission",
            "Ask for permission",
            "Ask a person to allow one exact action before it happens.",
            "Ask a person to allow one exact action BEFORE you do it: something that cannot be undone, costs money, or reaches "
            "beyond this working folder (deploy, push, delete, send, pay). Give the exact tool and its exact input: the person "
            "sees them, and the permission covers this action only, once. If the person edits the input, do what they wrote "
            "(`value` holds it) and nothing else. A rejection is final: take another way, and do not ask again for the same. "
            "No answer is not a yes.\n\n"
            "AFTER: `answered` with verdict `approved`: do exactly this, once. `pending`: end your turn; you will be resumed "
            "with the answer.",
            _object(
                ("tool", "input"),
                tool=_text("What would be run: the tool's or program's name."),
                input={"type": "object", "description": "Its exact arguments, complete, as they would be used."},
                reason=_text("What it does and why it is needed, in a sentence or two for the person."),
                timeout_minutes={"type": "number", "description": "How long the person has (15)."},
                task=_TASK,
            ),
            QUESTION_STATUS,
        ),
        Tool(
            "report_progress",
            "Report progress",
            "Report how far the work is. No answer is expected.",
            "Tell the people who watch how far you are, at milestones and in one sentence ('Schema is done, now the API'). It "
            "also keeps your claim alive. It gets no answer: to get one, use ask_question.",
            _object(
                ("message",),
                message=_text("What has been reached, and what comes next."),
                percent={"type": "number", "minimum": 0, "maximum": 100, "description": "How far the whole task is."},
                task=_TASK,
            ),
        ),
        Tool(
            "next_task",
            "Take the next task",
            "Claim the next task that can be worked on.",
            "Take the next task that can be worked on. It is yours alone until you call complete_task, release_task, flag_task "
            "or decompose_task; your claim is kept alive while this session lasts. The result holds the task with its notes and "
            "every question that was asked about it, with the answers: read them first. Not for sessions that were started for "
            "one task: those end with it.",
            _object(
                epic=_text("Only tasks within this one, by its key."),
                role=_text("Only tasks for this role."),
                project=_text("Only tasks of this project, by its key."),
            ),
        ),
        Tool(
            "complete_task",
            "Complete the task",
            "Say that the claimed work is finished.",
            "Say that the work is finished and checked against its acceptance. Give a summary that tells a person what was done, "
            "how it was checked and what you assumed. If the task needs a sign-off, it goes to a person now. Not for work that "
            "is half done: then ask_question, flag_task or release_task. After it, end your turn.",
            _object(
                ("summary",),
                summary=_text("What was done, how it was checked, what was assumed."),
                details=_text("What a reviewer should know beyond the summary."),
                issues={"type": "array", "items": {"type": "string"}, "description": "Problems that you saw and left."},
                task=_TASK,
            ),
        ),
        Tool(
            "flag_task",
            "Hand the task to a person",
            "Stop, and hand the task to a person.",
            "Stop working on the task and hand it to a person, because you cannot or should not go on. `kind` says what they are "
            "asked to do: "
            + "; ".join(f"`{kind}`: {KINDS[kind].asks}" for kind in FLAG_KINDS)
            + ". Your claim ends with it. If one answer would let you go on, use ask_question instead. After it, end your turn.",
            _object(
                ("text",),
                text=_text("What the person has to know and to decide."),
                kind=_text("What the person is asked to do (escalation).", enum=list(FLAG_KINDS)),
                reason=_text("Why it cannot go on (decision_needed).", enum=list(FLAG_REASONS)),
                context={"type": "object", "description": "What else helps: links, a diff, an error."},
                task=_TASK,
            ),
        ),
        Tool(
            "decompose_task",
            "Split the task",
            "Split the claimed task into parts that are worked on separately.",
            "Split the task into parts, because it is too big for one session or its parts can be worked on side by side. Your "
            "claim ends; the task waits for its parts and comes back when they are finished. Each part must make sense on its "
            "own. After it, end your turn.",
            _object(
                ("children",),
                children={"type": "array", "items": _CHILD, "minItems": 1, "description": "The parts, in order."},
                task=_TASK,
            ),
        ),
        Tool(
            "release_task",
            "Give the task back",
            "Give the claimed task back so that another agent can try. Costs one try.",
            "Give the task back so that another agent can try, because this session cannot do it and no answer by a person would "
            "help. It costs one of the task's tries. Say what you found out: the next one reads it.",
            _object(("reason",), reason=_text("Why, and what you found out."), task=_TASK),
        ),
        Tool(
            "add_note",
            "Write a note",
            "Add a note to the task. The state does not change.",
            "Add a note to the task for people and for the next session: an assumption that you made, a finding, a link. The "
            "state does not change, and no person is notified.",
            _object(("text",), text=_text("The note."), task=_TASK),
        ),
        Tool(
            "get_task",
            "Read a task",
            "Read a task with its notes, questions and answers.",
            "Read a task: description, acceptance, state, dependencies, notes, and every question about it with its answer and "
            "who gave it.",
            _object(task=_TASK),
            reads=True,
        ),
        Tool(
            "approve",
            "Permission prompt",
            "The permission prompt of Claude Code: ask a person about one tool call.",
            "For the host, not for the model: the permission prompt (`--permission-prompt-tool mcp__yourturn__approve`). It "
            "shows one exact tool call to a person and replies with their decision, allow or deny. It decides nothing itself. "
            "To ask for a permission on your own, use request_permission.",
            {
                "type": "object",
                "properties": {
                    "tool_name": _text("The tool that would be run."),
                    "input": {"type": "object", "description": "Its exact input."},
                    "tool_use_id": _text("The id of the call."),
                },
                "required": ["tool_name", "input"],
            },
        ),
    )
}
