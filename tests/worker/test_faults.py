"""Faults of workers: held claims, early and late answers, kill -9, other machines, lost folders."""

from __future__ import annotations

import os
import signal
import subprocess
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.conftest import TURN
from tests.worker.workshop import DONE, Shop, gone, until
from yourturn.core.errors import YourturnError

LEASE = 91.0  #: after so many seconds a dead worker's claim is over
HOME = 61.0  #: after so many seconds anybody may go on with another machine's session

RUN = 'echo "$YOURTURN_TASK" >> "$SHOP/runs"\n'
FIRST = '[ "$(grep -c "^$YOURTURN_TASK$" "$SHOP/runs")" = 1 ]'


@pytest.fixture
def shop(address: str, tmp_path: Path) -> Iterator[Shop]:
    found = Shop(tmp_path, address)
    yield found
    found.close()


# --- held claims ------------------------------------------------------------------------------------------------------


def test_answer_during_the_session_continues_under_the_same_claim(shop: Shop) -> None:
    agent = shop.script(RUN + f'turn ask "$YOURTURN_TASK" "Which database?" --wait 25 > "$SHOP/heard" && echo "{DONE}"\n')
    key = shop.task()
    with shop.draining(agent):
        asked = shop.asked(key)
        held = shop.show(key)
        assert held["state"] == "human" and held["claim"]["epoch"] == 1
        shop.desk.respond(asked["id"], "Postgres, please")
    task = shop.show(key)
    assert (task["state"], task["retry_count"], shop.lines("runs")) == ("done", 0, [key])
    assert "Postgres, please" in "".join(shop.lines("heard"))
    assert [e["action"] for e in shop.desk.history(key)].count("claim") == 1


def test_answer_before_the_process_ends_is_sent_under_the_same_claim(shop: Shop) -> None:
    """The session has stopped waiting, and the answer comes while its process ends."""
    agent = shop.script(
        RUN + f'if {FIRST}; then turn ask "$YOURTURN_TASK" "Which?" --wait 0.1; wait_for go\n'
        f'else cat > "$SHOP/told"; echo "{DONE}"; fi\n'
    )
    key = shop.task()
    with shop.draining(agent):
        shop.desk.respond(shop.asked(key)["id"], "The blue one")
        shop.go()
    told = "\n".join(shop.lines("told"))
    assert shop.show(key)["state"] == "done" and shop.lines("runs") == [key, key]
    assert "The blue one" in told
    assert [e["action"] for e in shop.desk.history(key)].count("claim") == 1


def test_answer_after_the_park_resumes_exactly_once(shop: Shop) -> None:
    agent = shop.script(
        RUN + f'if {FIRST}; then turn ask "$YOURTURN_TASK" "Which?" --wait 0.1\nelse cat > "$SHOP/told"; echo "{DONE}"; fi\n'
    )
    key = shop.task()
    assert shop.drain(agent) == [(key, "waiting")]
    parked = shop.show(key)
    assert (parked["state"], parked["claim"], parked["retry_count"]) == ("human", None, 0)
    shop.desk.respond(shop.question(key)["id"], "The blue one")
    with shop.draining(agent, name="one"), shop.draining(agent, name="other"):
        pass
    task = shop.show(key)
    assert (task["state"], task["retry_count"], shop.lines("runs")) == ("done", 0, [key, key])
    assert "The blue one" in "\n".join(shop.lines("told"))
    assert [e["action"] for e in shop.desk.history(key)].count("claim") == 2


def test_answers_race_with_ending_sessions(shop: Shop) -> None:
    """In either order of answer and park there is one resume, and no retry is spent."""
    agent = shop.script(RUN + f'if {FIRST}; then turn ask "$YOURTURN_TASK" "Which?"\nelse echo "{DONE}"; fi\n')
    keys = [shop.task(f"Task {n}") for n in range(6)]
    over = threading.Event()

    def person() -> None:
        desk = shop.person()
        while not over.is_set():
            for waiting in desk.inbox():
                try:
                    desk.respond(waiting["id"], "This one")
                except YourturnError:
                    continue

    quick = threading.Thread(target=person)
    quick.start()
    try:
        until(lambda: shop.drain(agent, parallel=2) is not None and all(shop.show(k)["state"] == "done" for k in keys), "all")
    finally:
        over.set()
        quick.join()
    assert sorted(shop.lines("runs")) == sorted(keys * 2)
    assert [shop.show(key)["retry_count"] for key in keys] == [0] * 6


