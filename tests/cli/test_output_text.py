"""What the terminal says is what is: counts beyond one page, why a claim is lost, whose turn it is now, what to type next."""

from __future__ import annotations

import re
import shlex
import subprocess
import time
from typing import Any

import pytest

from tests.fixtures.command import Turn
from yourturn.config import connect


def told(turn: Turn, *lines: str) -> None:
    for line in lines:
        turn(*shlex.split(line))


# --- claims ---------------------------------------------------------------------------------------------------------


_TAKEN = ("create A", "claim PROJ-1 --worker-id w1")
#: What happened to the claim of w1, and what its next word is told about that.
_LOST: dict[str, tuple[tuple[str, ...], str, str]] = {
    "completed": (("complete PROJ-1 --worker-id w1",), "it is 'done' since ", "Valid from 'done': reopen (admin)"),
    "failed": (("fail PROJ-1 --worker-id w1 'no disk'",), ": no disk", "Valid from 'failed': "),
    "cancelled": (("cancel PROJ-1",), "it is 'cancelled' since ", "Valid from 'cancelled': reopen (admin)"),
    "asked": (("flag PROJ-1 'Which?' --worker-id w1",), "a person is asked now (Q1); it is 'human'", "Valid from 'human': "),
    "released": (("release PROJ-1 --worker-id w1",), "it was given back, or its lease ran out (epoch 1; turn log PROJ-1 says",
                 "claim the task again, or leave it"),
}  # fmt: skip


@pytest.mark.parametrize("how", _LOST)
def test_lost_claim_error_says_how_it_was_lost(turn: Turn, how: str) -> None:
    before, why, hint = _LOST[how]
    told(turn, *_TAKEN, *before)
    message, reason, step = turn.text("heartbeat", "PROJ-1", "--worker-id", "w1", exit=4).splitlines()
    assert message == "Error: Cannot heartbeat PROJ-1: the claim is lost"
    assert why in reason and "the lease is over" not in reason
    assert hint in step


@pytest.mark.parametrize("end", ["close PROJ-1", "cancel PROJ-1"])
def test_complete_on_what_has_ended_says_what_is_valid(turn: Turn, end: str) -> None:
    told(turn, "create A", end)
    message, reason, step = turn.text("complete", "PROJ-1", "--worker-id", "w1", exit=4).splitlines()
    state = turn.state("PROJ-1")
    assert message == "Error: Cannot complete PROJ-1"
    assert reason == f"Reason: it was never claimed; it is '{state}'"
    assert step == f"Valid from '{state}': reopen (admin)"
    assert turn("complete", "PROJ-1", "--worker-id", "w1", exit=4)["code"] == "claim_lost"


def test_a_lost_race_names_the_holder(turn: Turn) -> None:
    told(turn, *_TAKEN)
    _, reason, _ = turn.text("claim", "PROJ-1", "--worker-id", "w2", exit=4).splitlines()
    assert reason.startswith("Reason: w1 holds it until ")


def test_used_up_tries_are_not_counted_on(turn: Turn) -> None:
    told(turn, "create A --max-retries 2", "claim PROJ-1 --worker-id w1", "release PROJ-1 --worker-id w1")
    assert "try 2 of 2" in turn.text("show", "PROJ-1")
    told(turn, "claim PROJ-1 --worker-id w1", "release PROJ-1 --worker-id w1")
    shown = turn.text("show", "PROJ-1")
    assert "all 2 tries are used" in shown and "try 3" not in shown


def test_the_log_has_reasons_and_summaries(turn: Turn) -> None:
    told(
        turn, *_TAKEN, "release PROJ-1 --worker-id w1 'the disk is full'", "claim PROJ-1 --worker-id w2",
        "complete PROJ-1 --worker-id w2 --summary 'Moved to the other disk'", "create B", "cancel PROJ-2 'not wanted'",
    )  # fmt: skip
    lines = {line.split()[3]: line for line in turn.text("log").splitlines() if "PROJ" in line}
    assert lines["release"].endswith("w1 gave it back: the disk is full")
    assert "Moved to the other disk" in lines["complete"]
    assert lines["cancel"].endswith("not wanted")


# --- what happens beside it --------------------------------------------------------------------------------------------


