"""The instructions for every agent: how to end a turn, and when to ask. The rows of the signal table come from the rules.

Tags are in backticks and the JSON has no real status, so that an agent that repeats this page gives no signal.
"""

from __future__ import annotations

from ...core.rules import KINDS, SIGNALS
from .quoting import inline

WAYS = ("promise", "json", "file", "cli", "mcp")

#: kind -> (the text after the colon, when to use it)
_WHEN = {
    "approval": ("what to sign off", "it is finished and a person should sign it off: security, migrations, public interfaces"),
    "input": ("your question", "you need a fact or a decision that only a person has"),
    "review": ("address of the pull request", "a pull request is open and wants to be read"),
    "content": ("what to look at", "words, layout or design are finished and want a person's taste"),
    "escalation": ("what you found", "you found something unexpected, and a person should say how to go on"),
    "checkpoint": ("what is finished", "one phase of a larger task is finished and should be verified before the next"),
    "work": ("why", "this needs hands that you do not have; a person does it"),
}  # fmt: skip

_THEN = {"done": "the task is done", "back": "back to you", "cancelled": "the task is cancelled", "refused": "not possible"}
#: The same in a step of a run, where the script decides.
_THEN_IN_A_RUN = {
    "done": "your step is done", "back": "back to you", "cancelled": "your step ends as REJECTED, and the script decides",
    "refused": "back to you",
}  # fmt: skip

_END = """\
Before your turn ends, say how it ended: finished, failed, or a person is needed. Say it once. Without a signal the task
comes back to you, and in the end to a person; signals that contradict each other (finished, and a question) are put before a
person and close nothing. Several questions are no contradiction: ask all of them, each in a tag of its own or in `questions`.
When you hand over, your unfinished work stays in the folder as it is. Once a person has answered, you are called again
with the answer. Only people can answer or approve; for you those commands are refused."""

_TAG = """\
Write the tag as plain text: inside backticks, a code block or a quote it does not count. (Here it stands in backticks so
that this page is not taken for your word.) The text may have several lines. Instead of words it may be a JSON object with the
fields of a question, as below."""

#: The fields of a question, in a result, a signal file or a tag: (names, meaning).
_FIELDS = (
    (("question",), "what you ask; `question_context`: what the person has to know for it"),
    (("options",), 'words, or `{"id", "label", "description"}`; `allow_other`: or other words; `multi`: several'),
    (("response_type",), "`text`, `choice`, `boolean`, `number` or `approval`, where the kind and the options do not say it"),
    (("default", "timeout", "on_timeout"), "what you would take; how long you wait, like `30m` or `2d`; what happens then"),
    (("reviewer", "urgency", "confidence"), "who should answer; `low`, `normal` or `high`; how sure you are, from 0 to 1"),
    (("questions",), "several at once: a list of texts, or of objects with these fields and `kind`"),
)

_TOOLS = """\
`ask_question` and `request_permission` ask a person; if the result is `pending`, end your turn. `complete_task` finishes,
`flag_task` stops and hands over, `decompose_task` splits, `release_task` gives the task back. `add_note` and
`report_progress` tell people what you do."""

_ASK = """\
## Ask or assume

**Ask** when

- the task can be read in two ways that lead to different work, and neither the task nor the code decides;
- being wrong is expensive: data, money, security, a public interface, what users see;
- you need what only a person has: access, a secret, a business decision, taste;
- it goes beyond the task, or you would have to break a rule of the project.

**Assume** when the code has a convention, when a sensible default exists, or when being wrong costs minutes: names, layout,
internals, the order of your work. Take the simplest reading, go on, and write the assumption down{note}.

Find out first what can be found out: read the code, the history and the docs, run the tests. A person should only get the
question that remains.

**How to ask well.** The person may be on a phone and has not seen what you see.

1. One decision for each question, so that one sentence can answer it. Ask all that you know of now, not one each turn.
2. Say what you found and what depends on the answer.
3. Name the options and what each costs. Say which you would take.
4. Then stop. Do not go on with a guess while you wait.

Good: "Should login tokens live for 24 hours or 30 days? The app cannot renew them yet, so 24 hours means one login a day;
security.md asks for short lives. I would take 24 hours."

Good: "The migration drops users.fax. Nothing reads it, but 112 rows have a value. Drop it now, or keep it for one more
release? I would keep it: dropping cannot be undone."

Bad: "How should I do authentication?" It is too wide: no finding, no options, nothing to say yes to.

Bad: "Are the tests in test/ or tests/?" The folder itself answers that."""


