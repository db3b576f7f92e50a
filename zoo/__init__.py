"""Int8 models of the literature, built from code, to measure the planner on.

The networks are untrained: memory planning depends on the graph and its shapes, not on the
weights. But equality of outputs proves something only if outputs depend on inputs, so
`zoo.recipe` gives every network healthy activations and logits that really vary. And shapes
are only worth comparing if they are the published ones, so `zoo.count` compares parameters
and multiply-accumulates. `python -m zoo.make --help` builds them; `zoo/README.md` lists them.
Knows Keras; must not know `tflm_planner`.
"""
