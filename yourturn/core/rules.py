"""The rules, as data. Everything that decides whose turn it is stands in this file and nowhere else.

How to read it
--------------
A **task** is in one of ten states. An actor uses a **verb**. `TRANSITIONS[(state, verb)]` is either missing, then the
move is illegal and the error lists what is valid instead, or it is a `Rule`:

    to       the states in which the move can land; "=" stands for the state it came from
    who      the groups that may make it: any, human, admin, holder (of the claim), system. `ROLES` has the groups of each role
    guards   functions of guards.py: each returns the reason for a refusal, or ""
    effect   the function of effects.py, claims.py, creation.py or journal.py that carries it out on a draft

Functions stand here by name, so this file imports only the model; decide.py joins the table with the functions.

Most verbs land in one state. Where a move lands in one of several, the effect chooses, and decide() checks that the
choice is in `to`: the printed matrix cannot lie.

A **question** is of one of nine kinds. `KINDS` says what each verdict does: `done` and `cancelled` end the task, `back`
returns it to the agent, `refused` is an error. A blocking question puts the task into `human`; the task leaves when the
last blocking question is closed.

**A timeout** is not a verdict: `TIMEOUT_POLICIES` says what each `on_timeout` does.

To add a kind, a state or a verb, add a row here. The docs' matrix and diagram, the tests of every cell, the error texts
and the help texts are generated from these tables.
"""

from __future__ import annotations

from typing import NamedTuple

from .model import (
    APPROVED,
    BLOCKED,
    CANCELLED,
    CREATED,
    DEFERRED,
    DEPENDENCY_FAILED,
    DONE,
    ENDED,
    FAILED,
    FINISHED,
    HUMAN,
    READY,
    REJECTED,
    RETRY_EXHAUSTED,
    REVIEW,
    STATES,
    WORKING,
)


class Rule(NamedTuple):
    to: tuple[str, ...]
    who: frozenset[str]
    guards: tuple[str, ...]
    effect: str


#: role -> groups. `holder` also has to prove the claim; `own` covers a person's own account, and every account for an admin.
ROLES: dict[str, frozenset[str]] = {
    "viewer": frozenset({"own"}),
    "agent": frozenset({"any", "holder"}),
    "member": frozenset({"own", "any", "holder", "human"}),
    "approver": frozenset({"own", "any", "holder", "human", "approver"}),
    "admin": frozenset({"own", "any", "holder", "human", "approver", "admin"}),
    "system": frozenset({"any", "system"}),
}

OPEN = tuple(s for s in STATES if s not in ENDED)
ASKABLE = (CREATED, READY, BLOCKED, WORKING, REVIEW, HUMAN)

