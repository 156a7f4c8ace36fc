"""`ragauge store`: what stages stored (docs/store.md); `ragauge ledger`: calls that were paid for."""
