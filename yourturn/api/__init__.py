"""HTTP API: a table of routes (route_table.py), which server/app.py serves and openapi.py documents."""
