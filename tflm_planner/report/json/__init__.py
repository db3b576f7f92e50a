"""Documents for programs: a module of types for each, and `document`, which fills them."""
