"""JSON documents for programs: a module of types for each, and `document`, which makes them."""
