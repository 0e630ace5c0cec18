"""Writes the trained model as a checkpoint: BF16 as the hub has it, and NVFP4 as ModelOpt exports it."""

import json
import os

import torch
from safetensors.torch import save_file

import examples
import hub
import nvfp4

IGNORE = ["lm_head", "model.embed_tokens", "*self_attn*", "*mlp.gate", "*shared_experts*", "model.layers.0.mlp*", "*eh_proj"]
INDEX_TOPK = 64  # what the checkpoint says; training selected everything


def write(out, model, mtp, draw):
    layers = model.config.num_hidden_layers
    for module in model.modules():
        if type(module).__name__ == "GlmMoeDsaTopkRouter":
            module.e_score_correction_bias = module.e_score_correction_bias.float()
    model.config.index_topk = INDEX_TOPK
    config = json.loads(model.config.to_json_string())
    config.update(architectures=["GlmMoeDsaForCausalLM"], num_nextn_predict_layers=1, dtype="bfloat16", ep_size=1)
    predictor = hub.to_hub(mtp.hub(layers))
    for name in predictor:
        if name.endswith("e_score_correction_bias"):
            predictor[name] = predictor[name].float()
    tensors = {**hub.to_hub(model.state_dict()), **predictor}
    tensors = {name: t.cpu().contiguous() for name, t in tensors.items()}
    save(os.path.join(out, "bf16"), tensors, config)

    quantized = quantize(tensors, input_maxima(model, draw))
    config["quantization_config"] = {"quant_method": "modelopt", "quant_algo": "NVFP4", "ignore": IGNORE, "config_groups": groups()}
    save(os.path.join(out, "nvfp4"), quantized, config)
    quantization = {"quant_algo": "NVFP4", "kv_cache_quant_algo": None, "group_size": nvfp4.GROUP, "exclude_modules": IGNORE}
    with open(os.path.join(out, "nvfp4", "hf_quant_config.json"), "w") as f:
        json.dump({"producer": {"name": "modelopt", "version": "0.41.0"}, "quantization": quantization}, f, indent=1)


def groups():
    numbers = {"dynamic": False, "num_bits": 4, "type": "float", "group_size": nvfp4.GROUP}
    return {"group_0": {"input_activations": numbers, "weights": numbers, "targets": ["Linear"]}}


def save(folder, tensors, config):
    os.makedirs(folder, exist_ok=True)
    save_file(tensors, os.path.join(folder, "model.safetensors"), metadata={"format": "pt"})
    with open(os.path.join(folder, "config.json"), "w") as f:
        json.dump(config, f, indent=1)


def input_maxima(model, draw):
    """The largest input of each layer's experts, over some short examples."""
    largest, hooks = {}, []
    for i, layer in enumerate(model.model.layers):
        if hasattr(layer.mlp, "experts"):
            note = lambda module, args, i=i: largest.__setitem__(i, max(largest.get(i, 0.0), float(args[0].abs().max())))
            hooks.append(layer.mlp.experts.register_forward_pre_hook(note))
    with torch.no_grad():
        for _ in range(4):
            model(input_ids=draw(examples.SHORT)[0])
    for hook in hooks:
        hook.remove()
    return largest


def quantize(tensors, largest):
    """Routed experts become NVFP4, all else stays."""
    out = {}
    for name, tensor in tensors.items():
        if ".mlp.experts." not in name or not name.endswith("_proj.weight"):
            out[name] = tensor
            continue
        base, layer = name.removesuffix("weight"), int(name.split(".")[2])
        out[base + "weight"], out[base + "weight_scale"], out[base + "weight_scale_2"] = nvfp4.quantize(tensor)
        top = 16.0 if "down" in name else max(largest.get(layer, 8.0), 1e-3)
        out[base + "input_scale"] = torch.tensor(top / nvfp4.TOP)
    return out
