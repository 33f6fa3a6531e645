"""Tiny random models of many architectures: whatever an Auto class loads must build."""

from typing import Any

import pytest
import torch
from torch import nn

transformers = pytest.importorskip("transformers", reason="needs strongticket[huggingface]")

# What configs call the same thing; each architecture takes those that its config has.
TEXT = dict(
    vocab_size=37, hidden_size=16, intermediate_size=20, num_hidden_layers=2, num_attention_heads=4,
    num_key_value_heads=2, max_position_embeddings=32, pad_token_id=0, bos_token_id=1, eos_token_id=2,
)  # fmt: skip
ROTARY = TEXT | dict(head_dim=4)
D_MODEL = dict(
    vocab_size=37, d_model=16, encoder_layers=2, decoder_layers=2, encoder_attention_heads=2,
    decoder_attention_heads=2, encoder_ffn_dim=20, decoder_ffn_dim=20, max_position_embeddings=32,
    pad_token_id=0, bos_token_id=1, eos_token_id=2, decoder_start_token_id=2, forced_eos_token_id=None,
)  # fmt: skip
T5 = dict(
    vocab_size=37, d_model=16, d_kv=4, d_ff=20, num_layers=2, num_heads=4, relative_attention_num_buckets=8,
    pad_token_id=0, eos_token_id=1, decoder_start_token_id=0,
)  # fmt: skip
EXPERTS = ROTARY | dict(num_experts_per_tok=2)
IMAGE = dict(image_size=16, patch_size=8, num_channels=3)
VIT = IMAGE | dict(hidden_size=16, intermediate_size=20, num_hidden_layers=2, num_attention_heads=4)

