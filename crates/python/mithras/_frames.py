"""Columns as a table of the user's: pandas where it is there, else pyarrow, else a dictionary."""

from __future__ import annotations

from typing import Any


def table(columns: dict[str, Any], kind: str | None = None) -> Any:
    """`kind`: ``"pandas"``, ``"pyarrow"``, ``"dict"``, or the first that is installed."""
    if kind in (None, "pandas"):
        try:
            import pandas
        except ImportError:
            if kind is not None:
                raise
        else:
            return pandas.DataFrame(columns, copy=False)
    if kind in (None, "pyarrow"):
        try:
            import pyarrow
        except ImportError:
            if kind is not None:
                raise
        else:
            return pyarrow.table(columns)
    if kind in (None, "dict"):
        return columns
    raise ValueError(f"a table is 'pandas', 'pyarrow' or 'dict', and not {kind!r}")


def source(table: Any) -> Any:
    """A table as the library takes it: the path of a file, or a data frame as CSV."""
    if hasattr(table, "to_pandas"):
        table = table.to_pandas()
    if hasattr(table, "to_csv"):
        return table.to_csv(index=False).encode()
    return table
