"""Exports a model as C++ sources for any TFLM project, and as a package for build systems."""
