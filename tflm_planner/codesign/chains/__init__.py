"""Networks without weights, which a designer varies, and rewrites of them.

chain             the network: layers, skips, shapes; `sizes` counts MACs and bytes
families, papers  functions that make chains
residuals         removes or replaces skips; `reshaping` has the operators on a late skip
redistribution    moves windows to other layers, as `receptive_field` measures patches
"""
