"""A minimal MCP client for one tool call of a stdio server, and a minimal server."""

import json
import subprocess
import sys


class Unreachable(Exception):
    pass


def call(command, tool, arguments, meta, env=None):
    """(text, structured, is_error) of one tools/call."""
    try:
        server = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=env, text=True)
    except OSError as error:
        raise Unreachable(str(error)) from None
    with server:
        try:
            hello = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "double", "version": "1"}}
            ask(server, 1, "initialize", hello)
            say(server, {"method": "notifications/initialized"})
            result = ask(server, 2, "tools/call", {"name": tool, "arguments": arguments, "_meta": meta})
        finally:
            server.stdin.close()
            server.terminate()
    text = "\n".join(block.get("text", "") for block in result.get("content", []))
    return text, result.get("structuredContent"), bool(result.get("isError"))


def say(server, message):
    try:
        server.stdin.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
        server.stdin.flush()
    except OSError as error:
        raise Unreachable(str(error)) from None


def ask(server, number, method, params):
    say(server, {"id": number, "method": method, "params": params})
    for line in server.stdout:
        message = json.loads(line)
        if message.get("id") == number and "method" not in message:
            if "error" in message:
                return {"content": [{"type": "text", "text": message["error"]["message"]}], "isError": True}
            return message["result"]
    raise Unreachable("the server ended")


def serve(answers):
    """A server whose every tool is a key of `answers`: a text, or an object that becomes JSON text."""
    for line in sys.stdin:
        message = json.loads(line)
        if "id" not in message:
            continue
        if message["method"] == "initialize":
            result = {"protocolVersion": "2025-06-18", "capabilities": {}, "serverInfo": {"name": "x", "version": "1"}}
        else:
            found = answers[message["params"]["name"]]
            text = found if isinstance(found, str) else json.dumps(found)
            result = {"content": [{"type": "text", "text": text}]}
            if isinstance(found, dict):
                result["structuredContent"] = found
        print(json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": result}), flush=True)


if __name__ == "__main__":
    serve(json.loads(sys.argv[1]))