_rows: list[tuple[str, tuple[str | None, ...], tuple[str, ...], str, tuple[str, ...], str]]
_rows = [
    # verb          from                                    to                                who                    guards                                    effect
    ("create",      (None,),                                (CREATED, READY, BLOCKED, HUMAN), "any",                 ("open_parent", "acyclic_parent", "may_create"), "create"),
    ("import",      (None,),                                (CREATED, READY, BLOCKED, HUMAN, DEFERRED, DONE, FAILED, CANCELLED), "admin", ("open_parent_if_open", "acyclic_parent"), "import_"),
    ("vet",         (CREATED,),                             (READY, BLOCKED),                 "human",               ("title", "right_size"),                  "to_ready"),
    ("unvet",       (READY,),                               (CREATED,),                       "system",              ("wrong_size",),                          "unvet"),
    ("block",       (READY,),                               (BLOCKED,),                       "system",              ("open_need",),                           "to_ready"),
    ("unblock",     (BLOCKED,),                             (READY,),                         "system",              ("no_open_need",),                        "to_ready"),
    ("parent",      (BLOCKED,),                             (REVIEW, HUMAN),                  "system",              ("no_open_need",),                        "complete_parent"),
    ("claim",       (READY,),                               (WORKING,),                       "any",                 ("may_run", "is_work", "no_open_need", "tries_left", "short_enough"), "claim"),
    ("heartbeat",   (WORKING,),                             ("=",),                           "holder",              (),                                       "heartbeat"),
    ("heartbeat",   (HUMAN,),                               ("=",),                           "holder",              ("held_claim",),                          "heartbeat"),
    ("release",     (WORKING,),                             (READY, BLOCKED, HUMAN),          "holder human",        (),                                       "release"),
    ("expire",      (WORKING,),                             (READY, BLOCKED, HUMAN),          "system",              ("lease_over",),                          "expire"),
    ("expire",      (HUMAN,),                               ("=",),                           "system",              ("held_claim", "lease_over"),             "drop_claim"),
    ("park",        (WORKING,),                             (READY, BLOCKED, DEFERRED),       "holder",              (),                                       "park"),
    ("park",        (HUMAN,),                               ("=",),                           "holder",              ("held_claim",),                          "park"),
    ("ask",         ASKABLE,                                (HUMAN, "="),                     "any",                 (),                                       "ask"),
    ("flag",        ASKABLE,                                (HUMAN,),                         "any",                 ("may_update", "room_for_tries"),         "flag"),
    ("answer",      (HUMAN,),                               ("=", CREATED, READY, BLOCKED, WORKING, REVIEW, DONE, CANCELLED), "human", ("may_answer",),        "answer"),
    ("answer",      (REVIEW,),                              ("=", DONE, READY, BLOCKED, HUMAN), "human",             ("open_question", "may_answer"),          "answer"),
    ("answer",      (CREATED, READY, BLOCKED, WORKING, DEFERRED), ("=",),                     "human",               ("open_question", "may_answer"),          "answer"),
    ("timeout",     (REVIEW,),                              (DONE,),                          "system",              ("time_is_up", "no_open_child"),          "time_out"),
    ("timeout",     (HUMAN,),                               ("=", CREATED, READY, BLOCKED, WORKING, REVIEW, FAILED, DEFERRED), "system", ("time_is_up",),      "time_out"),
    ("withdraw",    (HUMAN,),                               ("=", CREATED, READY, BLOCKED, WORKING, REVIEW, DONE), "human any", ("open_question", "may_withdraw"), "withdraw"),
    ("withdraw",    (CREATED, READY, BLOCKED, WORKING, REVIEW, DEFERRED), ("=",),             "human any",           ("open_question", "may_withdraw"),        "withdraw"),
    ("hand_back",   (HUMAN,),                               (CREATED, READY, BLOCKED, WORKING, REVIEW), "human",     ("may_lift", "may_update"),               "hand_back"),
    ("resolve",     (HUMAN,),                               (DONE,),                          "human",               ("no_open_child", "may_end"),             "finish"),
    ("complete",    (WORKING,),                             (REVIEW, HUMAN, DONE),            "holder",              ("no_open_child", "script_says"),         "complete"),
    ("accept",      (REVIEW,),                              (DONE,),                          "system",              ("no_open_child",),                       "finish"),
    ("decompose",   (WORKING,),                             (BLOCKED,),                       "holder",              ("children", "script_says"),              "decompose"),
    ("decompose",   (CREATED, READY),                       (BLOCKED,),                       "human",               ("children",),                            "decompose"),
    ("fail",        (WORKING, HUMAN),                       (FAILED,),                        "holder system human", ("script_says",),                         "fail"),
    ("fail",        (READY,),                               (FAILED,),                        "system human",        (),                                       "fail"),
    ("stop",        (WORKING, HUMAN, READY, DEFERRED),      (FAILED,),                        "human",               (),                                       "stop"),
    ("cancel",      (*OPEN, FAILED),                        (CANCELLED,),                     "human",               ("may_lift",),                            "cancel"),
    ("close",       (*OPEN, FAILED),                        (DONE,),                          "human",               ("no_open_child", "may_end"),             "finish"),
    ("defer",       (CREATED, READY, BLOCKED),              (DEFERRED,),                      "human",               ("future",),                              "defer"),
    ("wake",        (DEFERRED,),                            (CREATED, READY, BLOCKED),        "human system",        (),                                       "wake"),
    ("reopen",      (DONE,),                                (READY, BLOCKED),                 "admin",               ("open_parent",),                         "reopen"),
    ("reopen",      (FAILED,),                              (READY, BLOCKED),                 "admin system",        ("open_parent",),                         "reopen"),
    ("reopen",      (CANCELLED,),                           (CREATED,),                       "admin",               ("open_parent",),                         "reopen"),
    # The journal of a run.
    ("step",        (WORKING,),                             ("=",),                           "holder",              ("a_run",),                               "step"),
    ("step",        (HUMAN,),                               ("=",),                           "holder",              ("held_claim", "a_run"),                  "step"),
    ("rewind",      (WORKING,),                             ("=",),                           "holder",              ("a_run", "script_speaks"),               "rewind"),
    ("rewind",      (CREATED, READY, BLOCKED),              ("=",),                           "human",               ("a_run",),                               "rewind"),
    ("rewind",      (HUMAN, DEFERRED),                      (CREATED, READY, BLOCKED),        "human",               ("a_run", "may_rewind"),                  "rewind"),
    ("rewind",      (FAILED,),                              (READY, BLOCKED),                 "admin",               ("a_run", "open_parent"),                 "rewind"),
    # A restore voids claims and permissions.
    ("fence",       (WORKING,),                             (READY, BLOCKED),                 "system",              (),                                       "fence"),
    ("fence",       tuple(s for s in OPEN if s != WORKING), ("=",),                           "system",              (),                                       "fence"),
    # Moves that change no state.
    ("note",        STATES,                                 ("=",),                           "any",                 (),                                       "note"),
    ("update",      STATES,                                 ("=",),                           "any",                 ("may_update", "room_for_tries"),         "update"),
    # One call uses a permission, once.
    ("use",         OPEN,                                   ("=",),                           "any",                 ("may_use", "is_given"),                     "use"),
    ("assign",      OPEN,                                   ("=",),                           "human",               ("open_question",),                       "assign"),
    ("dep_add",     OPEN,                                   ("=",),                           "any",                 ("acyclic",),                             "dep_add"),
    ("dep_remove",  OPEN,                                   ("=",),                           "human",               (),                                       "dep_remove"),
]  # fmt: skip

