"""Agents as real processes: output of any size, limits, and no process that stays."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
import tracemalloc
from pathlib import Path

import pytest

from yourturn.worker.agents import Agent, base, exec_agent, make
from yourturn.worker.agents.base import AgentRun, Unknown
from yourturn.worker.agents.process import LAUNCHER, perform


def alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return " Z" not in Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2][:3]


def until(condition, seconds=20.0):
    ends = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < ends, "it did not happen"
        time.sleep(0.01)


def number(path: Path) -> int:
    until(lambda: path.exists() and path.read_text().strip())
    return int(path.read_text())


# --- what comes out -------------------------------------------------------------------------------------------------


def test_a_command_gets_the_brief_and_its_output_is_the_message(go, tmp_path):
    ending = go("cat; echo; pwd; echo $YOURTURN_TASK", env={"YOURTURN_TASK": "PROJ-1"})
    assert (ending.what, ending.error, ending.rc) == ("done", "", 0)
    assert ending.text == f"the brief\n{tmp_path}\nPROJ-1\n"
    assert [said.text for said in go.heard] == ["the brief", str(tmp_path), "PROJ-1"]
    assert go.log.read_text() == ending.text and go.log.stat().st_mode & 0o777 == 0o600


def test_exit_code_alone_is_no_outcome(go):
    ending = go("echo '<promise>COMPLETE</promise>'; echo oh no >&2; exit 3")
    assert (ending.what, ending.text, ending.rc) == ("done", "<promise>COMPLETE</promise>\n", 3)
    assert "exit code 3" in ending.error and "oh no" in ending.error
    assert "oh no" in go.log.read_text()


def test_brief_larger_than_a_pipe_buffer(go):
    assert go("wc -c", prompt="x" * 3_000_000).text.strip() == "3000000"
    assert go("exec true", prompt="x" * 3_000_000).what == "done", "nobody has to read it"


def test_invalid_utf8_is_replaced(go):
    ending = go(r"printf 'caf\351 \360\237\221\215 end\000.\r\nlast'")
    assert ending.text == "caf\ufffd \U0001f44d end\0.\r\nlast"
    assert [said.text for said in go.heard] == ["caf\ufffd \U0001f44d end\0.", "last"], "no line ending at the end"
    assert go.log.read_bytes().startswith(b"caf\xe9 \xf0\x9f")


def test_fifty_megabytes_in_one_line(go):
    ending = go("head -c 50000000 /dev/zero | tr '\\0' x; echo; echo '<promise>COMPLETE</promise>'")
    assert len(ending.text) == 50_000_000 + 1 + 28
    assert ending.text.endswith("\n<promise>COMPLETE</promise>\n")
    assert len(go.heard[0].text) < 10_000, "for the screen a piece is enough"
    assert go.log.stat().st_size == len(ending.text)


def test_message_that_is_too_long_is_dropped_as_a_whole(go, monkeypatch):
    """A part of a text can mean what the whole does not: its beginning may have opened a code block."""
    monkeypatch.setattr(base, "LIMIT", 1_000_000)
    tracemalloc.start()
    ending = go("echo '```'; head -c 30000000 /dev/zero | tr '\\0' x; echo; echo '<promise>COMPLETE</promise>'")
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert (ending.what, ending.text) == ("done", "") and "only the log has all of it" in ending.error
    assert go.log.stat().st_size > 30_000_000 and peak < 8_000_000


def test_stream_continues_after_a_line_that_is_too_long(go, monkeypatch, tmp_path):
    monkeypatch.setattr(base, "LIMIT", 100_000)
    result = json.dumps({"type": "result", "subtype": "success", "result": "fine", "is_error": False})
    program = tmp_path / "agent"
    program.write_text(f"#!/bin/sh\nhead -c 300000 /dev/zero | tr '\\0' x; echo\necho not json\necho '{result}'\n")
    program.chmod(0o755)
    ending = go(Agent("coder", "claude", (str(program),)))
    assert ending.what == "done" and ending.text == "" and "only the log" in ending.error
    assert [type(said) for said in go.heard[:2]] == [Unknown, Unknown] and len(go.heard[0].raw) < 10_000


def test_end_of_standard_error_is_kept(go):
    ending = go("yes 'noise noise noise noise' | head -n 10000 >&2; echo last words >&2; exit 1")
    assert ending.error.endswith("last words") and len(ending.error) < 3000
    assert go.log.stat().st_size > 100_000


def test_error_in_the_listener_does_not_end_the_agent(go, tmp_path):
    def bad(said):
        raise RuntimeError("listener")

    agent = exec_agent("echo one; echo two")
    ending = perform(make(agent), AgentRun("PROJ-1", agent, "", str(tmp_path), dict(os.environ)), on_event=bad)
    assert (ending.what, ending.text) == ("done", "one\ntwo\n")


def test_unwritable_log_does_not_end_the_agent(go, tmp_path):
    (tmp_path / "logs").write_text("in the way")
    assert go("echo hi").text == "hi\n"
    go.log = Path("/dev/full")
    assert go("echo hi").text == "hi\n"


# --- starting -------------------------------------------------------------------------------------------------------


def test_failed_start_is_reported(go, tmp_path):
    ending = go(Agent("coder", "command", ("/no/such/program",)))
    assert (ending.what, ending.cause) == ("failed", "not_started") and "/no/such/program: No such file" in ending.error
    agent = exec_agent("true")
    ending = perform(make(agent), AgentRun("PROJ-1", agent, "", str(tmp_path / "gone"), {}))
    assert (ending.what, ending.cause) == ("failed", "not_started") and "gone" in ending.error
    ending = go("nosuchcommand")
    assert (ending.what, ending.cause) == ("done", "") and "exit code 127" in ending.error, "the shell was started"


def test_launcher_leaves_no_trace_in_the_agent(go):
    """The agent has no extra open file or child, a group of its own, and no ignored signal."""
    code = """
