"""Proves that two models compute the same function of every input, by running both as terms."""

from tflm_planner.verification.terms.compare import TermsProof, prove_by_terms

__all__ = ["TermsProof", "prove_by_terms"]
