"""`dataset=folder`: text, Markdown, HTML, PDF and Word files as documents."""
