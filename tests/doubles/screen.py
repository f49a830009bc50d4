"""A session that a person has opened on a terminal: the double reads lines as the agent's input.

`!COMMAND`: the agent runs it, in its folder, with its environment. `exit [N]`: the person leaves. Other lines are acknowledged.
"""

import json
import os
import subprocess
import sys
from pathlib import Path


def hear(words):
    """Record the input of the model."""
    if log := os.environ.get("DOUBLE_HEARD"):
        with Path(log).open("a") as file:
            file.writelines(json.dumps(text) + "\n" for text in words)
    return []


def visited(program, session):
    if not sys.stdin.isatty() or not sys.stdout.isatty():
        sys.exit(print(f"Error: {program} needs a terminal", file=sys.stderr) or 1)
    print(f"{program} (a double), session {session}, in {Path.cwd()}", flush=True)
    while True:
        print(f"{program}> ", end="", flush=True)
        words = sys.stdin.readline()
        if log := os.environ.get("DOUBLE_PROMPTS"):
            with Path(log).open("a") as file:
                file.write(json.dumps(words) + "\n")
        words = words.strip() or "exit"
        if words.split()[0] == "exit":
            sys.exit(int(words.split()[1]) if words != "exit" else 0)
        if words.startswith("!"):
            subprocess.run(words[1:], shell=True)
        print("Understood.", flush=True)
