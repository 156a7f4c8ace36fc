"""Score against cost: the jobs of a sweep that no other beats at the same or a lower cost."""
