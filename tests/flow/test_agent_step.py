"""`run()`: an agent that needs a person, as one step of the script."""

from __future__ import annotations

import pytest

from yourturn.core.errors import AlreadyClosed, NotAllowed, Precondition
from yourturn.core.rules import KINDS, OUTCOMES
from yourturn.flow import ask, config, pause, run, stuck
from yourturn.testing import approve, asks, crashes, done, needs_human, reject, said, silence

ASKING = [kind for kind, row in KINDS.items() if row.signals]


@pytest.mark.parametrize("verdict", ["approved", "rejected"])
@pytest.mark.parametrize("kind", ASKING)
def test_answer_returned_to_the_script(stage, kind, verdict):
    """As the table says: what ends work ends the call, what cancels is REJECTED, else the agent goes on."""
    seen = []
    comes_to = OUTCOMES[kind, verdict]
    lines = [needs_human("What now?", kind)] + ([] if comes_to in ("done", "cancelled") else [done("finished")])
    s = stage(lambda prompt: seen.append(run("coder")), {"coder": lines}).run()
    assert (s.waiting.kind, s.waiting.text, s.waiting.agent, s.task["claim"]) == (kind, "What now?", "coder", None)
    (s.approve if verdict == "approved" else s.reject)("my words")
    signal = seen[-1]
    if comes_to == "done":
        assert signal == {"status": "DONE", "summary": "What now?", "message": "my words", "by": "human:ana"}
    elif comes_to == "cancelled":
        assert signal == {"status": "REJECTED", "reason": "my words", "by": "human:ana"}
    else:
        assert signal.status == "DONE" and signal.summary == "finished"
        assert s.calls[1] == ("coder", None, "1", "coder-1", True, "my words", verdict)
    assert s.state == "done" and [(x["index"], x["name"], x["agent"], x["status"]) for x in s.steps] == [
        ("1", "run", "coder", "completed")
    ]  # fmt: skip
    assert s.steps[0]["session_id"] == "coder-1"


def test_agent_asks_repeatedly_in_one_step(stage):
    lines = [needs_human("one?"), asks("two?"), crashes(), needs_human("three?", "checkpoint"), done("built")]
    s = stage(lambda prompt: run("coder"), {"coder": lines}, ["1", "2", approve("3")]).play("Add login")
    assert s.state == "done" and s.summary == "built" and len(s.steps) == 1
    assert [c.answer for c in s.calls] == [None, "1", "2", "2", "3"] and {c.session for c in s.calls} == {"coder-1"}


def test_answer_to_a_tool_question_goes_to_the_agent(stage):
    s = stage(lambda prompt: run("coder"), {"coder": [asks("which?", ["a", "b"]), done("did b")]}).run()
    assert s.waiting.options == ["a", "b"] and s.waiting.agent == "coder" and s.steps[0]["status"] == "waiting"
    assert s.answer("b").summary == "did b"
    s = stage(lambda prompt: run("coder"), {"coder": [asks("sure?"), done("found another way")]}).run().reject("no")
    assert s.summary == "found another way" and s.calls[-1].verdict == "rejected"


@pytest.mark.parametrize("kind", ASKING)
def test_question_without_human_is_returned_as_signal(stage, kind):
    seen = []
    s = stage(lambda prompt: seen.append(run("loner", human=False)), {"loner": [needs_human("How?", kind)]}).run()
    word = "NEEDS_HUMAN" if kind in ("input", "escalation") else KINDS[kind].signals[0]
    assert s.state == "done" and (seen[0].status, seen[0].reason) == (word, "How?")
    assert s.steps[0]["result"]["status"] == word and s.task["questions"] == []


def test_config_disables_human_escalation(stage):
    def work(prompt):
        config(human_escalation=False)
        assert run("a").status == "NEEDS_HUMAN"
        assert run("b", human=True).status == "DONE"
        config(human_escalation=True)
        assert run("c", human=False).status == "NEEDS_HUMAN"

    s = stage(work, {"a": [needs_human("?")], "b": [needs_human("?"), done()], "c": [needs_human("?")]}, ["yes"]).play()
    assert s.state == "done" and len(s.task["questions"]) == 1


def test_unclear_result_asks_a_person(stage):
    broken = {"status": "DONE", "summary": 17}
    s = stage(lambda prompt: run("coder"), {"coder": [broken, done("clear now")]}).run()
    assert s.waiting.kind == "escalation" and s.waiting.question["reason"] == "protocol_error"
    assert s.answer("say it again").summary == "clear now"
    seen = []
    stage(lambda prompt: seen.append(run("coder", human=False)), {"coder": [broken]}).run()
    assert seen[0].status == "ERROR"


# --- settled by a person ------------------------------------------------------------------------------------------------


def test_signal_of_a_person_ends_the_call(stage):
    seen = []
    s = stage(lambda prompt: seen.append(run("coder")), {"coder": [needs_human("How?")]}).run()
    s.signal("NEEDS_REVIEW", "settled in its session", files=2)
    assert seen[0] == {"status": "NEEDS_REVIEW", "message": "settled in its session", "files": 2} and len(s.calls) == 1


