"""A name with two readings is refused on every surface, with both; `tracker:id` works on every surface."""

from __future__ import annotations

import os
import subprocess

import anyio
import pytest

from tests.conftest import TURN
from tests.mcp.conftest import data_of, text_of
from tests.mcp.test_http_transport import caller, fresh_project
from yourturn.config import connect
from yourturn.core.errors import Invalid


class Names:
    """A project in which the lower case of a key is the old id of another task."""

    def __init__(self, site) -> None:
        self.project = fresh_project(site)
        self.key = site.desk.create("By its key", project=self.project)["key"]
        self.twice, extra = self.key.lower(), {"source": "beads", "digest": "", "fields": {}}
        more = {"title": "By its old id", "state": "ready", "project": self.project, "extra": extra}
        site.desk.do("import", external_id=self.twice, **more)
        self.exact, self.other = f"beads:{self.twice}", f"{self.project}-2"
        self.readings = f'{self.twice} is {self.key} "By its key" here, and {self.exact} is {self.other} "By its old id"'


@pytest.fixture
def names(site) -> Names:
    return Names(site)


def test_over_http(site, names):
    tries = [site.get(f"/api/{where}/{names.twice}") for where in ("tasks", "jobs", "questions")]
    tries += [site.post(f"/api/tasks/{names.twice}/{verb}", {}) for verb in ("close", "cancel", "accept", "vet")]
    tries += [site.post(f"/api/tasks/{names.twice}/questions", {"text": "Which?"})]
    tries += [site.post("/api/tasks", {"title": "T", "depends_on": [names.twice]}), site.get(f"/api/tasks?epic={names.twice}")]
    for reply in tries:
        assert (reply.status, reply.code) == (422, "invalid"), reply.raw
        assert names.readings in reply.json["error"]["message"]
        assert reply.json["error"]["hint"] == f"Say which: {names.key} or {names.exact}."
    assert site.get(f"/api/tasks/{names.exact}").json["key"] == names.other
    assert site.get(f"/api/tasks/{names.exact.replace(':', '%3A')}").json["key"] == names.other
    assert site.post(f"/api/tasks/{names.exact}/close", {}).json["key"] == names.other
    assert site.desk.show(names.key)["state"] == "ready"


def test_from_python_here_and_far_away(site, names):
    with connect(site.url, env={"YOURTURN_TOKEN": site.token("admin")}) as far:
        for desk in (far, site.desk):
            for say, named in ((desk.show, names.twice), (desk.cancel, names.twice), (desk.approve, {"key": names.twice})):
                with pytest.raises(Invalid) as error:
                    say(named)
                assert names.readings in str(error.value)
            assert desk.show(names.exact)["key"] == names.other
            assert desk.update(names.exact, priority=1)["key"] == names.other


def test_on_the_command_line(site, names, tmp_path):
    base = {name: value for name, value in os.environ.items() if not name.startswith("YOURTURN_")}
    far = {"YOURTURN_URL": site.url, "YOURTURN_TOKEN": site.token("admin")}
    for env in ({"YOURTURN_DB": site.address}, far):

        def turn(*words: str, env: dict[str, str] = env) -> subprocess.CompletedProcess[str]:
            return subprocess.run([TURN, *words], env=base | env, cwd=tmp_path, capture_output=True, text=True, timeout=60)

        for words in (("show",), ("update", "--priority", "0"), ("close",)):
            done = turn(words[0], names.twice, *words[1:])
            assert done.returncode == 6 and done.stdout == "", done.stderr
            assert names.readings in done.stderr and f"Say which: {names.key} or {names.exact}." in done.stderr
        assert f"old id {names.exact}" in turn("show", names.exact).stdout
        listed = turn("list", "--project", names.project, "--search", names.exact).stdout
        assert names.other in listed and names.key not in listed
        listed = turn("list", "--project", names.project, "--search", names.twice).stdout
        assert f"{names.exact}  By its old id" in listed or names.exact[:20] in listed


def test_by_an_agent(site, names):
    async def main() -> None:
        async with caller(site) as agent:
            for tool, more in (("get_task", {}), ("add_note", {"text": "x"}), ("flag_task", {"text": "x"})):
                refused = await agent.call_tool(tool, {"task": names.twice, **more})
                assert refused.is_error and names.readings in text_of(refused)
            assert data_of(await agent.call_tool("get_task", {"task": names.exact}))["task"]["key"] == names.other
            assert data_of(await agent.call_tool("add_note", {"task": names.exact, "text": "x"}))["task"] == names.other

    anyio.run(main)


def test_in_a_browser(site, names):
    cookie = site.enter(site.desk.create_link()["link"]).headers["set-cookie"].partition(";")[0]
    page = site.get(f"/tasks/{names.twice}", role=None, headers={"Cookie": cookie})
    assert page.status == 422 and names.exact in page.raw.decode() and names.key in page.raw.decode()
    there = site.get(f"/tasks/{names.exact}", role=None, headers={"Cookie": cookie})
    assert (there.status, there.headers["location"]) == (303, f"/tasks/{names.other}")
    shown = site.get(f"/tasks/{names.other}", role=None, headers={"Cookie": cookie}).raw.decode()
    assert f'its old id is <span class="mono">{names.exact}</span>' in shown
    found = site.get(f"/tasks?search={names.twice}&view=list", role=None, headers={"Cookie": cookie}).raw.decode()
    assert "By its old id" in found
