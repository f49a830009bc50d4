"""A double of `claude -p`, and of `claude --resume ID` on a terminal (display/terminal.py).

Sessions are files per folder under CLAUDE_CONFIG_DIR, as with the real one. Hooks from --settings are run, MCP servers from
--mcp-config are called, Bash and Write really happen. Steps of the script, one per turn of the model:

    {"text": "…"}                       prints a message and ends
    {"tool": "Bash", "input": {…}}      uses a tool
    {"tools": [["Bash", {…}], …]}       uses several in one turn: of those that are deferred, only the last is kept
    {"ask": [question, …]}              AskUserQuestion
    {"api_error": 529}, {"crash": 3}    fails; dies without a result (a name like "SIGKILL" works, too)
    {"raw": "…"}                        prints a line as it is
    {"sleep": 1}, {"linger": true}      waits; prints its result and does not exit

DOUBLE_NO_SERVERS: no MCP server can be reached. DOUBLE_PROMPTS: a file that gets every prompt. DOUBLE_HEARD: a file that gets
all inputs of the model: prompts, results of tools, and what hooks add to them. The structured content of a tool is its result.
"""

import argparse
import json
import os
import re
import signal
import subprocess
import sys
import time
import uuid
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
import tiny_mcp as mcp
from screen import hear, visited


def options():
    parser = argparse.ArgumentParser(add_help=False)
    parser.add_argument("-p", "--print", action="store_true")
    parser.add_argument("prompt", nargs="?")
    for name in ("--output-format", "--session-id", "--resume", "--settings", "--permission-prompt-tool", "--model"):
        parser.add_argument(name)
    parser.add_argument("--mcp-config", nargs="*", default=[])
    parser.add_argument("--allowedTools", nargs="*", default=[])
    parser.add_argument("--permission-mode", default="default")
    parser.add_argument("--max-turns", type=int, default=1000)
    for name in ("--verbose", "--version"):
        parser.add_argument(name, action="store_true")
    return parser.parse_args()


def refuse(words):
    sys.exit(print(words, file=sys.stderr) or 1)


def given(text):
    return json.loads(text if text.lstrip().startswith("{") else Path(text).read_text())


class Deferred(Exception):
    pass


