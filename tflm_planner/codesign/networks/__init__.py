"""Chains with numbers, from the form that is trained to the file that runs.

    weights -> folding -> evaluate (in numpy)
                  `-> build (a model, with `numbers` of its types) -> scoring (on LiteRT)

`selection` builds models to ask the planner which skips the peak is made of.
"""