TRANSITIONS: dict[tuple[str | None, str], Rule] = {
    (state, verb): Rule(tuple(dict.fromkeys(str(state) if t == "=" else t for t in to)), frozenset(who.split()), guards, effect)
    for verb, states, to, who, guards, effect in _rows
    for state in states
}

#: A late answer with `restart` does what `reopen` does; the right to answer includes it.
RESTARTS: dict[str, Rule] = {
    state: rule._replace(who=TRANSITIONS[HUMAN, "answer"].who, guards=("may_answer", "may_take_back", *rule.guards))
    for (state, verb), rule in TRANSITIONS.items()
    if verb == "reopen" and state is not None
}

#: (alias, state) -> verb. These answer the question that the task waits with. The system's own `accept` is a move.
ALIASES: dict[tuple[str, str], str] = {
    **{(word, state): "answer" for word in ("approve", "reject") for state in STATES},
    ("accept", REVIEW): "answer",
}

#: Verbs about projects, people and tokens -> the group that may use them.
ADMIN_VERBS: dict[str, str] = {
    "project_create": "admin",
    "project_set": "admin",
    "user_set": "admin",
    "user_remove": "admin",
    "token_create": "own",
    "token_revoke": "own",
    "password_set": "own",
    "login": "own",
    "logout": "own",
    "link_create": "own",
    "link_use": "own",
    "prefs_set": "own",
    "restore": "admin",
}


class Kind(NamedTuple):
    asks: str  #: what the person is asked to do
    approved: str
    rejected: str
    signals: tuple[str, ...]
    response_type: str
    urgency: str
    timeout: str | None  #: for questions by tool and API; signals and flags use the project's signal_timeout
    on_timeout: str
    default: bool  #: a timeout may take a default answer; never where that would approve something
    gate: bool  #: a project can reserve the answer for approvers
    prompt: str  #: the text of a question that has none


