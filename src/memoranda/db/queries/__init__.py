"""Every statement, as plain functions `fn(conn, tables, ...)`: no commit, no await, no model, no clock."""
