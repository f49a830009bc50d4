"""The two databases, as they are: schema, log, races, troubles."""
