"""What a terminal shows, a module a subject; `report` has the report itself.

Each returns strings, and knows neither files nor colours. Names of a model are made safe (`safe`).
"""
