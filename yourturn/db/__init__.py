"""The only place that speaks SQL. One text, two dialects."""
