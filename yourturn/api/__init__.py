"""The HTTP API: rows of a table (table.py), made into routes (app.py) and into a document (document.py)."""
