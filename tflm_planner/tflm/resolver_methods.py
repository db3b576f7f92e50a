"""The methods of MicroMutableOpResolver that register operators.

Source: tensorflow/lite/micro/micro_mutable_op_resolver.h of tflite-micro 90b983c. Most methods are
named after the operator in the schema; the others are listed. It must not know models.
"""

from __future__ import annotations

from tflm_planner.tflm.kernels.libraries.reference.operators import OPERATORS

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
"""Custom operators that come with TFLM, by their names in the file."""
BUILTINS = OPERATORS.keys() - _CUSTOM.keys()
"""Operators of the schema that TFLM registers."""


def resolver_method(kind: str, *, custom: bool = False) -> str | None:
    """The method for an operator ("CONV_2D" -> "AddConv2D"); None if TFLM has none."""
    if custom:
        return _CUSTOM.get(kind)
    if kind not in BUILTINS:
        return None
    by_rule = "Add" + "".join(word.capitalize() for word in kind.lower().split("_"))
    return _OTHERS.get(kind, by_rule)
