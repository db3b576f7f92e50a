"""One `Report` (`document`), rendered as text, JSON, CSV, HTML and SVG."""
