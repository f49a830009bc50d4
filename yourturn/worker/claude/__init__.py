"""The permission gate of Claude Code."""