import os
print(sorted(map(int, os.listdir("/proc/self/fd")))[:-1])
try:
    os.wait()
except ChildProcessError:
    print("no children")
print(os.getpid() == os.getpgid(0) == os.getsid(0))
"""
    assert go(Agent("a", "command", (sys.executable, "-c", code))).text == "[0, 1, 2]\nno children\nTrue\n"
    ignored = int(go("grep SigIgn /proc/self/status").text.split()[1], 16)
    assert ignored & 0x7FFFFFFF == 0, "the rest is the C library's own"


# --- limits ---------------------------------------------------------------------------------------------------------


class Watch:
    """A clock that the test advances."""

    def __init__(self):
        self.now = 0.0

    def __call__(self):
        return self.now

    def wind(self, seconds):
        self.now += seconds


def test_time_limit(go):
    watch = Watch()
    ending = go("echo begun; sleep 600", time_limit=3600, clock=watch, then=lambda: watch.wind(3600))
    assert (ending.what, ending.cause, ending.text) == ("stopped", "time", "begun\n")
    assert ending.rc == -signal.SIGTERM


def test_silence_limit_is_reset_by_output(go):
    watch = Watch()
    talks = "for i in 1 2 3 4 5; do echo $i; sleep 0.15; done; echo end"
    assert go(talks, silence_limit=60, clock=watch, then=lambda: watch.wind(50)).what == "done"
    ending = go("echo 1; sleep 600", silence_limit=60, clock=watch, then=lambda: watch.wind(61))
    assert (ending.what, ending.cause) == ("stopped", "silence")


def test_waiting_for_a_person_counts_for_no_limit(go):
    watch = Watch()
    looked = []

    def waiting():
        looked.append(watch.now)
        watch.wind(10_000)
        if len(looked) > 5:
            Path(go.run.folder, "answered").touch()
        return True

    ending = go(
        "until [ -e answered ]; do sleep 0.05; done; echo end", time_limit=60, silence_limit=60, clock=watch, waiting=waiting
    )
    assert (ending.what, ending.text) == ("done", "end\n") and len(looked) > 5


def test_stop_kills_an_agent_that_ignores_sigterm(go, tmp_path):
    stop = threading.Event()
    agent = exec_agent("trap '' TERM; echo $$ > pid; while true; do sleep 0.05; done")
    threading.Thread(target=lambda: (number(tmp_path / "pid"), stop.set())).start()
    ending = go(agent, stop=stop, grace=0.2)
    assert (ending.what, ending.cause, ending.rc) == ("stopped", "stop", -signal.SIGKILL)
    assert not alive(number(tmp_path / "pid"))


def test_agent_has_a_grace_period_to_end(go, tmp_path):
    stop = threading.Event()
    agent = exec_agent("trap 'echo saved; exit 0' TERM; echo $$ > pid; while true; do sleep 0.05; done")
    threading.Thread(target=lambda: (number(tmp_path / "pid"), stop.set())).start()
    ending = go(agent, stop=stop)
    assert (ending.what, ending.text, ending.rc) == ("stopped", "saved\n", 0)


# --- no process is left ------------------------------------------------------------------------------------------


def test_children_end_with_the_agent(go, tmp_path):
    ending = go("sleep 600 & echo $! > pid; echo end")
    assert (ending.what, ending.text) == ("done", "end\n")
    until(lambda: not alive(number(tmp_path / "pid")))


def test_child_outside_of_the_group_does_not_block_the_worker(go, tmp_path):
    try:
        started = time.monotonic()
        ending = go("setsid sh -c 'echo $$ > pid; exec sleep 600' & until [ -s pid ]; do sleep 0.01; done; echo end")
        assert (ending.what, ending.text) == ("done", "end\n")
        assert time.monotonic() - started < 60
    finally:
        os.kill(number(tmp_path / "pid"), signal.SIGKILL)


WORKER = """
import os, sys
from yourturn.worker.agents import exec_agent, make
from yourturn.worker.agents.base import AgentRun
from yourturn.worker.agents.process import LAUNCHER, perform
agent = exec_agent("trap '' TERM INT HUP; echo $$ > agent; sleep 600 & echo $! > child; wait")
perform(make(agent), AgentRun("PROJ-1", agent, "", sys.argv[1], dict(os.environ)))
"""


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGTERM])
def test_agent_and_its_children_die_with_the_worker(tmp_path, how):
    worker = subprocess.Popen([sys.executable, "-c", WORKER, str(tmp_path)])
    agent, child = number(tmp_path / "agent"), number(tmp_path / "child")
    try:
        assert alive(agent) and alive(child)
        worker.send_signal(how)
        worker.wait()
        until(lambda: not alive(agent) and not alive(child))
    finally:
        for pid in (agent, child):
            if alive(pid):
                os.kill(pid, signal.SIGKILL)


@pytest.mark.skipif(sys.platform != "linux", reason="the kernel's own leash")
def test_kernel_kills_the_agent_without_the_watchdog(tmp_path):
    """The launcher alone, with a pipe that stays open."""
    pipe, end = os.pipe()
    code = (
        "import os, subprocess, sys, time\n"
        f"words = [sys.executable, '-I', '-S', {LAUNCHER!r}, str(os.getpid()), '{pipe}', 'sleep', '600']\n"
        f"agent = subprocess.Popen(words, pass_fds=({pipe},), start_new_session=True)\n"
        f"open({str(tmp_path / 'agent')!r}, 'w').write(str(agent.pid))\n"
        "time.sleep(600)"
    )
    worker = subprocess.Popen([sys.executable, "-c", code], pass_fds=(pipe,), start_new_session=True)
    agent = number(tmp_path / "agent")
    try:
        until(lambda: Path(f"/proc/{agent}/comm").read_text() == "sleep\n")
        worker.kill()
        worker.wait()
        until(lambda: not alive(agent))
    finally:
        worker.kill()
        if alive(agent):
            os.kill(agent, signal.SIGKILL)
        os.close(pipe)
        os.close(end)


def test_no_file_descriptor_leaks(go):
    go("true")
    before = os.listdir("/proc/self/fd")
    for _ in range(5):
        go("sleep 0.01 & echo hi")
        go(Agent("coder", "command", ("/no/such/program",)))
    assert len(os.listdir("/proc/self/fd")) == len(before)


def test_eight_at_once(tmp_path):
    endings = {}

    def one(n):
        agent = exec_agent(f"sleep 0.1; echo {n}; sleep 600 &")
        endings[n] = perform(make(agent), AgentRun("PROJ-1", agent, "", str(tmp_path), dict(os.environ)))

    threads = [threading.Thread(target=one, args=(n,)) for n in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert {n: ending.text for n, ending in endings.items()} == {n: f"{n}\n" for n in range(8)}
