"""Table of commands: module, function, summary and examples. Help and completion are generated from it."""

from __future__ import annotations

from typing import NamedTuple


class Command(NamedTuple):
    module: str  #: beside this one, or in full where another surface is started
    function: str
    group: str
    about: str
    examples: tuple[str, ...] = ()
    verb: str = ""  #: a move without code of its own (moves.py)
    done: str = ""  #: the first word of its reply

    @property
    def home(self) -> str:
        return self.module if "." in self.module else f"{__package__}.{self.module}"


_T, _C, _Q, _A, _W, _D = "Tasks", "Claims", "Questions", "Agents", "Workflows", "The desk"
GROUPS = (_Q, _T, _C, _A, _W, _D)

COMMANDS: dict[str, Command] = {
    "overview": Command("overview", "overview", "", "Whose turn is it?"),
    # questions
    "inbox": Command("inbox", "inbox", _Q, "what waits for a person: list, show, send, respond", ("turn inbox", "turn inbox --mine", 'turn inbox send PROJ-1 --type question "REST or GraphQL?"', 'turn inbox respond 42 "Use REST."')),
    "ask": Command("questions", "ask", _Q, "ask a person about a task", ('turn ask PROJ-1 "JWT or sessions?" --option jwt --option sessions', 'turn ask PROJ-1 "Verbose logs?" --non-blocking --default no --response-type boolean', 'turn ask PROJ-1 "Run the migration?" --kind permission --wait 60')),
    "flag": Command("questions", "flag", _Q, "stop and hand a task to a person", ('turn flag PROJ-1 --reason decision_needed "Two libraries fit. Which?"',)),
    "respond": Command("answers", "respond", _Q, "answer a question in words", ('turn respond PROJ-1 "Use JWT"', "turn respond Q17 jwt", "turn respond PROJ-1 --edit", "turn respond PROJ-1 --template lgtm", "turn respond --all")),
    "answer": Command("answers", "answer", _Q, "answer a question, with value, text and verdict", ("turn answer Q17 jwt", 'turn answer Q17 --verdict rejected --text "Not now"')),
    "approve": Command("answers", "approve", _Q, "approve a question, or accept finished work", ("turn approve PROJ-1", 'turn approve Q17 "Looks good"', 'turn approve Q17 --edit-input \'{"command": "git push --dry-run"}\'')),
    "reject": Command("answers", "reject", _Q, "reject a question or finished work, and state what should change", ('turn reject PROJ-1 "softer, please"',)),
    "withdraw": Command("answers", "withdraw", _Q, "cancel a question without an answer", ("turn withdraw Q17",)),
    "assign": Command("answers", "assign", _Q, "send a question to a person or a role", ("turn assign Q17 ben",)),
    "hand-back": Command("answers", "hand_back", _Q, "return a task to agents without an answer", ("turn hand-back PROJ-1",)),
    "use": Command("questions", "use", _Q, "a permission is used now, by one call and no other", ("turn use Q17 --by deploy-7 --action '{\"tool\": \"deploy\", \"input\": {}, \"folder\": \"/srv\"}'",)),
    # tasks
    "create": Command("tasks", "create", _T, "write a task down", ('turn create "Add login" --priority 1 --requires approval', 'turn create "Rotate the keys" --awaiting work', 'turn create "Tests" --depends-on PROJ-1 --parent PROJ-7')),
    "list": Command("lists", "list_", _T, "tasks, filtered", ("turn list", "turn list --awaiting", "turn list --awaiting input,review", "turn list --blocked", "turn list --expiring 15m", "turn list --state open PROJ-7", "turn list --active", "turn list --runs")),
    "show": Command("lists", "show", _T, "one task, or one question, in full", ("turn show PROJ-1", "turn show Q17")),
    "tree": Command("lists", "tree", _T, "tasks with their children and questions", ("turn tree", "turn tree PROJ-7")),
    "ready": Command("lists", "ready", _T, "what can be worked on now", ("turn ready", "turn ready --json --limit 5")),
    "next": Command("lists", "next_", _T, "the next task to work on; --claim takes it", ("turn next", "turn next PROJ-7", "turn next --claim --worker-id w1")),
    "update": Command("tasks", "update", _T, "change what a task says, or whose turn it is", ("turn update PROJ-1 --priority 0", "turn update PROJ-1 --awaiting approval", "turn update PROJ-1 --awaiting=null", "turn update PROJ-1 --verdict approved")),
    "note": Command("tasks", "note", _T, "write something down; it moves nothing", ('turn note PROJ-1 "PR is up"', 'turn note PROJ-1 "Use Stripe" --from human')),
    "dep": Command("tasks", "dep", _T, "dep add A B: A waits for B; dep remove; dep list", ("turn dep add PROJ-2 PROJ-1", "turn dep remove PROJ-2 PROJ-1", "turn dep list PROJ-2")),
    "vet": Command("moves", "move", _T, "release a drafted task for work", ("turn vet PROJ-1",), "vet", "Vetted"),
    "accept": Command("moves", "move", _T, "accept finished work", ("turn accept PROJ-1",), "accept", "Accepted"),
    "resolve": Command("moves", "move", _T, "settle a waiting task yourself: it is done", ("turn resolve PROJ-1",), "resolve", "Resolved"),
    "cancel": Command("tasks", "cancel", _T, "abandon a task", ('turn cancel PROJ-1 --reason "not needed any more"',)),
    "close": Command("moves", "move", _T, "end a task as done, whatever its state", ("turn close PROJ-1",), "close", "Closed"),
    "reopen": Command("moves", "move", _T, "start an ended task again", ("turn reopen PROJ-1",), "reopen", "Reopened"),
    "defer": Command("moves", "move", _T, "put a task aside", ("turn defer PROJ-1 --until 2d", "turn defer PROJ-1 --until 2027-01-07"), "defer", "Deferred"),
    "wake": Command("moves", "move", _T, "bring a deferred task back", ("turn wake PROJ-1",), "wake", "Woke"),
    "log": Command("log", "log", _T, "what happened, to one task or to all", ("turn log PROJ-1", "turn log --follow")),
    # claims
    "claim": Command("claims", "claim", _C, "take a ready task", ("turn claim PROJ-1 --worker-id w1",)),
    "heartbeat": Command("claims", "heartbeat", _C, "still working: extend the lease", ("turn heartbeat PROJ-1 --worker-id w1",)),
    "complete": Command("claims", "complete", _C, "the claimed work is finished", ('turn complete PROJ-1 --summary "Login with JWT"',)),
    "release": Command("moves", "move", _C, "give a claimed task back; costs a try", ('turn release PROJ-1 --reason "need more context"',), "release", "Released"),
    "reclaim": Command("moves", "move", _C, "the same as release", ('turn reclaim PROJ-1 --reason "need more context"',), "release", "Released"),
    "park": Command("claims", "park", _C, "give it back because the session ends; costs no try", ("turn park PROJ-1 --worker-id w1",)),
    "decompose": Command("claims", "decompose", _C, "split a task into children", ('turn decompose PROJ-1 --child "Schema" --child "API"',)),
    "fail": Command("claims", "fail", _C, "end a task as failed", ('turn fail PROJ-1 --reason "the API is gone"',)),
    # agents
    "work": Command("work", "work", _A, "let agents work on what is ready", ("turn work", "turn work --agent coder --parallel 3", "turn work --exec './agent.sh' --drain", "turn work --epic PROJ-7 --budget-cost 5 --budget-time 2h")),
    "brief": Command("brief", "brief", _A, "the text that an agent gets before it works on a task", ("turn brief PROJ-1", "turn brief PROJ-1 --agent coder", "turn brief PROJ-1 --json")),
    "worktree": Command("worktrees", "worktree", _A, "the folders in which agents work: list, clean", ("turn worktree list", "turn worktree clean --dry-run", "turn worktree clean")),
    "hook": Command("hook", "hook", _A, "asks a person before an agent's tool call (run by Claude Code)", ("turn hook claude",)),
    "mcp": Command("yourturn.mcp.command", "serve", _A, "the desk as a server of the Model Context Protocol, for an agent", ("turn mcp", "turn mcp --print-config", "claude mcp add yourturn -- turn mcp")),
    # workflows
    "run": Command("run", "run", _W, "run a script that lets agents work and waits for people", ('turn run feature.py "Add login"', 'turn run feature.py "Add login" --detach', "turn run flows/release.py:nightly --exec './agent.sh'", "turn run feature.lua -")),
    "status": Command("runs", "status", _W, "how far a run is, and what it waits for", ("turn status 42", "turn status")),
    "continue": Command("continue_session", "continue_", _W, "help an agent that waits, in its own session", ("turn continue 42", "turn continue 42 --editor", "turn continue Q17 --detach")),
    "signal": Command("runs", "signal", _W, "answer without opening a session: CONTINUE, STOP, or an agent's own word", ('turn signal 42 --status CONTINUE --message "ok"', 'turn signal 42 --status STOP --message "not before Monday"', 'turn signal 42 --status DONE --message "I did it myself"')),
    "watch": Command("watch", "watch", _W, "see a run go on as it happens; and go on with it when a person is done", ("turn watch 42", "turn watch 42 --json", "turn watch 42 --only-look", "turn watch")),
    "resume": Command("runs", "resume", _W, "let a run go on: after a failure, a changed script, or a worker's end", ("turn resume 42", "turn resume 42 --accept-new-code", "turn resume 42 --from 3", "turn resume 42 --detach")),
    "stop": Command("claims", "stop", _W, "a person ends a run or a task as stuck", ('turn stop 42 --reason "Decided against it"',)),
    # the desk
    "serve": Command("yourturn.server.command", "serve", _D, "the desk for people and agents elsewhere, over HTTP", ("turn serve", "turn serve --port 9000", "turn serve --host 0.0.0.0 --public-url https://turn.example.org --workers 4")),
    "init": Command("admin", "init", _D, "make a desk here", ("turn init", "turn init --key PROJ", "turn init --upgrade")),
    "project": Command("admin", "project", _D, "projects and their settings", ("turn project list", "turn project create WEB", "turn project set review ask", "turn project set --workspace min_timeout 1m")),
    "user": Command("admin", "user", _D, "people: roles, passwords, one-time links, sessions", ("turn user add ana --role approver", "turn user list", "turn user password ana", "turn user link ana", "turn user sessions", "turn user logout 3", "turn user remove ana")),
    "token": Command("admin", "token", _D, "tokens for agents and people", ("turn token create coder --role agent --json", "turn token list", "turn token revoke coder")),
    "reconcile": Command("admin", "reconcile", _D, "make the moves that are due", ("turn reconcile", "turn reconcile --watch")),
    "stats": Command("stats", "stats", _D, "numbers of questions, answer times and timeouts", ("turn stats", "turn stats --days 7", "turn stats -p API --json")),
    "doctor": Command("admin", "doctor", _D, "is everything all right?", ("turn doctor", "turn doctor --strict")),
    "audit": Command("admin", "audit", _D, "verify the history, or anchor it", ("turn audit verify", "turn audit anchor > anchor.json", "turn audit verify --anchor anchor.json")),
    "export": Command("data", "export_", _D, "everything in one file of JSON lines, without secrets", ("turn export desk.jsonl", "turn export desk.jsonl.gz", "turn export > desk.jsonl")),
    "import": Command("data", "import_", _D, "bring in an export, or the tasks of ticks, beehive or beads", ("turn import desk.jsonl", "turn import .", "turn import ../app/.tick --dry-run", "turn import issues.jsonl --from beads --project WEB")),
    "backup": Command("data", "backup", _D, "everything, secrets too, while others go on", ("turn backup desk.backup", "turn backup desk.jsonl.gz")),
    "restore": Command("data", "restore", _D, "put a backup or an export in the place of a desk", ("turn restore desk.backup --into new.db", "turn restore desk.backup --force")),
    "demo": Command("admin", "demo", _D, "see an agent ask and a person answer", ("turn demo",)),
    "completion": Command("admin", "completion", _D, "completion for bash, zsh or fish", ('eval "$(turn completion bash)"',)),
    "help": Command("admin", "help_", _D, "this list"),
}  # fmt: skip
