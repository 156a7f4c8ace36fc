"""Score against cost: which jobs of a sweep no other beats at the same or a lower cost."""
