"""The HTTP server: the ASGI application, and what its surfaces share (authentication, middleware, event broadcast, desk pool)."""
