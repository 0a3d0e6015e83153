"""Rows in memory, for a database that would take longer to look them up than to have them looked at.

An author's rows of one kind, with their terms and vectors, as arrays: what proposes candidates is computed over all of
them, and only what is proposed is looked up, so that the database alone says what may be seen. `rows` and `postings`
are pure; who reads the rows and keeps them in step is the dialect.
"""

from memoranda.db.resident.rows import Fresh, GrowingRows, Owner, Rows

__all__ = ["Fresh", "GrowingRows", "Owner", "Rows"]
