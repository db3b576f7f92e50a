"""Networks of PyTorch, converted by litert-torch, and quantised by AI Edge Quantizer and PT2E."""
