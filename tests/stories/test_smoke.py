"""The shortest story: a task is claimed, a question is asked and answered, the work is accepted."""

def test_ask_answer_complete(desk, agent, clock):
    desk.create("Add login")
    got = agent.claim_next("w1")
    q = agent.ask("PROJ-1", "JWT or sessions?", options=["jwt", "sessions"], claim=got["claim"])
    assert desk.show("PROJ-1")["state"] == "human"
    assert desk.answer(q["id"], "jwt")["response"]["value"] == "jwt"
    assert desk.show("PROJ-1")["state"] == "working"
    assert agent.complete(got["claim"], "done it")["state"] == "done"
    clock.advance(hours=2)
    assert [e["action"] for e in desk.history("PROJ-1")] == ["create", "claim", "ask", "answer", "complete", "accept"]
