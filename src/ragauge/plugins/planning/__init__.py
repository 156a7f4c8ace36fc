"""`ragauge plan`: the number of topics and labels that a study needs, from a pilot sweep."""
