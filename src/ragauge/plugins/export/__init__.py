"""`ragauge export`: a finished job as a file of samples."""