def test_hand_back_continues_without_an_answer(stage):
    """The agent's session is told that there is none; a pause() without an answer is not a yes."""
    seen = []
    s = stage(lambda prompt: run("coder"), {"coder": [needs_human("How?"), done("my way")]}).run().hand_back()
    assert s.summary == "my way" and s.calls[-1].answer == "" and s.calls[-1].verdict is None
    s = stage(lambda prompt: seen.append(pause("ok?"))).run().hand_back()
    assert s.state == "done" and not seen[-1] and seen[-1].reason == "handed back"
    s = stage(lambda prompt: seen.append(ask("which?"))).run().hand_back()
    assert seen[-1].value is None and seen[-1].status == "cancelled" and str(seen[-1]) == ""


def test_a_withdrawn_question(stage):
    seen = []
    s = stage(lambda prompt: run("coder"), {"coder": [needs_human("How?"), done("my way")]}).run().withdraw("never mind")
    assert s.summary == "my way"
    s = stage(lambda prompt: seen.append(pause("ok?"))).run().withdraw("never mind")
    assert s.state == "done" and not seen[-1] and seen[-1].reason == "never mind"


def test_stop_ends_the_run(stage):
    s = stage(lambda prompt: run("coder"), {"coder": [needs_human("How?")]}).run().stop("another approach")
    assert (s.state, s.failure, s.reason, s.waiting) == ("failed", "stuck", "another approach", None)


def test_an_agent_cannot_end_the_run(stage):
    """Nor answer for people: its script decides."""
    seen = []

    def rogue(told):
        held = s.task["claim"]
        assert held
        agent = s.desk.as_(s.desk.who._replace(name="agent:stage", role="agent"))
        for end in (agent.complete, agent.fail):
            with pytest.raises(Precondition, match="its script decides"):
                end(s.key, worker=held["worker"])
        with pytest.raises(NotAllowed):
            agent.cancel(s.key)
        seen.append(1)
        return done("good as gold")

    s = stage(lambda prompt: run("coder"), {"coder": rogue})
    assert s.run().state == "done" and seen == [1]


# --- silence ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("waits", [lambda: pause("ok?"), lambda: run("coder"), lambda: ask("which?")])
def test_timeout_ends_the_run_as_stuck(stage, waits):
    agents = {"coder": [needs_human("How?")]}
    s = stage(lambda prompt: waits() and None, agents, [silence()], strict=False).play()
    assert (s.state, s.failure) == ("failed", "stuck") and s.task["questions"][0]["status"] == "timeout"


def test_late_answer_does_not_resume_the_run(stage):
    s = stage(lambda prompt: pause("ok?")).run().advance(days=2)
    assert s.state == "failed"
    with pytest.raises(AlreadyClosed):
        s.desk.approve(s.task["questions"][0]["id"])


@pytest.mark.parametrize("how", ["config", "call"])
def test_notify_again(stage, how):
    def work(prompt):
        if how == "config":
            config(human_timeout="1h", on_timeout="notify_again")
            return pause("ok?") and "yes"
        return pause("ok?", timeout="1h", on_timeout="notify_again") and "yes"

    s = stage(work, None, [silence(), silence(), approve()]).play()
    assert s.state == "done" and s.summary == "yes"
    reminded = [e for e in s.desk.history(s.key) if e["action"] == "timeout"]
    assert len(reminded) == 2 and all(e["data"]["on_timeout"] == "remind" for e in reminded)


def test_timeout_gives_the_agent_the_default(stage):
    def work(prompt):
        return run("coder", timeout="1h", on_timeout="default")

    s = stage(work, {"coder": [needs_human("which?"), done()]}, [silence()], strict=False).play()
    assert s.state == "failed" and s.failure == "timeout", "there is no default, and silence approves nothing"
    lines = [asks("which?", ["a", "b"], default="a", timeout="1h"), done("took a")]
    s = stage(lambda prompt: run("c"), {"c": lines}, [silence()])
    assert s.play().summary == "took a" and (s.calls[-1].answer, s.calls[-1].verdict) == ("a", None)


def test_timeout_never_approves_a_pause(stage):
    from yourturn.core.errors import Invalid

    def work(prompt):
        with pytest.raises(Invalid, match="takes no default"):
            pause("ok?", default=True, on_timeout="default")
        return stuck("as it should be")

    assert stage(work).run().reason == "as it should be"


@pytest.mark.parametrize(("kind", "word"), [("approval", approve("signed")), ("review", reject("again"))])
def test_pause_of_another_kind(stage, kind, word):
    seen = []
    s = stage(lambda prompt: seen.append(pause("Sign?", kind=kind)), None, [word]).play()
    assert s.state == "done" and bool(seen[-1]) is (word.how == "approve") and seen[-1].message == word.text


def test_custom_status_asks_no_question(stage):
    s = stage(lambda prompt: run("r"), {"r": said("CHANGES_REQUESTED", "rename it")}).run()
    assert s.state == "done" and s.task["questions"] == [] and s.summary == "rename it"
