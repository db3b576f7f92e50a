"""Which method of MicroMutableOpResolver registers which operator.

Source: tensorflow/lite/micro/micro_mutable_op_resolver.h of tflite-micro 90b983c. Most methods are
named after the schema's operator; the others are listed. It must not know models.
"""

from __future__ import annotations

_NAMES = """
ABS ADD ADD_N ARG_MAX ARG_MIN ASSIGN_VARIABLE BATCH_TO_SPACE_ND BROADCAST_ARGS BROADCAST_TO
CALL_ONCE CAST CEIL CONCATENATION COS DEPTH_TO_SPACE DEQUANTIZE DIV DYNAMIC_UPDATE_SLICE ELU
EMBEDDING_LOOKUP EQUAL EXP EXPAND_DIMS FILL FLOOR FLOOR_DIV FLOOR_MOD FULLY_CONNECTED GATHER
GATHER_ND GREATER GREATER_EQUAL HARD_SWISH IF L2_NORMALIZATION LEAKY_RELU LESS LESS_EQUAL LOG
LOGICAL_AND LOGICAL_NOT LOGICAL_OR LOGISTIC LOG_SOFTMAX MAXIMUM MEAN MINIMUM MIRROR_PAD MUL NEG
NOT_EQUAL PACK PAD PRELU QUANTIZE READ_VARIABLE REDUCE_ALL REDUCE_MAX REDUCE_MIN RELU RELU6
RESHAPE RESIZE_BILINEAR RESIZE_NEAREST_NEIGHBOR REVERSE_V2 ROUND RSQRT SELECT_V2 SHAPE SIN SLICE
SOFTMAX SPACE_TO_BATCH_ND SPACE_TO_DEPTH SPLIT SPLIT_V SQRT SQUARE SQUARED_DIFFERENCE SQUEEZE
STRIDED_SLICE SUB SUM SVDF TANH TRANSPOSE TRANSPOSE_CONV UNPACK VAR_HANDLE WHILE ZEROS_LIKE
"""
_REGULAR = frozenset(_NAMES.split())
_OTHERS = {
    "AVERAGE_POOL_2D": "AddAveragePool2D",
    "BATCH_MATMUL": "AddBatchMatMul",
    "CONV_2D": "AddConv2D",
    "CUMSUM": "AddCumSum",
    "DEPTHWISE_CONV_2D": "AddDepthwiseConv2D",
    "L2_POOL_2D": "AddL2Pool2D",
    "MAX_POOL_2D": "AddMaxPool2D",
    "PADV2": "AddPadV2",
    "UNIDIRECTIONAL_SEQUENCE_LSTM": "AddUnidirectionalSequenceLSTM",
}
_CUSTOM = {
    "CIRCULAR_BUFFER": "AddCircularBuffer",
    "SignalDelay": "AddDelay",
    "SignalEnergy": "AddEnergy",
    "SignalFftAutoScale": "AddFftAutoScale",
    "SignalFilterBank": "AddFilterBank",
    "SignalFilterBankLog": "AddFilterBankLog",
    "SignalFilterBankSpectralSubtraction": "AddFilterBankSpectralSubtraction",
    "SignalFilterBankSquareRoot": "AddFilterBankSquareRoot",
    "SignalFramer": "AddFramer",
    "SignalIrfft": "AddIrfft",
    "SignalOverlapAdd": "AddOverlapAdd",
    "SignalPCAN": "AddPCAN",
    "SignalRfft": "AddRfft",
    "SignalStacker": "AddStacker",
    "SignalWindow": "AddWindow",
    "TFLM_DECODE": "AddDecode",
    "TFLite_Detection_PostProcess": "AddDetectionPostprocess",
    "ethos-u": "AddEthosU",
}
"""Custom operators that come with TFLM, by the name in the file."""
BUILTINS = _REGULAR | frozenset(_OTHERS)
"""Operators of the schema that TFLM has."""


def resolver_method(kind: str, *, custom: bool = False) -> str | None:
    """The method for an operator ("CONV_2D" -> "AddConv2D"); None where TFLM has none."""
    if custom:
        return _CUSTOM.get(kind)
    if kind in _REGULAR:
        return "Add" + "".join(word.capitalize() for word in kind.lower().split("_"))
    return _OTHERS.get(kind)
