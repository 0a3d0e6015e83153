"""The revisions, each frozen once it has been released."""