KINDS: dict[str, Kind] = {
    #                      asks                                         approved rejected     signals                           answer      urgency   timeout on_timeout default gate   prompt
    "work":       Kind("do it themselves",                          "done", "refused",   ("EJECT",),                       "approval", "normal", None,  "fail",    False, False, "This one is yours to do: {title}"),
    "approval":   Kind("sign off finished work",                    "done", "back",      ("APPROVAL_NEEDED",),             "approval", "normal", None,  "fail",    False, True,  "Sign off: {title}"),
    "input":      Kind("give information or decide",                "back", "cancelled", ("INPUT_NEEDED", "BLOCKED", "NEEDS_INPUT", "NEEDS_HUMAN"), "text", "normal", "30m", "default", True, False, "Information is needed: {title}"),
    "review":     Kind("review a PR",                               "done", "back",      ("REVIEW_REQUESTED",),            "approval", "normal", None,  "fail",    False, True,  "Review: {title}"),
    "content":    Kind("judge text, UI, design",                    "done", "back",      ("CONTENT_REVIEW",),              "approval", "normal", None,  "fail",    False, True,  "Judge the content: {title}"),
    "escalation": Kind("say how to go on",                          "back", "cancelled", ("ESCALATE",),                    "text",     "high",   None,  "fail",    False, False, "How should this go on: {title}"),
    "checkpoint": Kind("verify a phase",                            "back", "back",      ("CHECKPOINT",),                  "approval", "normal", None,  "fail",    False, True,  "Verify before it goes on: {title}"),
    "permission": Kind("allow one exact action before it happens",  "back", "back",      (),                               "approval", "high",   "15m", "fail",    False, True,  "Allow this: {title}"),
    "recovery":   Kind("choose a way out of an error",              "back", "back",      (),                               "text",     "high",   "10m", "default", True,  False, "Choose a way out: {title}"),
}  # fmt: skip

#: The verdict table: (kind, verdict) -> done | cancelled | back | refused.
OUTCOMES: dict[tuple[str, str], str] = {
    **{(name, APPROVED): kind.approved for name, kind in KINDS.items()},
    **{(name, REJECTED): kind.rejected for name, kind in KINDS.items()},
}


#: Verbs with which an agent asks people. Rate limits apply (desk/allowances.py), but not to people, nor to the script of a run.
ASKING = ("ask", "flag", "create")

#: Kinds of questions that their asker may withdraw while it holds the task: none that judges work.
WITHDRAWABLE = ("input", "escalation", "permission", "recovery")


def outcome(kind: str, verdict: str, blocking: bool = True, workflow: bool = False) -> str:
    """The outcome of a verdict. In a workflow the script decides, and a non-blocking question cannot end the task."""
    return "back" if workflow or not blocking else OUTCOMES[kind, verdict]


#: Signal at the end of an agent's turn -> kind of the question that it asks; COMPLETE asks none.
SIGNALS: dict[str, str | None] = {"COMPLETE": None, **{s: name for name, kind in KINDS.items() for s in kind.signals}}

#: What a timeout does. No row approves anything.
TIMEOUT_POLICIES: dict[str, str] = {
    "default": "the default goes back to the agent as such; without one the task fails",
    "fail": "the task fails",
    "stuck": "the task ends as stuck",
    "defer": "the task is deferred until a person wakes it",
    "remind": "the question stays open and its timeout starts again; this writes an event and sends nothing",
    "escalate": "the question goes to `escalate_to` with high urgency, and its timeout starts again",
    "keep": "nothing: the question stays open",
    "accept": "finished work is accepted; only the project's setting `review` can ask for this",
}
#: The policies that an asker can choose.
ON_TIMEOUT = tuple(name for name in TIMEOUT_POLICIES if name != "accept")

