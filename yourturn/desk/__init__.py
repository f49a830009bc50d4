"""The desk: the one write path, its reads, and what is stored beside tasks."""
