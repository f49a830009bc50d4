"""One story told with the real command: every line with `--json`, and what it printed."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

from tests.fixtures.command import Turn

_PUSH = '{"tool": "Bash", "input": {"command": "git push"}}'

#: (who, words). An agent's lines carry YOURTURN_AGENT; {claim} is the token of its last claim.
LINES: tuple[tuple[str, tuple[str, ...]], ...] = (
    ("ana", ("init", "--key", "PROJ")),
    ("ana", ("create", "Add login", "-d", "A form.", "--priority", "1", "-l", "web", "-l", "api", "--acceptance", "It works")),
    ("ana", ("create", "Write docs", "--depends-on", "PROJ-1", "--requires", "review")),
    ("ana", ("create", "A big one", "--complexity", "xlarge")),
    ("ana", ("create", "An epic", "--type", "epic")),
    ("ana", ("create", "A part", "--parent", "PROJ-4", "--draft")),
    ("ana", ("create", "A choice", "--awaiting", "input", "--question", "Which one?", "--reviewer", "ben")),
    ("ana", ("vet", "PROJ-5")),
    ("ana", ("update", "PROJ-1", "--title", "Add a login", "--priority", "0")),
    ("ana", ("ready",)),
    ("ana", ("list",)),
    ("ana", ("tree",)),
    ("ana", ("dep", "list", "PROJ-2")),
    ("coder", ("claim", "PROJ-1", "--worker-id", "w1")),
    ("coder", ("heartbeat", "PROJ-1", "--claim", "{claim}")),
    ("coder", ("note", "PROJ-1", "Looked around.")),
    ("coder", ("ask", "PROJ-1", "JWT or sessions?", "-o", "jwt=signed token", "-o", "sessions", "--claim", "{claim}")),
    ("coder", ("ask", "PROJ-1", "Verbose logs?", "--non-blocking", "--default", "no", "--claim", "{claim}")),
    ("ana", ()),
    ("ana", ("inbox",)),
    ("ana", ("show", "Q2")),
    ("ana", ("answer", "Q2", "jwt", "--text", "for now")),
    ("ana", ("respond", "Q3", "yes")),
    ("ana", ("respond", "Q2", "sessions")),
    ("coder", ("ask", "PROJ-1", "Push?", "--kind", "permission", "--action", _PUSH, "--claim", "{claim}")),
    ("coder", ("approve", "Q4")),
    ("ana", ("approve", "Q4", "Once.")),
    ("coder", ("complete", "PROJ-1", "--claim", "{claim}", "--summary", "It logs in.")),
    ("ana", ("show", "PROJ-1")),
    ("ana", ("next",)),
    ("coder", ("next", "--claim", "--worker-id", "w1")),
    ("coder", ("complete", "PROJ-2", "--claim", "{claim}", "--summary", "Written.")),
    ("ana", ("reject", "PROJ-2", "Too short")),
    ("coder", ("next", "--claim", "--worker-id", "w1")),
    ("coder", ("release", "PROJ-2", "--claim", "{claim}", "--reason", "tired")),
    ("ana", ("decompose", "PROJ-3", "--child", "One", "--child", "Two")),
    ("ana", ("fail", "PROJ-7", "--reason", "impossible")),
    ("ana", ("inbox",)),
    ("ana", ("respond", "PROJ-3", "without")),
    ("ana", ("defer", "PROJ-8", "--until", "2099-01-01")),
    ("ana", ("wake", "PROJ-8")),
    ("ana", ("cancel", "PROJ-8", "--reason", "not needed")),
    ("ana", ("reopen", "PROJ-8")),
    ("ana", ("close", "PROJ-8")),
    ("ana", ("assign", "Q1", "ana")),
    ("ana", ("withdraw", "Q1", "--reason", "settled")),
    ("ana", ("update", "PROJ-5", "--awaiting", "approval")),
    ("ana", ("hand-back", "PROJ-5")),
    ("ana", ("stop", "PROJ-5", "--reason", "enough")),
    ("ana", ("claim", "PROJ-5")),
    ("ana", ("show", "PROJ-99")),
    ("ana", ("project", "list")),
    ("ana", ("project", "show")),
    ("ana", ("project", "set", "review", "2h")),
    ("ana", ("user", "add", "ben", "--role", "approver")),
    ("ana", ("user", "list")),
    ("ana", ("token", "create", "ci", "--role", "agent")),
    ("ana", ("token", "list")),
    ("ana", ("stats",)),
    ("ana", ("doctor",)),
    ("ana", ("log", "--limit", "500")),
)  # fmt: skip

_MOMENT = re.compile(r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d(:\d\d)?(\.\d+)?(Z|\+00:00| UTC)")
_DAY = re.compile(r"\b20[2-8]\d-\d\d-\d\d\b")
_SECRET = re.compile(r"(PROJ-\d+\.\d+\.)[\w-]+|(yt_)[\w-]+|\b[0-9a-f]{64}\b")


def told(folder: Path) -> list[dict[str, Any]]:
    (folder / "proj").mkdir()
    turn = Turn(folder / "proj")
    claim, found = "", []
    for who, words in LINES:
        env = {} if who == "ana" else {"YOURTURN_AGENT": who}
        done = turn.run(*[claim if word == "{claim}" else word for word in words], "--json", env=env)
        said = done.stdout or done.stderr
        value = json.loads(said)
        if isinstance(value, dict) and isinstance(value.get("claim"), dict) and "token" in value["claim"]:
            claim = value["claim"]["token"]
        found.append({"who": who, "words": list(words), "exit": done.returncode, "said": _steady(value, str(folder))})
    return found


def _steady(value: Any, folder: str, name: str = "") -> Any:
    """Without what differs from run to run."""
    if isinstance(value, dict):
        return {key: _steady(one, folder, key) for key, one in value.items()}
    if isinstance(value, list):
        return [_steady(one, folder) for one in value]
    if isinstance(value, str):
        value = _DAY.sub("DAY", _MOMENT.sub("MOMENT", value.replace(folder, "FOLDER")))
        return _SECRET.sub(lambda m: (m[1] or m[2] or "") + "SECRET", value)
    if isinstance(value, float) and name != "confidence":
        return "NUMBER"
    return value
