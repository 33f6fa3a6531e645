"""Small trained models of the families whose attention is known: odd sizes, biases and gains not 0 and 1."""

import copy

import pytest
import torch
from torch import nn

from strongticket.models.attention import AttentionMap, product_attention_of

transformers = pytest.importorskip("transformers", reason="needs strongticket[huggingface]")

LLAMA = dict(
    vocab_size=29, hidden_size=12, intermediate_size=17, num_hidden_layers=2, num_attention_heads=6,
    num_key_value_heads=2, max_position_embeddings=32,
)  # fmt: skip
BERT = dict(
    vocab_size=31, hidden_size=15, intermediate_size=22, num_hidden_layers=2, num_attention_heads=3,
    max_position_embeddings=20, pad_token_id=0,
)  # fmt: skip
VIT = dict(
    hidden_size=15, intermediate_size=22, num_hidden_layers=2, num_attention_heads=3, image_size=12, patch_size=4,
    num_channels=2,
)  # fmt: skip
GPT2 = dict(vocab_size=29, n_positions=24, n_embd=15, n_layer=2, n_head=3, n_inner=22)
ROPE = {"rope_theta": 100.0, "rope_type": "linear", "factor": 2.0}

HF_MODELS = {
    "llama": ("LlamaForCausalLM", LLAMA),
    "llama-bias": ("LlamaForCausalLM", LLAMA | dict(attention_bias=True, mlp_bias=True, head_dim=6)),
    "llama-bare": ("LlamaModel", LLAMA | dict(rope_parameters=ROPE)),
    "llama-tied": ("LlamaForCausalLM", LLAMA | dict(tie_word_embeddings=True)),
    "mistral": ("MistralForCausalLM", LLAMA | dict(sliding_window=None, head_dim=4)),
    "qwen2": ("Qwen2ForCausalLM", LLAMA | dict(num_key_value_heads=6)),
    "gpt2": ("GPT2LMHeadModel", GPT2),
    "gpt2-scaled": ("GPT2LMHeadModel", GPT2 | dict(scale_attn_by_inverse_layer_idx=True)),
    "gpt2-bare": ("GPT2Model", GPT2),
    "bert": ("BertModel", BERT),
    "bert-mlm": ("BertForMaskedLM", BERT),
    "bert-labels": ("BertForSequenceClassification", BERT | dict(num_labels=3)),
    "roberta": ("RobertaModel", BERT),
    "roberta-mlm": ("RobertaForMaskedLM", BERT),
    "roberta-labels": ("RobertaForSequenceClassification", BERT | dict(num_labels=3)),
    "vit": ("ViTForImageClassification", VIT | dict(num_labels=5)),
    "vit-bare": ("ViTModel", VIT | dict(qkv_bias=False)),
}
BY_PRODUCTS = [name for name in HF_MODELS if name.startswith(("llama", "mistral", "qwen2", "gpt2"))]


def trained(module: nn.Module, seed: int = 0) -> nn.Module:
    """As if it had been trained: every parameter is random, gains lie around 1."""
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for name, parameter in module.named_parameters():
            noise = torch.randn(parameter.shape, generator=generator)
            gain = parameter.ndim == 1 and name.endswith("weight")
            parameter.copy_(1 + 0.2 * noise if gain else 0.3 * noise)
    return module.requires_grad_(False).eval()


def hf_model(name: str) -> nn.Module:
    class_name, options = HF_MODELS[name]
    model_class = getattr(transformers, class_name)
    return trained(model_class(model_class.config_class(**options)))


def hf_inputs(model: nn.Module, batch: int = 3, tokens: int = 7) -> dict[str, torch.Tensor]:
    """Inputs with padding: on the left for models that generate, on the right otherwise."""
    generator = torch.Generator().manual_seed(1)
    config = model.config
    if config.model_type == "vit":
        return {"pixel_values": torch.randn(batch, 2, 12, 12, generator=generator)}
    ids = torch.randint(2, config.vocab_size, (batch, tokens), generator=generator)
    mask = torch.ones_like(ids)
    for row in range(batch):
        mask[row, slice(tokens - row, None) if "bert" in config.model_type else slice(row)] = 0
    inputs = {"input_ids": ids, "attention_mask": mask}
    if config.model_type == "bert":
        inputs["token_type_ids"] = (torch.arange(tokens) > 3).long().expand(batch, -1)
    return inputs


def outputs(model: nn.Module, inputs: dict[str, torch.Tensor]) -> torch.Tensor:
    """Logits or last hidden states where there is no padding."""
    with torch.no_grad():
        found = model(**inputs)
    names = ("logits", "logits_per_image", "last_hidden_state")
    result = next(found[name] for name in names if name in found)
    if "attention_mask" in inputs and result.ndim == 3:
        return result[inputs["attention_mask"].bool()]
    return result


def with_exact_products(model: nn.Module) -> nn.Module:
    """The model with every attention layer made of products, which are the targets themselves."""
    layers, network = product_attention_of(model), copy.deepcopy(model)
    network.set_attn_implementation("eager")
    for layer in layers:
        layer.install(network)
        for name, target in layer.targets(model):
            network.get_submodule(layer.path).get_parameter(name).data = torch.from_numpy(target).float()
    return network.requires_grad_(False).eval()


def run_attention(
    model: nn.Module, layer: AttentionMap, x: torch.Tensor, positions: torch.Tensor
) -> torch.Tensor:
    """What an attention layer of the model makes of any input (batch, tokens, dim), without a mask."""
    model.set_attn_implementation("eager")
    module = model.get_submodule(layer.path)
    if layer.shape.pairs:
        body = getattr(model, "model", model)
        return module(x, position_embeddings=body.rotary_emb(x, positions), attention_mask=None)[0]
    found = module(x)[0]
    if layer.path.endswith(".self"):  # BERT's projection is beside it
        found = model.get_submodule(layer.linears[-1])(found)
    return found


def stories_like(seed: int = 0) -> nn.Module:
    """A Llama of 260,000 numbers, as large as the smallest that tell stories; its rows are of several sizes."""
    config = transformers.LlamaConfig(
        vocab_size=512, hidden_size=64, intermediate_size=172, num_hidden_layers=5, num_attention_heads=8,
        num_key_value_heads=4, max_position_embeddings=512, tie_word_embeddings=True,
    )  # fmt: skip
    model = trained(transformers.LlamaForCausalLM(config), seed)
    generator = torch.Generator().manual_seed(seed)
    for parameter in model.parameters():
        if parameter.ndim > 1:
            parameter.mul_(torch.randn(len(parameter), 1, generator=generator).mul(0.5).exp())
    return model