def test_cancelling_a_parent_says_what_becomes_of_its_children(turn: Turn) -> None:
    told(turn, "create Epic --type epic", "create One --parent PROJ-1", "create Two --parent PROJ-1", "close PROJ-3")
    said = turn.text("cancel", "PROJ-1")
    assert "Its children stay as they are: PROJ-2 (ready)." in said and "PROJ-3" not in said
    assert "children" not in turn.text("cancel", "PROJ-2")


@pytest.mark.parametrize("answer", ["respond PROJ-1 no", "reject PROJ-1 'not wanted'"])
def test_an_answer_that_cancels_a_parent_says_what_becomes_of_its_children(turn: Turn, answer: str) -> None:
    told(turn, "create Epic --type epic", "create One --parent PROJ-1")
    told(turn, "flag PROJ-1 'Still?' --kind input --response-type approval")
    assert "Its children stay as they are: PROJ-2 (ready)." in turn.text(*shlex.split(answer))


def test_a_late_answer_by_the_same_person_is_reported_as_a_note(turn: Turn) -> None:
    told(turn, "create A", "flag PROJ-1 'Which?'", "respond Q1 JWT")
    said = turn.text("respond", "Q1", "sessions", "--restart")
    assert said.startswith("✓ too late for Q1, stored as a note on PROJ-1")
    assert turn("show", "PROJ-1")["notes"][-1]["text"] == "Late answer to Q1 (Which?): sessions"


def test_a_late_answer_that_does_not_fit_is_told_how_to_keep_words(turn: Turn) -> None:
    told(turn, "create A", "flag PROJ-1 'Delete?' --kind input --response-type boolean", "respond Q1 no")
    said = turn.text("respond", "Q1", "banana", "--restart", exit=6)
    assert "still open" not in said and 'turn answer Q1 --text "…" --restart' in said
    turn("answer", "Q1", "--text", "banana", "--restart")
    assert turn("show", "PROJ-1")["notes"][-1]["text"] == "Late answer to Q1 (Delete?): banana"


def test_waiting_for_what_has_failed_is_a_persons_turn(turn: Turn) -> None:
    told(turn, "create A", "fail PROJ-1 broken", "create B", "create C")
    said = turn.text("dep", "add", "PROJ-2", "PROJ-1")
    assert "PROJ-2 is a person's turn now: Q1." in said and "Next: turn show Q1" in said
    assert "person" not in turn.text("dep", "add", "PROJ-3", "PROJ-2")


def test_what_is_too_large_is_to_be_split(turn: Turn) -> None:
    assert 'Next: turn decompose PROJ-1 --child "…"' in turn.text("create", "Big", "-c", "xlarge", "--draft")
    assert "Next: turn vet PROJ-2" in turn.text("create", "Large", "-c", "large", "--draft")


def test_empty_filtered_list_is_not_an_empty_desk(turn: Turn) -> None:
    assert turn.text("list").splitlines() == ["No tasks.", 'Next: turn create "What is to be done"']
    told(turn, "create A")
    for filters in (("--blocked",), ("--state", "done"), ("--search", "zebra"), ("--runs",)):
        assert turn.text("list", *filters).splitlines() == ["No tasks match.", "Next: turn list"]


# --- how many -------------------------------------------------------------------------------------------------------


@pytest.fixture
def crowded(turn: Turn, monkeypatch: pytest.MonkeyPatch) -> Turn:
    """520 questions, of which 3 are approvals and 2 are for ben; and 521 tasks."""
    from yourturn import connect

    with connect(turn.env["YOURTURN_DB"], as_="human:ana", env={}) as desk:
        for n in range(520):
            task: dict[str, Any] = desk.create(f"T{n}")
            more = {"reviewer": "ben"} if n in (7, 8) else {}
            desk.ask(task, f"Which, {n}?", "approval" if n < 3 else "input", **more)
        desk.create("Ready")
    return turn