ARCHITECTURES: dict[str, dict[str, Any]] = {
    # language models
    "LlamaForCausalLM": ROTARY | dict(tie_word_embeddings=True),
    "MistralForCausalLM": ROTARY | dict(sliding_window=4),
    "Qwen2ForCausalLM": ROTARY,
    "Qwen3ForCausalLM": ROTARY,
    "GemmaForCausalLM": ROTARY,
    "Gemma2ForCausalLM": ROTARY | dict(sliding_window=4, query_pre_attn_scalar=4),
    "Gemma3ForCausalLM": ROTARY | dict(sliding_window=4, query_pre_attn_scalar=4),
    "PhiForCausalLM": TEXT | dict(partial_rotary_factor=0.5),
    "Phi3ForCausalLM": TEXT,
    "FalconForCausalLM": dict(vocab_size=37, hidden_size=16, num_hidden_layers=2, num_attention_heads=4, alibi=True),
    "GPTNeoXForCausalLM": TEXT,
    "GPT2LMHeadModel": dict(vocab_size=37, n_positions=32, n_embd=16, n_layer=2, n_head=4),
    "GPTJForCausalLM": dict(vocab_size=37, n_positions=32, n_embd=16, n_layer=2, n_head=4, rotary_dim=4),
    "OPTForCausalLM": TEXT | dict(ffn_dim=20, word_embed_proj_dim=16),
    "BloomForCausalLM": dict(vocab_size=37, hidden_size=16, n_layer=2, n_head=4),
    "MptForCausalLM": dict(vocab_size=37, d_model=16, n_layers=2, n_heads=4, max_seq_len=32, expansion_ratio=1),
    "StableLmForCausalLM": TEXT,
    "CohereForCausalLM": ROTARY,
    "OlmoForCausalLM": TEXT,
    "MambaForCausalLM": dict(vocab_size=37, hidden_size=16, state_size=4, num_hidden_layers=2),
    "Mamba2ForCausalLM": dict(
        vocab_size=37, hidden_size=16, state_size=4, num_hidden_layers=2, num_heads=4, head_dim=8, n_groups=1,
        chunk_size=8,
    ),
    "RwkvForCausalLM": dict(vocab_size=37, hidden_size=16, num_hidden_layers=2, context_length=32),
    "XLNetLMHeadModel": dict(vocab_size=37, d_model=16, n_layer=2, n_head=4, d_inner=20),
    # mixtures of experts
    "MixtralForCausalLM": EXPERTS | dict(num_local_experts=3),
    "Qwen2MoeForCausalLM": EXPERTS | dict(num_experts=3, moe_intermediate_size=8, shared_expert_intermediate_size=8),
    "Qwen3MoeForCausalLM": EXPERTS | dict(num_experts=3, moe_intermediate_size=8),
    "DeepseekV3ForCausalLM": TEXT | dict(
        num_key_value_heads=4, kv_lora_rank=8, q_lora_rank=8, qk_rope_head_dim=4, qk_nope_head_dim=4, v_head_dim=4,
        n_routed_experts=4, num_experts_per_tok=2, n_group=2, topk_group=1, moe_intermediate_size=8,
        first_k_dense_replace=1, n_shared_experts=1,
    ),
    "GptOssForCausalLM": EXPERTS | dict(num_local_experts=3, sliding_window=4),
    # encoders
    "BertForMaskedLM": TEXT,
    "RobertaForSequenceClassification": TEXT | dict(num_labels=3),
    "DistilBertForMaskedLM": dict(vocab_size=37, dim=16, hidden_dim=20, n_layers=2, n_heads=4),
    "AlbertForMaskedLM": TEXT | dict(embedding_size=8),
    "ElectraForMaskedLM": TEXT | dict(embedding_size=8),
    "DebertaV2ForMaskedLM": TEXT | dict(
        relative_attention=True, pos_att_type=["p2c", "c2p"], position_buckets=4, norm_rel_ebd="layer_norm",
        share_att_key=True,
    ),
    "ModernBertForMaskedLM": TEXT | dict(
        local_attention=8, global_attn_every_n_layers=2, cls_token_id=1, sep_token_id=2,
    ),
    "MPNetModel": TEXT,
    "FunnelModel": dict(vocab_size=37, d_model=16, n_head=2, d_head=8, d_inner=20, block_sizes=[1, 1]),
    # encoders with decoders
    "T5ForConditionalGeneration": T5,
    "BartForConditionalGeneration": D_MODEL,
    "PegasusForConditionalGeneration": D_MODEL,
    "WhisperForConditionalGeneration": D_MODEL | dict(
        num_mel_bins=8, max_source_positions=8, max_target_positions=16, suppress_tokens=None,
        begin_suppress_tokens=None,
    ),
    # images, sounds, both
    "ViTForImageClassification": VIT | dict(num_labels=5),
    "DeiTForImageClassification": VIT | dict(num_labels=5),
    "BeitForImageClassification": VIT | dict(num_labels=5),
    "SwinForImageClassification": dict(
        image_size=16, patch_size=2, num_channels=3, embed_dim=8, depths=[2, 1], num_heads=[2, 4], window_size=2,
        num_labels=5,
    ),
    "ConvNextForImageClassification": dict(
        num_channels=3, hidden_sizes=[8, 16], depths=[1, 1], num_stages=2, num_labels=5,
    ),
    "ResNetForImageClassification": dict(
        num_channels=3, embedding_size=8, hidden_sizes=[8, 16], depths=[1, 1], num_labels=5, layer_type="basic",
    ),
    "Dinov2Model": VIT,
    "Wav2Vec2ForCTC": TEXT | dict(
        conv_dim=(8, 8), conv_stride=(4, 2), conv_kernel=(8, 4), num_feat_extract_layers=2,
        num_conv_pos_embeddings=4, num_conv_pos_embedding_groups=2,
    ),
    "CLIPModel": dict(
        projection_dim=8,
        text_config=dict(
            vocab_size=37, hidden_size=16, intermediate_size=20, num_hidden_layers=1, num_attention_heads=2,
            max_position_embeddings=16, eos_token_id=2,
        ),
        vision_config=VIT,
    ),
}  # fmt: skip


def tiny_model(class_name: str) -> nn.Module:
    """With every parameter and statistic moved, as if it had been trained."""
    made_by = getattr(transformers, class_name)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        model = made_by(made_by.config_class(**ARCHITECTURES[class_name]))
        with torch.no_grad():
            for parameter in model.parameters():
                parameter.add_(torch.randn(parameter.shape) * 0.1)
            for name, buffer in model.named_buffers():
                if name.endswith("running_mean"):
                    buffer.normal_(0, 0.3)
                elif name.endswith("running_var"):
                    buffer.uniform_(0.2, 2)
    return model.requires_grad_(False).eval()
