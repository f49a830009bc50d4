"""LangGraph, a workflow engine whose graphs wait for people: the peer of part (i).

The graph has one node, which asks (`interrupt`) and returns the answer. It is compiled once with one of LangGraph's
own checkpointers, opened as its documentation does, with all defaults: checkpoints are written by a background thread while the
graph goes on, and `invoke` returns after the last of them.
"""

from __future__ import annotations

import importlib.util
import itertools
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, TypedDict

QUESTION = "Go on?"


class State(TypedDict, total=False):
    prompt: str
    answer: bool


def installed() -> bool:
    names = ("langgraph", "langgraph.checkpoint.sqlite", "langgraph.checkpoint.postgres")
    try:
        return all(importlib.util.find_spec(name) is not None for name in names)
    except ModuleNotFoundError:
        return False


@contextmanager
def opened(address: str) -> Iterator[Callable[[], int]]:
    """A function that takes one new thread of the graph from its start over its interrupt to its end."""
    from langgraph.graph import END, START, StateGraph
    from langgraph.types import Command, interrupt

    def ask(state: State) -> State:
        return {"answer": interrupt({"question": QUESTION})}

    builder: Any = StateGraph(State)
    builder.add_node("ask", ask)
    builder.add_edge(START, "ask")
    builder.add_edge("ask", END)
    numbers = itertools.count()
    with _checkpointer(address) as saver:
        saver.setup()
        graph = builder.compile(checkpointer=saver)

        def round_trip() -> int:
            config = {"configurable": {"thread_id": f"thread-{next(numbers)}"}}
            waiting = graph.invoke({"prompt": "ok?"}, config)
            assert waiting["__interrupt__"][0].value == {"question": QUESTION}
            assert graph.invoke(Command(resume=True), config) == {"prompt": "ok?", "answer": True}
            return 1

        yield round_trip


def _checkpointer(address: str) -> Any:
    if "://" in address:
        from langgraph.checkpoint.postgres import PostgresSaver

        return PostgresSaver.from_conn_string(address)
    from langgraph.checkpoint.sqlite import SqliteSaver

    return SqliteSaver.from_conn_string(address)
