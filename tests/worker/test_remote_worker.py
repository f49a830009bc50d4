"""A worker on another machine, with only the server's address and a token. Real processes, on both databases."""

from __future__ import annotations

import json
import os
import subprocess

import anyio
import pytest
from mcp import Client as Caller
from mcp import StdioServerParameters
from mcp.client.stdio import stdio_client

from tests.conftest import TURN
from tests.mcp.conftest import ask, data_of
from yourturn.config import connect
from yourturn.core.errors import IllegalMove

_AGENT = """#!/bin/sh
case "$(cat)" in
  *"use jwt"*) echo 'Done with jwt. <promise>COMPLETE</promise>' ;;
  *) turn ask "$YOURTURN_TASK" "JWT or sessions?" --timeout 10m >/dev/null ;;
esac
"""
_SCRIPT = """from yourturn.flow import pause, run, workflow


@workflow
def feature(prompt):
    first = run("coder", prompt)
    return f"{first.status} {bool(pause('Deploy?'))}"
"""


def test_a_worker_runs_a_script_and_its_agent_asks(site, tmp_path):
    project = "WORK"
    if project not in {p["key"] for p in site.desk.projects()}:
        site.desk.create_project(project)
    (tmp_path / "agent.sh").write_text(_AGENT)
    (tmp_path / "feature.py").write_text(_SCRIPT)
    (tmp_path / ".yourturn").mkdir()
    (tmp_path / ".yourturn/config.toml").write_text('[agents.coder]\nadapter = "command"\nargv = ["sh", "agent.sh"]\n')
    name = f"w-{os.urandom(4).hex()}"
    worker = site.desk.create_token(name, scopes=["run"])["token"]
    base = {name: value for name, value in os.environ.items() if not name.startswith("YOURTURN_")}
    base |= {"YOURTURN_URL": site.url, "YOURTURN_PROJECT": project}

    def turn(token: str, *words: str, ok: int = 0) -> str:
        run = subprocess.run(
            [TURN, *words], env=base | {"YOURTURN_TOKEN": token}, cwd=tmp_path, capture_output=True, text=True, timeout=90
        )
        assert run.returncode == ok, run.stdout + run.stderr
        return run.stdout

    key = json.loads(turn(site.token("admin"), "run", "feature.py", "Add login", "--detach", "--json"))["key"]
    turn(site.token("agent"), "claim", key, "--worker-id", "w1", ok=5)
    turn(worker, "work", "--drain")
    (asked,) = site.desk.show(key)["questions"]
    assert asked["asked_by"] == "agent:coder" and asked["status"] == "pending"
    site.desk.answer(asked["id"], "use jwt")
    turn(worker, "work", "--drain")
    assert [s["status"] for s in site.desk.steps(key)][:1] == ["completed"]
    site.desk.approve(key)
    turn(worker, "work", "--drain")
    done = site.desk.show(key)
    assert (done["state"], done["summary"]) == ("done", "DONE True")
    with connect(site.url, project=project, env={"YOURTURN_TOKEN": site.token("admin")}) as there:
        here = site.desk.as_(there.who)
        for look in (lambda d: d.steps(key), lambda d: d.program(key), lambda d: d.moves(key), lambda d: d.graph(key)):
            assert look(there) == look(here)
        assert there.stats(project)["tasks"] == here.stats(project)["tasks"] and there.list(only_runs=True, project=project)
        for desk in (there, here):
            with pytest.raises(IllegalMove, match="Cannot rewind"):
                desk.rewind(key, 1)
        assert there.reopen(key)["state"] == "ready" and there.rewind(key)["journal"] == here.show(key)["journal"]
    made = [t for t in site.desk.tokens() if t["created_by"] == f"agent:{name}"]
    assert made and all(t["revoked_at"] and t["role"] == "agent" and t["actor"] == "agent:coder" for t in made)


def test_mcp_on_standard_input_uses_the_server(sqlite_site, tmp_path):
    site = sqlite_site
    key = site.desk.create("Over there")["key"]
    env = {"YOURTURN_URL": site.url, "YOURTURN_TOKEN": site.token("agent"), "YOURTURN_ASK_WAIT": "0", "YOURTURN_TASK": key,
           "PATH": os.environ["PATH"], "HOME": str(tmp_path)}  # fmt: skip

    async def main() -> None:
        with (tmp_path / "stderr").open("w") as log:
            server = StdioServerParameters(command=TURN, args=["mcp"], cwd=tmp_path, env=env)
            async with Caller(stdio_client(server, log)) as agent:
                asked = data_of(await agent.call_tool("ask_question", ask()))
                assert site.desk.show(asked["question_id"])["task"] == key
        assert (tmp_path / "stderr").read_text() == ""

    anyio.run(main)