def test_worker_killed_with_an_open_question_loses_nothing(shop: Shop) -> None:
    agent = shop.script(
        RUN + f'if {FIRST}; then echo $$ > "$SHOP/pid"; turn ask "$YOURTURN_TASK" "Which?" --wait 100; echo late >> "$LEDGER"\n'
        f'else cat > "$SHOP/told"; echo "{DONE}"; fi\n'
    )
    key = shop.task()
    with shop.process(agent) as worker:
        asked = shop.asked(key)
        assert shop.show(key)["claim"]
        worker.kill()
        worker.wait()
    until(lambda: gone(int(shop.lines("pid")[0])), "the agent's death")
    later = shop.person(LEASE)
    left = later.show(key)
    assert (left["state"], left["claim"], left["retry_count"]) == ("human", None, 0)
    assert [(q["id"], q["status"]) for q in left["questions"]] == [(asked["id"], "pending")]
    later.respond(asked["id"], "The blue one")
    assert shop.drain(agent, later=LEASE) == [(key, "done")]
    task = later.show(key)
    assert (task["state"], task["retry_count"], shop.lines("runs"), shop.done()) == ("done", 0, [key, key], [])
    assert "The blue one" in "\n".join(shop.lines("told"))


def test_answer_to_a_dead_worker_is_sent_by_the_next(shop: Shop) -> None:
    """The worker died, and its lease still runs; the next worker has the answer."""
    agent = shop.script(
        RUN + f'if {FIRST}; then turn ask "$YOURTURN_TASK" "Which?" --wait 100\nelse cat > "$SHOP/told"; echo "{DONE}"; fi\n'
    )
    key = shop.task()
    with shop.process(agent) as worker:
        asked = shop.asked(key)
        worker.kill()
        worker.wait()
    shop.desk.respond(asked["id"], "The blue one")
    assert shop.drain(agent) == []
    assert shop.drain(agent, later=LEASE) == [(key, "done")]
    assert "The blue one" in "\n".join(shop.lines("told")) and shop.lines("runs") == [key, key]


# --- kill -9 ----------------------------------------------------------------------------------------------------------

WORK = (
    RUN + 'echo $$ >> "$SHOP/pid"\nwait_for go\nturn complete "$YOURTURN_TASK" "by $1" && echo "$YOURTURN_TASK" >> "$LEDGER"\n'
)  # the ledger lies outside of the database: what stands there was done by an accepted claim


def test_agent_of_a_killed_worker_dies_and_another_takes_over(shop: Shop) -> None:
    agent = shop.script(WORK)
    key = shop.task()
    with shop.process(agent) as worker:
        until(lambda: shop.lines("pid"), "the agent")
        worker.kill()
        worker.wait()
    until(lambda: gone(int(shop.lines("pid")[0])), "the agent's death")
    shop.go()
    assert shop.drain(agent) == [], "the lease is not over yet"
    assert shop.done() == []
    assert shop.drain(agent, later=LEASE) == [(key, "done")]
    task = shop.person(LEASE).show(key)
    assert (task["state"], shop.done(), len(shop.lines("runs"))) == ("done", [key], 2)
    assert [e["action"] for e in shop.desk.history(key)].count("complete") == 1


def test_agent_that_survives_its_worker_is_fenced(shop: Shop) -> None:
    """The agent left the process group and survives; its claim does not."""
    path = shop.folder / "escaped.sh"
    waits = 'echo $$ > "$SHOP/zombie"\nuntil [ -e "$SHOP/late" ]; do sleep 0.02; done\n'
    path.write_text(f'{waits}{WORK.partition("wait_for go")[2]}echo "exit $?" > "$SHOP/fenced"\n')
    agent = shop.script(
        RUN + f'if {FIRST}; then setsid sh "{path}" </dev/null >"$SHOP/zombie.out" 2>&1 & wait_for never; fi\n'
        f'echo "$YOURTURN_TASK" >> "$LEDGER"; echo "{DONE}"\n'
    )
    key = shop.task()
    with shop.process(agent) as worker:
        zombie = int(until(lambda: shop.lines("zombie"), "the zombie")[0])
        worker.kill()
        worker.wait()
    try:
        assert shop.drain(agent, later=LEASE) == [(key, "done")]
        assert not gone(zombie)
        before = shop.person(LEASE).show(key)
        (shop.folder / "late").touch()
        until(lambda: shop.lines("fenced"), "the zombie's end")
    finally:
        if not gone(zombie):
            os.kill(zombie, signal.SIGKILL)
    assert shop.done() == [key] and shop.person(LEASE).show(key) == before
    assert "Error: " in "\n".join(shop.lines("zombie.out"))