def test_counts_are_true_beyond_one_page(crowded: Turn) -> None:
    turn = crowded
    assert turn.text().startswith("518 questions wait for you")
    assert "10 of 518 shown; more: turn inbox --mine\n" in turn.text()
    assert turn()["count"] == 518
    assert "500 of 518 shown; more: --after Q" in turn.text("inbox", "--mine")
    assert "500 of 520 shown; more: --after Q" in turn.text("inbox")
    assert "shown; more" not in turn.text("inbox", "--limit", "520")
    assert "2 of 517 shown; more: --after Q" in turn.text("inbox", "--kind", "input", "--limit", "2")
    assert "1 of 2 shown" in turn.text("inbox", "--reviewer", "ben", "--limit", "1")
    assert "500 of 521 shown; more: --after PROJ-" in turn.text("list")
    assert "9 of 520 shown" in turn.text("list", "--state", "human", "--limit", "9")
    assert "The first 9 are shown; more: --after" in turn.text("list", "--search", "T", "--limit", "9")
    assert "9 of 520 shown" not in turn.text("list", "--label", "x", "--limit", "9")


def test_one_answer_reaches_all_questions_beyond_one_page(crowded: Turn) -> None:
    said = crowded.text("respond", "--all", "as you like")
    assert said.count("✓") == 517 and "3 questions need a yes or no each: Q1, Q2, Q3." in said
    assert crowded("stats")["questions"]["pending"] == 3


# --- a way in ----------------------------------------------------------------------------------------------------------


def test_a_link_is_an_address(turn: Turn) -> None:
    told(turn, "user add ana")
    address, lasts, elsewhere = turn.text("user", "link", "ana").splitlines()
    assert re.fullmatch(r"http://127\.0\.0\.1:8321/enter/yl_[0-9a-f]{48}", address)
    assert lasts == "Signs ana in, once, within 15 minutes, while turn serve runs there."
    assert elsewhere == "Another address? turn user link ana --public-url https://turn.example.org"
    address, lasts = turn.text("user", "link", "ana", "--public-url", "https://turn.example.org/").splitlines()
    assert address.startswith("https://turn.example.org/enter/yl_") and lasts == "Signs ana in, once, within 15 minutes."
    made = turn("user", "link", "ana")
    assert made["url"] == f"http://127.0.0.1:8321/enter/{made['link']}"
    assert turn("user", "link", "ana", "--public-url", "nowhere", exit=2)["code"] == "usage"


# --- no worker runs -------------------------------------------------------------------------------------------------


def test_work_without_a_worker_says_how_to_start_one(turn: Turn) -> None:
    start = "No worker runs. Start one with: turn work --exec './agent.sh'"
    assert "turn work" not in turn.text()
    made = turn.text("create", "A").splitlines()
    assert made == ["Created PROJ-1: A (ready)", start, "Next: turn claim PROJ-1"]
    for words in ((), ("status",), ("status", "1"), ("show", "1"), ("ready",), ("update", "1", "--priority", "1")):
        assert start in turn.text(*words).splitlines(), words
    assert "No agent is working, 1 task is ready." in turn.text()
    assert turn()["unattended"] == {"task": "PROJ-1", "ready": 1, "workers": 0, "start": "turn work"}
    told(turn, "create B", "ask PROJ-2 Which?")
    assert start in turn.text()
    assert turn.text("respond", "2", "that").splitlines() == [
        "✓ Q1: ana: “that”", "  PROJ-2 is 'ready': a worker picks it up.", f"  {start}",
    ]  # fmt: skip
    assert "Start" not in turn.text("show", "1", env={"YOURTURN_AGENT": "coder"}), "an agent starts no workers"
    told(turn, "claim PROJ-1 --worker-id w1", "create C")
    assert "1 agent is working, 2 tasks are ready." in turn.text()
    assert "Start one" not in turn.text(), "w1 may take the next one, too"


def test_with_agents_in_the_config_the_command_is_bare(turn: Turn) -> None:
    turn.text("create", "A")
    (turn.folder / ".yourturn").mkdir(exist_ok=True)
    (turn.folder / ".yourturn" / "config.toml").write_text('[agents.coder]\nadapter = "claude"\n')
    assert "No worker runs. Start one with: turn work" in turn.text("ready").splitlines()
    (turn.folder / ".yourturn" / "config.toml").write_text("[agents")
    assert "No worker runs. Start one with: turn work" in turn.text("ready").splitlines(), "what is wrong is told by turn work"


