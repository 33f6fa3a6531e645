"""The paper's inequalities, widths and certificates. Mathematics on arrays: no networks, no files."""

from strongticket.theory import lemmas
from strongticket.theory.certificate import Certificate, certify_attention
from strongticket.theory.constants import PredictedError, calibration, measured_constant, predicted_error
from strongticket.theory.normalisation import Normalisation
from strongticket.theory.relu_certificate import certify_relu
from strongticket.theory.rounding import AttentionFactors, AttentionRounding, attention_rounding
from strongticket.theory.transformer_certificate import BlockWeights, certify_transformer
from strongticket.theory.widths import (
    AttentionWidths,
    BlockWidths,
    Width,
    attention_widths,
    block_widths,
    prenorm_widths,
    product_width,
    relu_layer_width,
    relu_widths,
    transformer_widths,
    value_lower_bound,
)

__all__ = [
    "AttentionFactors",
    "AttentionRounding",
    "AttentionWidths",
    "BlockWeights",
    "BlockWidths",
    "Certificate",
    "Normalisation",
    "PredictedError",
    "Width",
    "attention_rounding",
    "attention_widths",
    "block_widths",
    "calibration",
    "certify_attention",
    "certify_relu",
    "certify_transformer",
    "lemmas",
    "measured_constant",
    "predicted_error",
    "prenorm_widths",
    "product_width",
    "relu_layer_width",
    "relu_widths",
    "transformer_widths",
    "value_lower_bound",
]
