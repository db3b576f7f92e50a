"""Chains with weights, from the form that is trained to the file that runs.

    weights -> folding -> evaluate (in numpy)
                  `-> build (a model, with `numbers` of its types) -> scoring (on LiteRT)

    model -> model_parts -> chain_of_model (the chain of somebody's model)
                                  `-> network_of_model (with its weights)

`selection` builds models and plans them, to find the skips that are alive at the peak.
"""
