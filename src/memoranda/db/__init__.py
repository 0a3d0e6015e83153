"""The database: tables, dialects, queries, revisions, and the one place that knows connections and threads."""
