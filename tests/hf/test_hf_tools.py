"""Tickets in the tools around transformers: as a frozen base, under LoRA, compiled, exported, evaluated."""

import json

import pytest
import torch
import transformers

import strongticket.hf  # noqa: F401 (teaches from_pretrained to load tickets)

TOKENS = torch.arange(12)[None]


@pytest.fixture(params=["folder", "built_folder"], ids=["searched", "built"])
def model(request):
    return transformers.AutoModelForCausalLM.from_pretrained(request.getfixturevalue(request.param))


def test_trainer_trains_a_head_on_the_frozen_ticket(model, tmp_path):
    frozen = {name: tensor.clone() for name, tensor in model.state_dict().items()}
    model.requires_grad_(False)
    model.transformer.ln_f.weight.requires_grad_(True)
    options = transformers.TrainingArguments(
        tmp_path, max_steps=2, report_to=[], save_strategy="no", use_cpu=True, disable_tqdm=True
    )
    transformers.Trainer(
        model, options, train_dataset=[{"input_ids": TOKENS[0], "labels": TOKENS[0]}] * 4
    ).train()
    changed = {name for name, tensor in model.state_dict().items() if not torch.equal(tensor, frozen[name])}
    assert changed == {"transformer.ln_f.weight"}


@pytest.mark.filterwarnings("ignore")  # peft's own
def test_a_lora_on_top(model, tmp_path):
    peft = pytest.importorskip("peft", reason="needs peft")
    before = model(TOKENS).logits
    config = peft.LoraConfig(r=2, target_modules=["c_attn"], fan_in_fan_out=True, task_type="CAUSAL_LM")
    tuned = peft.get_peft_model(model, config)
    assert torch.equal(tuned(TOKENS).logits, before)  # LoRA starts at zero
    optimiser = torch.optim.SGD([p for p in tuned.parameters() if p.requires_grad], lr=1.0)
    for _ in range(2):
        tuned(TOKENS, labels=TOKENS).loss.backward()
        optimiser.step()
    assert not torch.equal(tuned(TOKENS).logits, before)
    tuned.save_pretrained(tmp_path)
    assert (tmp_path / "adapter_model.safetensors").stat().st_size < 100_000


def test_torch_compile(model):
    compiled = torch.compile(model, backend="aot_eager")
    torch.testing.assert_close(compiled(TOKENS).logits, model(TOKENS).logits)


def test_torch_export(model):
    exported = torch.export.export(model.eval(), (TOKENS,), {"use_cache": False}, strict=False)
    found = exported.module()(TOKENS, use_cache=False).logits
    torch.testing.assert_close(found, model(TOKENS).logits)


@pytest.mark.filterwarnings("ignore")  # lm_eval's own
def test_lm_eval_on_a_local_task(folder, tmp_path):
    lm_eval = pytest.importorskip("lm_eval", reason="needs lm_eval")
    from lm_eval.models.huggingface import HFLM
    from lm_eval.tasks import TaskManager

    rows = [{"question": "once", "choices": [" upon", " ticket"], "answer": 0} for _ in range(2)]
    (tmp_path / "data.jsonl").write_text("\n".join(map(json.dumps, rows)))
    (tmp_path / "tiny.yaml").write_text(
        "task: tiny\ndataset_path: json\n"
        f"dataset_kwargs: {{data_files: {{test: {tmp_path / 'data.jsonl'}}}}}\n"
        "test_split: test\noutput_type: multiple_choice\ndoc_to_text: question\n"
        "doc_to_choice: choices\ndoc_to_target: answer\nmetric_list: [{metric: acc}]\n"
    )
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    tokenizer.eos_token = "."  # lm_eval wants to know what ends a text
    found = lm_eval.simple_evaluate(
        HFLM(pretrained=str(folder), tokenizer=tokenizer, device="cpu", batch_size=1),
        tasks=["tiny"],
        task_manager=TaskManager(include_path=str(tmp_path), include_defaults=False),
        bootstrap_iters=0,
    )
    assert found["results"]["tiny"]["acc,none"] in (0.0, 1.0)
