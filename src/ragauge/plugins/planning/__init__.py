"""`ragauge plan`: how many topics and labels a study takes, from a pilot sweep."""
