"""Agents at work: claim, brief, run, read the outcome, say it, take the next."""
