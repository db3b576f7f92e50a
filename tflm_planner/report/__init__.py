"""Renders one `Report` (`document`) as text, JSON, CSV, HTML and SVG.

document, comparison, memory_fit    the results of a run, as data
memory_map, peak, operator_changes  derived from these, for all renderings
text/ json/ svg/ html               the renderings; `render` chooses by a file's ending
csv_document, node_data             files for other tools
"""
