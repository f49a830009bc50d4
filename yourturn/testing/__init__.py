"""For tests of programs that use Yourturn: a fake clock, a temporary desk, and a test harness for workflows (`Stage`).

from yourturn.testing import Stage, done, needs_human

stage = Stage(feature, agents={"coder": [needs_human("JWT or sessions?"), done("built")]})
stage.run("Add login")
assert stage.waiting.text == "JWT or sessions?"
stage.answer("JWT")
assert stage.state == "done"
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .desk import FakeClock, temporary_desk

if TYPE_CHECKING:
    from .harness import Stage, Waiting
    from .scripted_replies import AgentTurn, OffScript, approve, asks, crashes, done, failed, needs_human, reject, said, silence

_REPLIES = ("OffScript", "AgentTurn", "approve", "asks", "crashes", "done", "failed", "needs_human", "reject", "said", "silence")


def __getattr__(name: str) -> Any:
    """The workflow harness is imported on first use: tests that need only a desk and a clock load faster."""
    if name in _REPLIES:
        from . import scripted_replies

        return getattr(scripted_replies, name)
    if name in ("Stage", "Waiting"):
        from . import harness

        return getattr(harness, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


__all__ = [
    "AgentTurn", "FakeClock", "OffScript", "Stage", "Waiting", "approve", "asks", "crashes", "done", "failed", "needs_human",
    "reject", "said", "silence", "temporary_desk",
]  # fmt: skip
