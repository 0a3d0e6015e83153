"""Placeholder."""
from memoranda.cli.options import command, store, Store

@command(store)
def demo(store: Store) -> int:
    """Show it."""
    return 0
