"""The desk for agents that speak the Model Context Protocol: `turn mcp`.

`catalogue` says what an agent can say, as data; `tools` says it to the desk and knows nothing of the protocol, from a `seat`
that knows who it is and what it holds; `server` speaks the protocol and waits; `command` is what people and programs type.
Only `server` imports the SDK, which takes longer to load than everything else that `turn` does in a day.
"""
