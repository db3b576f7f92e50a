// The operators that the runner registers, each where the TFLM at hand has it.
//
// X(method of MicroMutableOpResolver, name in the TFLite schema). To save flash, define
// RUNNER_OPERATORS to a shorter list of the same form (`tflm-plan export` writes which operators
// a model uses).
#pragma once

#ifndef RUNNER_OPERATORS
#define RUNNER_OPERATORS(X)                                                                     \
  X(AddAbs, "ABS") X(AddAdd, "ADD") X(AddAddN, "ADD_N") X(AddArgMax, "ARG_MAX")                 \
  X(AddArgMin, "ARG_MIN") X(AddAssignVariable, "ASSIGN_VARIABLE")                               \
  X(AddAveragePool2D, "AVERAGE_POOL_2D") X(AddBatchMatMul, "BATCH_MATMUL")                      \
  X(AddBatchToSpaceNd, "BATCH_TO_SPACE_ND") X(AddBroadcastArgs, "BROADCAST_ARGS")               \
  X(AddBroadcastTo, "BROADCAST_TO") X(AddCallOnce, "CALL_ONCE") X(AddCast, "CAST")              \
  X(AddCeil, "CEIL") X(AddCircularBuffer, "CIRCULAR_BUFFER")                                    \
  X(AddConcatenation, "CONCATENATION") X(AddConv2D, "CONV_2D") X(AddCos, "COS")                 \
  X(AddCumSum, "CUMSUM") X(AddDepthToSpace, "DEPTH_TO_SPACE")                                   \
  X(AddDepthwiseConv2D, "DEPTHWISE_CONV_2D") X(AddDequantize, "DEQUANTIZE")                     \
  X(AddDetectionPostprocess, "TFLite_Detection_PostProcess") X(AddDiv, "DIV")                   \
  X(AddDynamicUpdateSlice, "DYNAMIC_UPDATE_SLICE") X(AddEmbeddingLookup, "EMBEDDING_LOOKUP")    \
  X(AddElu, "ELU") X(AddEqual, "EQUAL") X(AddExp, "EXP") X(AddExpandDims, "EXPAND_DIMS")        \
  X(AddFill, "FILL") X(AddFloor, "FLOOR") X(AddFloorDiv, "FLOOR_DIV")                           \
  X(AddFloorMod, "FLOOR_MOD") X(AddFullyConnected, "FULLY_CONNECTED") X(AddGather, "GATHER")    \
  X(AddGatherNd, "GATHER_ND") X(AddGreater, "GREATER") X(AddGreaterEqual, "GREATER_EQUAL")      \
  X(AddHardSwish, "HARD_SWISH") X(AddIf, "IF") X(AddL2Normalization, "L2_NORMALIZATION")        \
  X(AddL2Pool2D, "L2_POOL_2D") X(AddLeakyRelu, "LEAKY_RELU") X(AddLess, "LESS")                 \
  X(AddLessEqual, "LESS_EQUAL") X(AddLog, "LOG") X(AddLogicalAnd, "LOGICAL_AND")                \
  X(AddLogicalNot, "LOGICAL_NOT") X(AddLogicalOr, "LOGICAL_OR") X(AddLogistic, "LOGISTIC")      \
  X(AddLogSoftmax, "LOG_SOFTMAX") X(AddMaximum, "MAXIMUM") X(AddMaxPool2D, "MAX_POOL_2D")       \
  X(AddMirrorPad, "MIRROR_PAD") X(AddMean, "MEAN") X(AddMinimum, "MINIMUM") X(AddMul, "MUL")    \
  X(AddNeg, "NEG") X(AddNotEqual, "NOT_EQUAL") X(AddPack, "PACK") X(AddPad, "PAD")              \
  X(AddPadV2, "PADV2") X(AddPrelu, "PRELU") X(AddQuantize, "QUANTIZE")                          \
  X(AddReadVariable, "READ_VARIABLE") X(AddReduceAll, "REDUCE_ALL")                             \
  X(AddReduceMax, "REDUCE_MAX") X(AddReduceMin, "REDUCE_MIN") X(AddRelu, "RELU")                \
  X(AddRelu6, "RELU6") X(AddReshape, "RESHAPE") X(AddResizeBilinear, "RESIZE_BILINEAR")         \
  X(AddResizeNearestNeighbor, "RESIZE_NEAREST_NEIGHBOR") X(AddReverseV2, "REVERSE_V2")          \
  X(AddRound, "ROUND") X(AddRsqrt, "RSQRT") X(AddSelectV2, "SELECT_V2") X(AddShape, "SHAPE")    \
  X(AddSin, "SIN") X(AddSlice, "SLICE") X(AddSoftmax, "SOFTMAX")                                \
  X(AddSpaceToBatchNd, "SPACE_TO_BATCH_ND") X(AddSpaceToDepth, "SPACE_TO_DEPTH")                \
  X(AddSplit, "SPLIT") X(AddSplitV, "SPLIT_V") X(AddSqueeze, "SQUEEZE") X(AddSqrt, "SQRT")      \
  X(AddSquare, "SQUARE") X(AddSquaredDifference, "SQUARED_DIFFERENCE")                          \
  X(AddStridedSlice, "STRIDED_SLICE") X(AddSub, "SUB") X(AddSum, "SUM") X(AddSvdf, "SVDF")      \
  X(AddTanh, "TANH") X(AddTransposeConv, "TRANSPOSE_CONV") X(AddTranspose, "TRANSPOSE")         \
  X(AddUnpack, "UNPACK")                                                                        \
  X(AddUnidirectionalSequenceLSTM, "UNIDIRECTIONAL_SEQUENCE_LSTM")                              \
  X(AddVarHandle, "VAR_HANDLE") X(AddWhile, "WHILE") X(AddZerosLike, "ZEROS_LIKE")
#endif
