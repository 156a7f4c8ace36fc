"""`ragauge otel`: OpenTelemetry spans from files as a file of samples (docs/otel.md)."""
