"""One `Report`, rendered as text, JSON, CSV and HTML."""
