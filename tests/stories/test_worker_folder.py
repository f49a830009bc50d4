"""The folders of agents, the worker's output, and quick answers."""

from __future__ import annotations

import re
import sys
import time

from tests.cli.test_terminal import type_in
from tests.fixtures.command import Turn
from tests.fixtures.worker import Crew
from yourturn.display.terminal import cells


def test_in_the_checkout_itself(crew: Crew) -> None:
    """One task at a time: unfinished work that waits for a person is finished before anything else is begun on top of it."""
    crew.repository()
    first, second = crew.tasks("First", "Second")
    half = "$ echo half > half.txt; echo '<promise>INPUT_NEEDED: Which half?</promise>'"
    crew.says(first, half, "$ cat half.txt && echo '<promise>COMPLETE</promise>'")
    told = crew.work("--in-place")
    assert [(row["task"], row["outcome"]) for row in told["results"]] == [(first, "waiting")]
    assert told["ended"].startswith(f"the checkout holds unfinished work of {first}") and told["ended_code"] == "held_up"
    assert crew.git("status", "--porcelain", "half.txt") == "?? half.txt"
    assert crew.state(second) == "ready"
    crew("respond", first, "The left one")
    told = crew.work("--in-place")
    assert [(row["task"], row["outcome"]) for row in told["results"]] == [(first, "done"), (second, "done")]
    assert crew.git("status", "--porcelain", "half.txt") == ""
    assert "half.txt" in crew.git("show", "--stat", "--format=", "main")


def test_a_checkout_with_uncommitted_changes_is_left_alone(crew: Crew) -> None:
    """The worker claims no task, and asks no question per task."""
    crew.repository()
    keys = crew.tasks("First", "Second")
    (crew.folder / "README").write_text("Half a thought.\n")
    refused = crew.work("--in-place", exit=4)
    assert "has changes that are not committed: README" in refused["message"] and "Commit or stash" in refused["hint"]
    assert set(crew.states(*keys).values()) == {"ready"} and crew.turns(keys[0]) == 0
    crew.git("checkout", "-q", "README")
    assert [row["outcome"] for row in crew.work("--in-place")["results"]] == ["done", "done"]


def test_unwritable_folder_is_reported(crew: Crew) -> None:
    """The error is reported with and without --in-place."""
    crew.repository()
    key = crew.tasks("First")[0]
    (crew.folder / ".git" / "yourturn").write_text("in the way")
    crew.work()
    text = crew.waiting(key, "escalation")["text"]
    assert ".git/yourturn" in text and "Errno" not in text and "OSError" not in text


def test_brief_names_the_branch_of_a_repository(crew: Crew) -> None:
    key = crew.tasks("Plain")[0]
    crew.work()
    assert "branch" not in crew.told(key)
    crew.repository()
    key = crew.tasks("Committed")[0]
    crew.work()
    assert f"- branch: {crew.desk.show(key)['branch']}" in crew.told(key)


def test_relative_program_is_found_from_every_worktree(crew: Crew) -> None:
    """Also a program that is not committed."""
    crew.repository()
    keys = crew.tasks("With quotes", "Another")
    (crew.folder / "agent.sh").write_text('#!/bin/sh\necho "$1" > "$YOURTURN_TASK"; echo "<promise>COMPLETE: $1</promise>"\n')
    (crew.folder / "agent.sh").chmod(0o755)
    crew.work("--exec", "./agent.sh 'it is \"mine\"' && true", agent=False)
    task = crew.desk.show(keys[0])
    assert (task["state"], task["summary"]) == ("done", 'it is "mine"')
    assert crew.git("show", f"{task['branch']}:{keys[0]}") == 'it is "mine"'


def test_removed_worktree_asks_a_person_and_is_made_again(crew: Crew) -> None:
    """The question says what is gone; the worktree is made again for the next turn."""
    crew.repository()
    key = crew.tasks("Tidy up too much")[0]
    crew.says(key, "$ rm -rf \"$PWD\"; echo '<promise>COMPLETE</promise>'", "$ cat README && echo '<promise>COMPLETE</promise>'")
    crew.work()
    text = crew.waiting(key, "escalation")["text"]
    assert f"There is no worktree at {crew.folder}/.yourturn/worktrees/{key} any more" in text
    assert "Error:" not in text and "made again" in text
    crew("respond", key, "Go on")
    crew.work()
    assert crew.state(key) == "done"


