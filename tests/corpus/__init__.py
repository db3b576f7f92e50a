"""Small models made the way people make them: Keras, the converter, seven element types.

`python -m tests.corpus` plans every network in every type and prints what each came to;
`tests/corpus/test_corpus.py` plans every network in the types that take turns.
"""
