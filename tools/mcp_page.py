"""Generates docs/mcp.md: how to connect an agent, and the tools."""

from __future__ import annotations

import json

from yourturn.mcp.command import config
from yourturn.mcp.tool_schemas import QUESTION_STATUS, TOOLS, Tool
from yourturn.worker.claude.hook_question import LONGEST, WAIT

_HEAD = f"""\
# Agents that speak MCP

Generated from the code by `make docs`.

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

With a server, an agent needs no local program: [`/mcp`](http.md#mcp) has the same tools, with a token. `turn mcp` also
connects to a server, with `YOURTURN_URL` and `YOURTURN_TOKEN`.

## What happens when an agent asks

1. `ask_question` records the question and waits for a quick answer: {WAIT:.0f} seconds, or `YOURTURN_ASK_WAIT`, at most
   {LONGEST:.0f}. Meanwhile it sends progress reports to the client.
2. If a person answers in that time, the answer is the tool's result, and the agent goes on in the same turn.
3. Otherwise the result is `pending`, and the agent ends its turn. The question stays open. A worker resumes the session with
   the answer; in a session of your own, the agent calls `get_answer` at your next message.
4. The same call, made again after a resume, returns the same question with its answer, and does not ask twice. Nor
   does a call with the same arguments in the same session, until its answer has been returned.

A question outside any task gets a small task of its own, which is completed when the answer has been returned. The claim on a
task that was taken with `next_task` is renewed while the session lasts. When the session ends, the task is parked, which costs
no try.

## The actor

The actor is always an agent, also if a person starts the program: the agent of `YOURTURN_TOKEN`, else `YOURTURN_AGENT`, else
the name of the client program. `YOURTURN_TASK` and `YOURTURN_CLAIM` name its task and claim. No tool can answer a question,
approve anything for a person, remove a gate or raise a limit. The number of questions in an hour is limited, with and
without a task (`question_rate` for one task, `question_rate_actor` and `question_rate_workspace`). At the limit the tool
asks nothing, and reports when to try again."""


def page() -> str:
    """The text of docs/mcp.md."""
    configs = config("turn", ["mcp"])
    head = _HEAD.format(
        command=configs["claude"]["command"],
        json=json.dumps(configs["claude"][".mcp.json"], indent=2),
        toml=configs["codex"]["config.toml"],
    )
    rows = [f"| `{tool.name}` | {tool.about} | {_arguments(tool)} |" for tool in TOOLS.values()]
    fields = [f"| `{name}` | {_shape(name)} |" for name in QUESTION_STATUS["properties"]]
    parts = [
        head,
        "## Tools",
        "Arguments in bold are required. Errors are returned as the tool's result, with the same texts as those of the command.",
        "\n".join(["| tool | what it does | takes |", "| --- | --- | --- |", *rows]),
        "## The status of a question",
        "`ask_question`, `get_answer` and `request_permission` return it:",
        "\n".join(["| field | |", "| --- | --- |", *fields]),
    ]
    return "\n\n".join(parts) + "\n"


def _arguments(tool: Tool) -> str:
    needed = tool.schema["required"]
    return " ".join(f"**`{name}`**" if name in needed else f"`{name}`" for name in tool.schema["properties"])


def _shape(name: str) -> str:
    field = QUESTION_STATUS["properties"][name]
    if "description" in field:
        return str(field["description"])
    if "enum" in field:
        return ", ".join(f"`{word}`" for word in field["enum"] if word is not None)
    return {
        "question_id": "like `Q7`",
        "task": "the task's key",
        "kind": "the kind of the question",
        "blocking": "whether the task waits for it",
        "text": "the comment of the person",
        "answered_by": "the actor, like `human:ana`",
        "answered_at": "when",
        "timeout_at": "until when a person can answer",
    }[name]