def test_tasks_share_the_checkout_before_the_first_commit(crew: Crew) -> None:
    """There is nothing to base a branch on, so tasks share the checkout, one after the other, however many may run."""
    crew.git("init", "-q", "-b", "main")
    keys = crew.tasks("A", "B", "C")
    for key in keys:
        crew.says(key, f"$ echo {key} > {key}.txt; echo '<promise>COMPLETE</promise>'")
    told = crew.work("--parallel", "3")
    assert [row["outcome"] for row in told["results"]] == ["done"] * 3
    assert set(crew.git("ls-tree", "--name-only", "HEAD").split()) >= {f"{key}.txt" for key in keys}


def test_task_builds_on_its_dependency(crew: Crew) -> None:
    crew.repository()
    ground, upper = crew.tasks("Ground", "Upper floor")
    crew.desk.depend(upper, ground)
    crew.says(ground, '$ echo stone > ground.txt; echo \'{"status": "completed", "summary": "Laid in stone"}\'')
    crew.says(upper, "$ cat ground.txt > upper.txt; echo '<promise>COMPLETE</promise>'")
    crew.work("--parallel", "2")
    assert set(crew.states().values()) == {"done"}
    assert crew.git("show", f"{crew.desk.show(upper)['branch']}:upper.txt") == "stone"
    assert "Laid in stone" in crew.told(upper)
    assert crew.git("status", "--porcelain") == ""


def test_signed_off_work_is_committed(crew: Crew) -> None:
    """A question touches nothing; the yes that ends the task does."""
    crew.repository()
    crew("project", "set", "PROJ", "merge", "ff")
    key = crew.tasks("Paint it")[0]
    crew.says(key, "$ echo blue > paint.txt; echo '<promise>APPROVAL_NEEDED: Is blue fine?</promise>'")
    with crew.worker() as process:
        crew.waiting(key, "approval")
        assert crew.git("log", "--format=%s", crew.desk.show(key)["branch"]) == "Begin"
        crew("approve", key)
        crew.until(lambda: "paint.txt" in crew.git("ls-tree", "--name-only", "main"))
        crew.ended(process)
    assert crew.state(key) == "done"


def test_work_approved_while_no_worker_ran_is_committed_by_the_next_worker(crew: Crew) -> None:
    crew.repository()
    crew("project", "set", "PROJ", "merge", "ff")
    yes, no = crew.tasks("Paint it", "Paint that")
    for key in (yes, no):
        crew.says(key, f"$ echo blue > {key}.txt; echo '<promise>APPROVAL_NEEDED: Is blue fine?</promise>'")
    crew.work()
    crew("approve", yes)
    crew("cancel", no)
    assert f"{yes}.txt" not in crew.git("ls-tree", "--name-only", "main")
    crew.work()
    assert crew.git("ls-tree", "--name-only", "main").split().count(f"{yes}.txt") == 1
    assert f"{no}.txt" not in crew.git("ls-tree", "--name-only", "main")
    again = crew.git("log", "--format=%H", "main")
    crew.work()
    assert crew.git("log", "--format=%H", "main") == again


TALKS = """
import os, yourturn
with yourturn.connect() as desk:
    for n in range(120):
        desk.note(os.environ["YOURTURN_TASK"], f"Step {n}")
    desk.complete(os.environ["YOURTURN_CLAIM"], "Many steps")
"""


def test_agent_with_many_notes_completes_by_command(crew: Crew) -> None:
    crew.repository()
    key = crew.tasks("Step by step")[0]
    (crew.place / "talks.py").write_text(TALKS)
    crew.says(key, f"$ echo made > made.txt; '{sys.executable}' '{crew.place}/talks.py'")
    told = crew.work()
    assert [(row["outcome"], row["words"]) for row in told["results"]] == [("done", "Many steps")]
    assert crew.git("show", f"{crew.desk.show(key)['branch']}:made.txt") == "made"


