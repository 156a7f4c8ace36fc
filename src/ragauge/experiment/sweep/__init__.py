"""Jobs together: groups, pooling, judging at the end, contrasts, reports."""