def handoff(key: str, agent: str, ways: tuple[str, ...], signals: str, in_run: bool = False) -> str:
    """The section about ending a turn, with the ways that this agent has."""
    ways = tuple(way for way in WAYS if way in ways) or ("promise",)
    then = _THEN_IN_A_RUN if in_run else _THEN
    parts = [
        "## Handoff Signals",
        _END,
        *(part for way in ways for part in (_promise(then) if way == "promise" else _WAYS[way](key, agent, signals))),
        *(_fields() if {"promise", "json", "file"} & set(ways) else ()),
    ]
    if len(ways) > 1:
        parts.append(f"One way is enough. If you use several, {_trust(ways)}, in this order.")
    return "\n\n".join(parts)


def _trust(ways: tuple[str, ...]) -> str:
    names = {"cli": "a command", "mcp": "a tool call", "file": "the file", "json": "the JSON result", "promise": "the tag"}
    order = [names[way] for way in ("cli", "mcp", "file", "json", "promise") if way in ways]
    return f"{order[0]} counts before {' and '.join(', '.join(order[1:]).rsplit(', ', 1))}"


def _fields() -> list[str]:
    rows = [f"- {', '.join(f'`{name}`' for name in names)}: {words}" for names, words in _FIELDS]
    return ["### The fields of a question", "\n".join(rows)]


def _promise(then: dict[str, str]) -> list[str]:
    rows = [
        "| Signal | When to use it | A person's yes | A person's no |",
        "|---|---|---|---|",
        "| `<promise>COMPLETE</promise>` | everything is done, and you have checked it | | |",
    ]
    for kind, (words, when) in _WHEN.items():
        row = KINDS[kind]
        tag = f"`<promise>{row.signals[0]}: {words}</promise>`"
        rows.append(f"| {tag} | {when} | {then[row.approved]} | {then[row.rejected]} |")
    return ["### In your last message", "\n".join(rows), _TAG]


def _json(key: str, agent: str, signals: str) -> list[str]:
    return [
        "### As a JSON result",
        "One object in your last message, bare or in a code block: "
        '`{"status": "…", "summary": "…", "details": "…", "question": "…", "questionContext": "…", "issues": []}`',
        "- `status`: `completed`, `failed`, `blocked` (something out of your reach is in the way) or `needs_input`\n"
        "- `summary`: what you did, in a sentence or two; `details`: what a reviewer should know; `issues`: problems you saw\n"
        "- `question`, `questionContext`: with `needs_input`, what you ask and what the person has to know for it; or "
        '`questions`, like `[{"question": "…", "options": ["…", "…"]}]`',
    ]


def _file(key: str, agent: str, signals: str) -> list[str]:
    return [
        "### As a file",
        f"Write `{inline(signals, 300)}/{inline(agent)}.json`, in one go, as the last thing you do: "
        '`{"status": "…", "reason": "…", "summary": "…"}`',
        "- `status`: `DONE`, `FAILED`, or `NEEDS_HUMAN` with the question in `reason`; also "
        + ", ".join(f"`{word}`" for word in SIGNALS if word not in ("BLOCKED", "NEEDS_INPUT", "NEEDS_HUMAN")),
    ]


def _cli(key: str, agent: str, signals: str) -> list[str]:
    return [
        "### With the turn command",
        "It knows you and your claim from the environment. What you say with it counts at once.",
        "```sh\n"
        f"turn show {key}                                  # everything about the task\n"
        f'turn note {key} "I assumed UTC everywhere"       # write something down\n'
        f'turn ask {key} "JWT or sessions?" --option jwt --option sessions --wait 45\n'
        f'turn flag {key} --reason risk_assessment "This would delete data. Go on?"\n'
        f'turn complete {key} --summary "Login with JWT, with tests" --details "…" --issue "…"\n'
        "```",
        "`turn ask` ends with exit code 7 when nobody has answered yet. Then end your turn.",
    ]


def _mcp(key: str, agent: str, signals: str) -> list[str]:
    return [
        "### With the tools of the MCP server `yourturn`",
        _TOOLS,
    ]


_WAYS = {"json": _json, "file": _file, "cli": _cli, "mcp": _mcp}


def asking(key: str, ways: tuple[str, ...]) -> str:
    """When to ask, when to assume, how to ask well."""
    note = f" (`turn note {key} …`)" if "cli" in ways else " (`add_note`)" if "mcp" in ways else " in your last message"
    return _ASK.format(note=note)