class Session:
    def __init__(self, opt):
        self.opt = opt
        if opt.output_format == "stream-json" and not opt.verbose:
            refuse("Error: When using --print, --output-format=stream-json requires --verbose")
        home = Path(os.environ.get("CLAUDE_CONFIG_DIR") or Path.home() / ".claude")
        self.id = opt.resume or opt.session_id or str(uuid.uuid4())
        self.file = home / "projects" / re.sub(r"[^A-Za-z0-9]", "-", str(Path.cwd())) / f"{self.id}.jsonl"
        if opt.resume and not self.file.exists():
            refuse(f"No conversation found with session ID: {self.id}")
        if not opt.resume and self.file.exists():
            refuse(f"Error: Session ID {self.id} is already in use.")
        self.file.parent.mkdir(parents=True, exist_ok=True)
        self.state = json.loads(self.file.read_text()) if opt.resume else {"at": 0, "parked": None, "cost": 0.0}
        if not opt.print:
            self.state["parked"] = None  # a new prompt drops the call that the session waited with
            self.save()
            visited("claude", self.id)
        if opt.resume and not opt.prompt and not self.state["parked"]:
            refuse("Error: No deferred tool marker found in the resumed session. Provide a prompt to continue the conversation.")
        self.servers = {}
        for config in () if os.environ.get("DOUBLE_NO_SERVERS") else opt.mcp_config:
            self.servers.update(given(config).get("mcpServers", {}))
        self.hooks = given(opt.settings).get("hooks", {}).get("PreToolUse", []) if opt.settings else []
        self.turns = 0
        self.denials = []
        self.unheard = [opt.prompt] if opt.prompt else []
        self.save()

    def save(self):
        self.file.write_text(json.dumps(self.state))

    def emit(self, **event):
        print(json.dumps({**event, "session_id": self.id, "uuid": str(uuid.uuid4())}), flush=True)

    def assistant(self, *blocks):
        for block in blocks:
            self.emit(type="assistant", message={"role": "assistant", "content": [block]}, parent_tool_use_id=None)

    def tool_result(self, call, text, error=False):
        block = {"type": "tool_result", "tool_use_id": call["id"], "content": text, "is_error": error}
        self.emit(type="user", message={"role": "user", "content": [block]}, parent_tool_use_id=None)
        self.unheard.append(text)

    def result(self, **fields):
        self.state["cost"] += 0.001
        self.save()
        event = {
            "type": "result", "subtype": "success", "is_error": False, "num_turns": self.turns, "result": "",
            "stop_reason": "end_turn", "terminal_reason": "completed", "permission_denials": self.denials,
            "total_cost_usd": self.state["cost"], "usage": {"input_tokens": 5, "output_tokens": 7},
            "model_usage_since_last_result": {"double": {"costUSD": 0.001}}, **fields,
        }  # fmt: skip
        self.emit(**event)
        if self.state.pop("linger", None):
            time.sleep(3600)
        sys.exit(1 if event["is_error"] else 0)

    # --- tools ------------------------------------------------------------------------------------------------------

    def hook(self, call):
        payload = {
            "session_id": self.id, "transcript_path": str(self.file), "cwd": str(Path.cwd()),
            "permission_mode": self.opt.permission_mode, "hook_event_name": "PreToolUse",
            "tool_name": call["name"], "tool_input": call["input"], "tool_use_id": call["id"],
        }  # fmt: skip
        for group in self.hooks:
            if not re.fullmatch(group.get("matcher") or ".*", call["name"]):
                continue
            for hook in group["hooks"]:
                done = subprocess.run(
                    hook["command"],
                    shell=True,
                    input=json.dumps(payload),
                    capture_output=True,
                    text=True,
                    timeout=hook["timeout"],
                )
                if done.returncode == 2:
                    return {"permissionDecision": "deny", "permissionDecisionReason": done.stderr.strip()}
                if done.stdout.strip():
                    said = json.loads(done.stdout).get("hookSpecificOutput", {})
                    self.unheard += [said["additionalContext"]] if said.get("additionalContext") else []
                    return said
        return {}

    def mcp(self, name, arguments, id_):
        _, server, tool = name.split("__", 2)
        config = self.servers.get(server)
        if config is None:
            raise mcp.Unreachable(f"there is no server {server}")
        env = {**os.environ, **config.get("env", {})}
        return mcp.call([config["command"], *config.get("args", [])], tool, arguments, {"claudecode/toolUseId": id_}, env)

    def permitted(self, call):
        """(allowed, the input, or the reason of a denial)."""
        name = call["name"]
        rules = [rule.split("(")[0].replace("*", ".*") for rule in self.opt.allowedTools]
        if self.opt.permission_mode == "bypassPermissions" or any(re.fullmatch(rule, name) for rule in rules):
            return True, call["input"], ""
        if self.opt.permission_prompt_tool:
            asked = {"tool_name": name, "input": call["input"], "tool_use_id": call["id"]}
            try:
                said = json.loads(self.mcp(self.opt.permission_prompt_tool, asked, call["id"])[0])
            except (mcp.Unreachable, ValueError):
                said = {"behavior": "deny", "message": f"{name} requires approval"}
            if said["behavior"] == "allow":
                return True, said.get("updatedInput", call["input"]), ""
            return False, call["input"], said["message"]
        return False, call["input"], f"{name} requires approval"

    def use(self, call):
        """Raises Deferred when a hook wants to wait."""
        if call["name"] == "AskUserQuestion" and not self.opt.permission_prompt_tool:
            return self.tool_result(
                call, "<tool_use_error>Error: No such tool available: AskUserQuestion.</tool_use_error>", True
            )
        decision = self.hook(call)
        match decision.get("permissionDecision"):
            case "defer":
                raise Deferred
            case "deny":
                return self.denied(call, f"PreToolUse:{call['name']} hook error: {decision.get('permissionDecisionReason', '')}")
            case "allow":
                may, arguments, why = True, decision.get("updatedInput") or call["input"], ""
            case _:
                may, arguments, why = self.permitted(call)
        if not may:
            self.emit(type="system", subtype="permission_denied", tool_name=call["name"], tool_use_id=call["id"], message=why)
            return self.denied(call, why)
        return self.tool_result(call, *self.done({**call, "input": arguments}))

    def denied(self, call, why):
        self.denials.append({"tool_name": call["name"], "tool_use_id": call["id"], "tool_input": call["input"]})
        self.tool_result(call, why, True)

    def done(self, call):
        """The result of the tool, and whether it is an error."""
        name, arguments = call["name"], call["input"]
        if name == "AskUserQuestion":
            answers = ", ".join(f'"{question}"="{answer}"' for question, answer in arguments.get("answers", {}).items())
            return f"Your questions have been answered: {answers}. You can now continue with these answers in mind.", False
        if name == "Bash":
            done = subprocess.run(arguments["command"], shell=True, capture_output=True, text=True)
            return done.stdout + done.stderr or "(Bash completed with no output)", done.returncode != 0
        if name == "Write":
            Path(arguments["file_path"]).write_text(arguments["content"])
            return "File created", False
        if name.startswith("mcp__"):
            text, structured, error = self.mcp(name, arguments, call["id"])
            return json.dumps(structured) if structured else text, error
        return f"({name} completed with no output)", False

    def wake(self):
        """The parked call comes first."""
        call = self.state["parked"]
        if call["name"].startswith("mcp__") and call["name"].split("__")[1] not in self.servers:
            self.result(
                is_error=True, stop_reason="tool_deferred_unavailable", deferred_tool_use=call, errors=[f"No tool {call['name']}"]
            )
        if self.opt.prompt:
            self.hook(call)
            self.state["parked"] = None
            return self.tool_result(call, "[Tool result missing due to internal error]", True)
        try:
            self.use(call)
        except Deferred:
            self.result(stop_reason="tool_deferred", terminal_reason="tool_deferred", deferred_tool_use=call)
        self.state["parked"] = None
        return None

    def init(self):
        tools = ["Bash", "Write", *(["AskUserQuestion"] if self.opt.permission_prompt_tool else [])]
        self.emit(
            type="system", subtype="init", cwd=str(Path.cwd()), tools=tools, model=self.opt.model or "double",
            mcp_servers=[{"name": name, "status": "connected"} for name in self.servers],
            permissionMode=self.opt.permission_mode, claude_code_version="2.1.325",
        )  # fmt: skip

    # --- turns ------------------------------------------------------------------------------------------------------

    def play(self, script):
        if self.state["parked"]:
            self.wake()  # its result comes before the init, as with the real one
        self.init()
        while True:
            step = script[min(self.state["at"], len(script) - 1)]
            self.state["at"] += 1
            self.turns += 1
            self.save()
            self.unheard = hear(self.unheard)
            if self.turns > self.opt.max_turns:
                words = f"Reached maximum number of turns ({self.opt.max_turns})"
                self.result(subtype="error_max_turns", is_error=True, terminal_reason="max_turns", errors=[words])
            self.step(step)

    def step(self, step):
        match step:
            case {"sleep": seconds}:
                time.sleep(seconds)
            case {"raw": line}:
                print(line, flush=True)
            case {"crash": str(name)}:
                os.kill(os.getpid(), getattr(signal, name))
            case {"crash": code}:
                sys.exit(code)
            case {"api_error": status}:
                words = "Invalid API key" if status == 401 else f"API Error: {status}"
                self.assistant({"type": "text", "text": words})
                self.result(is_error=True, terminal_reason="api_error", api_error_status=status, result=words)
            case {"linger": _}:
                self.state["linger"] = True
            case {"text": text}:
                self.assistant({"type": "text", "text": text})
                self.result(result=text)
            case _:
                pairs = step.get("tools") or [
                    [step.get("tool", "AskUserQuestion"), step.get("input", {"questions": step.get("ask")})]
                ]
                calls = [{"id": f"toolu_{uuid.uuid4().hex[:12]}", "name": name, "input": arguments} for name, arguments in pairs]
                self.assistant(*({"type": "tool_use", **call} for call in calls))
                for call in calls:
                    try:
                        self.use(call)
                    except Deferred:
                        self.state["parked"] = call
                if self.state["parked"]:
                    call = self.state["parked"]
                    self.result(stop_reason="tool_deferred", terminal_reason="tool_deferred", deferred_tool_use=call)


def main():
    opt = options()
    if opt.version:
        return print("2.1.325 (Claude Code)")
    if opt.print and opt.prompt is None and not sys.stdin.isatty():
        opt.prompt = sys.stdin.read() or None
    if opt.prompt is None and not opt.resume:
        refuse("Error: Input must be provided either through stdin or as a prompt argument when using --print")
    if log := os.environ.get("DOUBLE_PROMPTS"):
        with Path(log).open("a") as file:
            file.write(json.dumps(opt.prompt) + "\n")
    return Session(opt).play(json.loads(Path(os.environ["DOUBLE_SCRIPT"]).read_text()))


if __name__ == "__main__":
    main()
