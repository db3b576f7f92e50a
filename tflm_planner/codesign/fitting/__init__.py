"""The largest network that fits a board: `tflm-plan fit`.

variants, user_build -> outcomes -> largest -> fit_text, fit_svg, fit_types
"""
