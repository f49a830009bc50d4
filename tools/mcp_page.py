"""docs/mcp.md: how to connect an agent, and the tools, printed from the catalogue."""

from __future__ import annotations

import json

from yourturn.mcp.command import config
from yourturn.mcp.tool_schemas import STANDING, TOOLS, Tool
from yourturn.worker.claude.hook_question import LONGEST, WAIT

_HEAD = f"""\
# Agents that speak MCP

Printed from the code by `make docs`.

`turn mcp` gives the desk to any agent that speaks the [Model Context Protocol](https://modelcontextprotocol.io): it can ask a
person, take a task, report and finish it. It needs the extra: `pip install 'yourturn[mcp]'`. An agent that `turn work` starts
is connected already.

## Connecting

`turn mcp --print-config` prints these lines for your machine. Run `turn init` in the project first.

Claude Code:

```sh
{{command}}
```

or, in the project's `.mcp.json`:

```json
{{json}}
```

Codex, in `~/.codex/config.toml`:

```toml
{{toml}}
```

An agent that reaches a server needs no program beside it: [`/mcp`](http.md#mcp) has the same tools, with a token. `turn mcp`
itself speaks to a server too, when `YOURTURN_URL` and `YOURTURN_TOKEN` say so.

## What happens when an agent asks

1. `ask_question` puts the question on the desk, and waits a short while for a quick person: {WAIT:.0f} seconds, or what
   `YOURTURN_ASK_WAIT` says, at most {LONGEST:.0f}. Meanwhile the client is told that it is alive.
2. If somebody answers, the answer is the tool's result, and the agent goes on in the same turn.
3. If not, the result says `pending`, and tells the agent to end its turn. Nothing is lost: the question stays on the desk.
   A worker resumes the session with the answer; in a session of your own, the agent looks with `get_answer` when you speak
   to it again.
4. The same call, made again after a resume, finds the same question and its answer. It never asks twice, nor
   does a call with the same words in the same session, before its answer was told.

A question outside any task gets a small task of its own, which is finished when the answer has been handed out. A task that was
taken with `next_task` is kept alive while the session lasts, and parked when it ends: that costs no try.

## Who is asking

Always an agent, whoever starts the program: the agent of `YOURTURN_TOKEN`, else `YOURTURN_AGENT`, else the name that the client
gives itself. `YOURTURN_TASK` and `YOURTURN_CLAIM` say what it works on. No tool can answer a question, approve anything for a
person, lift a gate or raise a limit. An agent asks only so often (`question_rate` about one task, `question_rate_actor`, and
`question_rate_workspace`, in an hour), with and without a task; then the tool says when to try again, and nothing was asked."""


def page() -> str:
    """The whole of docs/mcp.md."""
    found = config("turn", ["mcp"])
    head = _HEAD.format(
        command=found["claude"]["command"],
        json=json.dumps(found["claude"][".mcp.json"], indent=2),
        toml=found["codex"]["config.toml"],
    )
    rows = [f"| `{tool.name}` | {tool.about} | {_arguments(tool)} |" for tool in TOOLS.values()]
    told = [f"| `{name}` | {_shape(name)} |" for name in STANDING["properties"]]
    parts = [
        head,
        "## Tools",
        "Arguments in bold are needed. Errors come back as the tool's result, in the same words that the command uses.",
        "\n".join(["| tool | what it does | takes |", "| --- | --- | --- |", *rows]),
        "## How a question stands",
        "`ask_question`, `get_answer` and `request_permission` tell it alike:",
        "\n".join(["| field | |", "| --- | --- |", *told]),
    ]
    return "\n\n".join(parts) + "\n"


def _arguments(tool: Tool) -> str:
    needed = tool.schema["required"]
    return " ".join(f"**`{name}`**" if name in needed else f"`{name}`" for name in tool.schema["properties"])


def _shape(name: str) -> str:
    field = STANDING["properties"][name]
    if "description" in field:
        return str(field["description"])
    if "enum" in field:
        return ", ".join(f"`{word}`" for word in field["enum"] if word is not None)
    return {
        "question_id": "like `Q7`",
        "task": "the task's key",
        "kind": "the kind of the question",
        "blocking": "whether the task waits for it",
        "text": "what the person wrote beside it",
        "answered_by": "who answered, like `human:ana`",
        "answered_at": "when",
        "timeout_at": "until when a person can answer",
    }[name]
