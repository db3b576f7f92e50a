"""A TensorFlow Lite model in memory; how it is read from a flatbuffer and written to one.

    bytes --serde (flatbuffer/, schema)--> Model --edit, draft, clone--> Model --serde--> bytes

`edit` and `draft` are the only modules that change a model; `check` says whether it could run.
"""
