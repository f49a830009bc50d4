"""Generates random workflow scripts; the same seed gives the same script.

What a script does outside goes through `effect` (actors.py), whose first argument is a name that no other call of the run
has. What a person answers and an agent says depends on the words of the question and the prompt alone, so that a script
ends in the same way however often it is interrupted. Random values go into later calls: if one of them ever changed, the run
would be asked about by its next replay.

Some scripts are changed while they wait: `Script.changed` is the text that lies there from then on.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from textwrap import indent
from typing import NamedTuple

CHANGE = "Change the script now?"
_HEAD = "from tests.faults.script_sessions import broken, effect\n\n\ndef workflow(prompt):\n    out = []\n"
_LAST = {
    "done": 'return "; ".join(map(str, out))[:2000]',
    "stuck": 'stuck(f"so it is: {out[:3]}")',
    "error": 'raise RuntimeError("boom")',
}
_AGENTS = ("doer", "doer", "failer", "custom", "asker", "asker", "twice", "approver", "tooler", "crasher", "breaker")


class Script(NamedTuple):
    body: str
    changed: str | None  #: what lies there after the question CHANGE was asked
    recovery: str  #: what a person says when asked about that


class _Writer:
    def __init__(self, luck: random.Random, plain: bool) -> None:
        self.luck, self.plain = luck, plain
        self.count = 0
        self.loops: list[str] = []
        self.beside = 0

    def mark(self, sort: str) -> str:
        """An expression: a name that no other call has."""
        self.count += 1
        return f'f"{sort}{self.count}{"".join(f".{{{name}}}" for name in self.loops)}"'

    def block(self, depth: int, most: int = 3) -> str:
        return "".join(self.statement(depth) for _ in range(self.luck.randint(1, most)))

    def statement(self, depth: int) -> str:
        kinds: list[tuple[Callable[[int], str], int]] = [
            (self._effect, 6), (self._broken, 2), (self._log, 1), (self._pause, 3), (self._ask, 3), (self._agent, 5),
            (self._sleep, 1),
        ]  # fmt: skip
        if not (self.plain and self.beside):
            kinds.append((self._chance, 3))
        if depth:
            kinds += [(self._loop, 2), (self._parallel, 2 if self.beside else 5), (self._tried, 3)]
        chosen, weights = zip(*kinds, strict=True)
        return str(self.luck.choices(chosen, weights)[0](depth))

    # --- what it does -----------------------------------------------------------------------------------------------

    def _effect(self, depth: int) -> str:
        return f"out.append(step(effect, {self.mark('e')}))\n"

    def _broken(self, depth: int) -> str:
        return f"try:\n    step(broken, {self.mark('e')})\nexcept StepFailed as error:\n    out.append(str(error))\n"

    def _log(self, depth: int) -> str:
        return f"log({self.mark('l')})\n"

    def _sleep(self, depth: int) -> str:
        return f"sleep('{self.luck.choice(['30s', '2h', '3d'])}')\n"

    def _chance(self, depth: int) -> str:
        value = self.luck.choice(["random()", "uuid()", "now().isoformat()"])
        return f"value = {value}\nout.append(step(effect, {self.mark('e')}, value))\n"

    def _pause(self, depth: int) -> str:
        text = f"ok = pause({self.mark('p')})\nout.append([ok.continue_, ok.reason])\n"
        return text + self._branch("ok", depth)

    def _ask(self, depth: int) -> str:
        if self.luck.random() < 0.3:
            silent = 'default="y", timeout="1h", on_timeout="default"'
            return f"a = ask({self.mark('silent')}, ['x', 'y'], {silent})\nout.append([a.value, a.status])\n"
        return f"a = ask({self.mark('q')}, ['x', 'y'])\nout.append(a.value)\n" + self._branch("a == 'x'", depth)

    def _agent(self, depth: int) -> str:
        more = ", human=False" if self.luck.random() < 0.1 else ""
        text = f"s = run({self.luck.choice(_AGENTS)!r}, {self.mark('r')}{more})\nout.append([s.status, s.summary, s.reason])\n"
        return text + self._branch("s.status == 'DONE'", depth)

    # --- what goes on inside another --------------------------------------------------------------------------------

    def _branch(self, condition: str, depth: int) -> str:
        if not depth or self.luck.random() < 0.6:
            return ""
        yes, no = (indent(self.block(depth - 1, 2), "    ") for _ in range(2))
        return f"if {condition}:\n{yes}else:\n{no}"

    def _loop(self, depth: int) -> str:
        name = f"i{len(self.loops)}"
        self.loops.append(name)
        body = self.block(depth - 1, 2)
        if self.luck.random() < 0.4:
            body += f"if step(effect, {self.mark('e')}) % 3 == 0:\n    break\n"
        self.loops.pop()
        return f"for {name} in range({self.luck.randint(1, 3)}):\n{indent(body, '    ')}"

    def _parallel(self, depth: int) -> str:
        self.count += 1
        names = [f"b{self.count}_{n}" for n in range(self.luck.randint(2, 3))]
        self.beside += 1
        text = ""
        for name in names:
            end = "return out\n" if self.luck.random() < 0.9 else 'raise ValueError("the branch broke")\n'
            body = indent(self.block(depth - 1 if self.luck.random() < 0.3 else 0, 2), "    ")
            text += f"def {name}():\n    out = []\n{body}    {end}"
        self.beside -= 1
        text += f"try:\n    out.append(parallel([{', '.join(names)}]))\n"
        return text + "except ValueError as error:\n    out.append(str(error))\n"

    def _tried(self, depth: int) -> str:
        body = indent(self.block(depth - 1, 2), "    ")
        ends = [
            "except Exception:\n    out.append('caught')\n",
            f"finally:\n    out.append(step(effect, {self.mark('e')}))\n",
            "except BaseException:\n    out.append('swallowed')\n",
        ]
        return f"try:\n{body}{self.luck.choice(ends)}"


def script(seed: object, most: int) -> Script:
    """With so many statements at most, not counting what is inside them."""
    luck = random.Random(f"script {seed}")
    changing = luck.random() < 0.2
    writer = _Writer(luck, plain=changing)
    parts = [writer.statement(2 if luck.random() < 0.3 else 1) for _ in range(luck.randint(1, most))]
    if luck.random() < 0.1:
        parts.insert(0, "config(human_timeout='9d', on_timeout='notify_again')\n")
    last = _LAST[luck.choices(list(_LAST), [8, 1, 1])[0]] + "\n"
    if not changing:
        return Script(_whole(parts, last), None, "")
    at = luck.randint(1, len(parts))
    parts.insert(at, f"out.append(bool(pause({CHANGE!r})))\n")
    new = list(parts)
    where = luck.randint(0, at)
    if luck.random() < 0.8:
        new.insert(where, writer.statement(1))
    else:
        del new[where - 1 if where else 0]
    return Script(_whole(parts, last), _whole(new, last), luck.choice(["continue", "continue", "continue", "from-1", "stop"]))


def _whole(parts: list[str], last: str) -> str:
    return _HEAD + indent("".join(parts) + last, "    ")
