"""Where agents work, how people see them work, and how a quick person is heard at once."""

from __future__ import annotations

import re
import sys
import time

from tests.stories.conftest import Turn
from tests.stories.crew import Crew
from tests.stories.test_terminal import type_in
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


def test_a_checkout_with_somebodys_changes_is_left_alone(crew: Crew) -> None:
    """No task is taken for it, and nobody is asked a question per task."""
    crew.repository()
    keys = crew.tasks("First", "Second")
    (crew.folder / "README").write_text("Half a thought.\n")
    refused = crew.work("--in-place", exit=4)
    assert "has changes that are not committed: README" in refused["message"] and "Commit or stash" in refused["hint"]
    assert set(crew.states(*keys).values()) == {"ready"} and crew.turns(keys[0]) == 0
    crew.git("checkout", "-q", "README")
    assert [row["outcome"] for row in crew.work("--in-place")["results"]] == ["done", "done"]


def test_a_folder_that_nothing_can_be_made_in(crew: Crew) -> None:
    """Told in words, in both ways to work."""
    crew.repository()
    key = crew.tasks("First")[0]
    (crew.folder / ".git" / "yourturn").write_text("in the way")
    crew.work()
    text = crew.waiting(key, "escalation")["text"]
    assert ".git/yourturn" in text and "Errno" not in text and "OSError" not in text


def test_the_brief_names_a_branch_where_there_is_one(crew: Crew) -> None:
    key = crew.tasks("Plain")[0]
    crew.work()
    assert "branch" not in crew.told(key)
    crew.repository()
    key = crew.tasks("Committed")[0]
    crew.work()
    assert f"- branch: {crew.desk.show(key)['branch']}" in crew.told(key)


def test_a_program_beside_the_desk_is_found_from_every_worktree(crew: Crew) -> None:
    """Also one that nobody has committed yet."""
    crew.repository()
    keys = crew.tasks("With quotes", "Another")
    (crew.folder / "agent.sh").write_text('#!/bin/sh\necho "$1" > "$YOURTURN_TASK"; echo "<promise>COMPLETE: $1</promise>"\n')
    (crew.folder / "agent.sh").chmod(0o755)
    crew.work("--exec", "./agent.sh 'it is \"mine\"' && true", agent=False)
    task = crew.desk.show(keys[0])
    assert (task["state"], task["summary"]) == ("done", 'it is "mine"')
    assert crew.git("show", f"{task['branch']}:{keys[0]}") == 'it is "mine"'


def test_an_agent_that_removes_its_own_worktree(crew: Crew) -> None:
    """A person is told what is gone; the worktree is made again for the next turn."""
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


def test_before_the_first_commit(crew: Crew) -> None:
    """There is nothing to base a branch on, so tasks share the checkout, one after the other, however many may run."""
    crew.git("init", "-q", "-b", "main")
    keys = crew.tasks("A", "B", "C")
    for key in keys:
        crew.says(key, f"$ echo {key} > {key}.txt; echo '<promise>COMPLETE</promise>'")
    told = crew.work("--parallel", "3")
    assert [row["outcome"] for row in told["results"]] == ["done"] * 3
    assert set(crew.git("ls-tree", "--name-only", "HEAD").split()) >= {f"{key}.txt" for key in keys}


def test_work_that_builds_on_other_work(crew: Crew) -> None:
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


def test_what_a_person_signs_off_is_committed(crew: Crew) -> None:
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


def test_what_was_signed_off_while_nobody_worked_is_committed_by_who_comes_next(crew: Crew) -> None:
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


def test_an_agent_that_notes_every_step_and_finishes_by_itself(crew: Crew) -> None:
    crew.repository()
    key = crew.tasks("Step by step")[0]
    (crew.place / "talks.py").write_text(TALKS)
    crew.says(key, f"$ echo made > made.txt; '{sys.executable}' '{crew.place}/talks.py'")
    told = crew.work()
    assert [(row["outcome"], row["words"]) for row in told["results"]] == [("done", "Many steps")]
    assert crew.git("show", f"{crew.desk.show(key)['branch']}:made.txt") == "made"


def test_only_what_was_accepted_is_merged(crew: Crew) -> None:
    """A person looks first; what they abandon stays on its branch."""
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


def test_a_quick_person_and_an_agent_that_waits(crew: Crew) -> None:
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
    assert left[-1] == "Ended: nothing is left to take. 2 done."
    assert len(left) == 6, left
    assert not any(line[:1] in "⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏" for line in left if line)


def _screen(seen: str) -> list[str]:
    """What is left on an endlessly wide screen."""
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
