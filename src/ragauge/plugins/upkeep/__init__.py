"""`ragauge store`: stored outputs of stages (docs/store.md); `ragauge ledger`: paid calls."""
