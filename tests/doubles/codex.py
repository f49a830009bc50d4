"""A double of `codex exec --json` and `codex exec … resume ID`, and of `codex resume ID` on a terminal (display/terminal.py).

Threads are files under CODEX_HOME and can be resumed from any folder; the id is its own choice. Steps of the script:

    {"text": "…"}                            prints a message and ends the turn
    {"say": "…"}                             prints a message and goes on
    {"command": "…"}                         runs a shell command
    {"mcp": ["yourturn", "tool", {…}]}       calls a tool of a server that -c configures
    {"fail": "…"}, {"crash": 3}              a failed turn; dies without a closing event
    {"raw": "…"}, {"sleep": 1}               prints a line as it is; waits

DOUBLE_PROMPTS and DOUBLE_HEARD: as with claude.py.
"""

import json
import os
import signal
import subprocess
import sys
import time
import tomllib
import uuid
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
import tiny_mcp as mcp
from screen import hear, visited

WITH_VALUE = ("-c", "-m", "-s", "-C", "-o")


def refuse(words):
    sys.exit(print(words, file=sys.stderr) or 1)


def options(words):
    """(what stands alone, {option: values}); after `resume` only what resume itself knows is accepted."""
    alone, found = [], {}
    words = iter(words)
    for word in words:
        if word in WITH_VALUE:
            if "resume" in alone and word == "-s":
                refuse(f"error: unexpected argument '{word}' found")
            found.setdefault(word, []).append(next(words))
        elif word.startswith("-") and word != "-":
            found[word] = True
        else:
            alone.append(word)
    return alone, found


def configured(settings):
    config = {}
    for setting in settings:
        path, _, value = setting.partition("=")
        *above, last = path.split(".")
        place = config
        for name in above:
            place = place.setdefault(name, {})
        place[last] = tomllib.loads(f"x = {value}")["x"]
    return config


class Thread:
    def __init__(self, resumed, config, prompt=""):
        self.unheard = [prompt]
        self.home = Path(os.environ.get("CODEX_HOME") or Path.home() / ".codex") / "sessions"
        self.home.mkdir(parents=True, exist_ok=True)
        self.id = resumed or str(uuid.uuid4())
        self.file = self.home / f"rollout-{self.id}.json"
        if resumed and not self.file.exists():
            refuse(f"Error: thread/resume: thread/resume failed: no rollout found for thread id {self.id} (code -32600)")
        self.state = json.loads(self.file.read_text()) if resumed else {"at": 0}
        self.servers = config.get("mcp_servers", {})
        self.items = 0

    def emit(self, type_, **fields):
        print(json.dumps({"type": type_, **fields}), flush=True)

    def item(self, kind, **fields):
        self.items += 1
        return {"id": f"item_{self.items - 1}", "type": kind, **fields}

    def call(self, server, tool, arguments):
        item = self.item("mcp_tool_call", server=server, tool=tool, arguments=arguments, result=None, error=None)
        self.emit("item.started", item={**item, "status": "in_progress"})
        config = self.servers.get(server, {})
        if config.get("default_tools_approval_mode") != "approve":
            return self.called(item, error="MCP tool call requires approval, but approval policy is never")
        kept = ("PATH", "HOME", "LANG", "TMPDIR", *config.get("env_vars", []))  # the real one passes on little more
        env = {name: os.environ[name] for name in kept if name in os.environ}
        meta = {"threadId": self.id, "callId": f"call_{self.state['at']}"}
        try:
            text, structured, failed = mcp.call([config["command"], *config.get("args", [])], tool, arguments, meta, env)
        except mcp.Unreachable as error:
            return self.called(item, error=str(error))
        if failed:
            return self.called(item, error=text)
        return self.called(item, result={"content": [{"type": "text", "text": text}], "structured_content": structured})

    def called(self, item, result=None, error=None):
        status = "failed" if error else "completed"
        self.unheard.append(error or json.dumps(result["structured_content"]))
        self.emit("item.completed", item={**item, "result": result, "error": error and {"message": error}, "status": status})

    def command(self, words):
        item = self.item("command_execution", command=f"/bin/bash -lc '{words}'", aggregated_output="", exit_code=None)
        self.emit("item.started", item={**item, "status": "in_progress"})
        done = subprocess.run(words, shell=True, capture_output=True, text=True)
        status = "failed" if done.returncode else "completed"
        self.emit(
            "item.completed", item={**item, "aggregated_output": done.stdout, "exit_code": done.returncode, "status": status}
        )

    def play(self, script):
        self.emit("thread.started", thread_id=self.id)
        self.emit("item.completed", item=self.item("error", message="Model metadata not found: a warning, no failure."))
        self.emit("turn.started")
        while True:
            step = script[min(self.state["at"], len(script) - 1)]
            self.state["at"] += 1
            self.file.write_text(json.dumps(self.state))
            self.unheard = hear(self.unheard)
            match step:
                case {"sleep": seconds}:
                    time.sleep(seconds)
                case {"raw": line}:
                    print(line, flush=True)
                case {"crash": str(name)}:
                    os.kill(os.getpid(), getattr(signal, name))
                case {"crash": code}:
                    sys.exit(code)
                case {"fail": words}:
                    self.emit("error", message=words)
                    self.emit("turn.failed", error={"message": words})
                    sys.exit(1)
                case {"command": words}:
                    self.command(words)
                case {"mcp": [server, tool, arguments]}:
                    self.call(server, tool, arguments)
                case {"say": text}:
                    self.emit("item.completed", item=self.item("agent_message", text=text))
                case {"text": text}:
                    self.emit("item.completed", item=self.item("agent_message", text=text))
                    self.emit("turn.completed", usage={"input_tokens": 11, "cached_input_tokens": 4, "output_tokens": 3})
                    sys.exit(0)


def main():
    alone, found = options(sys.argv[1:])
    if "--version" in found:
        return print("codex-cli 0.166.0")
    if alone[:1] == ["resume"]:
        return visited("codex", Thread(alone[1], {}).id)
    if not alone or alone[0] != "exec" or "--json" not in found:
        refuse("error: only `exec --json` is known here")
    print("Reading additional input from stdin...", file=sys.stderr)
    prompt = alone[-1]
    if prompt == "-":
        prompt = sys.stdin.read()
    if log := os.environ.get("DOUBLE_PROMPTS"):
        with Path(log).open("a") as file:
            file.write(json.dumps(prompt) + "\n")
    resumed = alone[2] if alone[1] == "resume" else None
    thread = Thread(resumed, configured(found.get("-c", [])), prompt)
    return thread.play(json.loads(Path(os.environ["DOUBLE_SCRIPT"]).read_text()))


if __name__ == "__main__":
    main()