REASONS = (
    "irreconcilable_conflict",
    "unclear_requirements",
    "decision_needed",
    "access_required",
    "blocked_external",
    "risk_assessment",
    "out_of_scope",
    RETRY_EXHAUSTED,
    "protocol_error",
    "code_changed",
    DEPENDENCY_FAILED,
    FINISHED,
    "run_failed",
)
#: Reasons of the system's own questions; an asker cannot use them.
SYSTEM_REASONS = (RETRY_EXHAUSTED, DEPENDENCY_FAILED, FINISHED)


class Choice(NamedTuple):
    """An option of a system question that has an effect."""

    label: str
    about: str  #: {task}, and {failed}: the dependency
    effect: str  #: a function of choices.py


#: (reason, option) -> its effect. A system question with such a reason offers exactly these options.
CHOICES: dict[tuple[str, str], Choice] = {
    (DEPENDENCY_FAILED, "retry"): Choice("Try it again", "{failed} is opened again, and {task} waits for it", "try_dependency_again"),
    (DEPENDENCY_FAILED, "without"): Choice("Go on without it", "{task} no longer waits for {failed}", "drop_dependency"),
    (DEPENDENCY_FAILED, "cancel"): Choice("Cancel", "{task} is cancelled; tasks that wait for it go on", "abandon"),
    (RETRY_EXHAUSTED, "retry"): Choice("Try again", "{task} is ready again, and its tries are counted anew", "go_on"),
    (RETRY_EXHAUSTED, "human"): Choice("Hand it to a person", "a person does {task}", "hand_to_person"),
    (RETRY_EXHAUSTED, "cancel"): Choice("Cancel", "{task} is cancelled; tasks that wait for it go on", "abandon"),
}  # fmt: skip


def choice_of(reason: str, text: str, **names: str) -> dict[str, object]:
    """The arguments of the system question for a reason. A free text instead of an option is advice for the next try."""
    options = [
        {"id": option, "label": choice.label, "value": option, "description": choice.about.format_map(names)}
        for (why, option), choice in CHOICES.items()
        if why == reason
    ]
    other = {"allow_other": True} if reason == RETRY_EXHAUSTED else {"metadata": {"failed": names["failed"]}}
    return {"kind": "escalation", "reason": reason, "text": text, "options": options, "response_type": "choice", **other}


#: `inbox send --type`: (kind, reason). `info` is a note.
MESSAGE_TYPES: dict[str, tuple[str, str | None] | None] = {
    "question": ("input", None),
    "decision": ("input", "decision_needed"),
    "review": ("review", None),
    "escalation": ("escalation", None),
    "info": None,
}

#: State names of other trackers, as filters -> our states.
STATE_WORDS: dict[str, tuple[str, ...]] = {
    **{state: (state,) for state in STATES},
    "open": OPEN,
    "active": OPEN,
    "closed": (DONE, CANCELLED),
    "in_progress": (WORKING,),
    "running": (WORKING,),
    "awaiting": (HUMAN,),
    "awaiting_input": (HUMAN,),
    "waiting_human": (HUMAN,),
    "waiting_for_input": (HUMAN,),
    "waiting_for_approval": (HUMAN,),
    "completed": (DONE,),
    "stuck": (FAILED,),
}


def goes_on(was: str | None, now: str) -> bool:
    """True if a move returned the task to agents after it had waited for a person or had ended."""
    return was in (HUMAN, REVIEW, *ENDED) and now in (READY, WORKING)


def valid_from(state: str) -> list[str]:
    """The moves that people and agents can make from a state, for error texts: 'reopen (admin)'."""
    verbs = []
    for (source, verb), rule in TRANSITIONS.items():
        people = rule.who - {"system"}
        if source == state and people and rule.to != (state,) and "a_run" not in rule.guards:
            name = verb.replace("_", "-")
            verbs.append(name if "any" in people else f"{name} ({', '.join(sorted(people))})")
    return verbs


def matrix() -> dict[tuple[str, str], list[str]]:
    """(from, to) -> the verbs that lead there; an empty list is a refused cell."""
    cells: dict[tuple[str, str], list[str]] = {(a, b): [] for a in STATES for b in STATES}
    for (source, verb), rule in TRANSITIONS.items():
        for target in rule.to:
            if source is not None:
                cells[source, target].append(verb)
    return cells
