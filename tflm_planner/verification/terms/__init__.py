"""Proves that two models compute the same function of every input, by running both as terms."""

from tflm_planner.verification.terms.compare import TermsProof, prove_by_terms
from tflm_planner.verification.terms.streamed import Halves, prove_pair_by_terms

__all__ = ["Halves", "TermsProof", "prove_by_terms", "prove_pair_by_terms"]
