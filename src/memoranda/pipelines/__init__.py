"""The order of steps, as generators of effects: no SQL and no await in here."""
