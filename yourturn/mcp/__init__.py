"""MCP server for agents: `turn mcp` on standard input and output, `/mcp` over HTTP.

`tool_schemas` has the tools as data, `tools` executes them on the desk, `session` knows the agent and its claims. `server` and
`http_transport` connect them to the Model Context Protocol; only these two import its SDK, which takes longer to load than the
rest of the command.
"""
