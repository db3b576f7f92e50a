"""What an operator computes, as a function over a field: by it two models are proved equal
(docs/proof.md).

    operands (`values`) -> `calls` -> a rule: products and sums in the `field`, `mixing` -> results

`rules` finds the rule of an operator: `windows`, `products`, `pointwise`, `reductions`, `movement`,
`resizing`. They use the same facts of an operator as everything else (`ops.window`, `ops.resize`,
`ops.axes`, `ops.roles`). Running whole models, and the memory in which they run, is
`verification.terms`. Importing `ops` does not import this folder, which needs numpy and numba.
"""
