"""Agents at work: what they are told, how they are run, and how what they say at the end becomes a move."""
