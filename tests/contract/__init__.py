"""What other programs rely on, as files: JSON of the command, its help, the HTTP API, the tools of agents, events, both schemas.

`GOLDEN=write pytest tests/contract` writes the files; without it the test compares. A difference is either a mistake or a change
of the contract, which the changelog names.
"""
