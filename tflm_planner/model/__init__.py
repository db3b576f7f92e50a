"""A TensorFlow Lite model in memory, and its way from and to a flatbuffer.

    bytes --serde (flatbuffer/, schema)--> Model --edit, draft, clone--> Model --serde--> bytes

`edit` and `draft` are the only modules that change a model; `check` says whether it could run.
"""
