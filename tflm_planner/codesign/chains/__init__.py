"""Networks without weights: what a designer varies, and exact rewrites of it.

chain            the network: layers, skips, shapes; `sizes` counts what it costs
families, papers makers of chains
residuals        other skips than it had; `reshaping` is what a late skip goes through
redistribution   windows moved to other layers, by what `receptive_field` says of patches
"""
