"""Agents at work: claim a task, brief an agent, run it, read how its turn ended, say so at the desk, take the next one."""