def test_worker_without_its_claim_stops_the_agent_and_writes_nothing(shop: Shop) -> None:
    """The worker was suspended for longer than its lease, and another one has claimed the task."""
    agent = shop.script(RUN + f'if {FIRST}; then wait_for go; fi; echo "{DONE}"\n')
    key = shop.task()
    with shop.draining(agent, name="sleeper") as sleeper:
        until(lambda: shop.lines("runs"), "the agent")
        assert shop.drain(agent, later=LEASE, name="heir") == [(key, "done")]
        shop.go()
    assert [result.what for _, result in sleeper.results] == ["lost"]
    history = [(e["action"], e["actor"]) for e in shop.desk.history(key)]
    assert [action for action, _ in history].count("complete") == 1


# --- other machines, lost folders -------------------------------------------------------------------------------------

PARTIAL = (
    RUN + f'cat > "$SHOP/told"\nif {FIRST}; then echo half > half.txt; echo changed >> README; '
    f'echo "<promise>INPUT_NEEDED: Which half?</promise>"\nelse cat half.txt README > "$SHOP/found"; echo "{DONE}"; fi\n'
)


def test_another_machine_continues_from_the_stored_patch(shop: Shop) -> None:
    shop.repository()
    other = shop.folder / "elsewhere"
    shop.git("clone", "-q", str(shop.root), str(other))
    shop.git("remote", "remove", "origin", at=other)
    agent, key = shop.script(PARTIAL), shop.task()
    assert shop.drain(agent, host="alpha") == [(key, "waiting")]
    shop.desk.respond(shop.question(key)["id"], "The left one")
    shop.root.rename(shop.folder / "gone")
    assert shop.drain(agent, host="beta", root=other) == [], "its own machine comes first"
    assert shop.drain(agent, host="beta", root=other, later=HOME) == [(key, "done")]
    told = "\n".join(shop.lines("told"))
    assert "another machine" in told and "The left one" in told
    assert shop.lines("found") == ["half", "A project.", "changed"]
    branch = shop.person(HOME).show(key)["branch"]
    assert shop.git("show", f"{branch}:half.txt", at=other) == "half\n"


def test_same_machine_continues_at_once(shop: Shop) -> None:
    shop.repository()
    agent, key = shop.script(PARTIAL), shop.task()
    assert shop.drain(agent, host="alpha") == [(key, "waiting")]
    assert not shop.git("status", "--porcelain")
    shop.desk.respond(shop.question(key)["id"], "The left one")
    assert shop.drain(agent, host="alpha") == [(key, "done")]
    assert "another machine" not in "\n".join(shop.lines("told"))
    assert shop.lines("found") == ["half", "A project.", "changed"]


def test_deleted_worktree_is_rebuilt(shop: Shop) -> None:
    import shutil

    shop.repository()
    agent, key = shop.script(PARTIAL), shop.task()
    assert shop.drain(agent) == [(key, "waiting")]
    folder = Path(shop.show(key)["seat"]["folder"])
    assert folder != shop.root and (folder / "half.txt").exists()
    shutil.rmtree(folder)
    shop.desk.respond(shop.question(key)["id"], "The left one")
    assert shop.drain(agent) == [(key, "done")]
    assert shop.lines("found") == ["half", "A project.", "changed"]


# --- following --------------------------------------------------------------------------------------------------------


def test_output_is_sent_to_the_desk_during_the_turn(shop: Shop) -> None:
    agent = shop.script(f'echo "I am reading the code"\nwait_for go\necho "{DONE}"\n')
    key = shop.task()
    with shop.draining(agent):
        words = [TURN, "--db", shop.address, "log", key, "--follow"]
        with subprocess.Popen(words, cwd=shop.root, env=shop.env, stdout=subprocess.PIPE, text=True) as follower:
            try:
                assert follower.stdout is not None
                seen = []
                for line in follower.stdout:
                    seen.append(line)
                    if "I am reading the code" in line:
                        break
                assert shop.show(key)["state"] == "working", "it was heard while it worked"
            finally:
                follower.kill()
        shop.go()
    assert shop.show(key)["state"] == "done"


@pytest.mark.parametrize("word", ["approve", "reject", "resolve"])
def test_agent_cannot_act_as_a_person(shop: Shop, word: str) -> None:
    agent = shop.script(
        f'turn {word} "$YOURTURN_TASK" yes 2> "$SHOP/said"; echo $? > "$SHOP/exits"\n'
        f'turn --as human:ana {word} "$YOURTURN_TASK" yes 2>> "$SHOP/said"; echo $? >> "$SHOP/exits"\n'
        'echo "<promise>INPUT_NEEDED: Which?</promise>"\n'
    )
    key = shop.task()
    assert shop.drain(agent) == [(key, "waiting")]
    assert shop.lines("exits") == ["5", "5"]
    assert {e["actor"] for e in shop.desk.history(key)} <= {"human:ana", "agent:coder", "system"}
