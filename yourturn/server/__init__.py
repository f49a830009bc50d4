"""`turn serve`: everything that speaks HTTP, in one process or several."""
