"""One `Report` (`document`), rendered as text, JSON, CSV, HTML and SVG.

document, comparison, memory_fit   what a run has to say, as data
memory_map, peak, operator_changes derived from it, for all renderings
text/  json/  svg/  html           the renderings; `render` chooses by a file's ending
csv_document, node_data            tables for other tools
"""
