"""`ragauge store`: lists, shows, checks and removes what stages stored (docs/store.md)."""