def test_only_accepted_work_is_merged(crew: Crew) -> None:
    """A person reviews first; abandoned work stays on its branch."""
    crew.repository()
    crew("project", "set", "PROJ", "merge", "ff")
    crew("project", "set", "PROJ", "review", "ask")
    bad, good = crew.tasks("Bad idea", "Good idea")
    for key in (bad, good):
        crew.says(key, f"$ echo {key} > {key}.txt; echo '<promise>COMPLETE</promise>'")
    with crew.worker() as process:
        crew.until(lambda: set(crew.states().values()) == {"review"})
        assert crew.git("ls-tree", "--name-only", "main") == "README"
        crew("cancel", bad, "Not like this")
        crew("accept", good)
        crew.until(lambda: "txt" in crew.git("ls-tree", "--name-only", "main"))
        crew.ended(process)
    assert crew.git("ls-tree", "--name-only", "main").split() == [f"{good}.txt", "README"]
    assert crew.git("show", f"{crew.desk.show(bad)['branch']}:{bad}.txt") == bad


def test_waiting_session_gets_a_quick_answer(crew: Crew) -> None:
    """Waiting is not silence: a session that waits for a person is left alone, and goes straight on under the same claim."""
    key = crew.tasks("Ask and wait")[0]
    steps = [{"say": "Hm."}, {"ask": "Left or right?", "wait": 30}, {"say": "So {answer}."}, {"promise": "COMPLETE"}]
    crew.plays(steps, "silence = 3\n")
    with crew.worker("--budget-tasks", "1", agent=False) as process:
        crew.until(lambda: crew.desk.show(key)["awaiting"])
        assert process.stderr is not None
        assert any("asks a person (input): Left or right?" in process.stderr.readline() for _ in range(2))
        asked = time.monotonic()
        crew.until(lambda: time.monotonic() - asked > 4)
        crew("respond", key, "left")
        told = crew.ended(process, None)
    assert [row["outcome"] for row in told["results"]] == ["done"]
    task = crew.desk.show(key)
    assert (task["state"], task["retry_count"]) == ("done", 0)
    assert len(crew.desk.history(key, action="claim")) == 1
    assert told["spent"]["iterations"] == 1
    assert "So left." in [line["text"] for line in crew.desk.output(key)]


def test_on_a_narrow_terminal(here: Turn) -> None:
    here("create", "A title that is longer than the terminal is wide, 日本語 日本語 日本語 日本語")
    here("create", "Another")
    (here.folder / "script.json").write_text(
        '[{"say": "日本語 and \\u001b[31mred\\u001b[0m words that go on and on and on"}, {"sleep": 0.5}, {"promise": "COMPLETE"}]'
    )
    (here.folder / ".yourturn" / "config.toml").write_text('[agents.coder]\nadapter = "scripted"\nargv = ["script.json"]\n')
    code, seen = type_in(here, "work", "--drain", "--parallel", "2", columns=40, env={"LANG": "C.UTF-8"})
    assert code == 0
    live = [line for line in re.sub(r"\x1b\[[0-9;]*[A-Za-z]", "", seen).splitlines() if line[:1] in "⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏" and line]
    assert any("日本語 and red" in line for line in live)
    assert max(map(cells, live)) < 40, max(live, key=cells)
    left = _screen(seen)
    assert left[-1] == "Ended: no task is left to take. 2 done."
    assert len(left) == 6, left
    assert not any(line[:1] in "⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏" for line in left if line)


def _screen(seen: str) -> list[str]:
    """The final content of a screen of unlimited width."""
    lines, row = [""], 0
    for part in re.findall(r"\x1b\[[0-9;?]*[A-Za-z]|\n|\r|[^\x1b\n\r]+", seen):
        if part == "\n":
            row += 1
            lines += [""] * (row - len(lines) + 1)
        elif part.endswith("A") and part[0] == "\x1b":
            row -= int(part[2:-1])
        elif part == "\x1b[J":
            del lines[row + 1 :]
            lines[row] = ""
        elif part[0] != "\x1b" and part != "\r":
            lines[row] = part if row < len(lines) - 1 else lines[row] + part
    return [line for line in lines if line]
