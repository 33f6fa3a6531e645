"""The paper's inequalities, widths and certificates. Mathematics on arrays: no networks, no files."""

from strongticket.theory import lemmas as lemmas
from strongticket.theory.certificate import Certificate as Certificate
from strongticket.theory.certificate import certify_attention as certify_attention
from strongticket.theory.constants import PredictedError as PredictedError
from strongticket.theory.constants import measured_constant as measured_constant
from strongticket.theory.constants import measurements as measurements
from strongticket.theory.constants import predicted_error as predicted_error
from strongticket.theory.normalisation import Normalisation as Normalisation
from strongticket.theory.relu_certificate import certify_relu as certify_relu
from strongticket.theory.rounding import AttentionFactors as AttentionFactors
from strongticket.theory.rounding import AttentionRounding as AttentionRounding
from strongticket.theory.rounding import attention_rounding as attention_rounding
from strongticket.theory.transformer_certificate import certify_transformer as certify_transformer
from strongticket.theory.weights import AttentionWeights as AttentionWeights
from strongticket.theory.weights import BlockWeights as BlockWeights
from strongticket.theory.widths import AttentionWidths as AttentionWidths
from strongticket.theory.widths import BlockWidths as BlockWidths
from strongticket.theory.widths import Width as Width
from strongticket.theory.widths import attention_widths as attention_widths
from strongticket.theory.widths import prenorm_widths as prenorm_widths
from strongticket.theory.widths import product_width as product_width
from strongticket.theory.widths import relu_layer_width as relu_layer_width
from strongticket.theory.widths import relu_widths as relu_widths
from strongticket.theory.widths import transformer_widths as transformer_widths
from strongticket.theory.widths import value_lower_bound as value_lower_bound
