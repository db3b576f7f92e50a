"""Renders text for terminals, with a module for each subject; `report` renders the report itself.

Each module returns strings, and knows neither files nor colours. Names from a model are escaped
(`safe`).
"""