def test_a_worker_that_runs_is_no_matter_for_a_hint(turn: Turn, address: str) -> None:
    with connect(address, as_="agent:coder", env={}) as worker:
        worker.register_worker("w1", host="box", agents=["coder"], role="coder")
        assert turn.text("create", "A").splitlines() == ["Created PROJ-1: A (ready)", "Next: turn claim PROJ-1"]
        for words in ((), ("ready",), ("show", "1"), ("status", "1")):
            assert "worker" not in turn.text(*words), words
        assert turn()["unattended"] is None and "1 runs: w1 on box (coder): idle" in turn.text("doctor")
        told(turn, "create B --role reviewer --priority 0")
        said = "No running worker takes PROJ-2. Start one with: turn work --exec './agent.sh' --agent reviewer"
        assert said in turn.text() and said in turn.text("ready") and said in turn.text("show", "2")
        assert "worker" not in turn.text("show", "1")
        worker.remove_worker("w1")
    assert "No worker runs." in turn.text("show", "1") and "none runs" in turn.text("doctor")


def test_turn_counts_only_work_as_ready(here: Turn) -> None:
    """An empty epic is ready, and no agent is given it."""
    here("create", "An epic", "--type", "epic")
    assert "No agent is working, 0 tasks are ready." in here.text()
    here("create", "Work")
    assert "1 task is ready." in here.text() and here()["states"] == {"ready": 2}


# --- time -----------------------------------------------------------------------------------------------------------


def test_two_hours_are_left_of_two_hours(turn: Turn) -> None:
    told(turn, "create A")
    assert turn.text("ask", "PROJ-1", "Which?", "--timeout", "2h").startswith("Asked Q1 about PROJ-1: 2 h left")
    assert "2 h left" in turn.text("inbox") and "2 h left" in turn.text("show", "PROJ-1")


# --- what else a move moves -----------------------------------------------------------------------------------------


def test_ending_a_task_tells_what_it_moves(turn: Turn) -> None:
    told(turn, "create A", "create B --depends-on 1", "create C --depends-on 1", "create D", "create E --depends-on 4")
    told(turn, "create F --awaiting input", "create G --depends-on 6", "create H", "create I --depends-on 8")
    assert "\nPROJ-2 and PROJ-3 are ready now.\n" in turn.text("cancel", "1")
    told(turn, "claim 4 --worker-id w")
    assert "\nPROJ-5 waits for a person now: Q2.\n" in turn.text("fail", "4", "--worker-id", "w")
    assert "\n  PROJ-7 is ready now.\n" in turn.text("reject", "6", "not now")
    assert "\nPROJ-9 waits for a person now: Q3.\n" in turn.text("stop", "8", "stuck")
    assert "\n  PROJ-5 is ready now.\n" not in (said := turn.text("respond", "Q2", "retry")) and "PROJ-4 is ready now." in said


def test_replies_name_the_other_tasks_that_a_move_moved(turn: Turn) -> None:
    told(turn, "create A", "create B --depends-on 1", "create C", "create D --depends-on 3", "create E")
    assert turn("close", "1")["follow_ups"] == [{"task": "PROJ-2", "from": "blocked", "to": "ready", "questions": []}]
    asked = [{"task": "PROJ-4", "from": "blocked", "to": "human", "questions": ["Q1"]}]
    assert turn("stop", "3")["follow_ups"] == asked
    again = [{"task": "PROJ-3", "from": "failed", "to": "ready", "questions": []}]
    assert turn("respond", "Q1", "retry")["follow_ups"] == again
    assert "follow_ups" not in turn("cancel", "5")


# --- questions and hints --------------------------------------------------------------------------------------------


def test_a_question_has_one_name(turn: Turn) -> None:
    """Its kind is the same word wherever it is told of, whatever answers it."""
    told(turn, "create A", "ask 1 'Where to?' --option eu --option 'us=over the ocean'", "create B", "ask 2 Why?")
    for id in ("Q1", "Q2"):
        assert re.search(rf"^  {id}  input  ", turn.text("inbox"), re.M) and re.search(rf"^  {id}  input  ", turn.text(), re.M)
        assert turn.text("show", id).startswith(f"{id}  input question, asked by ana")
    assert "needs human (input)" in turn.text("list") and ", input, Q1" in turn.text("list", "--awaiting")


