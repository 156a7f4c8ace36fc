"""`ragauge store`: stored outputs of stages (docs/store.md); `ragauge ledger`: calls that were paid for."""
