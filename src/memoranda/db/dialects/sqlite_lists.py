"""A parameter that is a list, as rows of a statement: one JSON array, however long it is."""

from typing import Any

from sqlalchemy import Select, String, TableValuedAlias, bindparam, func, select


def list_rows(name: str | None, given: str | None = None) -> TableValuedAlias:
    """Return the rows, whose one column is `value`.

    Args:
        name: What the parameter is called, None for nothing.
        given: The array, where it is not left to whoever executes the statement.
    """
    return func.json_each(bindparam(name, given, type_=String)).table_valued("value")


def listed(name: str | None, given: str | None = None) -> Select[Any]:
    """Return the values of `list_rows`."""
    return select(list_rows(name, given).c.value)