def test_options_are_printed_with_every_question(turn: Turn) -> None:
    told(turn, "create A", "ask 1 'Where to?' --option eu --option 'us=over the ocean'")
    for words in (("show", "1"), ("show", "Q1"), ("list", "--awaiting"), ("status", "1")):
        assert re.search(r"^ +eu$", shown := turn.text(*words), re.M) and re.search(r"^ +us  over the ocean$", shown, re.M), words


def test_every_hint_begins_with_next(turn: Turn) -> None:
    """A line that only names commands is a hint, or stands below the word."""
    told(turn, "create A", "ask 1 'Where to?' --option eu --option us", "create B", "create C --awaiting approval")
    for look in ("", "inbox", "show 1", "show Q1", "show 2", "list --awaiting", "create D --manual"):
        words = look.split()
        lines = turn.text(*words).splitlines()
        assert not [line for line in lines if line.startswith("turn ")], words
        assert [line.startswith("Next:") for line in lines if "Next:" in line] == [True], words
    last = turn.text("create", "E", "--awaiting", "review").splitlines()[-1]
    assert last == 'Next: turn approve PROJ-5 | turn reject PROJ-5 "why"'


def test_a_branch_is_named_where_there_can_be_one(here: Turn) -> None:
    told(here, "create A", "create B")
    assert "branch" not in here.text("claim", "1", "--worker-id", "w1") and "branch" not in here.text("show", "1")
    subprocess.run(["git", "init", "-q", here.folder], check=True)
    assert "branch turn/PROJ-2-b " in here.text("claim", "2", "--worker-id", "w1")
    assert "branch turn/PROJ-1-a" in here.text("show", "1")


def test_a_task_whose_worker_died_says_what_happened_and_what_to_do(turn: Turn) -> None:
    told(turn, "create A", "claim 1 --worker-id w1 --lease 10ms")
    until = time.monotonic() + 10
    while "w1" in (shown := turn.text("show", "1")).splitlines()[1] and time.monotonic() < until:
        pass  # its lease is not over yet
    assert re.search(r"^  w1 was not heard of until its lease ran out at 20\d\d-", shown, re.M), shown
    assert shown.splitlines()[-2:] == ["No worker runs. Start one with: turn work --exec './agent.sh'", "Next: turn claim PROJ-1"]
    assert "w1 was not heard of" in turn.text("list") and "try 2 of 3" in shown
    assert turn("claim", "1", "--worker-id", "w2")["task"]["reason"] == ""
    assert turn("release", "1", "no network", "--worker-id", "w2")["reason"] == "w2 gave it back: no network"


def test_a_program_that_asks_for_leave_leaves_nothing_to_vet(turn: Turn) -> None:
    turn.as_agent("create", "Allow deploy", "--draft")
    turn.as_agent("ask", "1", "Deploy?", "--kind", "permission", "--action", '{"tool": "deploy"}')
    shown = turn.text("show", "1")
    assert re.search("turn approve PROJ-1 +coder runs exactly this", shown)
    assert re.search("turn reject .* +coder gets the no", shown)
    assert turn.text("approve", "1") == "✓ Approved. PROJ-1 is 'created': it existed only for the question.\n"
    assert turn.text("show", "1").splitlines()[-1] == "Next: turn close PROJ-1 (it existed only for the question)"


def test_agent_gets_no_hint_to_approve_and_a_person_sees_its_confidence(here: Turn) -> None:
    here("create", "A", "--requires", "approval")
    claim = here.as_agent("claim", "PROJ-1", "--worker-id", "w1")["claim"]["token"]
    here.as_agent("ask", "PROJ-1", "Sure?", "--confidence", "0.75", "--claim", claim)
    assert "asked by coder, 75% sure just now" in here.text("show", "Q1")
    here("respond", "Q1", "fine")
    said = here.text("complete", "PROJ-1", "--claim", claim, env={"YOURTURN_AGENT": "coder"})
    assert "It is a person's turn now." in said and "approve" not in said


def test_unattended_tasks_are_counted_as_turn_counts_them(here: Turn) -> None:
    here("create", "An epic", "--type", "epic")
    here("create", "Work")
    assert here()["unattended"]["ready"] == 1
