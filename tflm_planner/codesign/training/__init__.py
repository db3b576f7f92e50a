"""Trains chains with TensorFlow or PyTorch, and writes them as int8 models.

data                  data sets by name or folder (`packaged`, `folders`, `scenes`, `series`)
trainable, forward    a chain with variables, and what it computes
loop                  the training loop; `super_network` trains a whole space with it
rounding              a trained network as an int8 model; `detection` judges grids of cells
"""
