"""`ragauge check`: faults of a test set that measurements would not show."""
