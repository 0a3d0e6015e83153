"""Every statement, as plain functions `fn(conn, tables, ...)`: they do not commit, await, call models or read the clock."""
