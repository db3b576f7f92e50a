"""Planning memory: buffers with life spans must find offsets in one arena.

    problem      buffers, which pairs may overlap, plans, and `validate`
    bounds       how low any plan of a problem can be
    allocators/  solvers: greedy, local search, an exact tree search, CP-SAT
    order/       the order of the nodes of a DAG with the smallest peak of live bytes

It knows intervals and bytes, no word of TFLite, and could ship alone.
"""
