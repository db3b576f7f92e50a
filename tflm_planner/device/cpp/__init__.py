"""A model as C++ sources for any TFLM project, and as a package of its build system."""
